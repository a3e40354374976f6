//! A server that runs as a child process, and the last lines of its stderr.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::line_reader::{LineEvent, LineReader, PartialLine};
use super::line_writer::LineWriter;
use super::process_group;
use super::process_group::ProcessGroup;
use crate::{
    BoxFuture, Connection, ConnectionEnd, Event, MESSAGE_LIMIT, Outgoing, Receiver, SendError, Sender, StopOutcome,
};

/// The time a server has to exit after its stdin was closed, and again after SIGTERM.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// How long to wait for a server's exit status and the rest of its stderr after its stdout closed.
const EXIT_STATUS_WAIT: Duration = Duration::from_millis(1000);

/// Receives each line of a server's stderr as it arrives.
pub type StderrSink = Arc<dyn Fn(&str) + Send + Sync>;

/// How a server is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopMethod {
    /// By closing its stdin; SIGTERM follows only if the server still runs after that.
    #[default]
    CloseStdin,
    /// By SIGTERM at once: a server that listens on a port ignores its stdin.
    Terminate,
}

/// How to start a server.
#[derive(Clone)]
pub struct ServerCommand {
    /// The program to run. A name without a slash is looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables to add to our own.
    pub environment: BTreeMap<OsString, OsString>,
    /// Its working directory; ours by default.
    pub working_dir: Option<PathBuf>,
    /// How it is stopped.
    pub stop_method: StopMethod,
    /// The time it has to exit after its stdin was closed, and again after SIGTERM.
    pub grace: Duration,
    /// The longest message that is read or written, in bytes.
    pub message_limit: usize,
    /// Receives each line of its stderr as it arrives.
    pub stderr: Option<StderrSink>,
}

impl ServerCommand {
    /// Builds the command of a program without arguments.
    pub fn new(program: impl Into<OsString>) -> ServerCommand {
        ServerCommand {
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            working_dir: None,
            stop_method: StopMethod::default(),
            grace: EXIT_GRACE,
            message_limit: MESSAGE_LIMIT,
            stderr: None,
        }
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> ServerCommand {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }
}

impl fmt::Display for ServerCommand {
    /// Writes the command as the user would type it: `npx -y server "two words"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in std::iter::once(&self.program).chain(&self.arguments).enumerate() {
            let word = word.to_string_lossy();
            let plain = !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "'\"\\$`&|;<>()".contains(c));
            let space = if index == 0 { "" } else { " " };
            if plain { write!(f, "{space}{word}")? } else { write!(f, "{space}{word:?}")? }
        }
        Ok(())
    }
}

impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerCommand({self})")
    }
}

/// Why a server could not be started.
#[derive(thiserror::Error)]
pub enum SpawnError {
    /// The program does not exist.
    #[error("there is no program {program:?}{}", if program.contains('/') { "" } else { " in PATH" })]
    NoProgram {
        /// The program that was looked for.
        program: String,
    },
    /// The program exists, but the interpreter in its first line does not.
    #[error("{program:?} exists, but the interpreter in its first line does not")]
    NoInterpreter {
        /// The program that was found.
        program: String,
    },
    /// The working directory does not exist.
    #[error("there is no directory {} to run it in", path.display())]
    NoWorkingDir {
        /// The directory that was looked for.
        path: PathBuf,
    },
    /// The program exists, but is not executable.
    #[error("{program:?} may not be executed")]
    NotExecutable {
        /// The program that was found.
        program: String,
    },
    /// The operating system refused to start it.
    #[error("{program:?} could not be started")]
    Refused {
        /// The program.
        program: String,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
}

debug_as_display!(SpawnError);

/// Starts a server and connects to its stdin and stdout.
///
/// The server leads its own process group and gets SIGKILL when our process ends, so that neither it nor its children
/// keep running.
pub async fn spawn(server: &ServerCommand) -> Result<Connection, SpawnError> {
    let (process, stdin, stdout, stderr) = start_with_pipes(server).await?;
    let tail = StderrTail::default();
    let sink = server.stderr.clone();
    let drained = tokio::spawn(tail.clone().drain(stderr, move |line| {
        if let Some(sink) = &sink {
            sink(line);
        }
    }));
    let lines = LineReader::new(stdout, server.message_limit);
    let shared = Arc::new(ChildSender {
        writer: LineWriter::new(stdin, lines.alone()),
        partial_line: lines.partial_line(),
        process,
        tail,
        stop_method: server.stop_method,
        grace: server.grace,
        message_limit: server.message_limit,
    });
    let receiver = ChildReceiver { state: ChildState::Reading(lines), shared: shared.clone(), drained: Some(drained) };
    Ok(Connection { sender: shared, receiver: Box::new(receiver) })
}

/// Starts a server, and returns its process and its pipes.
pub(super) async fn start_with_pipes(
    server: &ServerCommand,
) -> Result<(ProcessGroup, ChildStdin, ChildStdout, ChildStderr), SpawnError> {
    if let Some(path) = server.working_dir.as_deref().filter(|path| !path.is_dir()) {
        return Err(SpawnError::NoWorkingDir { path: path.to_owned() });
    }
    let program = || server.program.to_string_lossy().into_owned();
    let refused = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound if resolve_program(server).is_file() => {
            SpawnError::NoInterpreter { program: program() }
        }
        io::ErrorKind::NotFound => SpawnError::NoProgram { program: program() },
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { program: program() },
        _ => SpawnError::Refused { program: program(), cause },
    };
    let mut child = process_group::spawn(command(server)).await.map_err(refused)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(refused(io::Error::other("its pipes are missing")));
    };
    let process = ProcessGroup::new(child).ok_or_else(|| refused(io::Error::other("it has no process id")))?;
    Ok((process, stdin, stdout, stderr))
}

