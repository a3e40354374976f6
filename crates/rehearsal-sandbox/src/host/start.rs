//! A worker process: which program it is, how it starts, how far it is isolated.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::outcome::WorkerFailure;
use super::process::{Budget, Lost, Process};
use crate::protocol::{Levels, ToHost};

/// How long a worker may take to isolate itself. It takes milliseconds on a quiet machine.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The longest `ready` frame.
const READY_FRAME_BYTES: usize = 64 * 1024;

/// A program whose `main` calls [`crate::worker_main`] when it gets these arguments.
#[derive(Debug, Clone)]
pub struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

impl Program {
    /// Another program with its arguments.
    pub fn new(path: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Program {
        Program { path: path.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// The running program, with `argument` as its only argument.
    pub fn current(argument: &str) -> io::Result<Program> {
        Ok(Program::new(std::env::current_exe()?, [argument]))
    }
}

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The program cannot be started.
    #[error("cannot start the sandbox worker {}", path.display())]
    Spawn {
        /// The program.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The worker did not get ready.
    #[error("the sandbox worker did not get ready")]
    NotReady(#[source] WorkerFailure),
}

/// An isolated process that runs the plans of one user's request.
///
/// Each run has a fresh context. Use a worker for one plan and its repetitions, then drop it: that kills the process.
#[derive(Debug)]
pub struct Worker {
    /// `None` after a run that ended with a kill.
    pub(super) process: Option<Process>,
    levels: Levels,
    /// How many runs were started.
    pub(super) runs: u32,
}

impl Worker {
    /// Starts a worker and waits until it is isolated.
    pub fn start(program: &Program) -> Result<Worker, SandboxError> {
        let spawn = |source| SandboxError::Spawn { path: program.path.clone(), source };
        let mut process = Process::spawn(program).map_err(spawn)?;
        let failure = match process.receive::<ToHost>(READY_FRAME_BYTES, &mut Budget::new(START_LIMIT)) {
            Ok(ToHost::Ready { levels }) => return Ok(Worker { process: Some(process), levels, runs: 0 }),
            Ok(ToHost::Idle(_) | ToHost::Done(_)) => WorkerFailure::Protocol("a message before `ready`".to_owned()),
            Err(Lost::TimedOut) => WorkerFailure::Protocol(format!("no `ready` within {} s", START_LIMIT.as_secs())),
            Err(lost) => failure(lost, &mut process),
        };
        Err(SandboxError::NotReady(failure))
    }

    /// How far the worker is isolated. The caller decides whether that is enough.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }
}

/// The failure for a frame that did not arrive. It kills the worker.
pub(super) fn failure(lost: Lost, process: &mut Process) -> WorkerFailure {
    let (status, stderr) = process.kill();
    match lost {
        Lost::TimedOut | Lost::Closed => WorkerFailure::Exited { status, stderr },
        Lost::TooLong => WorkerFailure::Protocol("a frame is longer than allowed".to_owned()),
        Lost::Garbled(reason) => WorkerFailure::Protocol(format!("a frame is no message: {reason}")),
        Lost::Io(error) => WorkerFailure::Io(error),
    }
}
