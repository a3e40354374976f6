//! The thread that starts all child processes.
//!
//! On Linux a child's parent-death signal comes when the *thread* that started it ends, and threads of a runtime come
//! and go. This one stays until the process ends.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Job {
    command: Command,
    runtime: Handle,
    done: oneshot::Sender<io::Result<Child>>,
}

static JOBS: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

/// Starts a process from the thread that lives as long as we do.
pub(super) async fn spawn(command: Command) -> io::Result<Child> {
    let (done, child) = oneshot::channel();
    let job = Job { command, runtime: Handle::current(), done };
    let gone = |_| io::Error::other("the thread that starts processes is gone");
    JOBS.get_or_init(start).send(job).map_err(|_| gone(()))?;
    child.await.map_err(|_| gone(()))?
}

fn start() -> mpsc::Sender<Job> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let run = move || {
        for mut job in queue {
            let _entered = job.runtime.enter();
            let child = job.command.spawn();
            // If nobody waits any more, the child is dropped and killed with it.
            let _ = job.done.send(child);
        }
    };
    // Without the thread the queue is dropped, and everybody who asks is told so.
    let _ = std::thread::Builder::new().name("rehearsal-spawner".into()).spawn(run);
    jobs
}
