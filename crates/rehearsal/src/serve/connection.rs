//! One connection: its state, its active requests, and the input requests that its client has not answered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rehearsal_core::answer::fault::{AfterFault, TransportFault};
use rehearsal_core::answer::{ActiveResponder, Chain, ChangeNotice, ConnectionState, IncomingRequest};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{ErrorReply, Message, Method, Reply, RequestId};
use rehearsal_core::protocol::{Era, code};
use rehearsal_wire::{Outgoing, Sender};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::batches::Batches;
use super::outbox::Outbox;
use super::server::ServerState;

/// How many requests are active at once; more are refused.
const MAX_ACTIVE: usize = 10_000;

/// One connection with one client; over stateless HTTP, with all of them.
#[derive(Debug)]
pub(super) struct ServerConnection {
    pub(super) server: Arc<ServerState>,
    sender: Arc<dyn Sender>,
    pub(super) outbox: Outbox,
    batches: Batches,
    state: Mutex<ConnectionState>,
    active: Mutex<ActiveRequests>,
    inputs: Mutex<HashMap<RequestId, oneshot::Sender<Reply>>>,
    last_input: AtomicI64,
    is_initialized: AtomicBool,
    /// What follows the handshake, until the client is initialized.
    deferred: Mutex<Option<Deferred>>,
    closing: watch::Sender<bool>,
    /// Whether nothing can be sent any more.
    sending_stopped: watch::Sender<bool>,
}

/// A responder whose reply was sent.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) chain: Arc<Chain>,
    pub(super) request: Arc<IncomingRequest>,
    pub(super) responder: ActiveResponder,
}

/// The active requests of each channel by their ids.
#[derive(Debug, Default)]
struct ActiveRequests {
    channels: HashMap<Channel, HashMap<RequestId, Cancel>>,
    count: usize,
}

#[derive(Debug)]
struct Cancel {
    era: Era,
    cancel: watch::Sender<bool>,
}

/// A server request that the client has not answered yet.
#[derive(Debug)]
pub(super) struct PendingInput {
    pub(super) id: RequestId,
    pub(super) reply: oneshot::Receiver<Reply>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerConnection {
    pub(super) fn new(server: Arc<ServerState>, sender: Arc<dyn Sender>) -> ServerConnection {
        ServerConnection {
            server,
            sender,
            outbox: Outbox::default(),
            batches: Batches::default(),
            state: Mutex::default(),
            active: Mutex::default(),
            inputs: Mutex::default(),
            last_input: AtomicI64::new(0),
            is_initialized: AtomicBool::new(false),
            deferred: Mutex::default(),
            closing: watch::Sender::new(false),
            sending_stopped: watch::Sender::new(false),
        }
    }

    /// What the chain remembers of this connection.
    pub(super) fn state(&self) -> MutexGuard<'_, ConnectionState> {
        locked(&self.state)
    }

    /// Notes `notifications/initialized`. Returns whether it is the first.
    pub(super) fn mark_initialized(&self) -> bool {
        !self.is_initialized.swap(true, Ordering::Relaxed)
    }

    /// Keeps what follows the handshake until the client is initialized.
    pub(super) fn defer(&self, deferred: Deferred) {
        *locked(&self.deferred) = Some(deferred);
    }

    /// What follows the handshake.
    pub(super) fn take_deferred(&self) -> Option<Deferred> {
        locked(&self.deferred).take()
    }

    /// Whether a client of the handshake era is notified of a change.
    pub(super) fn is_subscribed(&self, change: &ChangeNotice) -> bool {
        match change {
            ChangeNotice::Resource(uri) => self.state().legacy.subscriptions.contains(uri),
            ChangeNotice::Tools | ChangeNotice::Prompts | ChangeNotice::Resources => true,
            ChangeNotice::Task(..) => false,
        }
    }

    /// Notes a batch, whose responses are sent together. Over HTTP the transport joins them.
    pub(super) fn begin_batch(&self, channel: Channel, messages: &[Message]) {
        if channel == Channel::MAIN {
            self.batches.begin(messages);
        }
    }

    /// Sends a message, or adds it to its batch, and waits until the transport has it.
    pub(super) async fn send(&self, channel: Channel, message: Message) {
        if let Some(message) = self.out_of_batch(channel, message) {
            self.transmit(channel, message).await;
        }
    }

