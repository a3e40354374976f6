//! A relay between a client and a server process.
//!
//! ```text
//! client ──► input  ──► tap ──► stdin ──► server
//!        ◄── output ◄── tap ◄── stdout ◄──
//!        ◄── error  ◄── tap ◄── stderr ◄──
//! ```
//!
//! Each direction has its own thread. It reads the available bytes, shows them to the tap, and writes the same bytes.
//! Each direction waits only for its own reader, and never for the end of a line.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use tokio::sync::watch;

use super::child::{ServerCommand, SpawnError, start_with_pipes};
use super::process_group::ProcessGroup;

/// The size of one read; also the capacity of a pipe on Linux.
const CHUNK: usize = 64 * 1024;
/// How long to wait for the rest of the output after the server has exited.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(1000);
/// After the client has closed our input: the interval of the checks whether it still reads our output.
const CLIENT_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Sees all bytes before they are forwarded.
pub trait RelayTap: Send + Sync {
    /// These bytes were read and are about to be written.
    fn passing(&self, stream: StdioStream, bytes: &[u8]);

    /// The stream ended.
    fn ended(&self, stream: StdioStream);
}

/// One of the three streams of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdioStream {
    /// From the client to the server.
    Stdin,
    /// From the server to the client.
    Stdout,
    /// The log output of the server.
    Stderr,
}

/// The descriptors that lead to the client.
#[derive(Debug)]
pub struct ClientStreams {
    /// The client writes to it.
    pub input: OwnedFd,
    /// The client reads from it.
    pub output: OwnedFd,
    /// Receives the server's stderr.
    pub error: OwnedFd,
}

impl ClientStreams {
    /// Takes our own stdin, stdout and stderr. The first two are replaced by `/dev/null`, so that only the server's
    /// output reaches stdout, and the client notices at once when either is closed.
    pub fn own() -> io::Result<ClientStreams> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let error = io::stderr().as_fd().try_clone_to_owned()?;
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        nix::unistd::dup2_stdin(&nothing)?;
        nix::unistd::dup2_stdout(&nothing)?;
        Ok(ClientStreams { input, output, error })
    }
}

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayEnd {
    /// The exit status of the server; `None` if it is lost.
    pub status: Option<ExitStatus>,
    /// True if the client had closed its side before.
    pub client_closed: bool,
}

/// A server process whose streams are forwarded to a client; dropping it kills the server.
#[derive(Debug)]
pub struct Relay {
    process: ProcessGroup,
    grace: Duration,
    input: Direction,
    output: Direction,
    error: Direction,
    /// The client's output, as long as it is open.
    client_output: Weak<File>,
}

impl Relay {
    /// Starts a server and forwards all three streams.
    ///
    /// The thread of the client's input runs until that input ends, even if the server exits before.
    pub async fn start(
        server: &ServerCommand,
        client: ClientStreams,
        tap: Arc<dyn RelayTap>,
    ) -> Result<Relay, SpawnError> {
        let refused = |cause| SpawnError::Refused { program: server.program.to_string_lossy().into_owned(), cause };
        let (process, stdin, stdout, stderr) = start_with_pipes(server).await?;
        let stdin = File::from(stdin.into_owned_fd().map_err(refused)?);
        let stdout = File::from(stdout.into_owned_fd().map_err(refused)?);
        let stderr = File::from(stderr.into_owned_fd().map_err(refused)?);
        let output = Arc::new(File::from(client.output));
        let client_output = Arc::downgrade(&output);
        let start = |stream, from, to| Direction::start(stream, from, to, tap.clone()).map_err(refused);
        let output = start(StdioStream::Stdout, stdout, output)?;
        let error = start(StdioStream::Stderr, stderr, Arc::new(File::from(client.error)))?;
        let input = start(StdioStream::Stdin, File::from(client.input), Arc::new(stdin))?;
        Ok(Relay { process, grace: server.grace, input, output, error, client_output })
    }

    /// Waits until the server has exited and all its output was forwarded.
    ///
    /// A client that closed our input may still read the output, so the server has no time limit. If the client no
    /// longer reads either, the server is stopped. The processes that the server started are killed with it.
    pub async fn ended(&self) -> RelayEnd {
        let status = tokio::select! {
            status = self.process.wait_for_exit() => status,
            () = self.wait_for_client_exit() => {
                self.process.stop(self.grace, self.grace).await;
                self.process.status()
            }
        };
        let client_closed = self.input.state() == DirectionState::Done(DirectionEnd::Ended);
        self.output.wait_until_drained(&self.process).await;
        self.error.wait_until_drained(&self.process).await;
        RelayEnd { status, client_closed }
    }

    /// Sends a signal to the server and its children, waits, and kills what still runs.
    pub async fn stop(&self, signal: Signal) -> RelayEnd {
        self.process.stop_with(signal, self.grace).await;
        self.ended().await
    }

