//! Lists in their place between the calls that a conversation has made and the changes that it has heard of.
//!
//! ```text
//! recorded:  list < a                 enable   < list_changed   list < a, new
//! replayed:  list < a    list < a     enable   < list_changed   list < a, new    list < a, new
//!       or:                           enable   < list_changed   list < a, new
//! ```
//!
//! Clients differ in how often they list, so how often says nothing about which list is the right one.

use std::io;
use std::ops::Range;

use rehearsal_core::answer::Asked;
use rehearsal_core::trace::RequestKey;
use serde_json::Value;

use super::answers::{LOOKED_AT, Recordings};
use super::index::{Group, List};
use super::options::Repeat;
use super::progress::{Alike, Scope, Taken};
use super::replay::Shared;

/// Those of one session that are alike and suit a client.
struct Lists<'a> {
    of: Recordings<'a>,
    session: u32,
    /// Their places in the group.
    within: Range<u32>,
}

impl Lists<'_> {
    /// The place of the first after an exchange.
    fn place_after(&self, number: Option<u32>) -> io::Result<u32> {
        let Range { start, end } = self.within;
        Ok(match number {
            Some(number) => self.of.shared.tape.place_of(self.of.group, number.saturating_add(1))?.clamp(start, end),
            None => start,
        })
    }

    /// The first after an exchange.
    fn after(&self, number: Option<u32>) -> io::Result<Option<u32>> {
        self.first(self.place_after(number)?..self.within.end)
    }

    /// The last that is not after an exchange.
    fn until(&self, number: Option<u32>) -> io::Result<Option<u32>> {
        self.first((self.within.start..self.place_after(number)?).rev())
    }

    fn first(&self, places: impl Iterator<Item = u32>) -> io::Result<Option<u32>> {
        for at in places {
            let number = self.of.member(at)?;
            if self.of.suits(number)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

impl Shared {
    /// The recording under the key of a list that is the right one now, as [`Shared::take`] gives it. It is never used up.
    pub(super) fn take_list(&self, key: RequestKey, asked: &Asked) -> io::Result<Option<Taken>> {
        let Some(list) = List::asked(&asked.method) else { return self.take(key, asked, Repeat::Last) };
        let Some(group) = self.tape.index.group(key)? else { return Ok(None) };
        let client = self.client(asked);
        let mut lists = self.lists(client, group, asked)?;
        if lists.is_none() && self.hears_others(client)? {
            // A client that was never recorded hears what the others did.
            lists = self.lists(None, group, asked)?;
        }
        let Some(lists) = lists else { return Ok(Some(Taken::None)) };
        let number = match self.next_page(&lists, asked)? {
            Some(page) => Some(page),
            None => self.in_place(&lists, list, asked)?,
        };
        let taken = number.map(|number| self.progress().list(self.scope(asked), &asked.method, number));
        Ok(Some(taken.unwrap_or(Taken::None)))
    }

    /// Those that are alike, of the session that a conversation hears: of the first that has some where that has none.
    fn lists<'a>(&'a self, client: Option<&'a str>, group: Group, asked: &Asked) -> io::Result<Option<Lists<'a>>> {
        let of = Recordings { shared: self, group, client };
        let Some(session) = self.progress().session_with(&of, asked.conversation)? else { return Ok(None) };
        let within = of.place(session)?..of.place(session.saturating_add(1))?;
        Ok(Some(Lists { of, session, within }))
    }

    /// The page that comes next in the list of which a conversation was given the page before: pages of one list belong
    /// together, whatever happens between them.
    fn next_page(&self, lists: &Lists<'_>, asked: &Asked) -> io::Result<Option<u32>> {
        if asked.params.get("cursor").is_none_or(Value::is_null) {
            return Ok(None);
        }
        let Some(before) = self.progress().page(self.scope(asked), &asked.method) else { return Ok(None) };
        let Some(page) = lists.after(Some(before))? else { return Ok(None) };
        let mut params = asked.params.clone();
        params.as_object_mut().map(|params| params.shift_remove("cursor"));
        let key = self.options.likeness.key(&asked.method, Some(&params));
        let Some(firsts) = self.tape.index.group(key)? else { return Ok(Some(page)) };
        let first = self.tape.place_of(firsts, before.saturating_add(1))?;
        let begins_anew = first < firsts.count && self.tape.index.member(firsts, first)? < page;
        let is_of_session = self.tape.index.exchange(before)?.session == lists.session;
        Ok(Some(page).filter(|_| is_of_session && !begins_anew))
    }

    /// The right one for how far a conversation is: the next that was recorded, where nothing happened before it that this
    /// client knows nothing about, or where the last is not true any more; the last otherwise.
    fn in_place(&self, lists: &Lists<'_>, list: List, asked: &Asked) -> io::Result<Option<u32>> {
        let reached = self.progress().reached(self.scope(asked), lists.session);
        let (before, after) = (lists.until(reached)?, lists.after(reached)?);
        let (Some(last), Some(next), Some(reached)) = (before, after, reached) else { return Ok(before.or(after)) };
        let is_next =
            self.is_quiet(reached.saturating_add(1)..next, list, asked)? || self.has_changed(list, last, reached)?;
        Ok(Some(if is_next { next } else { last }))
    }

    /// Whether nothing happened in these exchanges but what clients ask or not according to their habits, and no change of a
    /// list that this client was not told.
    fn is_quiet(&self, mut exchanges: Range<u32>, list: List, asked: &Asked) -> io::Result<bool> {
        if exchanges.len() > LOOKED_AT as usize {
            return Ok(false);
        }
        exchanges.try_fold(true, |is_quiet, number| {
            let exchange = self.tape.index.exchange(number)?;
            if !is_quiet || !exchange.flags.is_protocol() {
                return Ok(false);
            }
            let mut changes = self.tape.index.things(&exchange)?;
            changes.retain(|thing| thing.changes == Some(list));
            let progress = self.progress();
            Ok(changes.iter().all(|thing| progress.is_told(asked.conversation, exchange.session, thing.seq)))
        })
    }

    /// Whether a list was changed after it was recorded here, and up to another exchange.
    fn has_changed(&self, list: List, recorded: u32, until: u32) -> io::Result<bool> {
        let things = self.tape.index.things(&self.tape.index.exchange(recorded)?)?;
        if things.iter().any(|thing| thing.is_late && thing.changes == Some(list)) {
            return Ok(true);
        }
        let Some(changes) = self.tape.index.group(list.key())? else { return Ok(false) };
        let next = self.tape.place_of(changes, recorded.saturating_add(1))?;
        Ok(next < changes.count && self.tape.index.member(changes, next)? <= until)
    }

    /// How far a client is, among all of its name where that counts.
    pub(super) fn scope(&self, asked: &Asked) -> Scope {
        Scope { conversation: asked.conversation, client: self.client(asked).map(str::to_owned) }
    }
}
