//! The containers that we started: their names and labels, and how they are removed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::engine::{COMMAND_TIMEOUT, Engine};
use crate::stdio::watchdog;

/// A container that we started. It is removed when this is dropped, or when our process is killed.
#[derive(Debug)]
pub(super) struct ContainerGuard {
    engine: Engine,
    name: String,
    done: AtomicBool,
}

impl ContainerGuard {
    /// Registers a container for removal, even if it does not exist yet.
    pub(super) fn new(engine: Engine, name: String) -> ContainerGuard {
        let program = shell_word(&engine.program().to_string_lossy());
        watchdog::add_duty(&name, &format!("{program} rm --force {name}"));
        ContainerGuard { engine, name, done: AtomicBool::new(false) }
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the engine has removed the container, up to a time limit: an engine that hangs must not block us,
    /// and a test that ends with a drop must not leave the container behind.
    pub(super) fn remove(&self) {
        if self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        let (engine, name) = (self.engine.clone(), self.name.clone());
        let (done, removed) = mpsc::channel();
        let remove = move || {
            engine.remove(&name);
            watchdog::remove_duty(&name);
            let _ = done.send(());
        };
        if std::thread::Builder::new().spawn(remove).is_ok() {
            let _ = removed.recv_timeout(COMMAND_TIMEOUT);
        }
    }

    /// Cancels the removal, because the container was never created.
    pub(super) fn forget(&self) {
        self.done.store(true, Ordering::Relaxed);
        watchdog::remove_duty(&self.name);
    }
}

impl Drop for ContainerGuard {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Quotes a text as one word for the shell.
pub(super) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The label of every container that we start; its value names the owner.
pub(super) const LABEL: &str = "rehearsal";

/// Builds the owner, `rehearsal=HOST/NAMESPACE/PID`: enough to find out later whether the owner still runs.
pub(super) fn owner_label() -> String {
    format!("{LABEL}={}/{}", host_and_namespace(), std::process::id())
}

/// Returns the host and the process namespace that our process id belongs to. On another host the same id is another
/// process.
fn host_and_namespace() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let inode: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{}/{inode}", host.trim())
}

/// True if the owner of a label was a process of this host and namespace, and no longer runs.
pub(super) fn is_orphan(owner: &str) -> bool {
    match owner.rsplit_once('/') {
        Some((there, process)) => {
            there == host_and_namespace() && !std::path::Path::new("/proc").join(process).exists()
        }
        None => false,
    }
}

/// Builds a name that is unique across hosts.
pub(super) fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    format!("rehearsal-{}-{}-{nanoseconds:09}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containers_of_exited_processes_on_this_host_are_orphans() {
        assert!(!is_orphan(&format!("{}/{}", host_and_namespace(), std::process::id())), "its owner still runs");
        assert!(is_orphan(&format!("{}/4194305", host_and_namespace())), "beyond the largest process id");
        assert!(!is_orphan("elsewhere/1/4194305"));
        assert!(!is_orphan("17"));
    }
}
