//! Why a verb could not do what it should, and what to do about it.

use std::io;
use std::path::PathBuf;

use rehearsal::client::{ClientError, NoiseOn};
use rehearsal::core::message::Method;
use rehearsal::core::protocol::code;
use rehearsal::wire::SendError;
use rehearsal::wire::container::EngineError;
use rehearsal::wire::http::server::BindError;
use rehearsal::wire::stdio::SpawnError;

use super::arguments::ArgumentsError;
use super::exit::Exit;
use super::generate::GenerateError;
use super::json_input::JsonInputError;
use super::matching::MatchError;
use super::mock::MockFailure;
use super::replay_failure::ReplayFailure;
use super::save::SaveError;
use super::server::{ServerError, listen_hints};
use super::trace::TraceError;
use super::wrap::WrapError;
use crate::print::Talk;

/// Anything that ends a verb early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// What was said about the server is wrong.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// What was said about the arguments is wrong.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// What should be JSON is none.
    #[error(transparent)]
    Json(#[from] JsonInputError),
    /// Something could not be written to a file.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// A configuration could not be wrapped or unwrapped.
    #[error(transparent)]
    Wrap(#[from] WrapError),
    /// A recording could not be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Nothing could be made of a recording.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A mock could not be served.
    #[error(transparent)]
    Mock(#[from] MockFailure),
    /// What was said about a value is no matcher.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// A recording could not be served.
    #[error(transparent)]
    Replay(#[from] ReplayFailure),
    /// The server could not be driven.
    #[error(transparent)]
    Client(Box<ClientError>),
    /// The same, in words without secrets.
    #[error("{words}")]
    Redacted {
        /// What went wrong.
        words: String,
        /// The same as it is.
        error: Box<ClientError>,
    },
    /// Data could not be printed.
    #[error("cannot write to stdout: {0}")]
    Output(#[source] io::Error),
    /// A file that somebody wrote cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The program itself could not begin.
    #[error("cannot begin: {0}")]
    Begin(#[source] io::Error),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        Failure::Client(Box::new(error))
    }
}

impl Failure {
    /// Prints the error with its evidence and hints:
    ///
    /// ```text
    /// error: the server could not be started: there is no program "npxx" in PATH
    /// hint: check how it is spelled, and that its directory is in PATH
    /// ```
    pub(super) fn tell(&self, talk: &Talk) {
        talk.error(self);
        self.hints().into_iter().for_each(|hint| talk.hint(hint));
    }

    /// The exit status that it leads to.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Failure::Server(_)
            | Failure::Arguments(_)
            | Failure::Json(_)
            | Failure::Match(_)
            | Failure::Save(_)
            | Failure::Wrap(_)
            | Failure::Trace(_)
            | Failure::Generate(_)
            | Failure::Output(_)
            | Failure::Unreadable { .. } => Exit::BadInput,
            Failure::Client(error) | Failure::Redacted { error, .. } => client_exit(error),
            Failure::Mock(error) => error.exit(),
            Failure::Replay(error) => error.exit(),
            Failure::Begin(_) => Exit::ServerFailed,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Failure::Server(error) => error.hints(),
            Failure::Arguments(error) => error.hints(),
            Failure::Client(error) | Failure::Redacted { error, .. } => {
                client_hints(error).into_iter().map(str::to_owned).collect()
            }
            Failure::Json(error) => error.hints(),
            Failure::Match(error) => vec![error.hint()],
            Failure::Wrap(error) => error.hints(),
            Failure::Trace(error) => error.hints(),
            Failure::Generate(error) => error.hints(),
            Failure::Replay(error) => error.hints(),
            Failure::Mock(MockFailure::Bind(error)) => bind_hints(error),
            Failure::Mock(_)
            | Failure::Save(_)
            | Failure::Output(_)
            | Failure::Unreadable { .. }
            | Failure::Begin(_) => Vec::new(),
        }
    }
}

/// What to do about an address that cannot be listened on.
pub(super) fn bind_hints(error: &BindError) -> Vec<String> {
    match error {
        BindError::Address { source, .. } => listen_hints(source),
        BindError::Path { .. } => Vec::new(),
    }
}

fn client_exit(error: &ClientError) -> Exit {
    match error {
        // A server that answers the handshake with an error lets nobody in.
        ClientError::ErrorReply { method, .. } if is_first(method) => Exit::ServerFailed,
        ClientError::ErrorReply { .. } => Exit::ChecksFailed,
        ClientError::Config(_)
        | ClientError::BadParams { .. }
        | ClientError::NotInVersion { .. }
        | ClientError::Start(SpawnError::NoWorkingDir { .. })
        | ClientError::NotSent { cause: SendError::TooLong { .. } | SendError::LineEnd, .. } => Exit::BadInput,
        // The options were checked before, so a target that is still bad is one that cannot be reached.
        ClientError::BadTarget { .. }
        | ClientError::NoTransport { .. }
        | ClientError::Engine(_)
        | ClientError::Start(
            SpawnError::NoProgram { .. }
            | SpawnError::NoInterpreter { .. }
            | SpawnError::NotExecutable { .. }
            | SpawnError::Refused { .. },
        )
        | ClientError::NotListening { .. }
        | ClientError::ServerGone { .. }
        | ClientError::TimedOut { .. }
        | ClientError::Refused { .. }
        | ClientError::NotAuthorized { .. }
        | ClientError::Lost { .. }
        | ClientError::Repeated { .. }
        | ClientError::Garbled { .. }
        | ClientError::BadResult { .. }
        | ClientError::NoCommonVersion { .. }
        | ClientError::NotSent {
            cause: SendError::Closed | SendError::Impossible | SendError::NoChannel | SendError::Failed { .. },
            ..
        } => Exit::ServerFailed,
    }
}

const PATH: &str = "is the path of the URL right? Many servers are at /mcp, older ones at /sse";

fn client_hints(error: &ClientError) -> Vec<&'static str> {
    let mut hints = Vec::new();
    match error {
        ClientError::Engine(EngineError::NoEngine { looked_for }) if looked_for.len() == 1 => {
            hints.push("check how it is spelled, and that its directory is in PATH");
        }
        ClientError::Engine(EngineError::NoEngine { .. }) => {
            hints.push("install one of them, or name the engine that you have: --engine NAME");
        }
        ClientError::Start(SpawnError::NoProgram { program }) if program.contains(' ') => {
            hints.push("write the program and its arguments without quotes around them all: -- npx -y some-server");
        }
        ClientError::Start(SpawnError::NoProgram { program }) if program.contains('/') => {
            hints.push("the path is relative to the directory in which rehearse runs");
        }
        ClientError::Start(SpawnError::NoProgram { .. }) => {
            hints.push("check how it is spelled, and that its directory is in PATH");
        }
        ClientError::Start(SpawnError::NoInterpreter { .. }) => {
            hints.push("look at the line that begins with #!, or name the interpreter: -- python3 server.py");
        }
        ClientError::Start(SpawnError::NotExecutable { .. }) => {
            hints.push("make it executable with chmod +x, or name the interpreter that runs it");
        }
        ClientError::TimedOut { method, .. } if is_first(method) => {
            hints.push("does it speak MCP here? `-v` shows what it says, `--timeout 60` waits longer");
        }
        ClientError::TimedOut { .. } => hints.push("`--timeout 60` waits longer"),
        ClientError::Refused { status: 401 | 403, .. } | ClientError::ErrorReply { status: Some(401 | 403), .. } => {
            hints.push("log in with --login, or say who you are with --header 'Authorization: Bearer TOKEN'");
        }
        ClientError::Refused { status: 200..=299 | 404 | 405, .. } | ClientError::NoTransport { .. } => {
            hints.push(PATH)
        }
        ClientError::ErrorReply { status: Some(404 | 405), method, .. } if is_first(method) => hints.push(PATH),
        ClientError::ErrorReply { method, error, .. } if is_first(method) && code::is_modern(error.code) => {
            hints.push("it may speak no version with a handshake any more; `--protocol modern` makes none");
        }
        ClientError::BadTarget { .. } => hints.push("is the server running, and is its URL right?"),
        ClientError::Lost { method, .. } if is_first(method) => {
            hints.push("is the server running, and is its URL right?");
        }
        ClientError::Repeated { .. } => hints.push("that is no MCP server; `-v` shows what it says"),
        ClientError::NoCommonVersion { .. } => hints.push("`--protocol auto` takes any version that both speak"),
        ClientError::Start(SpawnError::NoWorkingDir { .. } | SpawnError::Refused { .. })
        | ClientError::Engine(EngineError::NotRun { .. } | EngineError::Failed { .. } | EngineError::Hangs { .. })
        | ClientError::Config(_)
        | ClientError::NotListening { .. }
        | ClientError::ServerGone { .. }
        | ClientError::Refused { .. }
        | ClientError::NotAuthorized { .. }
        | ClientError::Lost { .. }
        | ClientError::Garbled { .. }
        | ClientError::ErrorReply { .. }
        | ClientError::BadResult { .. }
        | ClientError::NotSent { .. }
        | ClientError::BadParams { .. }
        | ClientError::NotInVersion { .. } => {}
    }
    match error.evidence().filter(|evidence| !evidence.noise.is_empty()).map(|evidence| evidence.noise_on) {
        Some(NoiseOn::Stdout) => {
            hints.push("only messages belong on a server's stdout; what it logs belongs on its stderr");
        }
        Some(NoiseOn::Http) => {
            hints.push("an answer body and each event of a stream must be a message; what it logs belongs in its log");
        }
        None => {}
    }
    hints
}

/// Whether a method is one that a conversation begins with.
fn is_first(method: &Method) -> bool {
    *method == Method::INITIALIZE || *method == Method::DISCOVER
}