    /// Sends a message without waiting. Returns whether it went to the outbox and a task must be started that
    /// [sends](ServerConnection::send_outbox) it.
    pub(super) fn post(&self, channel: Channel, message: Message) -> bool {
        let Some(message) = self.out_of_batch(channel, message) else { return false };
        if self.outbox.is_empty() {
            match self.sender.try_send(channel, message.raw()) {
                Some(Ok(())) => return false,
                Some(Err(_)) => {
                    if self.sender.is_closed() {
                        self.stop_sending();
                    }
                    return false;
                }
                None => {}
            }
        }
        self.outbox.push(channel, message)
    }

    /// Sends the messages of the outbox until it is empty.
    pub(super) async fn send_outbox(&self) {
        while let Some((channel, message)) = self.outbox.next() {
            self.transmit(channel, message).await;
        }
    }

    /// Notes that a request will have no response; its batch may be complete without it.
    pub(super) async fn skip_batch_item(&self, channel: Channel, id: &RequestId) {
        if channel == Channel::MAIN
            && let Some(message) = self.batches.skip(id)
        {
            self.transmit(channel, message).await;
        }
    }

    fn out_of_batch(&self, channel: Channel, message: Message) -> Option<Message> {
        if channel == Channel::MAIN { self.batches.put(message) } else { Some(message) }
    }

    async fn transmit(&self, channel: Channel, message: Message) {
        let sent = self.sender.send(Outgoing::new(channel, message)).await;
        if sent.is_err() && self.sender.is_closed() {
            self.stop_sending();
        }
    }

    /// Carries out a transport fault, unless the client has disconnected.
    pub(super) async fn inject_fault(&self, channel: Channel, fault: TransportFault) -> AfterFault {
        self.sender.inject_fault(channel, fault).await.unwrap_or(AfterFault::Continue)
    }

    /// Notes that nothing can be sent any more.
    pub(super) fn stop_sending(&self) {
        self.sending_stopped.send_replace(true);
    }