fn command(server: &ServerCommand) -> Command {
    let mut command = Command::new(resolve_program(server));
    command
        .args(&server.arguments)
        .envs(&server.environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(path) = &server.working_dir {
        command.current_dir(path);
    }
    kill_with_parent(&mut command);
    command
}

/// Resolves the program: a relative path with a slash is relative to our working directory, not to the server's.
fn resolve_program(server: &ServerCommand) -> PathBuf {
    let program = Path::new(&server.program);
    let relative = program.is_relative() && program.components().count() > 1;
    if relative && server.working_dir.is_some() {
        return std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    }
    program.to_owned()
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the parent-death signal can only be set between fork and exec")]
fn kill_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    let set = move || {
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
        // The parent may have exited before the signal was set.
        if nix::unistd::getppid() != parent {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. `prctl` and `getppid` are plain system
    // calls, the closure captures one integer, and its error is made without allocating.
    unsafe { command.pre_exec(set) };
}

#[cfg(not(target_os = "linux"))]
fn kill_with_parent(_: &mut Command) {}

#[derive(Debug)]
struct ChildSender {
    writer: LineWriter,
    partial_line: Arc<PartialLine>,
    process: ProcessGroup,
    tail: StderrTail,
    stop_method: StopMethod,
    grace: Duration,
    message_limit: usize,
}

impl Sender for ChildSender {
    fn open_channel(&self) -> Channel {
        Channel::MAIN
    }

    fn current_problem(&self, _: Channel) -> Option<String> {
        self.partial_line.describe()
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(async move {
            let raw = outgoing.message.raw();
            if raw.len() > self.message_limit {
                return Err(SendError::TooLong { length: raw.len(), limit: self.message_limit });
            }
            self.writer.line(raw).await
        })
    }

    fn try_send(&self, _: Channel, message: &[u8]) -> Option<Result<(), SendError>> {
        if message.len() > self.message_limit { None } else { self.writer.try_line(message) }
    }

    fn is_closed(&self) -> bool {
        self.writer.is_closed()
    }

    fn takes_headers(&self) -> bool {
        false
    }

    fn send_bytes(&self, _: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(async move { self.writer.bytes(&bytes).await })
    }

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        Box::pin(async {
            if self.process.status().is_some() {
                self.process.stop(Duration::ZERO, Duration::ZERO).await;
                return StopOutcome::AlreadyExited;
            }
            // A server that does not read may keep a writer blocked, and with it the pipe open; then SIGTERM follows.
            let _ = tokio::time::timeout(self.grace, self.writer.close()).await;
            let exit_wait = match self.stop_method {
                StopMethod::CloseStdin => self.grace,
                StopMethod::Terminate => Duration::ZERO,
            };
            self.process.stop(exit_wait, self.grace).await
        })
    }

    fn abort(&self) {
        self.process.kill();
    }

    fn last_stderr(&self) -> Vec<String> {
        self.tail.lines()
    }

    fn exit_status(&self) -> Option<ExitStatus> {
        self.process.status()
    }
}

#[derive(Debug)]
struct ChildReceiver {
    state: ChildState,
    shared: Arc<ChildSender>,
    drained: Option<JoinHandle<()>>,
}

enum ChildState {
    Reading(LineReader),
    Ending(BoxFuture<'static, ConnectionEnd>),
    Ended(ConnectionEnd),
}

impl Receiver for ChildReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        loop {
            self.state = match &mut self.state {
                ChildState::Reading(lines) => match std::task::ready!(lines.poll_line(context)) {
                    LineEvent::Message(message) => {
                        return Poll::Ready(Event::Message { channel: Channel::MAIN, message, head: None });
                    }
                    LineEvent::End => {
                        ChildState::Ending(Box::pin(wait_for_end(self.shared.clone(), self.drained.take())))
                    }
                    LineEvent::Failed(error) => ChildState::Ended(ConnectionEnd::Failed { why: error.to_string() }),
                },
                ChildState::Ending(ending) => ChildState::Ended(std::task::ready!(ending.as_mut().poll(context))),
                ChildState::Ended(ending) => return Poll::Ready(Event::Ended(ending.clone())),
            };
        }
    }
}

/// Waits for the exit status and the rest of the stderr of a server whose stdout has closed, up to a time limit.
async fn wait_for_end(shared: Arc<ChildSender>, drained: Option<JoinHandle<()>>) -> ConnectionEnd {
    let status = shared.process.wait(EXIT_STATUS_WAIT).await;
    if let (Some(_), Some(drained)) = (status, drained) {
        // A child of the server may keep its stderr open for ever.
        let _ = tokio::time::timeout(EXIT_STATUS_WAIT / 4, drained).await;
    }
    status.map_or(ConnectionEnd::StdoutClosed, |status| ConnectionEnd::Exited { status })
}

impl fmt::Debug for ChildState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChildState::Reading(lines) => lines.fmt(f),
            ChildState::Ending(_) => f.write_str("Ending"),
            ChildState::Ended(ending) => ending.fmt(f),
        }
    }
}

