//! A watchdog that cleans up when our own process is killed.
//!
//! The parent-death signal reaches the process that we started, but not its children, such as the server behind a
//! launcher or in a container. The watchdog is a short shell script at the other end of a pipe. When the pipe closes
//! because our process ended, the script runs every command that is still on its list.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::unistd::Pid;

/// The script reads lines; the list holds one `KEY COMMAND` per line, and begins with a line end.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
duties='
'
while read -r sign key command; do
    case $sign in
    +) duties="$duties$key $command
" ;;
    -) case $duties in *"
$key "*)
        rest=${duties#*"
$key "}
        duties="${duties%%"
$key "*}
${rest#*
}" ;;
    esac ;;
    esac
done
printf '%s' "${duties#?}" | while read -r key command; do eval "$command"; done
"#;

static WATCHDOG: OnceLock<Option<Mutex<ChildStdin>>> = OnceLock::new();

/// Adds the killing of a process group to the list.
pub(super) fn watch(group: Pid) {
    write_line(format_args!("+ {group} kill -s KILL -- -{group}"));
}

/// Removes a process group from the list.
pub(super) fn forget(group: Pid) {
    write_line(format_args!("- {group}"));
}

/// Adds a line of shell to the list; `key` is a unique word.
pub(crate) fn add_duty(key: &str, command: &str) {
    debug_assert!(
        !key.contains(char::is_whitespace) && !command.contains('\n'),
        "one line, whose first word is the key"
    );
    // Runs in the background, because it may take long.
    write_line(format_args!("+ {key} {command} &"));
}

/// Removes a line of shell from the list, because we have done it ourselves.
pub(crate) fn remove_duty(key: &str) {
    write_line(format_args!("- {key}"));
}

fn write_line(line: std::fmt::Arguments<'_>) {
    // Without a shell there is no watchdog, only the parent-death signal.
    if let Some(pipe) = WATCHDOG.get_or_init(start) {
        // One write, so that a line is never split.
        let _ = pipe.lock().unwrap_or_else(PoisonError::into_inner).write_all(format!("{line}\n").as_bytes());
    }
}

fn start() -> Option<Mutex<ChildStdin>> {
    spawn_shell()?.stdin.take().map(Mutex::new)
}

fn spawn_shell() -> Option<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Its own process group, so that Ctrl-C at a terminal does not end it. Its working directory is `/`, so that it
    // keeps no folder of ours in use.
    command.process_group(0).current_dir("/");
    command.spawn().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_runs_only_the_commands_left_on_its_list() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut watchdog = spawn_shell().unwrap();
        let mut pipe = watchdog.stdin.take().unwrap();
        let touch = |name: &str| format!("echo {name} >> '{}'", log.display());
        for (key, words) in [("1", "one"), ("11", "eleven"), ("two", "two  words"), ("three", "three")] {
            writeln!(pipe, "+ {key} {}", touch(words)).unwrap();
        }
        for key in ["1", "three", "unknown"] {
            writeln!(pipe, "- {key}").unwrap();
        }
        drop(pipe);
        watchdog.wait().unwrap();
        assert_eq!(std::fs::read_to_string(log).unwrap(), "eleven\ntwo words\n");
    }
}
