//! The worker process: it isolates itself, then runs plans that the host sends.
//!
//! ```text
//! rlimits ─► landlock ─► engine ─► seccomp ─► `ready` ─► (`start` … `done`)* ─► end of stdin
//! ```
//! One thread, blocking reads and writes. The host has cleared the environment and made a process group.

mod engine;
mod isolate;
mod memory;
mod natives;
mod random;
mod rejections;
mod state;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use serde::de::DeserializeOwned;

use crate::frame;
use crate::protocol::{Levels, ToHost, ToWorker};

/// The longest frame that is read before the limits of a run are known.
const FIRST_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The two pipes to the host.
struct Pipes {
    from_host: io::BufReader<File>,
    to_host: File,
    limit: usize,
}

impl Pipes {
    fn open() -> io::Result<Pipes> {
        let from_host = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let to_host = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Pipes { from_host: io::BufReader::new(from_host), to_host, limit: FIRST_FRAME_BYTES })
    }

    fn read<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        frame::read(&mut self.from_host, self.limit)
    }

    fn write(&mut self, message: &ToHost) -> io::Result<()> {
        // The limits of content are checked where it is produced.
        frame::write(&mut self.to_host, message, u32::MAX as usize)
    }
}

/// The main function of a worker process. It returns to no caller: it ends with stdin, or when the host kills it.
///
/// Call it before any thread is started, from the program that [`crate::Program`] names.
pub fn worker_main() -> ! {
    worker_main_then(|| {})
}

/// [`worker_main`] with a hook after the isolation, for tests that try to break out.
#[doc(hidden)]
pub fn worker_main_then(after_isolation: impl FnOnce()) -> ! {
    let status = match serve(after_isolation) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("plan worker: {error}");
            1
        }
    };
    std::process::exit(status)
}

fn serve(after_isolation: impl FnOnce()) -> io::Result<()> {
    let mut pipes = Pipes::open()?;
    let rlimits = isolate::limit_resources();
    let landlock = isolate::restrict_access();
    let mut engine = engine::PlanEngine::new().map_err(io::Error::other)?;
    let seccomp = isolate::filter_system_calls();
    after_isolation();
    pipes.write(&ToHost::Ready { levels: Levels { landlock, seccomp, rlimits } })?;
    while let Some(message) = pipes.read::<ToWorker>()? {
        match message {
            ToWorker::Start(start) => engine = engine.run(start, &mut pipes)?,
            ToWorker::Deliver(_) | ToWorker::FireTimer {} | ToWorker::Cancel {} => {
                return Err(io::Error::other("a message of a run arrived before `start`"));
            }
        }
    }
    Ok(())
}
