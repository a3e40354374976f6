//! The process of a worker: frames on its pipes with a bound on time, its stderr, its end.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::start::Program;
use crate::frame;

/// How much of the end of stderr is kept.
const STDERR_BYTES: usize = 8 * 1024;

/// Time that is used up by waiting for a worker.
pub(super) struct Budget {
    left: Duration,
}

impl Budget {
    pub(super) fn new(limit: Duration) -> Budget {
        Budget { left: limit }
    }
}

/// Why a frame could not be sent or received.
pub(super) enum Lost {
    /// The budget is used up.
    TimedOut,
    /// The worker closed its pipe.
    Closed,
    /// The frame is longer than allowed.
    TooLong,
    /// The frame is no message.
    Garbled(String),
    /// The pipe failed.
    Io(io::Error),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Lost {
        match error.kind() {
            ErrorKind::BrokenPipe => Lost::Closed,
            _ => Lost::Io(error),
        }
    }
}

/// A child process with frames on stdin and stdout. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    stderr_end: Vec<u8>,
    /// Bytes of stdout that were read beyond the last frame.
    buffered: Vec<u8>,
    /// After `wait` the id of the process may belong to another one.
    is_reaped: bool,
}

impl Process {
    /// Starts a program without environment, in a process group of its own. Local time is UTC in every worker.
    pub(super) fn spawn(program: &Program) -> io::Result<Process> {
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).env_clear().env("TZ", "UTC0").current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take();
        let process =
            Process { child, stdin, stdout, stderr, stderr_end: Vec::new(), buffered: Vec::new(), is_reaped: false };
        // Only our ends: the ends of the worker are open file descriptions of their own and stay blocking.
        unblock(&process.stdin)?;
        unblock(&process.stdout)?;
        if let Some(stderr) = &process.stderr {
            unblock(stderr)?;
        }
        Ok(process)
    }

    /// Sends one frame of at most `limit` bytes.
    pub(super) fn send<T: Serialize>(&mut self, message: &T, limit: usize, budget: &mut Budget) -> Result<(), Lost> {
        let bytes = frame::encode(message, limit)?.ok_or(Lost::TooLong)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match self.stdin.write(rest) {
                Ok(0) => return Err(Lost::Closed),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(Direction::ToWorker, budget)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives one frame of at most `limit` bytes.
    pub(super) fn receive<T: DeserializeOwned>(&mut self, limit: usize, budget: &mut Budget) -> Result<T, Lost> {
        loop {
            if let Some(prefix) = self.buffered.first_chunk::<4>() {
                let length = frame::announced(*prefix);
                if length > limit {
                    return Err(Lost::TooLong);
                }
                if self.buffered.len() >= 4 + length {
                    let message = serde_json::from_slice(&self.buffered[4..4 + length]);
                    self.buffered.drain(..4 + length);
                    return message.map_err(|error| Lost::Garbled(error.to_string()));
                }
            }
            let mut chunk = [0; 64 * 1024];
            match self.stdout.read(&mut chunk) {
                Ok(0) => return Err(Lost::Closed),
                Ok(read) => self.buffered.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(Direction::FromWorker, budget)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// True if the worker has sent bytes that no one requested, or has closed its stdout.
    pub(super) fn has_unrequested_output(&mut self) -> bool {
        let mut byte = [0];
        match self.stdout.read(&mut byte) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => !self.buffered.is_empty(),
            Ok(_) | Err(_) => true,
        }
    }

    /// Waits until a pipe is ready, and drains stderr meanwhile.
    fn wait(&mut self, direction: Direction, budget: &mut Budget) -> Result<(), Lost> {
        let started = Instant::now();
        let result = loop {
            let left = budget.left.saturating_sub(started.elapsed());
            if left.is_zero() {
                break Err(Lost::TimedOut);
            }
            let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            let (fd, flags) = match direction {
                Direction::ToWorker => (self.stdin.as_fd(), PollFlags::POLLOUT),
                Direction::FromWorker => (self.stdout.as_fd(), PollFlags::POLLIN),
            };
            let mut fds = vec![PollFd::new(fd, flags)];
            fds.extend(self.stderr.as_ref().map(|stderr| PollFd::new(stderr.as_fd(), PollFlags::POLLIN)));
            match poll(&mut fds, timeout) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => break Err(Lost::Io(error.into())),
            }
            let ready = fds[0].any().unwrap_or(true);
            if fds.get(1).is_some_and(|fd| fd.any().unwrap_or(true)) {
                self.drain_stderr();
            }
            if ready {
                break Ok(());
            }
        };
        budget.left = budget.left.saturating_sub(started.elapsed());
        result
    }

    /// Reads what is in the stderr pipe and keeps the end of it.
    fn drain_stderr(&mut self) {
        let mut chunk = [0; 4096];
        // A flood is read in turns with the other pipe.
        for _ in 0..16 {
            let Some(stderr) = &mut self.stderr else { return };
            match stderr.read(&mut chunk) {
                Ok(0) => self.stderr = None,
                Ok(read) => {
                    self.stderr_end.extend_from_slice(&chunk[..read]);
                    let surplus = self.stderr_end.len().saturating_sub(STDERR_BYTES);
                    self.stderr_end.drain(..surplus);
                }
                Err(_) => return,
            }
        }
    }

    /// Kills the process group, waits for the worker, and returns its status and the end of its stderr.
    pub(super) fn kill(&mut self) -> (Option<ExitStatus>, String) {
        if !self.is_reaped {
            // A worker that ended by itself has its own status; the signal does not change it.
            let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        }
        let status = self.child.wait().ok();
        self.is_reaped = true;
        self.drain_stderr();
        (status, String::from_utf8_lossy(&self.stderr_end).into_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[derive(Clone, Copy)]
enum Direction {
    ToWorker,
    FromWorker,
}

fn unblock(fd: &impl AsFd) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}
