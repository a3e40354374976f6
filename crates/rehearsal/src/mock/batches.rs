//! Answers to the requests of a batch, which go back together.
//!
//! ```text
//! > [{"id":1,…},{"id":2,…}]
//! < [{"id":1,…},{"id":2,…}]      when both are there
//! ```
//!
//! Over Streamable HTTP the transport does the same for the requests of one POST; here they share a pipe with all others.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rehearsal_core::message::{Body, Message, RequestId};

/// The batches of a conversation that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<Vec<Batch>>);

/// The requests of a batch, with the answers that are there.
#[derive(Debug)]
struct Batch(Vec<(RequestId, Option<Message>)>);

impl Batches {
    /// Takes note of the requests of a batch.
    pub(super) fn begin(&self, messages: &[Message]) {
        let requests = messages.iter().filter_map(Message::as_request);
        let requests: Vec<_> = requests.map(|request| (request.id.clone(), None)).collect();
        if !requests.is_empty() {
            self.open().push(Batch(requests));
        }
    }

    /// What is to be said now that this is: itself where it belongs to no batch, the whole batch where it was the last of
    /// it, and nothing where it has to wait for others.
    pub(super) fn put(&self, message: Message) -> Option<Message> {
        let mut open = self.open();
        if open.is_empty() {
            return Some(message);
        }
        let Body::Response(response) = message.body() else { return Some(message) };
        let Some(id) = response.id.clone() else { return Some(message) };
        let waits = |batch: &mut Batch| batch.0.iter().position(|(other, answer)| *other == id && answer.is_none());
        let Some((at, place)) = open.iter_mut().enumerate().find_map(|(at, batch)| Some((at, waits(batch)?))) else {
            return Some(message);
        };
        open[at].0[place].1 = Some(message);
        whole(&mut open, at)
    }

    /// The same where nothing is ever said about a request.
    pub(super) fn forget(&self, id: &RequestId) -> Option<Message> {
        let mut open = self.open();
        let at = open.iter().position(|batch| batch.0.iter().any(|(other, answer)| other == id && answer.is_none()))?;
        open[at].0.retain(|(other, answer)| other != id || answer.is_some());
        whole(&mut open, at)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers of a batch as one message, where all are there and there are any.
fn whole(open: &mut Vec<Batch>, at: usize) -> Option<Message> {
    if open[at].0.iter().any(|(_, answer)| answer.is_none()) {
        return None;
    }
    let Batch(answers) = open.remove(at);
    let mut text = Vec::new();
    for (_, answer) in answers {
        text.push(if text.is_empty() { b'[' } else { b',' });
        text.extend_from_slice(answer?.raw());
    }
    (!text.is_empty()).then(|| {
        text.push(b']');
        Message::parse(text)
    })
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
    fn answers_go_back_together_in_the_order_of_the_questions() {
        let batches = begun(&[1, 2]);
        assert_eq!(batches.put(result(3)), Some(result(3)), "of no batch");
        assert_eq!(batches.put(result(2)), None);
        let whole = format!("[{},{}]", result(1).text(), result(2).text());
        assert_eq!(batches.put(result(1)).unwrap().text(), whole);
        assert_eq!(batches.put(result(1)), Some(result(1)), "it is over");
    }

    #[test]
    fn what_is_never_answered_holds_nobody_up() {
        let batches = begun(&[1, 2]);
        assert_eq!(batches.put(result(1)), None);
        assert_eq!(batches.forget(&2.into()).unwrap().text(), format!("[{}]", result(1).text()));
        assert_eq!(begun(&[1]).forget(&1.into()), None);
    }
}
