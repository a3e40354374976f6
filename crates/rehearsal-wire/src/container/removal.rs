//! The end of a container that we started.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

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
