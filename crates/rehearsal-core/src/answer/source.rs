//! One source of answers, and what it may look at.

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
/// A source decides at once. It gets no handle to a server and cannot wait, so no source can reach one.
pub trait AnswerSource: fmt::Debug + Send + Sync {
    /// Answers a request, or passes it to the next source.
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer;

    /// The error with which this source alone would refuse a request that it passed.
    fn closest(&self, request: &IncomingRequest, context: &mut AnswerContext<'_>) -> Option<Miss> {
        let _ = (request, context);
        None
    }

    /// What the source offers and declares. It is read once, when the chain is built.
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

    /// Returns to the state of the start.
    fn reset(&self) {}
}

/// What a source makes of a request.
#[derive(Debug)]
pub enum Offer {
    /// The answer; nothing has to happen before it.
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

/// How far a request fitted a source that passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchDepth {
    /// The source knows nothing about it.
    Nothing,
    /// The method is known.
    Method,
    /// The tool, prompt or resource is known.
    Name,
    /// An answer for these arguments existed, but it was returned as often as it may be.
    Exhausted,
}

/// How a source refuses a request that it passed.
#[derive(Clone, Debug)]
pub struct Miss {
    /// The error, with the closest answer in its `data`.
    pub error: ErrorReply,
    /// Whether the author of the mock, or the user of the recording, should see it too.
    pub is_remark: bool,
}

/// What the server lends to a decision.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// Signs the state that clients carry.
    pub signer: &'a StateSigner,
}

/// What a source may look at beside the request.
#[derive(Debug)]
pub struct AnswerContext<'a> {
    /// The clock and the signer of request state.
    pub environment: Environment<'a>,
    /// What is offered to this client: by all sources, and by a live server behind them.
    pub surface: &'a Surface,
    /// What the sources alone offer.
    pub own_surface: &'a Surface,
    /// What the connection's handshake and later requests settled.
    pub legacy: &'a mut LegacyState,
    pub(super) memory: &'a mut Option<Box<dyn Any + Send>>,
}

impl AnswerContext<'_> {
    /// What this source remembers of this connection. It ends with the connection.
    pub fn memory<T: Any + Default + Send>(&mut self) -> &mut T {
        if !self.memory.as_ref().is_some_and(|memory| memory.is::<T>()) {
            *self.memory = Some(Box::new(T::default()));
        }
        let memory = self.memory.as_mut().and_then(|memory| memory.downcast_mut());
        memory.expect("a value of this type was put there just now")
    }
}
