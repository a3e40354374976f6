//! The options of every verb that connects to a server.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientError, ClientHandlers, HttpTransport, Protocol};
use rehearsal::core::message::Method;
use rehearsal::core::protocol::Era;
use rehearsal::core::redact::Redaction;
use rehearsal::oauth::{OAuth, TokenStore};

use super::answer_args::{AnswerArgs, ConfiguredAnswers, no_directory};
use super::elicitation;
use super::live_output::{AnsweredMethods, LiveOutput, message_printer};
use super::target::{ServerKind, ServerTargetArgs};
use crate::cli::context::Context;
use crate::cli::exit::Failure;

const CONNECTION: &str = "Connection";
/// The log levels, from the least to the most urgent.
const LOG_LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// The log level of `rehearse call` without `--log-level`.
const DEFAULT_LOG_LEVEL: &str = "info";
/// The heading of the output options.
pub(crate) const OUTPUT: &str = "Output";

/// The options of every verb that connects to a server.
#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    target: ServerTargetArgs,

    /// How long to wait for each answer: 30, 0.5, 500ms, 2m
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = rehearsal::core::duration::read, help_heading = CONNECTION)]
    timeout: Duration,

    /// Era and version: auto, legacy, modern, or a version such as 2025-06-18
    #[arg(long, value_name = "VERSION", default_value = "auto", value_parser = str::parse::<Protocol>, help_heading = CONNECTION)]
    protocol: Protocol,

    /// The transport of the URL; auto is Streamable HTTP, or the older HTTP+SSE
    #[arg(long, value_enum, default_value_t = Transport::Auto, help_heading = CONNECTION)]
    transport: Transport,

    /// Send a header with every HTTP request; may be repeated
    #[arg(long, value_name = "'NAME: VALUE'", value_parser = header, help_heading = CONNECTION)]
    header: Vec<(String, String)>,

    /// Set a variable for the server's command or container; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, help_heading = CONNECTION)]
    env: Vec<(String, String)>,

    /// Run the server's command in this directory
    #[arg(long, value_name = "DIR", help_heading = CONNECTION, value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,

    /// Request log messages from this level on
    #[arg(long, value_name = "LEVEL", value_parser = LOG_LEVELS, help_heading = CONNECTION)]
    log_level: Option<String>,

    #[command(flatten)]
    login: LoginArgs,

    #[command(flatten)]
    answers: AnswerArgs,

    /// Print JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,

    /// Print on stderr all messages to the server (>) and from it (<), and its stderr (!)
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) verbose: bool,
}

/// The output format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownAs {
    /// Text for users.
    Text,
    /// JSON for programs.
    Json,
}

/// The transport of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    // Plain comments: help for each value would spread `--help` over several pages.
    // Streamable HTTP, or HTTP+SSE if the server does not support it.
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

impl ServerArgs {
    /// Builds a client for the server that the user named, or for the server `name` of the file `--config`. On a terminal
    /// the user answers elicitations.
    pub(crate) fn client(&self, name: Option<&str>, context: &Context) -> Result<ClientBuilder, Failure> {
        let ConfiguredAnswers { mut answers, mut methods } = self.answers.configured()?;
        if !methods.contains(&Method::ELICITATION) && context.is_interactive {
            answers = elicitation::ask_user(answers, &context.stderr);
            methods.push(Method::ELICITATION);
        }
        let builder = self.builder(name, answers, context)?;
        Ok(message_printer(builder, self.shown(), AnsweredMethods::These(methods), &Redaction::none(), &context.stderr))
    }

    /// Builds a client whose caller answers all server requests. Its output is redacted.
    pub(crate) fn client_answering(&self, context: &Context, redaction: &Redaction) -> Result<ClientBuilder, Failure> {
        let builder = self.builder(None, self.answers.configured()?.answers, context)?;
        Ok(message_printer(builder, self.shown(), AnsweredMethods::All, redaction, &context.stderr))
    }

    fn shown(&self) -> LiveOutput {
        if self.verbose { LiveOutput::Wire } else { LiveOutput::Logs }
    }

    fn builder(
        &self,
        name: Option<&str>,
        answers: ClientHandlers,
        context: &Context,
    ) -> Result<ClientBuilder, Failure> {
        let (builder, kind) = self.target.client(name, context)?;
        self.check_use(kind)?;
        let builder = builder.timeout(self.timeout).protocol(self.protocol).handlers(answers);
        // `auto` keeps the transport of an entry in a file.
        let builder = match self.transport {
            Transport::Auto => builder,
            Transport::Http | Transport::Sse => builder.transport(self.transport.into()),
        };
        let builder = self.header.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        let builder = match self.login.oauth(context)? {
            Some(oauth) => builder.oauth(oauth),
            None => builder,
        };
        let builder = self.env.iter().fold(builder, |builder, (key, value)| builder.env(key, value));
        let builder = match &self.cwd {
            Some(path) => builder.current_dir(path),
            None => builder,
        };
        Ok(builder)
    }

    /// True if nothing names a server.
    pub(crate) fn names_no_server(&self) -> bool {
        self.target.is_empty()
    }

