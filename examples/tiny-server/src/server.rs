//! What all the conversations of one server share.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::Arc;

use rehearsal_wire::{Connection, Ending};
use tokio::sync::{broadcast, watch};

use crate::subscriptions::Change;

/// How many changes wait for a slow subscriber before it misses the oldest.
const CHANGES: usize = 64;

/// What can be chosen about a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How many elements a list has before it goes on on the next page; all of them where it is not said.
    pub page_size: Option<NonZeroUsize>,
}

/// A server; its clones are the same server.
#[derive(Clone, Debug)]
pub struct Server(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) changes: broadcast::Sender<Change>,
    stopping: watch::Sender<bool>,
    key: RandomState,
}

impl Server {
    /// A server that nobody talks to yet.
    pub fn new(options: Options) -> Server {
        Server(Arc::new(Shared {
            options,
            changes: broadcast::Sender::new(CHANGES),
            stopping: watch::Sender::new(false),
            key: RandomState::new(),
        }))
    }

    /// Serves one client until either end closes the connection or the server is [stopped](Server::stop).
    pub async fn serve(&self, connection: Connection) -> Ending {
        crate::serve::serve(Arc::clone(&self.0), connection).await
    }

    /// Ends every conversation: subscribers get their final result, whatever still runs is given up.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }
}

impl Shared {
    /// Returns once the server is stopped.
    pub(crate) async fn stopped(&self) {
        // The sender is a field of ours, so waiting cannot fail while somebody can call this.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// A mark that only this process can make, so that state which comes back can be told from state that was made up.
    ///
    /// It is enough for an example: 64 bits, a key that dies with the process, no expiry, not bound to a user.
    pub(crate) fn mark(&self, of: (&str, &str)) -> String {
        format!("{:016x}", self.key.hash_one(of))
    }
}