    /// Returns once nothing can be sent any more.
    pub(super) async fn sending_stopped(&self) {
        // The sender is a field of this value, so waiting cannot fail here.
        let _ = self.sending_stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// Closes the connection at once.
    pub(super) fn abort(&self) {
        self.sender.abort();
    }

    /// Sends a notification; `null` stands for no params.
    pub(super) async fn notify(&self, channel: Channel, method: Method, params: &Value) {
        let params = (!params.is_null()).then_some(params);
        let message = Message::notification(method, params).expect("a JSON value can always be written");
        self.send(channel, message).await;
    }

    /// Closes the stream of a channel; in the handshake era what is sent later waits until the client reconnects.
    pub(super) fn close_stream(&self, channel: Channel, retry: Option<Duration>) {
        match retry {
            _ if channel == Channel::MAIN => {}
            Some(retry) => self.sender.close_channel_for(channel, retry),
            None => self.sender.close_channel(channel),
        }
    }

    /// Makes a request active. What is returned becomes `true` when the client cancels the request.
    pub(super) fn activate(
        &self,
        channel: Channel,
        id: &RequestId,
        era: Era,
    ) -> Result<watch::Receiver<bool>, ErrorReply> {
        let mut active = locked(&self.active);
        if active.count >= MAX_ACTIVE {
            return Err(ErrorReply::new(code::INTERNAL_ERROR, format!("more than {MAX_ACTIVE} requests in flight")));
        }
        let requests = active.channels.entry(channel).or_default();
        if requests.contains_key(id) {
            return Err(ErrorReply::new(code::INVALID_REQUEST, format!("the id {id} is still in flight")));
        }
        let (cancel, cancelled) = watch::channel(false);
        requests.insert(id.clone(), Cancel { era, cancel });
        active.count += 1;
        Ok(cancelled)
    }

    /// Ends an active request; its id is free again.
    pub(super) fn deactivate(&self, channel: Channel, id: &RequestId) {
        let mut active = locked(&self.active);
        let Some(requests) = active.channels.get_mut(&channel) else { return };
        let was_active = requests.remove(id).is_some();
        if requests.is_empty() {
            active.channels.remove(&channel);
        }
        active.count -= usize::from(was_active);
    }

    /// Leaves a request unanswered. Over HTTP its stream ends, unless other requests of its batch need it.
    pub(super) fn leave_unanswered(&self, channel: Channel) {
        if !locked(&self.active).channels.contains_key(&channel) {
            self.close_stream(channel, None);
        }
    }

    /// Cancels the request that `notifications/cancelled` names.
    ///
    /// In the handshake era the notification comes in a POST of its own, so the id alone identifies the request; stateless
    /// ids are unique on their own channel only.
    pub(super) fn cancel(&self, channel: Channel, id: &RequestId) {
        let active = locked(&self.active);
        for (on, requests) in &active.channels {
            if let Some(request) = requests.get(id).filter(|request| request.era == Era::Legacy || *on == channel) {
                request.cancel.send_replace(true);
            }
        }
    }

    /// Cancels the requests of a channel that the client closed; in the handshake era that cancels nothing.
    pub(super) fn channel_ended(&self, channel: Channel) {
        let active = locked(&self.active);
        let requests = active.channels.get(&channel).into_iter().flat_map(HashMap::values);
        for request in requests.filter(|request| request.era == Era::Modern) {
            request.cancel.send_replace(true);
        }
    }

    /// The id of a new server request, and where its response will arrive.
    pub(super) fn new_pending_input(&self) -> PendingInput {
        let id = RequestId::Number(self.last_input.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, reply) = oneshot::channel();
        locked(&self.inputs).insert(id.clone(), sender);
        PendingInput { id, reply }
    }

    /// Passes a response of the client to the request that waits for it. A response to no request is ignored.
    pub(super) fn receive_input(&self, id: &RequestId, reply: Reply) {
        if let Some(input) = locked(&self.inputs).remove(id) {
            // The request may have been cancelled meanwhile.
            let _ = input.send(reply);
        }
    }

    /// Stops waiting for a response.
    pub(super) fn remove_pending_input(&self, id: &RequestId) {
        locked(&self.inputs).remove(id);
    }

    /// Ends the active requests.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns once the connection closes.
    pub(super) async fn closing(&self) {
        // The sender is a field of this value, so waiting cannot fail here.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Writes what was sent, and closes the connection.
    pub(super) async fn flush_and_close(&self) {
        self.sender.close().await;
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_wire::memory;

    use super::*;
    use crate::serve::Server;

    fn connection() -> ServerConnection {
        ServerConnection::new(Server::new(Chain::new(Vec::new())).0, memory::pair().0.sender)
    }

    #[test]
    fn a_closed_stream_cancels_only_stateless_requests() {
        let connection = connection();
        let modern = connection.activate(Channel(1), &1.into(), Era::Modern).expect("the first");
        let elsewhere = connection.activate(Channel(2), &1.into(), Era::Modern).expect("another channel");
        let legacy = connection.activate(Channel(1), &2.into(), Era::Legacy).expect("another id");
        connection.channel_ended(Channel(1));
        assert_eq!((*modern.borrow(), *elsewhere.borrow(), *legacy.borrow()), (true, false, false));
    }

    #[test]
    fn a_cancellation_on_another_channel_cancels_only_requests_of_the_handshake_era() {
        let connection = connection();
        let modern = connection.activate(Channel(1), &1.into(), Era::Modern).expect("the first");
        let legacy = connection.activate(Channel(2), &1.into(), Era::Legacy).expect("another channel");
        connection.cancel(Channel(3), &1.into());
        assert_eq!((*modern.borrow(), *legacy.borrow()), (false, true));
    }

    #[test]
    fn too_many_active_requests_are_refused() {
        let connection = connection();
        let open =
            |id: usize| connection.activate(Channel::MAIN, &i64::try_from(id).unwrap_or_default().into(), Era::Legacy);
        assert!((0..MAX_ACTIVE).all(|id| open(id).is_ok()));
        assert_eq!(open(MAX_ACTIVE).map(drop).map_err(|error| error.code), Err(code::INTERNAL_ERROR));
        connection.deactivate(Channel::MAIN, &7.into());
        assert!(open(MAX_ACTIVE).is_ok());
    }
}
