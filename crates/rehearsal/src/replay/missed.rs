//! What was said after requests that not every client makes: pings, lists, subscriptions, the handshake of the other era.
//!
//! ```text
//! recorded:  > ping    < list_changed   < pong   > call                  < answer
//! replayed:  > ping    < list_changed   < pong   > call                  < answer
//!       or:                                      > call  < list_changed  < answer
//!
//! recorded:  > resources/subscribe a:b     < done           < updated a:b
//! replayed:  > subscriptions/listen a:b    < acknowledged   < updated a:b
//! ```

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use rehearsal_core::answer::{Asked, Change, Place, Recorded, RecordedPlay, Thing};
use rehearsal_core::exchange::Side;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::trace::{Inside, RequestKey};
use serde_json::{Value, json};

use super::index::about_key;
use super::options::Repeat;
use super::progress::Taken;
use super::replay::Shared;

/// How many exchanges before another are looked at.
const LOOKED_AT: u32 = 64;

impl Shared {
    /// The next recorded ping, where something was said before its answer.
    pub(super) fn pinged(&self, asked: &Asked) -> io::Result<Option<(u32, RequestKey)>> {
        let key = self.options.likeness.key(&asked.method, Some(&asked.params));
        let Some(Taken::Fresh(number)) = self.take(key, asked, Repeat::Error)? else { return Ok(None) };
        let recorded = self.tape.recorded(number)?;
        let is_answered = matches!(recorded.reply(), Some(Reply::Result(_)));
        Ok((is_answered && !recorded.things.is_empty()).then_some((number, key)))
    }

    /// Takes out of an exchange that not every client makes, or not as often, what was told already.
    pub(super) fn leave_out_told(&self, recorded: &mut Arc<Recorded>, asked: &Asked) -> io::Result<()> {
        if recorded.things.is_empty() {
            return Ok(());
        }
        if !self.tape.index.exchange(recorded.number)?.flags.is_protocol() {
            return Ok(());
        }
        let mut left = Recorded::clone(recorded);
        let session = left.session;
        let mut progress = self.progress();
        left.things.retain(|thing| match &thing.what {
            Inside::Call(call) if call.asker == Side::Server => true,
            Inside::Call(_) | Inside::Entry(_) => progress.tell(asked.conversation, session, thing.seq()),
        });
        *recorded = Arc::new(left);
        Ok(())
    }

    /// What was said before an exchange, after others that this client did not make.
    pub(super) fn missed(&self, recorded: &Recorded, asked: &Asked) -> io::Result<Vec<Thing>> {
        let mut missed = Vec::new();
        if !recorded.hears {
            return Ok(missed);
        }
        let answered = recorded.call.response.as_ref().map_or(u64::MAX, |answer| answer.seq);
        for number in self.protocol_before(recorded)? {
            let before = self.tape.recorded(number)?;
            let is_told = |thing: &Thing| thing.told().is_some() || thing.end_of_listening().is_some();
            missed.extend(before.things.iter().filter(|thing| is_told(thing) && thing.seq() < answered).cloned());
        }
        missed.sort_by_key(Thing::seq);
        let mut progress = self.progress();
        missed.retain(|thing| progress.tell(asked.conversation, recorded.session, thing.seq()));
        Ok(missed)
    }

