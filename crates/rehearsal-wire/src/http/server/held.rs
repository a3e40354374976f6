//! POSTs of HTTP+SSE that wait for the application before they are acknowledged.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rehearsal_core::answer::fault::Refused;
use rehearsal_core::message::{Message, RequestId};
use tokio::sync::oneshot;

/// The POSTs that wait, by the request in them.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<RequestId, oneshot::Sender<Refused>>>);

impl Held {
    /// A POST waits; what comes back is a refusal, or the news that there will be none.
    pub(super) fn hold(&self, id: RequestId) -> oneshot::Receiver<Refused> {
        let (sender, receiver) = oneshot::channel();
        self.posts().insert(id, sender);
        receiver
    }

    /// Nobody is refused any more: an answer that the client waits for may depend on the next POST.
    pub(super) fn release(&self) {
        self.posts().clear();
    }

    /// Refuses the POST of a request; it comes back if that one does not wait.
    pub(super) fn refuse(&self, refused: Refused) -> Option<Refused> {
        let said = Message::parse(refused.instead.clone());
        let id = said.as_response().and_then(|response| response.id.clone());
        match id.and_then(|id| self.posts().remove(&id)) {
            Some(post) => post.send(refused).err(),
            None => Some(refused),
        }
    }

    fn posts(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Refused>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
