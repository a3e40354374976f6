//! What a play wants done.

use std::time::Duration;

use serde_json::{Map, Value};

use super::provenance::Answer;
use super::question::Question;
use super::scene::TaskTerms;
use super::seal::Seal;
use super::wanted::EndOfListening;
use crate::message::Method;
use crate::script::mock::Delay;

/// What the outside world lends to a decision.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// What signs the state that clients carry.
    pub seal: &'a Seal,
}

/// What is to be done next.
#[derive(Clone, Debug)]
pub enum Act {
    /// Nothing, for a while.
    Wait(Delay),
    /// Tell the client something that belongs to the request.
    Notify {
        /// What.
        method: Method,
        /// The details.
        params: Value,
    },
    /// Tell everybody who wants to know.
    Tell(Change),
    /// End the subscriptions that ended here, since 2026-07-28.
    EndListening(Box<EndOfListening>),
    /// Ask the client, and come back with [`Play::answered`](super::Play::answered) for each.
    Ask(Vec<Question>),
    /// Ask the client, and go on.
    Pose(Vec<Question>),
    /// Wait for the answer to a question that was posed, if it was, and come back with it; its name.
    Hear(String),
    /// Tell the client that a question that was posed needs no answer any more; its name, and what else is to be said.
    Withdraw(String, Map<String, Value>),
    /// Close the stream of the answer, which goes on when the client comes back.
    CloseStream {
        /// How long it should wait.
        retry: Option<Delay>,
    },
    /// Answer that a task has begun, and go on without the client.
    Detach(TaskTerms),
    /// Wait for the turn of what comes next, where several requests were in hand at once.
    Turn(Turn),
    /// Answer; the play is over.
    Reply(Answer),
}

/// The place of a message in the order in which a server once said everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which conversation.
    pub session: u32,
    /// The number of the request that it belongs to.
    pub request: u32,
    /// Its own place.
    pub place: u64,
    /// Requests that came meanwhile and must be heard of before.
    pub after: Overtakers,
    /// How long it took once: no reason to wait longer for what may not come this time.
    pub patience: Duration,
}

/// The requests that came after another and were heard of before what was said next of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overtakers {
    /// The one that was asked last of those that were answered by then.
    pub answered: Option<Overtaker>,
    /// The one that was asked last of those of which something else was said by then.
    pub spoke: Option<Overtaker>,
}

/// A request that came after another and was heard of before what was said next of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaker {
    /// Its number.
    pub request: u32,
    /// How long after the other it was asked: no reason to wait longer for it to be asked.
    pub later: Duration,
}

/// Something that clients may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The list of tools is another.
    Tools,
    /// The list of prompts is another.
    Prompts,
    /// The list of resources is another.
    Resources,
    /// A resource has new contents.
    Resource(String),
    /// A task is further than it was, since 2026-07-28: which, and how far.
    Task(String, Box<Value>),
}