    /// The exchanges before another that not every client makes, back to one that every client does.
    fn protocol_before(&self, recorded: &Recorded) -> io::Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for number in (0..recorded.number).rev().take(LOOKED_AT as usize) {
            let before = self.tape.index.exchange(number)?;
            if before.session != recorded.session || before.flags.counts() {
                break;
            }
            if before.flags.is_protocol() {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    /// What was told after somebody had subscribed, in whichever era, for a client that subscribes to these resources now.
    pub(super) fn subscribed(&self, asked: &Asked, uris: &[&str], key: RequestKey) -> io::Result<Option<RecordedPlay>> {
        let listens = asked.method == Method::SUBSCRIPTIONS_LISTEN;
        let client = self.client(asked);
        let mut numbers = self.subscriptions(uris, client)?;
        if numbers.is_empty() && self.hears_others(client)? {
            // A client that was never recorded hears what the others did.
            numbers = self.subscriptions(uris, None)?;
        }
        // The session that this conversation hears, where it has some of them.
        let mut own = Vec::new();
        let heard = self.progress().session(asked.conversation);
        for number in &numbers {
            own.push((Some(self.tape.index.exchange(*number)?.session) != heard, *number));
        }
        own.sort_unstable();
        let (mut first, mut things): (Option<Arc<Recorded>>, Vec<Thing>) = (None, Vec::new());
        for (_, number) in own {
            let recorded = self.tape.recorded(number)?;
            // Only one conversation is played again.
            if first.as_ref().is_some_and(|first| first.session != recorded.session) {
                break;
            }
            let is_wanted = |change: Change| match change {
                Change::Resource(uri) => uris.contains(&uri.as_str()),
                Change::Tools | Change::Prompts | Change::Resources | Change::Task(..) => true,
            };
            let is_heard = |thing: &&Thing| match thing.change() {
                Some(change) => is_wanted(change),
                None => listens && thing.end_of_listening().is_some(),
            };
            let progress = self.progress();
            let is_untold = |thing: &&Thing| !progress.is_told(asked.conversation, recorded.session, thing.seq());
            things.extend(recorded.things.iter().filter(is_heard).filter(is_untold).cloned());
            drop(progress);
            if !things.is_empty() {
                first.get_or_insert(recorded);
            }
        }
        let Some(first) = first else { return Ok(None) };
        things.sort_by_key(Thing::seq);
        // Whoever listens again hears what comes after the end.
        let mut progress = self.progress();
        let mut is_over = false;
        things.retain(|thing| {
            let is_heard = !is_over && progress.tell(asked.conversation, first.session, thing.seq());
            is_over |= thing.end_of_listening().is_some();
            is_heard
        });
        drop(progress);
        things.iter_mut().for_each(|thing| thing.place = Place::After);
        let info = self.info_of(first.session, asked.terms.era())?;
        let recorded = Arc::new(Recorded { things, ..Recorded::clone(&first) });
        Ok(Some(RecordedPlay::new(vec![recorded], asked.clone(), key, info, self.options.pace)))
    }

    /// The resources that the client of an exchange had subscribed to, of those that it was told about meanwhile.
    pub(super) fn subscribed_to(&self, rounds: &[Arc<Recorded>]) -> io::Result<BTreeSet<String>> {
        let mut uris = BTreeSet::new();
        for round in rounds {
            let told =
                round.things.iter().filter(|it| it.told().is_some_and(|it| it.method == Method::RESOURCE_UPDATED));
            for change in told.filter_map(Thing::change) {
                let Change::Resource(uri) = change else { continue };
                let key = self.subscription_key(&uri);
                if let Some(group) = self.tape.index.group(key)?
                    && !self.tape.members_of_session(group, round.session, 1)?.is_empty()
                {
                    uris.insert(uri);
                }
            }
        }
        Ok(uris)
    }

    fn subscription_key(&self, uri: &str) -> RequestKey {
        self.options.likeness.key(&Method::RESOURCES_SUBSCRIBE, Some(&json!({"uri": uri})))
    }

    /// The exchanges by which a client once subscribed to some of these resources, or to anything else, in order.
    fn subscriptions(&self, uris: &[&str], client: Option<&str>) -> io::Result<Vec<u32>> {
        let limit = LOOKED_AT as usize;
        let mut numbers = self.suiting(about_key(&Method::SUBSCRIPTIONS_LISTEN, None), client, limit)?;
        for uri in uris.iter().take(limit) {
            numbers.extend(self.suiting(self.subscription_key(uri), client, limit)?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }
}

/// The resources that a request subscribes to.
pub(super) fn subscribes_to(asked: &Asked) -> Vec<&str> {
    let listed = asked.params.get("notifications").and_then(|wanted| wanted.get("resourceSubscriptions"));
    let listed = listed.and_then(Value::as_array).into_iter().flatten();
    listed.chain(asked.params.get("uri")).filter_map(Value::as_str).collect()
}
