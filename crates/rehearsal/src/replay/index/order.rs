//! Sessions in the order in which they began. In a trace they stand in that in which they ended, and a session of 2026-07-28 over
//! HTTP ends with its recorder.

use super::collect::Collection;
use super::layout::{Facts, NONE};

impl Collection {
    /// The same, with all exchanges in the order in which their sessions began, where that is known of all of them.
    pub(super) fn in_order(mut self) -> Collection {
        let known: Option<Vec<_>> = self.started.iter().copied().collect();
        let Some(started) = known.filter(|started| !started.is_sorted()) else { return self };
        let mut order: Vec<usize> = (0..started.len()).collect();
        order.sort_by_key(|session| started[*session]);
        let end = u32::try_from(self.exchanges.len()).unwrap_or(NONE);
        let first = |session: usize| self.sessions.get(session).map_or(end, |facts| facts.first);
        let (mut places, mut sessions) = (vec![NONE; self.exchanges.len()], vec![NONE; started.len()]);
        let (mut firsts, mut next) = (Vec::with_capacity(order.len()), 0);
        for (place, session) in (0..).zip(&order) {
            sessions[*session] = place;
            firsts.push(next);
            for number in first(*session)..first(*session + 1) {
                places[number as usize] = next;
                next += 1;
            }
        }
        let moved = |number: u32| places.get(number as usize).copied().unwrap_or(NONE);
        for exchange in &mut self.exchanges {
            exchange.session = sessions.get(exchange.session as usize).copied().unwrap_or(NONE);
            exchange.next = moved(exchange.next);
        }
        self.things.iter_mut().for_each(|(number, _)| *number = moved(*number));
        self.keys.iter_mut().for_each(|(_, number)| *number = moved(*number));
        for members in self.alike.values_mut() {
            members.iter_mut().for_each(|number| *number = moved(*number));
            members.sort_unstable();
        }
        let mut exchanges: Vec<_> = (0..).zip(std::mem::take(&mut self.exchanges)).collect();
        exchanges.sort_by_key(|(number, _)| moved(*number));
        self.exchanges = exchanges.into_iter().map(|(_, exchange)| exchange).collect();
        let mut facts: Vec<_> = sessions.into_iter().zip(std::mem::take(&mut self.sessions)).collect();
        facts.sort_by_key(|(place, _)| *place);
        self.sessions = facts.into_iter().zip(firsts).map(|((_, facts), first)| Facts { first, ..facts }).collect();
        self
    }
}