    /// The names of all servers in the file `--config`; `None` if the user named one server.
    pub(crate) fn config_servers(&self) -> Result<Option<Vec<String>>, Failure> {
        self.target.config_servers()
    }

    /// The value of `--protocol`.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Sets the log level of `--log-level`.
    pub(crate) async fn set_log_level(&self, client: &Client) -> Result<(), ClientError> {
        match &self.log_level {
            Some(level) => client.set_log_level(level).await,
            None => Ok(()),
        }
    }

    /// Sets the default log level for a call. Without a level, servers before 2026-07-28 choose one, and later servers
    /// send no log messages.
    pub(crate) async fn set_default_log_level(&self, client: &Client) -> Result<(), ClientError> {
        match (&self.log_level, client.revision().era()) {
            (None, Era::Modern) => client.set_log_level(DEFAULT_LOG_LEVEL).await,
            (Some(_), _) | (None, Era::Legacy) => Ok(()),
        }
    }

    /// The output format.
    pub(crate) fn shown_as(&self) -> ShownAs {
        if self.json { ShownAs::Json } else { ShownAs::Text }
    }

    /// Refuses options that have no effect on this kind of server.
    fn check_use(&self, kind: ServerKind) -> Result<(), Failure> {
        if let Some(path) = self.cwd.as_ref().filter(|path| !path.is_dir()) {
            return Err(no_directory("--cwd", path));
        }
        let is_authorization = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if self.login.login && self.header.iter().any(is_authorization) {
            return Err(Failure::bad_input("--login and --header Authorization both authorize; use one of them"));
        }
        let container_option = self.target.container_option();
        let options = [
            ("--header", !self.header.is_empty(), &[ServerKind::ByUrl][..]),
            ("--login", self.login.login, &[ServerKind::ByUrl]),
            ("--transport", self.transport != Transport::Auto, &[ServerKind::ByUrl]),
            ("--env", !self.env.is_empty(), &[ServerKind::ByCommand, ServerKind::InContainer]),
            ("--cwd", self.cwd.is_some(), &[ServerKind::ByCommand]),
            (container_option.unwrap_or_default(), container_option.is_some(), &[ServerKind::InContainer]),
        ];
        match options.into_iter().find(|(_, given, wanted)| *given && !wanted.contains(&kind)) {
            Some((option, _, wanted)) => Err(no_use(option, wanted[0])),
            None => Ok(()),
        }
    }
}

/// The error for an option without an effect on this server.
pub(crate) fn no_use(option: &str, wanted: ServerKind) -> Failure {
    Failure::bad_input(format_args!("{option} has no effect: it is for servers {}", wanted.phrase()))
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
        Some(_) | None => Err("write it like KEY=VALUE".to_owned()),
    }
}

const LOGIN: &str = "Login";
/// The variable with the client secret. A command line is visible to all users of a machine.
const SECRET: &str = "REHEARSE_CLIENT_SECRET";

/// The options of a login at a server with a URL.
#[derive(Args, Debug)]
pub(crate) struct LoginArgs {
    /// Log in with OAuth if the server requires it, and store the token
    #[arg(long, help_heading = LOGIN)]
    pub(crate) login: bool,

    /// How long to wait for the user to log in
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = rehearsal::core::duration::read, requires = "login", help_heading = LOGIN)]
    login_timeout: Duration,

    /// Request this scope; may be repeated [default: the scopes that the server names]
    #[arg(long, value_name = "SCOPE", requires = "login", help_heading = LOGIN)]
    scope: Vec<String>,

    /// The id of a registered client; its secret, if any, is in REHEARSE_CLIENT_SECRET
    #[arg(long, value_name = "ID", requires = "login", help_heading = LOGIN)]
    client_id: Option<String>,
}

impl LoginArgs {
    /// The login; `None` without `--login`.
    pub(crate) fn oauth(&self, context: &Context) -> Result<Option<OAuth>, Failure> {
        if !self.login {
            return Ok(None);
        }
        let stderr = context.stderr.clone();
        let oauth = OAuth::with_browser(move |url| {
            stderr.note("the server requires a login; open this URL:");
            stderr.note(format_args!("  {url}"));
            stderr.note(
                "waiting for the browser (on another machine: run curl here with the URL that it is redirected to)",
            );
        });
        let oauth = oauth.login_timeout(self.login_timeout).scopes(&self.scope).store(token_store(context)?);
        Ok(Some(match &self.client_id {
            Some(id) => oauth.client(id, context.variable(SECRET)),
            None => oauth,
        }))
    }
}

/// The store of tokens: `$XDG_STATE_HOME/rehearsal/tokens`.
pub(crate) fn token_store(context: &Context) -> Result<TokenStore, Failure> {
    let set = |name: &str| context.variable(name).filter(|value| value.starts_with('/'));
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.local/state")));
    state
        .map(|state| TokenStore::at(format!("{state}/rehearsal/tokens")))
        .ok_or_else(|| Failure::bad_input("--login: cannot store the token: neither XDG_STATE_HOME nor HOME is set"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_split_at_its_first_colon() {
        assert_eq!(header("X-Url: http://a"), Ok(("X-Url".to_owned(), "http://a".to_owned())));
        assert!(header("Authorization Bearer").is_err());
        assert!(header("two words: x").is_err());
    }
}
