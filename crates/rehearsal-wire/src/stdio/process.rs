//! A child process and everything that it started, and the thread that starts all of them.

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
use crate::Stopped;

/// A child that leads a process group of its own; dropping it kills the whole group.
#[derive(Debug)]
pub(super) struct Process {
    group: Pid,
    status: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    /// Takes charge of a child that was started with `process_group(0)`.
    pub(super) fn keep(mut child: Child) -> Option<Process> {
        let group = Pid::from_raw(i32::try_from(child.id()?).ok()?);
        watchdog::watch(group);
        let (ended, status) = watch::channel(None);
        tokio::spawn(async move {
            // An error means that somebody else reaped it: it is gone, and nobody will ever know how.
            let status = child.wait().await.unwrap_or_default();
            ended.send_replace(Some(status));
        });
        Some(Process { group, status })
    }

    /// How it ended, if it has.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        *self.status.borrow()
    }

    /// Waits until it ends, but not longer than `limit`.
    pub(super) async fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let mut status = self.status.clone();
        let ended = tokio::time::timeout(limit, status.wait_for(Option::is_some)).await;
        ended.ok()?.ok().and_then(|status| *status)
    }

    /// Waits until it ends, however long that takes; `None` where nobody will ever know how.
    pub(super) async fn ended(&self) -> Option<ExitStatus> {
        self.status.clone().wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Sends a signal, waits, then SIGKILL, for the whole group.
    pub(super) async fn end(&self, signal: Signal, grace: Duration) {
        self.signal(signal);
        self.wait(grace).await;
        self.kill();
        self.wait(grace).await;
    }

    /// Kills what is left of the group; whether there was anything.
    pub(super) fn kill_rest(&self) -> bool {
        killpg(self.group, Signal::SIGKILL).is_ok()
    }

    /// Waits for as long as `patience`, then SIGTERM, waits for as long as `grace`, then SIGKILL, for the whole group.
    pub(super) async fn stop(&self, patience: Duration, grace: Duration) -> Stopped {
        let stopped = if self.wait(patience).await.is_some() {
            Stopped::Politely
        } else {
            self.signal(Signal::SIGTERM);
            if self.wait(grace).await.is_some() { Stopped::Terminated } else { Stopped::Killed }
        };
        // Whoever is left in the group, the child itself or what it started, had its time.
        self.signal(Signal::SIGKILL);
        self.wait(grace).await;
        stopped
    }

    /// Kills the whole group without waiting.
    pub(super) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        // The only error is that nobody is left.
        let _ = killpg(self.group, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        watchdog::forget(self.group);
    }
}

/// A process to start, for the one thread that starts them.
///
/// On Linux a child's parent-death signal comes when the *thread* that started it ends, and threads of a runtime come
/// and go. This one stays until the process ends.
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
