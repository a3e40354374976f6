//! A server that somebody else talks to through us.
//!
//! ```text
//! client ──► input  ──► tap ──► stdin ──► server
//!        ◄── output ◄── tap ◄── stdout ◄──
//!        ◄── error  ◄── tap ◄── stderr ◄──
//! ```
//!
//! Each direction has a thread of its own that reads what is there, shows it to the tap, and passes on the same bytes. So
//! each waits for its own reader only, and nothing is held back until a line ends.

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

use super::child::{ServerCommand, SpawnError, pipes};
use super::process::Process;

/// How much is read at once; also what a pipe holds on Linux.
const CHUNK: usize = 64 * 1024;
/// How long what is left in the pipes of a server that has ended may take to come.
const LAST_WORDS: Duration = Duration::from_millis(1000);
/// How often somebody looks whether the client is still there, once it has closed our input.
const LOOK: Duration = Duration::from_millis(100);

/// Sees everything that passes, before it is passed on.
pub trait Tap: Send + Sync {
    /// These bytes were read and are about to be written.
    fn passing(&self, stream: Stream, bytes: &[u8]);

    /// Nothing more comes.
    fn ended(&self, stream: Stream);
}

/// One of the three streams of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// From the client to the server.
    Stdin,
    /// From the server to the client.
    Stdout,
    /// What the server says to people.
    Stderr,
}

/// Where the client is.
#[derive(Debug)]
pub struct ClientStreams {
    /// What the client says.
    pub input: OwnedFd,
    /// Where it listens.
    pub output: OwnedFd,
    /// Where the server's stderr goes.
    pub error: OwnedFd,
}

impl ClientStreams {
    /// Our own stdin, stdout and stderr. Nobody else finds the first two from now on, so nothing but what the server says
    /// gets to stdout, and the client sees at once when either is closed.
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

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayEnd {
    /// How the server ended; `None` where nobody can say.
    pub status: Option<ExitStatus>,
    /// Whether the client had closed its side before.
    pub client_closed: bool,
}

/// A server that somebody else talks to through us; dropping it kills the server.
#[derive(Debug)]
pub struct Relay {
    process: Process,
    grace: Duration,
    input: Flow,
    output: Flow,
    error: Flow,
    /// Where the client listens, while it can.
    listens: Weak<File>,
}

impl Relay {
    /// Starts a server and passes everything on.
    ///
    /// The thread of the client's input stays until that ends, whatever becomes of the server.
    pub async fn start(server: &ServerCommand, client: ClientStreams, tap: Arc<dyn Tap>) -> Result<Relay, SpawnError> {
        let refused = |cause| SpawnError::Refused { program: server.program.to_string_lossy().into_owned(), cause };
        let (process, stdin, stdout, stderr) = pipes(server).await?;
        let stdin = File::from(stdin.into_owned_fd().map_err(refused)?);
        let stdout = File::from(stdout.into_owned_fd().map_err(refused)?);
        let stderr = File::from(stderr.into_owned_fd().map_err(refused)?);
        let output = Arc::new(File::from(client.output));
        let listens = Arc::downgrade(&output);
        let flow = |stream, from, to| Flow::start(stream, from, to, tap.clone()).map_err(refused);
        let output = flow(Stream::Stdout, stdout, output)?;
        let error = flow(Stream::Stderr, stderr, Arc::new(File::from(client.error)))?;
        let input = flow(Stream::Stdin, File::from(client.input), Arc::new(stdin))?;
        Ok(Relay { process, grace: server.grace, input, output, error, listens })
    }

    /// Waits until the server has ended and everything that it said was passed on.
    ///
    /// A client that closed its side may still want to hear the rest, so a server has all the time it needs, unless the
    /// client is gone altogether. What the server has started does not outlive it.
    pub async fn ended(&self) -> RelayEnd {
        let status = tokio::select! {
            status = self.process.ended() => status,
            () = self.client_gone() => {
                self.process.stop(self.grace, self.grace).await;
                self.process.status()
            }
        };
        let client_closed = self.input.place() == Place::Done(Done::Ended);
        self.output.drained(&self.process).await;
        self.error.drained(&self.process).await;
        RelayEnd { status, client_closed }
    }

    /// Sends a signal to the server and what it started, waits, and kills what is left.
    pub async fn stop(&self, signal: Signal) -> RelayEnd {
        self.process.end(signal, self.grace).await;
        self.ended().await
    }

