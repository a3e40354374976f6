//! The options that name a server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::config::{ConfigFile, ServerEntry, read_config};
use rehearsal::core::redact::shown_url;
use rehearsal::wire::container::Container;

use crate::cli::arguments::quoted;
use crate::cli::context::Context;
use crate::cli::exit::Failure;

/// The heading of these options.
const SERVER: &str = "Server";

/// The options that name a server.
#[derive(Args, Debug)]
pub(super) struct ServerTargetArgs {
    /// The command of the server: everything after `--`
    #[arg(last = true, value_name = "COMMAND", help_heading = SERVER, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// The URL of the server
    #[arg(long, value_name = "URL", help_heading = SERVER, value_hint = clap::ValueHint::Url)]
    url: Option<String>,

    /// The configuration of a client, such as .mcp.json, that has the server --server
    #[arg(long, value_name = "FILE", help_heading = SERVER, value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// The name of the server in the file --config
    #[arg(long, value_name = "NAME", requires = "config", help_heading = SERVER)]
    server: Option<String>,

    #[command(flatten)]
    container: ContainerArgs,
}

/// The ways to reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// By starting it.
    ByCommand,
    /// In a container.
    InContainer,
    /// Over HTTP.
    ByUrl,
}

impl ServerKind {
    /// Describes the servers in an error.
    pub(super) fn phrase(self) -> &'static str {
        match self {
            ServerKind::ByCommand => "that are started by a command",
            ServerKind::InContainer => "that run in a container",
            ServerKind::ByUrl => "that are reached by a URL",
        }
    }
}

impl ServerTargetArgs {
    /// Builds a client for the server that the user named, or for the server `name` of the file `--config`.
    pub(super) fn client(&self, name: Option<&str>, context: &Context) -> Result<(ClientBuilder, ServerKind), Failure> {
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
            return Err(two_servers(one, other));
        }
        if let Some((program, arguments)) = command {
            Ok((Client::command(program).args(arguments), ServerKind::ByCommand))
        } else if let Some(url) = &self.url {
            check_url(url)?;
            Ok((Client::url(url), ServerKind::ByUrl))
        } else if let Some(container) = container {
            Ok((Client::container(container), ServerKind::InContainer))
        } else if let Some(file) = &self.config {
            let name = name.or(self.server.as_deref()).ok_or_else(|| no_server_name(file))?;
            let entry = read_config(file, name, |variable| context.variable(variable))?;
            let kind = match entry {
                ServerEntry::Command { .. } => ServerKind::ByCommand,
                ServerEntry::Url { .. } => ServerKind::ByUrl,
            };
            Ok((entry.into(), kind))
        } else {
            let typed = context.typed();
            Err(Failure::bad_input("no server").hints([
                format!("start a server: {typed} -- npx -y @modelcontextprotocol/server-everything"),
                format!("use a URL:      {typed} --url http://127.0.0.1:3000/mcp"),
                format!("run an image:   {typed} --container my-server:latest"),
                format!("from a file:    {typed} --config .mcp.json --server NAME"),
            ]))
        }
    }

    /// The names of all servers in the file `--config`, each once; `None` if there is a `--server`.
    pub(super) fn config_servers(&self) -> Result<Option<Vec<String>>, Failure> {
        let (Some(file), None) = (&self.config, &self.server) else { return Ok(None) };
        let names = server_names(file)?;
        if names.is_empty() {
            return Err(Failure::bad_input(format_args!("{} has no servers", file.display())));
        }
        Ok(Some(names))
    }

    /// True if nothing names a server.
    pub(super) fn is_empty(&self) -> bool {
        let of_container = self.container.container.is_some() || self.container.exec.is_some();
        self.command.is_empty() && self.url.is_none() && self.config.is_none() && !of_container
    }

    /// An option that has an effect on containers only, if there is one.
    pub(super) fn container_option(&self) -> Option<&'static str> {
        self.container.extra()
    }
}

