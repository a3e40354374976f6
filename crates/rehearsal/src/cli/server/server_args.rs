//! What every verb that talks to a server takes.

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

const HOW: &str = "How to connect to it";
/// By which servers log, from the least to the most urgent.
const LOG_LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// From which level on a person at a terminal wants to hear of a call.
const USUAL_LOG_LEVEL: &str = "info";
/// The heading of what is printed.
pub(crate) const OUTPUT: &str = "Output";

/// What every verb that talks to a server takes.
#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    target: ServerTargetArgs,

    /// How long to wait for each answer: 30, 0.5, 500ms, 2m
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = rehearsal::core::duration::read, help_heading = HOW)]
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

    /// Set a variable for the server's command or container; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, help_heading = HOW)]
    env: Vec<(String, String)>,

    /// Run the server's command in this directory
    #[arg(long, value_name = "DIR", help_heading = HOW, value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,

    /// From which level on the server's log messages are wanted
    #[arg(long, value_name = "LEVEL", value_parser = LOG_LEVELS, help_heading = HOW)]
    log_level: Option<String>,

    #[command(flatten)]
    login: LoginArgs,

    #[command(flatten)]
    answers: AnswerArgs,

    /// Print JSON for programs
    #[arg(long, help_heading = OUTPUT)]
    json: bool,

    /// Show on stderr what goes to the server (>), comes from it (<), and what it says on its stderr (!)
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) verbose: bool,
}

/// How an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownAs {
    /// For people.
    Text,
    /// For programs.
    Json,
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

impl ServerArgs {
    /// Builds a client for the server that the user named, or for the server `name` of the file `--config`. On a terminal
    /// the user answers elicitations.
    pub(crate) fn client(&self, name: Option<&str>, context: &Context) -> Result<ClientBuilder, Failure> {
        let ConfiguredAnswers { mut answers, mut methods } = self.answers.configured()?;
        if !methods.contains(&Method::ELICITATION) && elicitation::is_possible() {
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
            Some(path) => builder.working_dir(path),
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

    /// The era and version that were asked for.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Says which log messages are wanted, where that was said to us.
    pub(crate) async fn ask_for_logs(&self, client: &Client) -> Result<(), ClientError> {
        match &self.log_level {
            Some(level) => client.set_log_level(level).await,
            None => Ok(()),
        }
    }

    /// The same for what logs while it works. Before 2026-07-28 a server that is told nothing sends what it likes; since
    /// then it sends nothing.
    pub(crate) async fn ask_for_logs_of_call(&self, client: &Client) -> Result<(), ClientError> {
        match (&self.log_level, client.revision().era()) {
            (None, Era::Modern) => client.set_log_level(USUAL_LOG_LEVEL).await,
            (Some(_), _) | (None, Era::Legacy) => Ok(()),
        }
    }

    /// How the answer is to be shown.
    pub(crate) fn shown_as(&self) -> ShownAs {
        if self.json { ShownAs::Json } else { ShownAs::Text }
    }

    /// Refuses options that have no effect on this kind of server.
    fn check_use(&self, kind: ServerKind) -> Result<(), Failure> {
        if let Some(path) = self.cwd.as_ref().filter(|path| !path.is_dir()) {
            return Err(no_directory("--cwd", path));
        }
        let said = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if self.login.login && self.header.iter().any(said) {
            return Err(Failure::bad_input("--login and --header Authorization both authorize; which one is meant?"));
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

/// An option for other servers than the one that was named.
pub(crate) fn no_use(option: &str, wanted: ServerKind) -> Failure {
    Failure::bad_input(format_args!("{option} is of no use: it is for servers {}", wanted.phrase()))
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

const LOGIN: &str = "Logging in";
/// Where a secret is looked for: command lines are seen by everybody on a machine.
const SECRET: &str = "REHEARSE_CLIENT_SECRET";

/// Whether, and how, to log in to a server that is reached by a URL.
#[derive(Args, Debug)]
pub(crate) struct LoginArgs {
    /// Log in where the server asks for it (OAuth), and keep the token for the next time
    #[arg(long, help_heading = LOGIN)]
    pub(crate) login: bool,

    /// How long the user may take to log in
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = rehearsal::core::duration::read, requires = "login", help_heading = LOGIN)]
    login_timeout: Duration,

    /// Ask for this scope; may be repeated [default: those that the server names]
    #[arg(long, value_name = "SCOPE", requires = "login", help_heading = LOGIN)]
    scope: Vec<String>,

    /// The client that was registered beforehand; its secret, if any, is in REHEARSE_CLIENT_SECRET
    #[arg(long, value_name = "ID", requires = "login", help_heading = LOGIN)]
    client_id: Option<String>,
}

impl LoginArgs {
    /// How to log in; `None` where nobody should.
    pub(crate) fn oauth(&self, context: &Context) -> Result<Option<OAuth>, Failure> {
        if !self.login {
            return Ok(None);
        }
        let stderr = context.stderr.clone();
        let oauth = OAuth::with_browser(move |url| {
            stderr.note("the server wants to know who you are; log in here:");
            stderr.note(format_args!("  {url}"));
            stderr.note("waiting for the browser to come back (on another machine: give the address where it ends to curl here)");
        });
        let oauth = oauth.login_timeout(self.login_timeout).scopes(&self.scope).store(store(context)?);
        Ok(Some(match &self.client_id {
            Some(id) => oauth.client(id, context.variable(SECRET)),
            None => oauth,
        }))
    }
}

/// Where tokens are kept: `$XDG_STATE_HOME/rehearsal/tokens`.
pub(crate) fn store(context: &Context) -> Result<TokenStore, Failure> {
    let set = |name: &str| context.variable(name).filter(|value| value.starts_with('/'));
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.local/state")));
    state.map(|state| TokenStore::at(format!("{state}/rehearsal/tokens"))).ok_or_else(|| {
        Failure::bad_input("--login: no place to keep the token: neither XDG_STATE_HOME nor HOME is set")
    })
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
}
