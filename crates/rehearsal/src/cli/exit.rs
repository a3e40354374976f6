//! The exit status of a verb, and the failure that leads to it.

use std::fmt::{self, Display};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use rehearsal::client::{ClientError, NoiseSource};
use rehearsal::config::ConfigError;
use rehearsal::core::message::Method;
use rehearsal::core::protocol::code;
use rehearsal::wire::SendError;
use rehearsal::wire::container::EngineError;
use rehearsal::wire::http::server::BindError;
use rehearsal::wire::stdio::SpawnError;

use crate::print::StderrPrinter;

/// The exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Success.
    Ok = 0,
    /// The tool failed, or the server answered with an error.
    ChecksFailed = 1,
    /// The command line, or a file that it names, is wrong.
    BadInput = 2,
    /// The server could not be started or reached, refused the handshake, crashed or timed out.
    ServerFailed = 3,
    /// Something could not be recorded; all messages were forwarded.
    RecordingFailed = 4,
    /// `--detailed-exitcode`: no error was found, and the plan changes something.
    CleanWithEffects = 5,
    /// SIGHUP: the terminal was closed.
    HungUp = 129,
    /// SIGINT: the user pressed Ctrl-C.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// All statuses, lowest first.
    pub(crate) const ALL: [Exit; 9] = [
        Exit::Ok,
        Exit::ChecksFailed,
        Exit::BadInput,
        Exit::ServerFailed,
        Exit::RecordingFailed,
        Exit::CleanWithEffects,
        Exit::HungUp,
        Exit::Interrupted,
        Exit::Terminated,
    ];

    /// Returns `self` unless it is [`Exit::Ok`], and `other` otherwise.
    pub(crate) fn and(self, other: Exit) -> Exit {
        if self == Exit::Ok { other } else { self }
    }

    /// The status as a number.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// What the status means, for `--help`.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Exit::Ok => "everything went well",
            Exit::ChecksFailed => "the tool failed, or the server answered with an error",
            Exit::BadInput => "a flag, a file, a name or an argument is wrong",
            Exit::ServerFailed => {
                "the server could not be started or reached, refused the handshake, crashed or timed out"
            }
            Exit::RecordingFailed => "something could not be recorded; all messages were forwarded",
            Exit::CleanWithEffects => "dry-run --detailed-exitcode: no error was found, and the plan changes something",
            Exit::HungUp => "ended by SIGHUP",
            Exit::Interrupted => "ended by SIGINT (Ctrl-C)",
            Exit::Terminated => "ended by SIGTERM",
        }
    }

    /// The list of all statuses for `--help`:
    ///
    /// ```text
    /// Exit status:
    ///     0  everything went well
    ///     1  the tool failed, or the server answered with an error
    /// ```
    pub(crate) fn help() -> String {
        let line = |exit: Exit| format!("\n  {:>3}  {}", exit.code(), exit.meaning());
        std::iter::once("Exit status:".to_owned()).chain(Exit::ALL.into_iter().map(line)).collect()
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// An error that ends a verb: a message, hints, and the exit status.
///
/// The libraries have typed errors. A verb only prints them, so a failure has the text of the error.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hints: Vec<String>,
    exit: Exit,
    stdout_closed: bool,
}

impl Failure {
    /// A flag, a file or a name is wrong: exit status 2.
    pub(crate) fn bad_input(message: impl Display) -> Failure {
        Failure { message: message.to_string(), hints: Vec::new(), exit: Exit::BadInput, stdout_closed: false }
    }

    /// A server, ours or another, cannot be started or reached: exit status 3.
    pub(crate) fn server_failed(message: impl Display) -> Failure {
        Failure { exit: Exit::ServerFailed, ..Failure::bad_input(message) }
    }

    /// The runtime, the signal handlers, or the stdin and stdout of this program cannot be set up.
    pub(crate) fn begin(cause: io::Error) -> Failure {
        Failure::server_failed(format_args!("cannot start: {cause}"))
    }

    /// A file cannot be read.
    pub(crate) fn unreadable(path: &Path, cause: &io::Error) -> Failure {
        Failure::bad_input(format_args!("cannot read {}: {cause}", path.display()))
    }

