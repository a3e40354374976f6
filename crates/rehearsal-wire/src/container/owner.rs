//! Whose a container is.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

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
