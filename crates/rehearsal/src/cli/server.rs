//! Which server, and how to talk to it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ConfigError, HttpTransport, Protocol, ServerEntry, read_config};

use super::context::Context;
use super::duration::duration;
use crate::print::{Talk, wire_line};

const WHICH: &str = "The server, one of";
const HOW: &str = "How to talk to it";
const OUTPUT: &str = "Output";

/// What every verb that talks to a server takes.
#[derive(Args, Debug)]
pub(super) struct ServerOptions {
    /// Start a server: everything after `--` is its command
    #[arg(last = true, value_name = "COMMAND", help_heading = WHICH)]
    command: Vec<OsString>,

    /// Reach a server over HTTP
    #[arg(long, value_name = "URL", help_heading = WHICH)]
    url: Option<String>,

    /// Look a server up in a file of `mcpServers`, such as .mcp.json ...
    #[arg(long, value_name = "FILE", requires = "server", help_heading = WHICH)]
    config: Option<PathBuf>,

    /// ... by its name there
    #[arg(long, value_name = "NAME", requires = "config", help_heading = WHICH)]
    server: Option<String>,

    /// How long to wait for each answer: 30, 0.5, 500ms, 2m
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = duration, help_heading = HOW)]
    timeout: Duration,

    /// Era and version: auto, legacy, modern, or a version such as 2025-06-18
    #[arg(long, value_name = "VERSION", default_value = "auto", value_parser = str::parse::<Protocol>, help_heading = HOW)]
    protocol: Protocol,

    /// How the URL is spoken to; auto is Streamable HTTP, or the older HTTP+SSE
    #[arg(long, value_enum, default_value_t = Transport::Auto, help_heading = HOW)]
    transport: Transport,

    /// Send a header with every HTTP request; may be repeated
    #[arg(long, value_name = "'NAME: VALUE'", value_parser = header, help_heading = HOW)]
    header: Vec<(String, String)>,

    /// Set a variable for the server's command; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, help_heading = HOW)]
    env: Vec<(String, String)>,

    /// Run the server's command in this directory
    #[arg(long, value_name = "DIR", help_heading = HOW)]
    cwd: Option<PathBuf>,

    /// Print JSON for programs
    #[arg(long, help_heading = OUTPUT)]
    pub(super) json: bool,

    /// Show on stderr what goes to the server (>), comes from it (<), and what it says on its stderr (!)
    #[arg(short, long, help_heading = OUTPUT)]
    pub(super) verbose: bool,
}

/// How a URL is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    // Plain comments: help for each value would spread `--help` over several pages.
    // Streamable HTTP, and HTTP+SSE where the server does not know that.
    Auto,
    // Streamable HTTP.
    Http,
    // HTTP+SSE, of 2024-11-05.
    Sse,
}

impl From<Transport> for HttpTransport {
    fn from(transport: Transport) -> HttpTransport {
        match transport {
            Transport::Auto => HttpTransport::Auto,
            Transport::Http => HttpTransport::Streamable,
            Transport::Sse => HttpTransport::Sse,
        }
    }
}

/// What is wrong with what was said about the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    /// No server was named.
    #[error("which server?")]
    NoServer,
    /// More than one server was named.
    #[error("{one} and {other} both name a server; which one is meant?")]
    TwoServers {
        /// One of them.
        one: &'static str,
        /// Another one.
        other: &'static str,
    },
    /// The URL is none.
    #[error("--url {url:?}: {why}")]
    BadUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no such directory.
    #[error("--cwd {}: there is no such directory", path.display())]
    NoDirectory {
        /// What was given.
        path: PathBuf,
    },
    /// An option is of no use here.
    #[error("{option} is of no use: it is for servers {}", wanted.phrase())]
    NoUse {
        /// The option.
        option: &'static str,
        /// The servers that it is for.
        wanted: Reached,
    },
    /// The file with servers is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The two ways to reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// By starting it.
    ByCommand,
    /// Over HTTP.
    ByUrl,
}

impl Reached {
    fn phrase(self) -> &'static str {
        match self {
            Reached::ByCommand => "that are started by a command",
            Reached::ByUrl => "that are reached by a URL",
        }
    }
}

impl ServerOptions {
    /// A client for the server that was named.
    pub(super) fn client(&self, context: &Context) -> Result<ClientBuilder, ServerError> {
        let (builder, reached) = self.named(context)?;
        self.check_use(reached)?;
        let builder = builder.timeout(self.timeout).protocol(self.protocol);
        // `auto` is what an entry of a file may have said better.
        let builder = match self.transport {
            Transport::Auto => builder,
            Transport::Http | Transport::Sse => builder.transport(self.transport.into()),
        };
        let builder = self.header.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        let builder = self.env.iter().fold(builder, |builder, (key, value)| builder.env(key, value));
        let builder = match &self.cwd {
            Some(path) => builder.working_dir(path),
            None => builder,
        };
        Ok(if self.verbose { told(builder, context.talk) } else { builder })
    }

