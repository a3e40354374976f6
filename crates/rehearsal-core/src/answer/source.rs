//! One source of answers, and the data that it may use.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::answer::Answer;
use super::request_context::{IncomingRequest, LegacyState};
use super::respond::StateSigner;
use super::responder::{Action, Responder};
use super::subscription::SubscriptionFilter;
use super::surface::Surface;
use super::task::TaskRequest;
use crate::message::ErrorReply;
use crate::script::mock::FaultKind;

/// A source of answers: a mock file, a recording, the protocol itself.
///
/// A source decides without waiting. It gets no handle to a server, so no source can reach one.
pub trait AnswerSource: fmt::Debug + Send + Sync {
    /// Answers a request, or passes it to the next source.
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer;

    /// The error with which this source alone would refuse a request that it passed on.
    fn closest(&self, request: &IncomingRequest, context: &mut AnswerContext<'_>) -> Option<Miss> {
        let _ = (request, context);
        None
    }

    /// The source's surface. It is read once, when the chain is built.
    fn surface(&self) -> Surface {
        Surface::default()
    }

    /// The fault that a request's answer is sent with, whichever source answers.
    fn fault(&self, request: &IncomingRequest) -> Option<FaultKind> {
        let _ = request;
        None
    }

    /// Whether the source has rules for faults.
    fn has_faults(&self) -> bool {
        false
    }

    /// Returns to the initial state.
    fn reset(&self) {}
}

/// The decision of a source about a request.
#[derive(Debug)]
pub enum Offer {
    /// The answer, which needs no action before it.
    Answer(Answer),
    /// Several actions, beginning with this one.
    Respond(Box<dyn Responder>, Action),
    /// `subscriptions/listen`: the change notices that can ever be sent here, and actions that follow the acknowledgement.
    Listen(SubscriptionFilter, Option<Box<dyn Responder>>),
    /// A request about a task of this server.
    Task(TaskRequest),
    /// The source has no answer. How far the request fitted decides which source explains a refusal.
    Pass(MatchDepth),
}

impl Offer {
    /// Starts a responder. One whose first action is its only reply is just an answer.
    pub fn start(mut responder: Box<dyn Responder>, context: &mut AnswerContext<'_>) -> Offer {
        match responder.next(context) {
            Action::Reply(answer) if !responder.continues_after_reply() => Offer::Answer(answer),
            action => Offer::Respond(responder, action),
        }
    }
}

/// How far a request fitted a source that passed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchDepth {
    /// The source has nothing for it.
    Nothing,
    /// The source has the method.
    Method,
    /// The source has the tool, prompt or resource.
    Name,
    /// An answer for these arguments existed, but it was returned as often as it may be.
    Exhausted,
}

/// How a source refuses a request that it passed on.
#[derive(Clone, Debug)]
pub struct Miss {
    /// The error, with the closest answer in its `data`.
    pub error: ErrorReply,
    /// Whether it is also reported to the author of the mock, or to the user of the recording.
    pub is_remark: bool,
}

/// The parts of the server that a decision uses.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// Signs request state.
    pub signer: &'a StateSigner,
}

/// The data that a source may use in addition to the request.
#[derive(Debug)]
pub struct AnswerContext<'a> {
    /// The clock and the signer of request state.
    pub environment: Environment<'a>,
    /// The surface for this client: of all sources, and of the live server behind them.
    pub surface: &'a Surface,
    /// The surface of the sources alone.
    pub own_surface: &'a Surface,
    /// The state of the connection's handshake and of later requests.
    pub legacy: &'a mut LegacyState,
    pub(super) memory: &'a mut Option<Box<dyn Any + Send>>,
}

impl AnswerContext<'_> {
    /// The state that this source keeps for this connection. It is dropped with the connection.
    pub fn memory<T: Any + Default + Send>(&mut self) -> &mut T {
        if !self.memory.as_ref().is_some_and(|memory| memory.is::<T>()) {
            *self.memory = Some(Box::new(T::default()));
        }
        let memory = self.memory.as_mut().and_then(|memory| memory.downcast_mut());
        memory.expect("a value of this type was put there just now")
    }
}
