//! The live answers in place of the recorded ones.

use std::collections::HashMap;

use rehearsal_core::message::{Message, Reply};
use rehearsal_core::trace::{Call, Part};

/// Live answers, by the session and the request that they belong to.
#[derive(Clone, Debug, Default)]
pub struct Updates {
    answers: HashMap<(usize, u64, Option<u32>), Reply>,
}

impl Updates {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    pub(super) fn put(&mut self, session: usize, call: &Call, reply: Reply) {
        self.answers.insert((session, call.request.seq, call.request.item), reply);
    }

    /// Puts the live answer into a part of a session; sessions count from 1.
    pub fn apply(&self, session: usize, part: &mut Part) {
        let Part::Call(call) = part else { return };
        let Some(reply) = self.answers.get(&(session, call.request.seq, call.request.item)) else { return };
        let Some(id) = call.request.message.as_request().map(|request| request.id.clone()) else { return };
        if let Some(response) = &mut call.response {
            response.message = Message::reply(id, reply);
        }
    }
}
