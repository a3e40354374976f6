//! The containers that we started: their names and labels, and how they are removed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::engine::{Engine, LIMIT};
use crate::stdio::watchdog;

/// A container of ours; it is removed at the latest when this is dropped, or when we are killed.
#[derive(Debug)]
pub(super) struct Removal {
    engine: Engine,
    name: String,
    done: AtomicBool,
}

impl Removal {
    /// Takes charge of a container, whether it is there already or not.
    pub(super) fn of(engine: Engine, name: String) -> Removal {
        let program = shell_word(&engine.program().to_string_lossy());
        watchdog::promise(&name, &format!("{program} rm --force {name}"));
        Removal { engine, name, done: AtomicBool::new(false) }
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the engine is done, but not for ever: an engine that hangs must not hang us, and a test that ends with
    /// a drop must not leave the container behind.
    pub(super) fn remove(&self) {
        if self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        let (engine, name) = (self.engine.clone(), self.name.clone());
        let (done, removed) = mpsc::channel();
        let remove = move || {
            engine.remove(&name);
            watchdog::kept(&name);
            let _ = done.send(());
        };
        if std::thread::Builder::new().spawn(remove).is_ok() {
            let _ = removed.recv_timeout(LIMIT);
        }
    }

    /// There was never a container to remove.
    pub(super) fn forget(&self) {
        self.done.store(true, Ordering::Relaxed);
        watchdog::kept(&self.name);
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        self.remove();
    }
}

/// One word for a shell, whatever is in it.
pub(super) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// On every container that we start; its value says whose it is.
pub(super) const LABEL: &str = "rehearsal";

/// `rehearsal=HOST/NAMESPACE/PID`: enough to know later whether we are still there.
pub(super) fn label() -> String {
    format!("{LABEL}={}/{}", home(), std::process::id())
}

/// Which host and which process namespace a process id is from: elsewhere the same id means somebody else.
fn home() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let inode: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{}/{inode}", host.trim())
}

/// Whether the owner of a label is a process of this very place that is no more.
pub(super) fn is_orphan(owner: &str) -> bool {
    match owner.rsplit_once('/') {
        Some((there, process)) => there == home() && !std::path::Path::new("/proc").join(process).exists(),
        None => false,
    }
}

/// A name that nothing else in the world has.
pub(super) fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    format!("rehearsal-{}-{}-{nanoseconds:09}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containers_of_dead_processes_of_this_very_place_are_orphans() {
        assert!(!is_orphan(&format!("{}/{}", home(), std::process::id())), "we live");
        assert!(is_orphan(&format!("{}/4194305", home())), "beyond the largest process id");
        assert!(!is_orphan("elsewhere/1/4194305"));
        assert!(!is_orphan("17"));
    }
}
