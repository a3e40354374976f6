//! Exchanges of several rounds at once, for clients to whom each is one call.
//!
//! ```text
//! recorded:  > a < asks   > b < asks   > b again < done   > a again < done       b overtook a
//! replayed:  > a > b   < asks < asks   > answer to a > answer to b               < b: done < a: done
//! ```

use std::io;
use std::sync::Arc;

use rehearsal_core::answer::{Overtaker, Recorded};

use super::replay::Shared;

/// How many exchanges before and after the first round are looked at for others.
const LOOKED_AT: u32 = 64;

impl Shared {
    /// Notes who was in hand together with an exchange from its first round to its last, and who overtook it.
    pub(super) fn note_overlap(&self, rounds: &mut [Arc<Recorded>]) -> io::Result<()> {
        let [first, .., last] = &*rounds else { return Ok(()) };
        let Some(end) = &last.call.response else { return Ok(()) };
        let (mut overlaps, mut overtaker) = (false, None);
        let until = last.number.min(first.number.saturating_add(LOOKED_AT));
        for number in (first.number.saturating_sub(LOOKED_AT)..until).filter(|number| *number != first.number) {
            let exchange = self.tape.index.exchange(number)?;
            let is_one = exchange.session == first.session && exchange.flags.counts();
            if !is_one || exchange.next_round().is_none() {
                continue;
            }
            let other = self.tape.rounds(number)?;
            let Some((latest, request, done)) =
                other.last().and_then(|it| Some((it.number, &it.call.request, it.call.response.as_ref()?)))
            else {
                continue;
            };
            overlaps |= done.seq > first.call.request.seq;
            let is_later = |(last, _): &(u64, Overtaker)| done.seq > *last;
            if number > first.number && done.seq < end.seq && overtaker.as_ref().is_none_or(is_later) {
                let later = request.at.saturating_sub(last.call.request.at);
                overtaker = Some((done.seq, Overtaker { request: latest, later }));
            }
        }
        if let (true, [.., last]) = (overlaps, rounds) {
            let last = Arc::make_mut(last);
            last.overlaps = true;
            last.after.answered = last.after.answered.or(overtaker.map(|(_, overtaker)| overtaker));
        }
        Ok(())
    }
}
