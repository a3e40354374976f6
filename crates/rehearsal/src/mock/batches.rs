//! Responses to the requests of a batch, which are sent together, in any order.
//!
//! ```text
//! > [{"id":1,…},{"id":2,…}]
//! < [{"id":2,…},{"id":1,…}]      when both are there
//! ```
//!
//! Over Streamable HTTP the transport does the same for the requests of one POST; here they share a pipe with all others.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rehearsal_core::message::{Message, RequestId};

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
