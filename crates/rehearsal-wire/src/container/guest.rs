//! The end of a server in a container that stays.
//!
//! Ending the engine's `exec` does not end what it started. Every such server has a mark of its own among its variables, and
//! so has whatever it starts; by that mark, and by nothing else, they are found and ended.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cleanup::{shell_word, unique_name};
use super::engine::Engine;
use crate::Stopped;
use crate::stdio::watchdog;

/// The variable that holds the mark.
const MARK: &str = "REHEARSAL_EXEC";
/// How long after SIGTERM comes SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// An engine that was asked for a server a moment ago may start it after its client is gone.
const LATE: Duration = Duration::from_secs(2);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends a signal to every process with the mark, and prints which; for a container with a shell and `grep`.
const SCRIPT: &str = "for file in $(grep -ls -- \"$1\" /proc/[0-9]*/environ); do \
    process=${file#/proc/}; process=${process%/environ}; kill -s \"$2\" \"$process\" && echo \"$process\"; done";

/// A server in somebody else's container.
#[derive(Debug)]
pub(super) struct Guest {
    engine: Engine,
    container: String,
    /// The options that the server was started with: only who runs as the same user may look at its variables.
    options: Vec<OsString>,
    mark: String,
    since: Instant,
    /// Whether the server has said anything.
    heard: AtomicBool,
    done: AtomicBool,
}

impl Guest {
    pub(super) fn new(engine: Engine, container: &str, options: &[OsString]) -> Guest {
        let guest = Guest {
            engine,
            container: container.to_owned(),
            options: options.to_vec(),
            mark: unique_name(),
            since: Instant::now(),
            heard: AtomicBool::new(false),
            done: AtomicBool::new(false),
        };
        watchdog::promise(&guest.mark, &guest.duty());
        guest
    }

    /// What the watchdog does when we are killed: the same, from outside and from inside.
    fn duty(&self) -> String {
        let words = std::iter::once(self.engine.program().to_owned()).chain(self.inside("KILL"));
        let words: Vec<String> = words.map(|word| shell_word(&word.to_string_lossy())).collect();
        format!("{{ sh -c {} sh {} KILL; {}; }}", shell_word(SCRIPT), self.mark, words.join(" "))
    }

    /// What the engine is told to have the container look itself.
    fn inside(&self, signal: &str) -> Vec<OsString> {
        let script = ["sh", "-c", SCRIPT, "sh", &self.mark, signal].map(OsString::from);
        let options = self.options.iter().cloned().chain([OsString::from(&self.container)]);
        std::iter::once("exec".into()).chain(options).chain(script).collect()
    }

    /// For `--env`; not a secret, and on the command line so that the engine's client does not carry the mark itself.
    pub(super) fn variable(&self) -> String {
        format!("{MARK}={}", self.mark)
    }

    /// The server has said something, so it is there.
    pub(super) fn hear(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// Ends what is left after the server was asked to end; `stopped` is what is known of that.
    pub(super) fn end(&self, stopped: Stopped) -> Stopped {
        if self.done.swap(true, Ordering::Relaxed) {
            return stopped;
        }
        let ended = match stopped {
            // The engine's client ends by itself only after the server, so that what is left are its children at most.
            Stopped::Gone | Stopped::Politely => {
                self.signal_from_outside(Signal::SIGKILL);
                stopped
            }
            Stopped::Terminated | Stopped::Killed => self.terminate(),
        };
        watchdog::kept(&self.mark);
        ended
    }

    /// Ends what is left without asking.
    pub(super) fn kill(&self) {
        if self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        let may_come = || !self.heard.load(Ordering::Relaxed) && self.since.elapsed() < LATE;
        while !self.signal(Signal::SIGKILL) && may_come() {
            std::thread::sleep(PAUSE);
        }
        watchdog::kept(&self.mark);
    }

    /// There was never a server to end.
    pub(super) fn forget(&self) {
        self.done.store(true, Ordering::Relaxed);
        watchdog::kept(&self.mark);
    }

    fn terminate(&self) -> Stopped {
        if !self.signal(Signal::SIGTERM) {
            return Stopped::Terminated;
        }
        let begin = Instant::now();
        while begin.elapsed() < GRACE {
            std::thread::sleep(PAUSE);
            if !self.signal(None) {
                return Stopped::Terminated;
            }
        }
        self.signal(Signal::SIGKILL);
        Stopped::Killed
    }

    /// Whether there was a process to send it to; no signal is a look.
    fn signal(&self, signal: impl Into<Option<Signal>>) -> bool {
        let signal = signal.into();
        self.signal_from_outside(signal) || self.signal_from_inside(signal)
    }

    /// On a machine of ours the processes of a container are processes like others, for those who may see them.
    fn signal_from_outside(&self, signal: impl Into<Option<Signal>>) -> bool {
        let signal = signal.into();
        let Ok(processes) = std::fs::read_dir("/proc") else { return false };
        let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mark = self.variable();
        let is_marked = |id: &i32| {
            std::fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|text| memmem::find(&text, mark.as_bytes()).is_some())
        };
        ids.filter(is_marked).filter(|id| kill(Pid::from_raw(*id), signal).is_ok()).count() > 0
    }

    /// Everywhere else the container must look itself.
    fn signal_from_inside(&self, signal: Option<Signal>) -> bool {
        let signal = signal.map_or("0", |signal| signal.as_str().trim_start_matches("SIG"));
        // An error means that the container is gone, or that it has no shell; then there is no way in.
        self.engine.tell(self.inside(signal)).is_ok_and(|found| !found.is_empty())
    }
}

impl Drop for Guest {
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

    fn guest() -> Guest {
        Guest::new(Engine::find(Some(OsStr::new("no-such-engine"))).unwrap(), "box", &["--user=me".into()])
    }

    /// A process with this mark, and its child; it has said that both are there.
    fn marked(guest: &Guest) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo; wait"]).env(MARK, &guest.mark).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        child
    }

    /// The end of its stdout says that its child is gone, too.
    fn is_killed_with_its_child(mut child: Child) -> bool {
        let mut stdout = child.stdout.take().unwrap();
        std::io::Read::read_to_end(&mut stdout, &mut Vec::new()).unwrap();
        child.wait().unwrap().signal() == Some(9)
    }

    #[test]
    fn marked_processes_are_found_from_outside_and_nobody_else() {
        let (guest, other) = (guest(), guest());
        let (mine, mut theirs) = (marked(&guest), marked(&other));
        assert!(guest.signal_from_outside(None));
        guest.kill();
        assert!(is_killed_with_its_child(mine));
        assert!(!guest.signal_from_outside(None));
        assert!(theirs.try_wait().unwrap().is_none());
        other.kill();
        assert!(is_killed_with_its_child(theirs));
    }

    #[test]
    fn marked_processes_are_found_from_inside_by_a_shell() {
        let guest = guest();
        let words = guest.inside("KILL");
        assert_eq!(words[..3], ["exec", "--user=me", "box"]);
        let child = marked(&guest);
        let run = || Command::new(&words[3]).args(&words[4..]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(run()).unwrap().lines().count(), 2);
        assert!(is_killed_with_its_child(child));
        assert!(run().is_empty());
        guest.forget();
    }

    #[test]
    fn the_watchdog_is_given_a_line_that_a_shell_understands() {
        let guest = guest();
        let child = marked(&guest);
        let line = guest.duty();
        let mut shell = Command::new("sh");
        assert!(shell.args(["-c", &line]).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok());
        assert!(is_killed_with_its_child(child));
        guest.forget();
    }
}