    fn named(&self, context: &Context) -> Result<(ClientBuilder, Reached), ServerError> {
        let two = |one, other| Err(ServerError::TwoServers { one, other });
        match (self.command.split_first(), &self.url, &self.config, &self.server) {
            (Some((program, arguments)), None, None, _) => {
                Ok((Client::command(program).arguments(arguments), Reached::ByCommand))
            }
            (None, Some(url), None, _) => {
                check_url(url)?;
                Ok((Client::url(url), Reached::ByUrl))
            }
            (None, None, Some(file), Some(name)) => {
                Ok(entry(read_config(file, name, |variable| context.variable(variable))?))
            }
            (Some(_), Some(_), ..) => two("the command after `--`", "--url"),
            (Some(_), None, Some(_), _) => two("the command after `--`", "--config"),
            (None, Some(_), Some(_), _) => two("--url", "--config"),
            (None, None, ..) => Err(ServerError::NoServer),
        }
    }

    fn check_use(&self, reached: Reached) -> Result<(), ServerError> {
        if let Some(path) = self.cwd.as_ref().filter(|path| !path.is_dir()) {
            return Err(ServerError::NoDirectory { path: path.clone() });
        }
        let options = [
            ("--header", !self.header.is_empty(), Reached::ByUrl),
            ("--transport", self.transport != Transport::Auto, Reached::ByUrl),
            ("--env", !self.env.is_empty(), Reached::ByCommand),
            ("--cwd", self.cwd.is_some(), Reached::ByCommand),
        ];
        match options.into_iter().find(|(_, given, wanted)| *given && *wanted != reached) {
            Some((option, _, wanted)) => Err(ServerError::NoUse { option, wanted }),
            None => Ok(()),
        }
    }
}

impl ServerError {
    /// What to do about it.
    pub(super) fn hints(&self) -> Vec<String> {
        match self {
            ServerError::NoServer => vec![
                "start one:    rehearse list -- npx -y @modelcontextprotocol/server-everything".to_owned(),
                "reach one:    rehearse list --url http://127.0.0.1:3000/mcp".to_owned(),
                "look one up:  rehearse list --config .mcp.json --server NAME".to_owned(),
            ],
            ServerError::BadUrl { .. } => vec!["write it like http://127.0.0.1:3000/mcp".to_owned()],
            ServerError::TwoServers { .. }
            | ServerError::NoDirectory { .. }
            | ServerError::NoUse { .. }
            | ServerError::Config(_) => Vec::new(),
        }
    }
}

fn entry(entry: ServerEntry) -> (ClientBuilder, Reached) {
    match entry {
        ServerEntry::Command { command, arguments, environment, working_dir } => {
            let builder = Client::command(command).arguments(arguments);
            let builder = environment.into_iter().fold(builder, |builder, (key, value)| builder.env(key, value));
            let builder = match working_dir {
                Some(path) => builder.working_dir(path),
                None => builder,
            };
            (builder, Reached::ByCommand)
        }
        ServerEntry::Url { url, headers, sse } => {
            let builder = headers.into_iter().fold(Client::url(url), |builder, (k, v)| builder.header(k, v));
            (if sse { builder.transport(HttpTransport::Sse) } else { builder }, Reached::ByUrl)
        }
    }
}

/// Shows the wire and the server's stderr as they happen.
fn told(builder: ClientBuilder, talk: Talk) -> ClientBuilder {
    let builder = builder.on_message(move |from, message| {
        let (mark, line) = wire_line(from, message);
        talk.wire(mark, line);
    });
    builder.on_stderr(move |line| talk.wire("!", line))
}

fn check_url(url: &str) -> Result<(), ServerError> {
    let bad = |why| ServerError::BadUrl { url: url.to_owned(), why };
    let parsed: http::Uri = url.parse().map_err(|_| bad("not a URL"))?;
    match parsed.scheme_str() {
        Some("http" | "https") if parsed.host().is_some_and(|host| !host.is_empty()) => Ok(()),
        Some("http" | "https") => Err(bad("it has no host")),
        Some(_) => Err(bad("only http and https are spoken")),
        None => Err(bad("it must begin with http:// or https://")),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let wrong = || "write it like 'Authorization: Bearer TOKEN'".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let (name, value) = (name.trim(), value.trim());
    http::HeaderName::try_from(name).map_err(|_| format!("{name:?} cannot be the name of a header"))?;
    http::HeaderValue::try_from(value).map_err(|_| format!("{name} cannot have that value"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_parted_at_its_first_colon() {
        assert_eq!(header("X-Url: http://a"), Ok(("X-Url".to_owned(), "http://a".to_owned())));
        assert!(header("Authorization Bearer").is_err());
        assert!(header("two words: x").is_err());
    }

    #[test]
    fn what_is_no_url_is_refused_with_a_reason() {
        let why = |url: &str| check_url(url).unwrap_err().to_string();
        assert_eq!(why("localhost:3000"), r#"--url "localhost:3000": it must begin with http:// or https://"#);
        assert_eq!(why("ftp://a/"), r#"--url "ftp://a/": only http and https are spoken"#);
        assert!(check_url("https://example.com/mcp").is_ok());
    }
}
