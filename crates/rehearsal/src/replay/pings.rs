//! Pings, and what was said meanwhile: not every client pings.
//!
//! ```text
//! recorded:  > ping   < list_changed   < pong   > call                  < answer
//! replayed:  > ping   < list_changed   < pong   > call                  < answer
//!       or:                                     > call  < list_changed  < answer
//! ```

use std::io;
use std::sync::Arc;

use rehearsal_core::answer::{Asked, Place, Recorded, Thing};
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::trace::{Inside, RequestKey};

use super::options::Repeat;
use super::progress::Taken;
use super::replay::Shared;
use super::tape::request;

/// How many pings before an exchange are looked at.
const PINGS: u32 = 64;

impl Shared {
    /// The next recorded ping, where something was said before its answer that the client was not told yet.
    pub(super) fn pinged(&self, asked: &Asked) -> io::Result<Option<(u32, RequestKey)>> {
        let key = self.options.likeness.key(&asked.method, Some(&asked.params));
        let Some(Taken::Fresh(number)) = self.take(key, asked, Repeat::Error)? else { return Ok(None) };
        let recorded = self.tape.recorded(number)?;
        let is_told = !recorded.things.is_empty() && matches!(recorded.reply(), Some(Reply::Result(_)));
        Ok((is_told && self.progress().tell(asked.conversation, number)).then_some((number, key)))
    }

    /// Puts before the answer of an exchange what was said during the pings before it, unless the client pinged.
    pub(super) fn tell_what_pings_heard(&self, recorded: &mut Arc<Recorded>, conversation: u64) -> io::Result<()> {
        // Most recordings have none, and no call should pay for them.
        if !self.has_pings {
            return Ok(());
        }
        // Where the client is sent away with a question, it comes back to a step that must stay the same.
        if recorded.is_round() || recorded.things.iter().any(|thing| matches!(thing.what, Inside::Call(_))) {
            return Ok(());
        }
        let mut heard = Vec::new();
        for number in (0..recorded.number).rev().take(PINGS as usize) {
            let before = self.tape.index.exchange(number)?;
            if before.session != recorded.session || before.flags.counts() {
                break;
            }
            let ping = self.tape.recorded(number)?;
            if request(&ping).method() != Some(&Method::PING) {
                break;
            }
            let is_told = ping.things.iter().all(|thing| matches!(thing.what, Inside::Entry(_)));
            if is_told && !ping.things.is_empty() && self.progress().tell(conversation, number) {
                heard.push(ping);
            }
        }
        if !heard.is_empty() {
            let things = heard.iter().rev().flat_map(|ping| &ping.things);
            let things = things.map(|thing| Thing { place: Place::Before, after: None, ..thing.clone() });
            let things = things.chain(recorded.things.iter().cloned()).collect();
            *recorded = Arc::new(Recorded { things, ..Recorded::clone(recorded) });
        }
        Ok(())
    }
}
