//! Stops a server in a container that keeps running.
//!
//! Stopping the engine's `exec` does not stop the process that it started. Each such server has a unique mark in its
//! environment, which its children inherit. Only that mark identifies the processes to kill.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cleanup::{shell_word, unique_name};
use super::engine::Engine;
use crate::StopOutcome;
use crate::stdio::watchdog;

/// The variable that holds the mark.
const MARK: &str = "REHEARSAL_EXEC";
/// The time between SIGTERM and SIGKILL.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);
/// How long after a request an engine may still start the server, although the engine's client was killed.
const LATE_START_WAIT: Duration = Duration::from_secs(2);
/// The time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Sends a signal to every process with the mark, and prints their ids; needs a shell and `grep`.
const SCRIPT: &str = "for file in $(grep -ls -- \"$1\" /proc/[0-9]*/environ); do \
    process=${file#/proc/}; process=${process%/environ}; kill -s \"$2\" \"$process\" && echo \"$process\"; done";

/// A server in a container that was already running and stays.
#[derive(Debug)]
pub(super) struct ExecProcess {
    engine: Engine,
    container: String,
    /// The engine options that the server was started with. Only a process of the same user can read the server's
    /// environment.
    options: Vec<OsString>,
    mark: String,
    since: Instant,
    /// True once the server has sent a message.
    has_started: AtomicBool,
    done: AtomicBool,
}

impl ExecProcess {
    pub(super) fn new(engine: Engine, container: &str, options: &[OsString]) -> ExecProcess {
        let process = ExecProcess {
            engine,
            container: container.to_owned(),
            options: options.to_vec(),
            mark: unique_name(),
            since: Instant::now(),
            has_started: AtomicBool::new(false),
            done: AtomicBool::new(false),
        };
        watchdog::add_duty(&process.mark, &process.watchdog_command());
        process
    }

    /// Builds the shell command that the watchdog runs if we are killed. It sends SIGKILL from the host and from inside
    /// the container.
    fn watchdog_command(&self) -> String {
        let arguments = std::iter::once(self.engine.program().to_owned()).chain(self.signal_arguments("KILL"));
        let arguments: Vec<String> = arguments.map(|word| shell_word(&word.to_string_lossy())).collect();
        format!("{{ sh -c {} sh {} KILL; {}; }}", shell_word(SCRIPT), self.mark, arguments.join(" "))
    }

    /// Builds the arguments of the engine command that sends the signal inside the container.
    fn signal_arguments(&self, signal: &str) -> Vec<OsString> {
        let script = ["sh", "-c", SCRIPT, "sh", &self.mark, signal].map(OsString::from);
        let options = self.options.iter().cloned().chain([OsString::from(&self.container)]);
        std::iter::once("exec".into()).chain(options).chain(script).collect()
    }

    /// Builds the value of `--env`. It is no secret. It is on the command line, so that the environment of the engine's
    /// client does not contain the mark.
    pub(super) fn environment_variable(&self) -> String {
        format!("{MARK}={}", self.mark)
    }

    /// Notes that the server has sent a message and therefore runs.
    pub(super) fn mark_started(&self) {
        self.has_started.store(true, Ordering::Relaxed);
    }

    /// Kills what still runs after the server was stopped; `stopped` is how the engine's client ended.
    pub(super) fn end(&self, stopped: StopOutcome) -> StopOutcome {
        if self.done.swap(true, Ordering::Relaxed) {
            return stopped;
        }
        let ended = match stopped {
            // The engine's client exits only after the server, so at most children of the server are left.
            StopOutcome::AlreadyExited | StopOutcome::Exited => {
                self.signal_from_host(Signal::SIGKILL);
                stopped
            }
            StopOutcome::Terminated | StopOutcome::Killed => self.terminate(),
        };
        watchdog::remove_duty(&self.mark);
        ended
    }

    /// Kills what still runs, without SIGTERM.
    pub(super) fn kill(&self) {
        if self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        let may_come = || !self.has_started.load(Ordering::Relaxed) && self.since.elapsed() < LATE_START_WAIT;
        while !self.signal(Signal::SIGKILL) && may_come() {
            std::thread::sleep(CHECK_INTERVAL);
        }
        watchdog::remove_duty(&self.mark);
    }

