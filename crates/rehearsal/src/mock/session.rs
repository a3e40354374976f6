//! One conversation: what it remembers, what is in flight, what it asked, the batches that wait for responses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rehearsal_core::answer::fault::{Aftermath, Misdeed};
use rehearsal_core::answer::{Memory, RecordedPlay};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{ErrorReply, Message, Method, Reply, RequestId};
use rehearsal_core::protocol::{Era, code};
use rehearsal_wire::{Outgoing, Sender};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::server::Shared;

/// How many requests are worked on at once; more are refused.
const IN_FLIGHT: usize = 10_000;

/// How many conversations there were. Several servers may answer from one recording, which tells them apart.
static CONVERSATIONS: AtomicU64 = AtomicU64::new(0);

/// One conversation with one client; over stateless HTTP, with all of them.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) server: Arc<Shared>,
    /// Which one, among all of this process.
    pub(super) number: u64,
    sender: Arc<dyn Sender>,
    batches: Batches,
    memory: Mutex<Memory>,
    in_flight: Mutex<HashMap<(Channel, RequestId), InFlight>>,
    questions: Mutex<HashMap<RequestId, oneshot::Sender<Reply>>>,
    last_question: AtomicI64,
    ready: AtomicBool,
    /// What was recorded after the handshake, which waits until the client is ready.
    waiting: Mutex<Option<Box<RecordedPlay>>>,
    closing: watch::Sender<bool>,
    /// Whether nothing can be said any more.
    silent: watch::Sender<bool>,
}

/// A request that is worked on.
#[derive(Debug)]
struct InFlight {
    era: Era,
    cancel: watch::Sender<bool>,
}

