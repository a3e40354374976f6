//! What a play wants done.

use serde_json::{Map, Value};

use super::provenance::Answer;
use super::question::Question;
use super::scene::TaskTerms;
use super::seal::Seal;
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
    /// Answer; the play is over.
    Reply(Answer),
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
