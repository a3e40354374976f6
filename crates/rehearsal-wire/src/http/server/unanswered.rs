//! The requests of a POST that nobody has answered yet.

use rehearsal_core::message::{Body, Message, Reply, RequestId};

use super::frame::Kind;

/// The requests of a POST that nobody has answered yet.
#[derive(Debug)]
pub(super) struct Unanswered(Vec<RequestId>);

impl Unanswered {
    /// None is answered so far.
    pub(super) fn new(requests: Vec<RequestId>) -> Unanswered {
        Unanswered(requests)
    }

    /// Whether all are.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a message is to this POST: an answer, or something beside it.
    pub(super) fn kind(&self, message: &Message) -> Kind {
        let answers = match message.body() {
            Body::Batch(messages) => messages.iter().all(|message| self.answered_by(message).is_some()),
            Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => {
                self.answered_by(message).is_some()
            }
        };
        match message.as_response().map(|response| &response.reply) {
            _ if !answers => Kind::Aside,
            Some(Reply::Error(error)) => Kind::Answer { code: Some(error.code) },
            Some(Reply::Result(_)) | None => Kind::Answer { code: None },
        }
    }

    /// Crosses off what a message answers.
    pub(super) fn cross_off(&mut self, message: &Message) {
        match message.body() {
            Body::Batch(messages) => messages.iter().for_each(|message| self.cross_off(message)),
            Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => {
                if let Some(at) = self.answered_by(message) {
                    self.0.swap_remove(at);
                }
            }
        }
    }

    /// Where the request stands that a message answers.
    fn answered_by(&self, message: &Message) -> Option<usize> {
        let id = match message.body() {
            Body::Response(response) => match &response.id {
                Some(id) => id,
                // `null` says that the question could not be read; where only one is open it can only be that one.
                None => return (self.0.len() == 1).then_some(0),
            },
            // Half an answer is better news for the one who waits than silence.
            Body::Garbled(garbled) => garbled.id.as_ref()?,
            Body::Request(_) | Body::Notification(_) | Body::Batch(_) => return None,
        };
        self.0.iter().position(|open| open == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unanswered() -> Unanswered {
        Unanswered::new(vec![1.into(), "1".into()])
    }

    #[test]
    fn only_the_answer_to_an_open_request_is_an_answer() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Kind::Answer { code: None }, 1),
            (r#"{"jsonrpc":"2.0","id":"1","error":{"code":-5,"message":""}}"#, Kind::Answer { code: Some(-5) }, 1),
            (r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, Kind::Aside, 2),
            (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, Kind::Aside, 2),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-5,"message":""}}"#, Kind::Aside, 2),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":3}"#, Kind::Answer { code: None }, 1),
            (
                r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"1","result":{}}]"#,
                Kind::Answer { code: None },
                0,
            ),
            (r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]"#, Kind::Aside, 1),
        ];
        for (text, kind, left) in table {
            let mut unanswered = unanswered();
            let message = Message::parse(text);
            assert_eq!(unanswered.kind(&message), kind, "{text}");
            unanswered.cross_off(&message);
            assert_eq!(unanswered.0.len(), left, "{text}");
        }
    }

    #[test]
    fn an_error_about_nobody_answers_the_only_request() {
        let mut unanswered = Unanswered::new(vec![1.into()]);
        let message = Message::parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}"#);
        assert_eq!(unanswered.kind(&message), Kind::Answer { code: Some(-32700) });
        unanswered.cross_off(&message);
        assert!(unanswered.is_empty());
    }
}