    /// Kills the server and its children at once.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Waits until the client has disconnected: it neither writes nor reads.
    async fn wait_for_client_exit(&self) {
        self.input.wait_until_done().await;
        loop {
            // If the server closed its stdout, there is no more output to read either.
            let client_output = self.client_output.upgrade().is_some_and(|output| !is_broken(&output));
            if !client_output {
                return;
            }
            tokio::time::sleep(CLIENT_POLL_INTERVAL).await;
        }
    }
}

/// One direction of the relay.
#[derive(Debug)]
struct Direction {
    /// A [`DirectionState`] as a number.
    state: Arc<AtomicU8>,
    done: watch::Receiver<()>,
}

/// What a direction is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectionState {
    /// It waits for bytes to forward.
    Reading,
    /// It waits for the reader to take the bytes.
    Writing,
    Done(DirectionEnd),
}

/// Why a direction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectionEnd {
    /// The input ended.
    Ended,
    /// The reader closed the output.
    ReaderGone,
}

impl DirectionState {
    const fn number(self) -> u8 {
        match self {
            DirectionState::Reading => 0,
            DirectionState::Writing => 1,
            DirectionState::Done(DirectionEnd::Ended) => 2,
            DirectionState::Done(DirectionEnd::ReaderGone) => 3,
        }
    }
}

impl Direction {
    fn start(stream: StdioStream, from: File, to: Arc<File>, tap: Arc<dyn RelayTap>) -> io::Result<Direction> {
        let (finished, done) = watch::channel(());
        let state = Arc::new(AtomicU8::new(DirectionState::Reading.number()));
        let seen = state.clone();
        let run = move || {
            let end = forward(stream, from, &to, &*tap, &state);
            // The state is stored before the pipe is closed. A server that exits because its stdin was closed must find
            // it stored, and a caller that waits for the end must find the file closed.
            state.store(DirectionState::Done(end).number(), Ordering::Release);
            drop(to);
            drop(finished);
        };
        std::thread::Builder::new().name(format!("rehearsal-{stream:?}").to_lowercase()).spawn(run)?;
        Ok(Direction { state: seen, done })
    }

    fn state(&self) -> DirectionState {
        let all = [
            DirectionState::Reading,
            DirectionState::Writing,
            DirectionState::Done(DirectionEnd::Ended),
            DirectionState::Done(DirectionEnd::ReaderGone),
        ];
        let number = self.state.load(Ordering::Acquire);
        all.into_iter().find(|state| state.number() == number).expect("only numbers of states are stored")
    }

    async fn wait_until_done(&self) {
        // The sender is only dropped, when the direction ends; no value is ever sent.
        let _ = self.done.clone().changed().await;
    }

    /// Waits until all output from before the server's exit was forwarded.
    async fn wait_until_drained(&self, server: &ProcessGroup) {
        loop {
            if tokio::time::timeout(DRAIN_TIMEOUT, self.wait_until_done()).await.is_ok() {
                return;
            }
            match self.state() {
                // The client reads slowly; there is no time limit for that.
                DirectionState::Writing => {}
                // A child of the server holds the pipe open.
                DirectionState::Reading if server.kill_rest() => {}
                // The process that holds the pipe has left the process group, and keeps running.
                DirectionState::Reading | DirectionState::Done(_) => return,
            }
        }
    }
}

/// Forwards bytes as they arrive.
fn forward(stream: StdioStream, mut from: File, to: &File, tap: &dyn RelayTap, state: &AtomicU8) -> DirectionEnd {
    let mut chunk = vec![0; CHUNK];
    let done = loop {
        state.store(DirectionState::Reading.number(), Ordering::Release);
        let count = match from.read(&mut chunk) {
            Ok(0) => break DirectionEnd::Ended,
            Ok(count) => count,
            Err(error) if retry_after_poll(&error, &from, PollFlags::POLLIN) => continue,
            Err(_) => break DirectionEnd::Ended,
        };
        tap.passing(stream, &chunk[..count]);
        state.store(DirectionState::Writing.number(), Ordering::Release);
        if write_all(to, &chunk[..count]).is_err() {
            break DirectionEnd::ReaderGone;
        }
    };
    tap.ended(stream);
    done
}

fn write_all(mut to: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if retry_after_poll(&error, to, PollFlags::POLLOUT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits if the descriptor was not ready, and returns whether to try again. Another process that shares the descriptor
/// may have made it non-blocking.
fn retry_after_poll(error: &io::Error, file: &File, flags: PollFlags) -> bool {
    match error.kind() {
        io::ErrorKind::Interrupted => true,
        io::ErrorKind::WouldBlock => {
            let _ = poll(&mut [PollFd::new(file.as_fd(), flags)], PollTimeout::NONE);
            true
        }
        _ => false,
    }
}

/// True if the reading end of a pipe is closed.
fn is_broken(file: &File) -> bool {
    let mut polled = [PollFd::new(file.as_fd(), PollFlags::empty())];
    let flags = poll(&mut polled, PollTimeout::ZERO).ok().and_then(|_| polled[0].revents());
    flags.is_some_and(|flags| flags.intersects(PollFlags::POLLERR | PollFlags::POLLHUP))
}
