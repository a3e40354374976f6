//! A child process with its process group, and the thread that starts all children.

use std::io;
use std::process::ExitStatus;
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::watchdog;
use crate::StopOutcome;

/// A child that leads its own process group; dropping it kills the whole group.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    group: Pid,
    status: watch::Receiver<Option<ExitStatus>>,
}

impl ProcessGroup {
    /// Takes over a child that was started with `process_group(0)`.
    pub(super) fn new(mut child: Child) -> Option<ProcessGroup> {
        let group = Pid::from_raw(i32::try_from(child.id()?).ok()?);
        watchdog::watch(group);
        let (ended, status) = watch::channel(None);
        tokio::spawn(async move {
            // An error means that other code waited for the child first: it has exited, and its status is lost.
            let status = child.wait().await.unwrap_or_default();
            ended.send_replace(Some(status));
        });
        Some(ProcessGroup { group, status })
    }

    /// Returns the exit status, if the child has exited.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        *self.status.borrow()
    }

    /// Waits for the child to exit, up to `limit`.
    pub(super) async fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let mut status = self.status.clone();
        let ended = tokio::time::timeout(limit, status.wait_for(Option::is_some)).await;
        ended.ok()?.ok().and_then(|status| *status)
    }

    /// Waits without a limit for the child to exit; `None` if the status is lost.
    pub(super) async fn wait_for_exit(&self) -> Option<ExitStatus> {
        self.status.clone().wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Sends a signal to the whole group, waits up to `grace`, then sends SIGKILL.
    pub(super) async fn stop_with(&self, signal: Signal, grace: Duration) {
        self.signal(signal);
        self.wait(grace).await;
        self.kill();
        self.wait(grace).await;
    }

    /// Kills the rest of the group, and returns whether a process was left in it.
    pub(super) fn kill_rest(&self) -> bool {
        killpg(self.group, Signal::SIGKILL).is_ok()
    }

    /// Waits up to `exit_wait`, sends SIGTERM, waits up to `grace`, then sends SIGKILL, each to the whole group.
    pub(super) async fn stop(&self, exit_wait: Duration, grace: Duration) -> StopOutcome {
        let stopped = if self.wait(exit_wait).await.is_some() {
            StopOutcome::Exited
        } else {
            self.signal(Signal::SIGTERM);
            if self.wait(grace).await.is_some() { StopOutcome::Terminated } else { StopOutcome::Killed }
        };
        // Any process left in the group, the child or one that it started, has had its time.
        self.signal(Signal::SIGKILL);
        self.wait(grace).await;
        stopped
    }

    /// Kills the whole group without waiting.
    pub(super) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        // The only possible error is that the group is empty.
        let _ = killpg(self.group, signal);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        watchdog::forget(self.group);
    }
}

/// A process to start on the spawner thread.
///
/// On Linux a child gets its parent-death signal when the *thread* that started it ends, and the threads of a runtime
/// end at any time. The spawner thread runs until the process exits.
struct Job {
    command: Command,
    runtime: Handle,
    done: oneshot::Sender<io::Result<Child>>,
}

static JOBS: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

/// Starts a process from the spawner thread, which runs as long as our process.
pub(super) async fn spawn(command: Command) -> io::Result<Child> {
    let (done, child) = oneshot::channel();
    let job = Job { command, runtime: Handle::current(), done };
    let ended = |_| io::Error::other("the thread that starts processes has ended");
    JOBS.get_or_init(start).send(job).map_err(|_| ended(()))?;
    child.await.map_err(|_| ended(()))?
}

fn start() -> mpsc::Sender<Job> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let run = move || {
        for mut job in queue {
            let _entered = job.runtime.enter();
            let child = job.command.spawn();
            // If the caller no longer waits, the child is dropped and thereby killed.
            let _ = job.done.send(child);
        }
    };
    // If the thread cannot be started, the queue is dropped, and every caller gets an error.
    let _ = std::thread::Builder::new().name("rehearsal-spawner".into()).spawn(run);
    jobs
}