/// A question that the client has not answered yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: RequestId,
    pub(super) reply: oneshot::Receiver<Reply>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(super) fn new(server: Arc<Shared>, sender: Arc<dyn Sender>) -> Session {
        Session {
            number: CONVERSATIONS.fetch_add(1, Ordering::Relaxed),
            server,
            sender,
            batches: Batches::default(),
            memory: Mutex::default(),
            in_flight: Mutex::default(),
            questions: Mutex::default(),
            last_question: AtomicI64::new(0),
            ready: AtomicBool::new(false),
            waiting: Mutex::default(),
            closing: watch::Sender::new(false),
            silent: watch::Sender::new(false),
        }
    }

    /// What the handshake era remembers.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        locked(&self.memory)
    }

    /// The client said that it may be told about changes; `true` the first time.
    pub(super) fn becomes_ready(&self) -> bool {
        !self.ready.swap(true, Ordering::Relaxed)
    }

    /// Keeps what comes after the handshake until the client is ready.
    pub(super) fn wait_with(&self, play: Box<RecordedPlay>) {
        *locked(&self.waiting) = Some(play);
    }

    /// What comes after the handshake.
    pub(super) fn waiting(&self) -> Option<Box<RecordedPlay>> {
        locked(&self.waiting).take()
    }

    /// Several messages came as one, and are answered by one.
    pub(super) fn begin_batch(&self, channel: Channel, messages: &[Message]) {
        if channel == Channel::MAIN {
            self.batches.begin(messages);
        }
    }

    /// Sends a message, or puts it to the others of its batch; a client that went away needs none.
    pub(super) async fn send(&self, channel: Channel, message: Message) {
        let message = if channel == Channel::MAIN { self.batches.put(message) } else { Some(message) };
        self.say(channel, message).await;
    }

    /// Nothing will be sent about a request; what waited for it in a batch goes without.
    pub(super) async fn send_nothing(&self, channel: Channel, id: &RequestId) {
        if channel == Channel::MAIN {
            self.say(channel, self.batches.forget(id)).await;
        }
    }

    async fn say(&self, channel: Channel, message: Option<Message>) {
        if let Some(message) = message {
            let sent = self.sender.send(Outgoing::new(channel, message)).await;
            if sent.is_err() && self.sender.is_closed() {
                self.fall_silent();
            }
        }
    }

    /// Does something wrong on purpose; a client that went away is spared.
    pub(super) async fn misbehave(&self, channel: Channel, misdeed: Misdeed) -> Aftermath {
        self.sender.misbehave(channel, misdeed).await.unwrap_or(Aftermath::GoesOn)
    }

    /// The connection was ended on purpose, or nobody reads what is said on it.
    pub(super) fn fall_silent(&self) {
        self.silent.send_replace(true);
    }

    /// Returns once nothing can be said any more.
    pub(super) async fn fell_silent(&self) {
        // The sender is a field of ours, so waiting cannot fail while somebody can call this.
        let _ = self.silent.subscribe().wait_for(|silent| *silent).await;
    }

    /// Ends the connection without a word.
    pub(super) fn abort(&self) {
        self.sender.abort();
    }

    /// Tells the client something; `null` is no params.
    pub(super) async fn notify(&self, channel: Channel, method: Method, params: &Value) {
        let params = (!params.is_null()).then_some(params);
        let message = Message::notification(method, params).expect("a JSON value can always be written");
        self.send(channel, message).await;
    }

    /// Closes the stream of a channel; in the handshake era what is said later waits for the client to come back.
    pub(super) fn close_stream(&self, channel: Channel, retry: Option<Duration>) {
        match retry {
            _ if channel == Channel::MAIN => {}
            Some(retry) => self.sender.close_channel_for(channel, retry),
            None => self.sender.close_channel(channel),
        }
    }

    /// Notes that a request is worked on; what comes back turns `true` when the client cancels it.
    pub(super) fn begin(
        &self,
        channel: Channel,
        id: &RequestId,
        era: Era,
    ) -> Result<watch::Receiver<bool>, ErrorReply> {
        let mut in_flight = locked(&self.in_flight);
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
    pub(super) fn end(&self, channel: Channel, id: &RequestId) {
        locked(&self.in_flight).remove(&(channel, id.clone()));
    }

    /// Notes that a request will never be answered. Over HTTP nothing else would end its stream.
    pub(super) fn keep_silent(&self, channel: Channel) {
        // A batch has one stream for several requests.
        if locked(&self.in_flight).keys().all(|(on, _)| *on != channel) {
            self.close_stream(channel, None);
        }
    }

    /// `notifications/cancelled`.
    ///
    /// In the handshake era the note comes in a POST of its own, so the id alone must do; stateless ids are unique
    /// only on their own channel.
    pub(super) fn cancel(&self, channel: Channel, id: &RequestId) {
        self.cancel_where(|(on, request), era| request == id && (era == Era::Legacy || *on == channel));
    }

    /// The client stopped listening, which cancels a request since 2026-07-28 and meant nothing before.
    pub(super) fn channel_ended(&self, channel: Channel) {
        self.cancel_where(|(on, _), era| *on == channel && era == Era::Modern);
    }

    fn cancel_where(&self, matches: impl Fn(&(Channel, RequestId), Era) -> bool) {
        let in_flight = locked(&self.in_flight);
        for (_, request) in in_flight.iter().filter(|(key, request)| matches(key, request.era)) {
            request.cancel.send_replace(true);
        }
    }

    /// An id for a question to the client, and where its answer will arrive.
    pub(super) fn question(&self) -> Pending {
        let id = RequestId::Number(self.last_question.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, reply) = oneshot::channel();
        locked(&self.questions).insert(id.clone(), sender);
        Pending { id, reply }
    }

    /// The client answered; whoever asked is told. An answer to nothing is ignored.
    pub(super) fn answered(&self, id: &RequestId, reply: Reply) {
        if let Some(question) = locked(&self.questions).remove(id) {
            // Whoever asked may have been cancelled in the meantime.
            let _ = question.send(reply);
        }
    }

    /// Nobody waits for the answer any more.
    pub(super) fn forget(&self, id: &RequestId) {
        locked(&self.questions).remove(id);
    }

    /// Tells everything that still runs to come to an end.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns once the conversation comes to an end.
    pub(super) async fn closing(&self) {
        // The sender is a field of ours, so waiting cannot fail while somebody can call this.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Flushes what was said and ends the connection.
    pub(super) async fn hang_up(&self) {
        self.sender.close().await;
    }
}

/// The batches of a conversation that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<Vec<Batch>>);

/// A batch that waits for responses.
#[derive(Debug)]
struct Batch {
    /// The requests without a response.
    pending: Vec<RequestId>,
    /// The responses so far, in the order in which they came.
    responses: Vec<Message>,
}

impl Batches {
    /// Takes note of the requests of a batch.
    pub(super) fn begin(&self, messages: &[Message]) {
        let requests = messages.iter().filter_map(Message::as_request);
        let pending: Vec<_> = requests.map(|request| request.id.clone()).collect();
        if !pending.is_empty() {
            self.open().push(Batch { pending, responses: Vec::new() });
        }
    }

    /// Returns what to send now: a message that belongs to no batch, or the whole batch if this was its last response.
    pub(super) fn put(&self, message: Message) -> Option<Message> {
        let mut open = self.open();
        let id = message.as_response().and_then(|response| response.id.as_ref());
        let Some(at) = id.and_then(|id| take_request(&mut open, id)) else { return Some(message) };
        open[at].responses.push(message);
        whole(&mut open, at)
    }

    /// Returns what to send now that a request will never have a response.
    pub(super) fn forget(&self, id: &RequestId) -> Option<Message> {
        let mut open = self.open();
        let at = take_request(&mut open, id)?;
        whole(&mut open, at)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a pending request; returns which batch it was in.
fn take_request(open: &mut [Batch], id: &RequestId) -> Option<usize> {
    let find = |batch: &Batch| batch.pending.iter().position(|other| other == id);
    let (at, request) = open.iter().enumerate().find_map(|(at, batch)| Some((at, find(batch)?)))?;
    open[at].pending.remove(request);
    Some(at)
}

/// The responses of a batch as one message, if none is pending and there are any.
fn whole(open: &mut Vec<Batch>, at: usize) -> Option<Message> {
    if !open[at].pending.is_empty() {
        return None;
    }
    let responses = open.remove(at).responses;
    let texts: Vec<&[u8]> = responses.iter().map(|response| &response.raw()[..]).collect();
    (!texts.is_empty()).then(|| Message::parse([b"[", &*texts.join(&b","[..]), b"]"].concat()))
}

#[cfg(test)]
mod tests {
    use rehearsal_core::script::mock::Otherwise;
    use rehearsal_wire::memory;

    use super::*;
    use crate::mock::load::compile;
    use crate::mock::server::Server;

    fn session() -> Session {
        let mock = compile(&[("m".to_owned(), "server: { name: m }".to_owned())], Otherwise::Refuse);
        Session::new(Server::new(mock.expect("a mock may offer nothing")).0, memory::pair().0.sender)
    }

    #[test]
    fn a_closed_stream_cancels_only_what_is_stateless() {
        let session = session();
        let modern = session.begin(Channel(1), &1.into(), Era::Modern).expect("the first");
        let elsewhere = session.begin(Channel(2), &1.into(), Era::Modern).expect("another channel");
        let legacy = session.begin(Channel(1), &2.into(), Era::Legacy).expect("another id");
        session.channel_ended(Channel(1));
        assert_eq!((*modern.borrow(), *elsewhere.borrow(), *legacy.borrow()), (true, false, false));
    }

    #[test]
    fn a_note_cancels_on_every_channel_only_what_is_not_stateless() {
        let session = session();
        let modern = session.begin(Channel(1), &1.into(), Era::Modern).expect("the first");
        let legacy = session.begin(Channel(2), &1.into(), Era::Legacy).expect("another channel");
        session.cancel(Channel(3), &1.into());
        assert_eq!((*modern.borrow(), *legacy.borrow()), (false, true));
    }

    #[test]
    fn too_many_requests_at_once_are_refused() {
        let session = session();
        let open = |id: usize| session.begin(Channel::MAIN, &i64::try_from(id).unwrap_or_default().into(), Era::Legacy);
        assert!((0..IN_FLIGHT).all(|id| open(id).is_ok()));
        assert_eq!(open(IN_FLIGHT).map(drop).map_err(|error| error.code), Err(code::INTERNAL_ERROR));
        session.end(Channel::MAIN, &7.into());
        assert!(open(IN_FLIGHT).is_ok());
    }

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned())
    }

    fn result(id: u64) -> Message {
        message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#))
    }

    fn begun(ids: &[u64]) -> Batches {
        let batches = Batches::default();
        let request = |id: &u64| message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        batches.begin(&ids.iter().map(request).collect::<Vec<_>>());
        batches
    }

    #[test]
    fn responses_to_a_batch_are_sent_together() {
        let batches = begun(&[1, 2]);
        assert_eq!(batches.put(result(3)), Some(result(3)), "of no batch");
        assert_eq!(batches.put(result(2)), None);
        let whole = format!("[{},{}]", result(2).text(), result(1).text());
        assert_eq!(batches.put(result(1)).unwrap().text(), whole);
        assert_eq!(batches.put(result(1)), Some(result(1)), "it is over");
    }

    #[test]
    fn a_request_without_a_response_does_not_hold_up_its_batch() {
        let batches = begun(&[1, 2]);
        assert_eq!(batches.put(result(1)), None);
        assert_eq!(batches.forget(&2.into()).unwrap().text(), format!("[{}]", result(1).text()));
        assert_eq!(begun(&[1]).forget(&1.into()), None);
    }
}
