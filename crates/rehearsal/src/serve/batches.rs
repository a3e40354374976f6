//! Batches of 2025-03-26: their responses are sent together.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rehearsal_core::message::{Message, RequestId};

/// The batches of a connection that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    /// The batches of each pending request, the oldest first; requests of several batches may have the same id.
    pending: HashMap<RequestId, Vec<u64>>,
    batches: HashMap<u64, Batch>,
    last: u64,
}

/// A batch that waits for responses.
#[derive(Debug)]
struct Batch {
    /// How many requests have no response yet.
    pending: usize,
    /// The responses so far, in the order in which they came.
    responses: Vec<Bytes>,
}

impl Batches {
    /// Adds the requests of a batch.
    pub(super) fn begin(&self, messages: &[Message]) {
        let mut open = self.open();
        let requests: Vec<_> = messages.iter().filter_map(Message::as_request).collect();
        if requests.is_empty() {
            return;
        }
        open.last += 1;
        let number = open.last;
        for request in &requests {
            open.pending.entry(request.id.clone()).or_default().push(number);
        }
        open.batches.insert(number, Batch { pending: requests.len(), responses: Vec::with_capacity(requests.len()) });
    }

    /// Returns what to send now: a message that belongs to no batch, or the whole batch if this was its last response.
    pub(super) fn put(&self, message: Message) -> Option<Message> {
        let mut open = self.open();
        if open.batches.is_empty() {
            return Some(message);
        }
        let id = message.as_response().and_then(|response| response.id.clone());
        let Some(number) = id.and_then(|id| open.remove(&id)) else { return Some(message) };
        open.batches.get_mut(&number)?.responses.push(message.raw().clone());
        open.take_complete(number)
    }

    /// Returns what to send now that a request will never have a response.
    pub(super) fn skip(&self, id: &RequestId) -> Option<Message> {
        let mut open = self.open();
        let number = open.remove(id)?;
        open.take_complete(number)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Removes a pending request. Returns its batch.
    fn remove(&mut self, id: &RequestId) -> Option<u64> {
        let numbers = self.pending.get_mut(id)?;
        let number = numbers.remove(0);
        if numbers.is_empty() {
            self.pending.remove(id);
        }
        self.batches.get_mut(&number)?.pending -= 1;
        Some(number)
    }

    /// The responses of a batch as one message, if none is pending and there are any.
    fn take_complete(&mut self, number: u64) -> Option<Message> {
        if self.batches.get(&number)?.pending > 0 {
            return None;
        }
        let responses = self.batches.remove(&number)?.responses;
        (!responses.is_empty()).then(|| Message::parse([b"[", &*responses.join(&b","[..]), b"]"].concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(batches.put(result(1)), Some(result(1)), "the batch is complete");
    }

    #[test]
    fn a_batch_is_complete_without_requests_that_are_never_answered() {
        let batches = begun(&[1, 2]);
        assert_eq!(batches.put(result(1)), None);
        assert_eq!(batches.skip(&2.into()).unwrap().text(), format!("[{}]", result(1).text()));
        assert_eq!(begun(&[1]).skip(&1.into()), None);
    }

    #[test]
    fn the_same_id_in_two_batches_belongs_to_the_older_one_first() {
        let batches = begun(&[1]);
        batches.begin(&[message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)]);
        for _ in 0..2 {
            assert_eq!(batches.put(result(1)).unwrap().text(), format!("[{}]", result(1).text()));
        }
    }
}