    /// Cancels the cleanup, because the server was never started.
    pub(super) fn forget(&self) {
        self.done.store(true, Ordering::Relaxed);
        watchdog::remove_duty(&self.mark);
    }

    fn terminate(&self) -> StopOutcome {
        if !self.signal(Signal::SIGTERM) {
            return StopOutcome::Terminated;
        }
        let begin = Instant::now();
        while begin.elapsed() < TERMINATE_GRACE {
            std::thread::sleep(CHECK_INTERVAL);
            if !self.signal(None) {
                return StopOutcome::Terminated;
            }
        }
        self.signal(Signal::SIGKILL);
        StopOutcome::Killed
    }

    /// Sends a signal to the marked processes, and returns whether there was one. Without a signal it only checks.
    fn signal(&self, signal: impl Into<Option<Signal>>) -> bool {
        let signal = signal.into();
        self.signal_from_host(signal) || self.signal_from_inside(signal)
    }

    /// Sends the signal from the host: if the engine runs on this host, `/proc` lists the processes of the container
    /// too. That needs permission to read them.
    fn signal_from_host(&self, signal: impl Into<Option<Signal>>) -> bool {
        let signal = signal.into();
        let Ok(processes) = std::fs::read_dir("/proc") else { return false };
        let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mark = self.environment_variable();
        let is_marked = |id: &i32| {
            std::fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|text| memmem::find(&text, mark.as_bytes()).is_some())
        };
        ids.filter(is_marked).filter(|id| kill(Pid::from_raw(*id), signal).is_ok()).count() > 0
    }

    /// Sends the signal inside the container, for an engine on another host.
    fn signal_from_inside(&self, signal: Option<Signal>) -> bool {
        let signal = signal.map_or("0", |signal| signal.as_str().trim_start_matches("SIG"));
        // An error means that the container was removed, or has no shell; then the processes cannot be reached.
        self.engine.run(self.signal_arguments(signal)).is_ok_and(|found| !found.is_empty())
    }
}

impl Drop for ExecProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn exec_process() -> ExecProcess {
        ExecProcess::new(Engine::find(Some(OsStr::new("no-such-engine"))).unwrap(), "box", &["--user=me".into()])
    }

    /// Starts a process with this mark, and its child, and waits until both run.
    fn marked(process: &ExecProcess) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo; wait"]).env(MARK, &process.mark).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        child
    }

    /// Checks that the child was killed too: only then its stdout ends.
    fn is_killed_with_its_child(mut child: Child) -> bool {
        let mut stdout = child.stdout.take().unwrap();
        std::io::Read::read_to_end(&mut stdout, &mut Vec::new()).unwrap();
        child.wait().unwrap().signal() == Some(9)
    }

    #[test]
    fn only_processes_with_the_mark_are_killed_from_the_host() {
        let (process, other) = (exec_process(), exec_process());
        let (mine, mut theirs) = (marked(&process), marked(&other));
        assert!(process.signal_from_host(None));
        process.kill();
        assert!(is_killed_with_its_child(mine));
        assert!(!process.signal_from_host(None));
        assert!(theirs.try_wait().unwrap().is_none());
        other.kill();
        assert!(is_killed_with_its_child(theirs));
    }

    #[test]
    fn processes_with_the_mark_are_killed_from_inside_by_a_shell() {
        let process = exec_process();
        let arguments = process.signal_arguments("KILL");
        assert_eq!(arguments[..3], ["exec", "--user=me", "box"]);
        let child = marked(&process);
        let run = || Command::new(&arguments[3]).args(&arguments[4..]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(run()).unwrap().lines().count(), 2);
        assert!(is_killed_with_its_child(child));
        assert!(run().is_empty());
        process.forget();
    }

    #[test]
    fn the_line_for_the_watchdog_is_valid_shell() {
        let process = exec_process();
        let child = marked(&process);
        let line = process.watchdog_command();
        let mut shell = Command::new("sh");
        assert!(shell.args(["-c", &line]).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok());
        assert!(is_killed_with_its_child(child));
        process.forget();
    }
}
