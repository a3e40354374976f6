//! Being told to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::exit::Exit;

/// The signals that end us; from now on they do not do so by themselves.
pub(super) struct Signals {
    hang_up: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen.
    pub(super) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one, and says how to end.
    pub(super) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.hang_up.recv() => Exit::HungUp,
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}