    /// A file cannot be written.
    pub(crate) fn unwritable(path: &Path, cause: &io::Error) -> Failure {
        Failure::bad_input(format_args!("cannot write {}: {cause}", path.display()))
    }

    /// Data cannot be printed.
    pub(crate) fn stdout(cause: io::Error) -> Failure {
        let stdout_closed = cause.kind() == io::ErrorKind::BrokenPipe;
        Failure { stdout_closed, ..Failure::bad_input(format_args!("cannot write to stdout: {cause}")) }
    }

    /// A client failed; `message` is redacted.
    pub(crate) fn redacted(message: String, error: &ClientError) -> Failure {
        let hints = client_hints(error).into_iter().map(str::to_owned).collect();
        Failure { hints, exit: client_exit(error), ..Failure::bad_input(message) }
    }

    /// Begins the message with the name of the server, if several servers are used.
    pub(crate) fn of_server(mut self, name: Option<&str>) -> Failure {
        if let Some(name) = name {
            self.message = format!("{name}: {}", self.message);
        }
        self
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// Adds hints.
    pub(crate) fn hints(mut self, hints: impl IntoIterator<Item = impl Into<String>>) -> Failure {
        self.hints.extend(hints.into_iter().map(Into::into));
        self
    }

    /// True if the reader of stdout, such as `head`, has closed it.
    pub(crate) fn is_stdout_closed(&self) -> bool {
        self.stdout_closed
    }

    /// Prints the error with its hints:
    ///
    /// ```text
    /// error: the server could not be started: there is no program "npxx" in PATH
    /// hint: check the spelling, and that the directory of the program is in PATH
    /// ```
    pub(super) fn report(&self, stderr: &StderrPrinter) {
        stderr.error(self);
        self.hints.iter().for_each(|hint| stderr.hint(hint));
    }

    /// The exit status of the failure.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        Failure::redacted(error.to_string(), &error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::bad_input(error)
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Failure {
        let hint = match &error {
            BindError::Address { source, .. } => listen_hint(source),
            BindError::Path { .. } => None,
        };
        Failure::server_failed(error).hints(hint)
    }
}

/// The hint for an address on which the program cannot listen.
pub(super) fn listen_hint(cause: &io::Error) -> Option<&'static str> {
    match cause.kind() {
        io::ErrorKind::AddrInUse => Some("stop the program that listens there, or use port 0 for any free port"),
        io::ErrorKind::PermissionDenied => Some("ports below 1024 need privileges; choose a higher one"),
        io::ErrorKind::AddrNotAvailable => {
            Some("this machine has no such address; 127.0.0.1 accepts local clients, 0.0.0.0 clients on all addresses")
        }
        _ => None,
    }
}

fn client_exit(error: &ClientError) -> Exit {
    match error {
        // A server that answers the handshake with an error accepts no requests.
        ClientError::ErrorReply { method, .. } if is_first(method) => Exit::ServerFailed,
        ClientError::ErrorReply { .. } => Exit::ChecksFailed,
        ClientError::Config(_)
        | ClientError::BadParams { .. }
        | ClientError::UnsupportedInVersion { .. }
        | ClientError::Start(SpawnError::NoWorkingDir { .. })
        | ClientError::NotSent { cause: SendError::TooLong { .. } | SendError::LineEnd, .. } => Exit::BadInput,
        // The options were checked before, so a bad target cannot be reached.
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
        | ClientError::ServerClosed { .. }
        | ClientError::TimedOut { .. }
        | ClientError::Refused { .. }
        | ClientError::NotAuthorized { .. }
        | ClientError::StreamBroken { .. }
        | ClientError::Echoed { .. }
        | ClientError::Garbled { .. }
        | ClientError::BadResult { .. }
        | ClientError::NoCommonVersion { .. }
        | ClientError::NotSent {
            cause: SendError::Closed | SendError::FaultsUnsupported | SendError::NoChannel | SendError::Failed { .. },
            ..
        } => Exit::ServerFailed,
    }
}

const PATH: &str = "check the path of the URL: many servers are at /mcp, older ones at /sse";

