//! Kills what is left of our servers when we are killed ourselves.
//!
//! The parent-death signal reaches the process that we started, but not what that has started, such as the server behind a
//! launcher. The watchdog is a few lines of shell at the other end of a pipe: when the pipe closes, because we are gone,
//! it kills every process group that was not taken off its list.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::unistd::Pid;

const SCRIPT: &str = r#"
trap '' INT TERM HUP
groups=' '
while read -r sign group; do
    case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

static WATCHDOG: OnceLock<Option<Mutex<ChildStdin>>> = OnceLock::new();

/// Puts a process group on the list.
pub(super) fn watch(group: Pid) {
    tell('+', group);
}

/// Takes a process group off the list.
pub(super) fn forget(group: Pid) {
    tell('-', group);
}

fn tell(sign: char, group: Pid) {
    // Without a shell there is no watchdog, and the parent-death signal has to do.
    if let Some(pipe) = WATCHDOG.get_or_init(start) {
        let _ = writeln!(pipe.lock().unwrap_or_else(PoisonError::into_inner), "{sign} {group}");
    }
}

fn start() -> Option<Mutex<ChildStdin>> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // A group of its own, so that Ctrl-C at a terminal does not end it; nothing of ours is kept busy by where it runs.
    command.process_group(0).current_dir("/");
    command.spawn().ok()?.stdin.take().map(Mutex::new)
}
