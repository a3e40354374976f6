//! A state machine that produces an answer: it decides, and the server carries out its actions.

use std::fmt;

use serde_json::{Map, Value};

use super::answer::{Answer, Provenance};
use super::respond::InputRequest;
use super::script::TaskOptions;
use super::source::AnswerContext;
use super::subscription::ChangeNotice;
use crate::message::Method;
use crate::script::mock::Delay;

/// The state machine behind one answer. It never waits and never sends: it returns the next [`Action`].
pub trait Responder: fmt::Debug + Send {
    /// The next action. After [`Action::Reply`] more may follow, until [`Action::End`].
    fn next(&mut self, context: &mut AnswerContext<'_>) -> Action;

    /// Takes the client's response to an input request, or the reason why there is none.
    fn set_input(&mut self, name: &str, input: Result<Value, String>);

    /// The provenance of the answer.
    fn provenance(&self) -> Provenance;

    /// Whether actions follow the reply.
    fn continues_after_reply(&self) -> bool {
        false
    }

    /// Whether the actions belong to a recording. Its change notices are sent to the client of the request, and it does
    /// not stop when the client closes its end.
    fn is_recorded(&self) -> bool {
        false
    }
}

/// The next action of a server for one request.
#[derive(Clone, Debug)]
pub enum Action {
    /// Waits.
    Wait(Delay),
    /// Sends a notification that belongs to the request.
    Notify {
        /// Its method.
        method: Method,
        /// Its params.
        params: Value,
    },
    /// Sends a change notice to the subscribed clients.
    NotifySubscribers(ChangeNotice),
    /// Sends input requests to the client.
    RequestInput(Vec<InputRequest>),
    /// Waits for the responses to these input requests; requests that were not sent are skipped.
    AwaitInput(Vec<String>),
    /// Cancels an input request: its name, and further params of `notifications/cancelled`.
    CancelInput(String, Map<String, Value>),
    /// Closes the stream of the response; it continues when the client reconnects.
    CloseStream {
        /// How long the client should wait before it reconnects.
        retry: Option<Delay>,
    },
    /// Answers that a task has been created, and continues as that task.
    StartTask(TaskOptions),
    /// Sends the answer.
    Reply(Answer),
    /// Nothing is left to do.
    End,
}