fn client_hints(error: &ClientError) -> Vec<&'static str> {
    let mut hints = Vec::new();
    match error {
        ClientError::Engine(EngineError::NoEngine { looked_for }) if looked_for.len() == 1 => {
            hints.push("check the spelling, and that the directory of the program is in PATH");
        }
        ClientError::Engine(EngineError::NoEngine { .. }) => {
            hints.push("install one of them, or name another engine: --engine NAME");
        }
        ClientError::Start(SpawnError::NoProgram { program }) if program.contains(' ') => {
            hints.push("write the program and its arguments as separate words: -- npx -y some-server");
        }
        ClientError::Start(SpawnError::NoProgram { program }) if program.contains('/') => {
            hints.push("the path is relative to the directory in which rehearse runs");
        }
        ClientError::Start(SpawnError::NoProgram { .. }) => {
            hints.push("check the spelling, and that the directory of the program is in PATH");
        }
        ClientError::Start(SpawnError::NoInterpreter { .. }) => {
            hints.push("check the first line of the file (#!), or name the interpreter: -- python3 server.py");
        }
        ClientError::Start(SpawnError::NotExecutable { .. }) => {
            hints.push("make it executable with chmod +x, or name the interpreter that runs it");
        }
        ClientError::TimedOut { method, .. } if is_first(method) => {
            hints.push("if this is an MCP server, `--timeout 60` waits longer; `-v` prints what it sends");
        }
        ClientError::TimedOut { .. } => hints.push("`--timeout 60` waits longer"),
        ClientError::Refused { status: 401 | 403, .. } | ClientError::ErrorReply { status: Some(401 | 403), .. } => {
            hints.push("log in with --login, or send a token with --header 'Authorization: Bearer TOKEN'");
        }
        ClientError::Refused { status: 200..=299 | 404 | 405, .. } | ClientError::NoTransport { .. } => {
            hints.push(PATH)
        }
        ClientError::ErrorReply { status: Some(404 | 405), method, .. } if is_first(method) => hints.push(PATH),
        ClientError::ErrorReply { method, error, .. } if is_first(method) && code::is_modern(error.code) => {
            hints.push("the server may support no version with a handshake; `--protocol modern` connects without one");
        }
        ClientError::BadTarget { .. } => hints.push("check that the server is running, and its URL"),
        ClientError::StreamBroken { method, .. } if is_first(method) => {
            hints.push("check that the server is running, and its URL");
        }
        ClientError::Echoed { .. } => hints.push("this is not an MCP server; `-v` prints what it sends"),
        ClientError::NoCommonVersion { .. } => hints.push("`--protocol auto` uses any version that both sides support"),
        ClientError::Start(SpawnError::NoWorkingDir { .. } | SpawnError::Refused { .. })
        | ClientError::Engine(
            EngineError::SpawnFailed { .. } | EngineError::Failed { .. } | EngineError::TimedOut { .. },
        )
        | ClientError::Config(_)
        | ClientError::NotListening { .. }
        | ClientError::ServerClosed { .. }
        | ClientError::Refused { .. }
        | ClientError::NotAuthorized { .. }
        | ClientError::StreamBroken { .. }
        | ClientError::Garbled { .. }
        | ClientError::ErrorReply { .. }
        | ClientError::BadResult { .. }
        | ClientError::NotSent { .. }
        | ClientError::BadParams { .. }
        | ClientError::UnsupportedInVersion { .. } => {}
    }
    match error.evidence().filter(|evidence| !evidence.noise.is_empty()).map(|evidence| evidence.noise_on) {
        Some(NoiseSource::Stdout) => {
            hints.push("a server must write only messages to stdout, and logs to stderr");
        }
        Some(NoiseSource::Http) => {
            hints.push("a response body, and each event of a stream, must be a message");
        }
        None => {}
    }
    hints
}

/// True for the first request of a connection.
fn is_first(method: &Method) -> bool {
    *method == Method::INITIALIZE || *method == Method::DISCOVER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_every_status() {
        let reference = include_str!("../../../../docs/reference/exit-status.md");
        for exit in Exit::ALL {
            let row = format!("| {} | {} |", exit.code(), exit.meaning());
            assert!(reference.contains(&row), "no row {row:?}");
        }
    }
}