/// The number of lines to keep.
const MAX_LINES: usize = 100;
/// The length to keep of each line, in bytes.
const LINE_LIMIT: usize = 4096;

/// The last lines of a child's stderr.
#[derive(Clone, Debug, Default)]
pub(super) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl StderrTail {
    /// Returns the lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Reads to the end, so that the writer never blocks. Calls `on_line` with every line.
    pub(super) async fn drain(self, mut from: impl AsyncRead + Unpin, on_line: impl Fn(&str)) {
        let mut chunk = vec![0; 16 * 1024];
        let mut line = Vec::new();
        loop {
            let count = match from.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            let mut rest = &chunk[..count];
            while let Some(end) = memchr::memchr(b'\n', rest) {
                extend(&mut line, &rest[..end]);
                self.push(&line, &on_line);
                line.clear();
                rest = &rest[end + 1..];
            }
            extend(&mut line, rest);
        }
        if !line.is_empty() {
            self.push(&line, &on_line);
        }
    }

    fn push(&self, line: &[u8], on_line: &impl Fn(&str)) {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        let shown = line.clone();
        {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == MAX_LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
        // If the callback panics, reading must continue: otherwise the server blocks on a full stderr pipe.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| on_line(&shown)));
    }
}

fn extend(line: &mut Vec<u8>, more: &[u8]) {
    let room = LINE_LIMIT.saturating_sub(line.len());
    line.extend_from_slice(&more[..more.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_leaves_only_its_last_lines() {
        let tail = StderrTail::default();
        let flood: String = (0..100_000).map(|number| format!("line {number}\n")).collect();
        tail.clone().drain((flood + "the end").as_bytes(), |_| {}).await;
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (MAX_LINES, "line 99901"));
        assert_eq!(lines[99], "the end");
    }

    #[tokio::test]
    async fn a_line_without_end_does_not_grow() {
        let tail = StderrTail::default();
        tail.clone().drain(&vec![b'x'; 10_000_000][..], |_| {}).await;
        assert_eq!(tail.lines()[0].len(), LINE_LIMIT);
    }
}
