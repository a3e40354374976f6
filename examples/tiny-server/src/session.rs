//! One conversation: what it remembers, what is in flight, what it asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rehearsal_core::answer::Memory;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{ErrorReply, Message, Reply, RequestId};
use rehearsal_core::protocol::{Era, code};
use rehearsal_wire::{Outgoing, Sender};
use tokio::sync::{oneshot, watch};

use crate::server::Shared;

/// How many requests are worked on at once; more are refused.
const IN_FLIGHT: usize = 1000;

/// One conversation with one client; over stateless HTTP, with all of them.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) server: Arc<Shared>,
    sender: Arc<dyn Sender>,
    memory: Mutex<Memory>,
    in_flight: Mutex<HashMap<(Channel, RequestId), InFlight>>,
    questions: Mutex<HashMap<RequestId, oneshot::Sender<Reply>>>,
    last_question: AtomicI64,
    ready: AtomicBool,
    closing: watch::Sender<bool>,
}

/// A request that is worked on.
#[derive(Debug)]
struct InFlight {
    era: Era,
    cancel: watch::Sender<bool>,
}

/// A question that the client has not answered yet.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) id: RequestId,
    pub(crate) reply: oneshot::Receiver<Reply>,
}

impl Session {
    pub(crate) fn new(server: Arc<Shared>, sender: Arc<dyn Sender>) -> Session {
        Session {
            server,
            sender,
            memory: Mutex::default(),
            in_flight: Mutex::default(),
            questions: Mutex::default(),
            last_question: AtomicI64::new(0),
            ready: AtomicBool::new(false),
            closing: watch::Sender::new(false),
        }
    }

    /// What the handshake era remembers.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("nobody panics while holding this lock")
    }

    /// The client said that it may be told about changes; `true` the first time.
    pub(crate) fn becomes_ready(&self) -> bool {
        !self.ready.swap(true, Ordering::Relaxed)
    }

    /// Sends a message; a client that went away needs none.
    pub(crate) async fn send(&self, channel: Channel, message: Message) {
        let _ = self.sender.send(Outgoing::new(channel, message)).await;
    }

    /// Notes that a request is worked on; what comes back turns `true` when the client cancels it.
    pub(crate) fn begin(
        &self,
        channel: Channel,
        id: &RequestId,
        era: Era,
    ) -> Result<watch::Receiver<bool>, ErrorReply> {
        let mut in_flight = self.in_flight.lock().expect("nobody panics while holding this lock");
        if in_flight.len() >= IN_FLIGHT {
            return Err(ErrorReply::new(code::INTERNAL_ERROR, format!("more than {IN_FLIGHT} requests in flight")));
        }
        if in_flight.contains_key(&(channel, id.clone())) {
            return Err(ErrorReply::new(code::INVALID_REQUEST, format!("the id {id} is still in flight")));
        }
        let (cancel, cancelled) = watch::channel(false);
        in_flight.insert((channel, id.clone()), InFlight { era, cancel });
        Ok(cancelled)
    }

    /// Notes that a request is about to be answered; its id is free again.
    pub(crate) fn end(&self, channel: Channel, id: &RequestId) {
        let mut in_flight = self.in_flight.lock().expect("nobody panics while holding this lock");
        in_flight.remove(&(channel, id.clone()));
    }

    /// Notes that a request will never be answered. Over HTTP nothing else would end its stream.
    pub(crate) fn keep_silent(&self, channel: Channel) {
        let in_flight = self.in_flight.lock().expect("nobody panics while holding this lock");
        // A batch has one stream for several requests.
        if channel != Channel::MAIN && in_flight.keys().all(|(on, _)| *on != channel) {
            self.sender.close_channel(channel);
        }
    }

    /// `notifications/cancelled`.
    ///
    /// In the handshake era the note comes in a POST of its own, so the id alone must do; stateless ids are unique
    /// only on their own channel.
    pub(crate) fn cancel(&self, channel: Channel, id: &RequestId) {
        self.cancel_where(|(on, request), era| request == id && (era == Era::Legacy || *on == channel));
    }

    /// The client stopped listening, which cancels a request since 2026-07-28 and meant nothing before.
    pub(crate) fn channel_ended(&self, channel: Channel) {
        self.cancel_where(|(on, _), era| *on == channel && era == Era::Modern);
    }

    fn cancel_where(&self, matches: impl Fn(&(Channel, RequestId), Era) -> bool) {
        let in_flight = self.in_flight.lock().expect("nobody panics while holding this lock");
        for (_, request) in in_flight.iter().filter(|(key, request)| matches(key, request.era)) {
            request.cancel.send_replace(true);
        }
    }

    /// An id for a question to the client, and where its answer will arrive.
    pub(crate) fn question(&self) -> Question {
        let id = RequestId::Number(self.last_question.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, reply) = oneshot::channel();
        self.questions().insert(id.clone(), sender);
        Question { id, reply }
    }

    /// The client answered; whoever asked is told. An answer to nothing is ignored.
    pub(crate) fn answered(&self, id: &RequestId, reply: Reply) {
        if let Some(question) = self.questions().remove(id) {
            // Whoever asked may have been cancelled in the meantime.
            let _ = question.send(reply);
        }
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.questions().remove(id);
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Reply>>> {
        self.questions.lock().expect("nobody panics while holding this lock")
    }

    /// Tells everything that still runs to come to an end.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns once the conversation comes to an end.
    pub(crate) async fn closing(&self) {
        // The sender is a field of ours, so waiting cannot fail while somebody can call this.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Flushes what was said and ends the connection.
    pub(crate) async fn hang_up(&self) {
        self.sender.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_wire::memory;

    fn session() -> Session {
        Session::new(crate::Server::new(crate::Options::default()).0, memory::pair().0.sender)
    }

    #[test]
    fn a_closed_stream_cancels_only_what_is_stateless() {
        let session = session();
        let modern = session.begin(Channel(1), &1.into(), Era::Modern).unwrap();
        let elsewhere = session.begin(Channel(2), &1.into(), Era::Modern).unwrap();
        let legacy = session.begin(Channel(1), &2.into(), Era::Legacy).unwrap();
        session.channel_ended(Channel(1));
        assert_eq!((*modern.borrow(), *elsewhere.borrow(), *legacy.borrow()), (true, false, false));
    }

    #[test]
    fn a_note_cancels_on_every_channel_only_what_is_not_stateless() {
        let session = session();
        let modern = session.begin(Channel(1), &1.into(), Era::Modern).unwrap();
        let legacy = session.begin(Channel(2), &1.into(), Era::Legacy).unwrap();
        session.cancel(Channel(3), &1.into());
        assert_eq!((*modern.borrow(), *legacy.borrow()), (false, true));
    }

    #[test]
    fn too_many_requests_at_once_are_refused() {
        let session = session();
        let open: Vec<_> = (0..1000).map(|id| session.begin(Channel::MAIN, &id.into(), Era::Legacy)).collect();
        assert!(open.iter().all(Result::is_ok));
        assert_eq!(session.begin(Channel::MAIN, &1000.into(), Era::Legacy).unwrap_err().code, code::INTERNAL_ERROR);
        session.end(Channel::MAIN, &7.into());
        assert!(session.begin(Channel::MAIN, &1000.into(), Era::Legacy).is_ok());
    }
}