/// The options that name a server in a container.
#[derive(Args, Debug)]
struct ContainerArgs {
    /// Run this image; the words after `--` are its arguments
    #[arg(long, value_name = "IMAGE", help_heading = SERVER)]
    container: Option<String>,

    /// Run the command after `--` in this running container
    #[arg(long, value_name = "CONTAINER", help_heading = SERVER)]
    exec: Option<String>,

    /// The engine of the container [default: docker, podman or nerdctl, whichever is found]
    #[arg(long, value_name = "NAME", help_heading = SERVER, value_hint = clap::ValueHint::CommandName)]
    engine: Option<OsString>,

    /// One more option for the engine's `run` or `exec`, such as --volume=DIR:DIR; may be repeated
    #[arg(long, value_name = "OPTION", help_heading = SERVER, allow_hyphen_values = true)]
    engine_option: Vec<OsString>,
}

impl ContainerArgs {
    /// The container that the user named, with the words after `--`.
    fn container(&self, words: &[OsString]) -> Result<Option<Container>, Failure> {
        let mut container = match (&self.container, &self.exec) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(two_servers("--container", "--exec")),
            (Some(image), None) => Container::image(image),
            (None, Some(name)) if words.is_empty() => {
                return Err(Failure::bad_input(format_args!("--exec {name} needs the command of the server"))
                    .hint(format!("write it after `--`: --exec {name} -- my-server")));
            }
            (None, Some(name)) => Container::running(name),
        };
        container.engine.clone_from(&self.engine);
        container.options.clone_from(&self.engine_option);
        container.arguments = words.to_vec();
        Ok(Some(container))
    }

    /// The option that names the container.
    fn option(&self) -> &'static str {
        if self.exec.is_some() { "--exec" } else { "--container" }
    }

    /// An option that has an effect on containers only, if there is one.
    fn extra(&self) -> Option<&'static str> {
        let engine = self.engine.as_ref().map(|_| "--engine");
        engine.or_else(|| (!self.engine_option.is_empty()).then_some("--engine-option"))
    }
}

fn server_names(file: &Path) -> Result<Vec<String>, Failure> {
    let config = ConfigFile::read(file)?;
    let mut names: Vec<String> = Vec::new();
    for server in config.servers()? {
        if !names.iter().any(|name| name == server.name) {
            names.push(server.name.to_owned());
        }
    }
    Ok(names)
}

/// `--config` without `--server`.
fn no_server_name(file: &Path) -> Failure {
    let shown = file.display();
    let failure = Failure::bad_input(format_args!("--config {shown} needs --server NAME"));
    match server_names(file) {
        Ok(names) if !names.is_empty() => failure
            .hint(format!("{shown} has {}", quoted(&names, ", ")))
            .hint(format!("`rehearse list --config {shown}` lists what each of them offers")),
        Ok(_) | Err(_) => failure,
    }
}

fn two_servers(one: &str, other: &str) -> Failure {
    Failure::bad_input(format_args!("{one} and {other} both name a server; use one of them"))
}

/// Checks the URL of a server.
pub(crate) fn check_url(url: &str) -> Result<(), Failure> {
    let bad = |why| {
        Failure::bad_input(format_args!("--url {:?}: {why}", shown_url(url)))
            .hint("write it like http://127.0.0.1:3000/mcp")
    };
    let parsed: http::Uri = url.parse().map_err(|_| bad("not a URL"))?;
    match parsed.scheme_str() {
        Some("http" | "https") if parsed.host().is_some_and(|host| !host.is_empty()) => Ok(()),
        Some("http" | "https") => Err(bad("it has no host")),
        Some(_) => Err(bad("only http and https are supported")),
        None => Err(bad("it must begin with http:// or https://")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_url_is_refused_with_a_reason() {
        let why = |url: &str| check_url(url).unwrap_err().to_string();
        assert_eq!(why("localhost:3000"), r#"--url "localhost:3000": it must begin with http:// or https://"#);
        assert_eq!(why("ftp://a/"), r#"--url "ftp://a/": only http and https are supported"#);
        assert!(check_url("https://example.com/mcp").is_ok());
    }
}