    /// Kills the server and what it started, now.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Waits until nothing can pass any more: the client says nothing and hears nothing.
    async fn client_gone(&self) {
        self.input.done().await;
        loop {
            // Where the server closed its stdout there is nothing left to hear either.
            let listens = self.listens.upgrade().is_some_and(|output| !is_broken(&output));
            if !listens {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// One direction.
#[derive(Debug)]
struct Flow {
    /// A [`Place`], as a number.
    place: Arc<AtomicU8>,
    done: watch::Receiver<()>,
}

/// Where a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It waits for something to pass on.
    Reading,
    /// It waits for somebody to take it.
    Writing,
    Done(Done),
}

/// Why a flow is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// Nothing more comes.
    Ended,
    /// Nobody takes it any more.
    Refused,
}

impl Place {
    const fn number(self) -> u8 {
        match self {
            Place::Reading => 0,
            Place::Writing => 1,
            Place::Done(Done::Ended) => 2,
            Place::Done(Done::Refused) => 3,
        }
    }
}

impl Flow {
    fn start(stream: Stream, from: File, to: Arc<File>, tap: Arc<dyn Tap>) -> io::Result<Flow> {
        let (finished, done) = watch::channel(());
        let place = Arc::new(AtomicU8::new(Place::Reading.number()));
        let seen = place.clone();
        let run = move || {
            let end = flow(stream, from, &to, &*tap, &place);
            // A server that ends because its stdin is closed must find that said already, and whoever waits for the end
            // must find the file closed.
            place.store(Place::Done(end).number(), Ordering::Release);
            drop(to);
            drop(finished);
        };
        std::thread::Builder::new().name(format!("rehearsal-{stream:?}").to_lowercase()).spawn(run)?;
        Ok(Flow { place: seen, done })
    }

    fn place(&self) -> Place {
        let all = [Place::Reading, Place::Writing, Place::Done(Done::Ended), Place::Done(Done::Refused)];
        let number = self.place.load(Ordering::Acquire);
        all.into_iter().find(|place| place.number() == number).expect("only numbers of places are stored")
    }

    async fn done(&self) {
        // The other end is dropped when the flow is over, and nothing else ever happens to it.
        let _ = self.done.clone().changed().await;
    }

    /// Waits until everything that a server said before it ended was passed on.
    async fn drained(&self, server: &Process) {
        loop {
            if tokio::time::timeout(LAST_WORDS, self.done()).await.is_ok() {
                return;
            }
            match self.place() {
                // The client takes its time; it is not ours to take.
                Place::Writing => {}
                // What the server started holds the pipe open.
                Place::Reading if server.kill_rest() => {}
                // Whoever it is has left the process group, and stays.
                Place::Reading | Place::Done(_) => return,
            }
        }
    }
}

/// Passes on what comes, as it comes.
fn flow(stream: Stream, mut from: File, to: &File, tap: &dyn Tap, place: &AtomicU8) -> Done {
    let mut chunk = vec![0; CHUNK];
    let done = loop {
        place.store(Place::Reading.number(), Ordering::Release);
        let count = match from.read(&mut chunk) {
            Ok(0) => break Done::Ended,
            Ok(count) => count,
            Err(error) if waited(&error, &from, PollFlags::POLLIN) => continue,
            Err(_) => break Done::Ended,
        };
        tap.passing(stream, &chunk[..count]);
        place.store(Place::Writing.number(), Ordering::Release);
        if write_all(to, &chunk[..count]).is_err() {
            break Done::Refused;
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
            Err(error) if waited(&error, to, PollFlags::POLLOUT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether it is worth another try. Whoever shares a descriptor with us may have made it non-blocking.
fn waited(error: &io::Error, file: &File, flags: PollFlags) -> bool {
    match error.kind() {
        io::ErrorKind::Interrupted => true,
        io::ErrorKind::WouldBlock => {
            let _ = poll(&mut [PollFd::new(file.as_fd(), flags)], PollTimeout::NONE);
            true
        }
        _ => false,
    }
}

/// Whether nobody reads the other end of a pipe any more.
fn is_broken(file: &File) -> bool {
    let mut polled = [PollFd::new(file.as_fd(), PollFlags::empty())];
    let flags = poll(&mut polled, PollTimeout::ZERO).ok().and_then(|_| polled[0].revents());
    flags.is_some_and(|flags| flags.intersects(PollFlags::POLLERR | PollFlags::POLLHUP))
}
