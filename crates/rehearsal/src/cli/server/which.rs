//! Which server.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::config::{ServerEntry, read_config};

use super::container::ContainerOptions;
use super::error::ServerError;
use crate::cli::context::Context;

/// The heading of these options.
pub(super) const WHICH: &str = "The server, one of";

/// What names a server.
#[derive(Args, Debug)]
pub(super) struct Which {
    /// Start a server: everything after `--` is its command
    #[arg(last = true, value_name = "COMMAND", help_heading = WHICH, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// Reach a server over HTTP
    #[arg(long, value_name = "URL", help_heading = WHICH, value_hint = clap::ValueHint::Url)]
    url: Option<String>,

    /// Look a server up in the file of a client, such as .mcp.json ...
    #[arg(long, value_name = "FILE", requires = "server", help_heading = WHICH, value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// ... by its name there
    #[arg(long, value_name = "NAME", requires = "config", help_heading = WHICH)]
    server: Option<String>,

    #[command(flatten)]
    container: ContainerOptions,
}

/// The ways to reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// By starting it.
    ByCommand,
    /// In a container.
    InContainer,
    /// Over HTTP.
    ByUrl,
}

impl Reached {
    /// Which servers these are.
    pub(super) fn phrase(self) -> &'static str {
        match self {
            Reached::ByCommand => "that are started by a command",
            Reached::InContainer => "that run in a container",
            Reached::ByUrl => "that are reached by a URL",
        }
    }
}

impl Which {
    /// A client for the server that was named.
    pub(super) fn client(&self, context: &Context) -> Result<(ClientBuilder, Reached), ServerError> {
        let container = self.container.container(&self.command)?;
        let command = if container.is_some() { None } else { self.command.split_first() };
        let given = [
            ("the command after `--`", command.is_some()),
            ("--url", self.url.is_some()),
            (self.container.option(), container.is_some()),
            ("--config", self.config.is_some()),
        ];
        let mut given = given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name);
        if let (Some(one), Some(other)) = (given.next(), given.next()) {
            return Err(ServerError::TwoServers { one, other });
        }
        if let Some((program, arguments)) = command {
            Ok((Client::command(program).arguments(arguments), Reached::ByCommand))
        } else if let Some(url) = &self.url {
            check_url(url)?;
            Ok((Client::url(url), Reached::ByUrl))
        } else if let Some(container) = container {
            Ok((Client::container(container), Reached::InContainer))
        } else if let (Some(file), Some(name)) = (&self.config, &self.server) {
            let entry = read_config(file, name, |variable| context.variable(variable))?;
            let reached = match entry {
                ServerEntry::Command { .. } => Reached::ByCommand,
                ServerEntry::Url { .. } => Reached::ByUrl,
            };
            Ok((entry.into(), reached))
        } else {
            Err(ServerError::NoServer { typed: context.typed() })
        }
    }

    /// The first option about containers that was given.
    pub(super) fn container_option(&self) -> Option<&'static str> {
        self.container.extra()
    }
}

/// Whether that can be the URL of a server.
pub(crate) fn check_url(url: &str) -> Result<(), ServerError> {
    let bad = |why| ServerError::BadUrl { url: url.to_owned(), why };
    let parsed: http::Uri = url.parse().map_err(|_| bad("not a URL"))?;
    match parsed.scheme_str() {
        Some("http" | "https") if parsed.host().is_some_and(|host| !host.is_empty()) => Ok(()),
        Some("http" | "https") => Err(bad("it has no host")),
        Some(_) => Err(bad("only http and https are spoken")),
        None => Err(bad("it must begin with http:// or https://")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_url_is_refused_with_a_reason() {
        let why = |url: &str| check_url(url).unwrap_err().to_string();
        assert_eq!(why("localhost:3000"), r#"--url "localhost:3000": it must begin with http:// or https://"#);
        assert_eq!(why("ftp://a/"), r#"--url "ftp://a/": only http and https are spoken"#);
        assert!(check_url("https://example.com/mcp").is_ok());
    }
}
