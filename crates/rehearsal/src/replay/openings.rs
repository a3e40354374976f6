//! What servers said about themselves: in all that is answered from, and in one session.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::answer::{Answer, Asked, Begun, Opening, Recorded, RecordedPlay};
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::Era;
use rehearsal_core::trace::{Likeness, RequestKey};
use serde_json::Value;

use super::answers::LOOKED_AT;
use super::index::{about_key, method_key};
use super::options::Repeat;
use super::progress::Taken;
use super::replay::{CANDIDATES, Shared, is_selected};
use super::tape::{Tape, request};

/// How many are kept in memory.
const KEPT: usize = 1024;

/// The requests that open a conversation.
const OPENS: [Method; 2] = [Method::INITIALIZE, Method::DISCOVER];

/// Who the servers of some sessions said they are.
#[derive(Debug, Default)]
pub(super) struct Openings(Mutex<HashMap<u32, Arc<Value>>>);

/// What the sessions that are answered from say about their server.
pub(super) struct Pooled {
    /// The first handshake with what any server could do, or what can be told without one.
    pub(super) opening: Opening,
    /// Who was refused, where nobody was let in.
    pub(super) refused: Refused,
}

/// Handshakes that were refused, where none was not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refused {
    initialize: Option<u32>,
    discover: Option<u32>,
}

impl Refused {
    /// The refusal that a client hears which opens a conversation in this era. Whoever does not know `server/discover` has not
    /// refused anybody by that.
    pub(super) fn by(self, era: Era) -> Option<u32> {
        match era {
            Era::Legacy => self.initialize,
            Era::Modern => self.discover.or(self.initialize),
        }
    }
}

impl Shared {
    /// Who the server of a session said it is, for answers in an era.
    pub(super) fn info_of(&self, session: u32, era: Era) -> io::Result<Arc<Value>> {
        // Nobody was told with each answer before 2026-07-28.
        if era == Era::Legacy || self.tape.index.sessions() == 1 {
            return Ok(Arc::clone(&self.opening.info));
        }
        let kept = || self.openings.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(&session) {
            return Ok(Arc::clone(known));
        }
        let mut info = None;
        for method in OPENS {
            let Some(group) = self.tape.index.group(self.options.likeness.key(&method, None))? else { continue };
            for number in self.tape.members_of_session(group, session, CANDIDATES as usize)? {
                let opening = Opening::recorded(&self.tape.recorded(number)?.call);
                info = opening.map(|opening| opening.info).or(info);
            }
        }
        let said = self.tape.facts(session)?;
        let info = match info {
            Some(info) => info,
            None if said.server_info.contains_key("name") => Opening::inferred(&said.server_info, []).info,
            None => Arc::clone(&self.opening.info),
        };
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(session, Arc::clone(&info));
        Ok(info)
    }
}

/// What the sessions that are answered from say about their server.
pub(super) fn pooled(tape: &Tape, selected: Option<&[bool]>) -> io::Result<Pooled> {
    let (mut pooled, mut refused): (Option<Opening>, _) = (None, Refused::default());
    for method in OPENS {
        let Some(group) = tape.index.group(Likeness::default().key(&method, None))? else { continue };
        let mut looked_at = 0;
        for number in tape.members(group, group.count) {
            let number = number?;
            if !is_selected(selected, tape.index.exchange(number)?.session) {
                continue;
            }
            let recorded = tape.recorded(number)?;
            match (Opening::recorded(&recorded.call), &mut pooled) {
                (Some(opening), Some(pooled)) => pooled.can_also(&opening),
                (Some(opening), None) => pooled = Some(opening),
                (None, _) if matches!(recorded.reply(), Some(Reply::Error(_))) => {
                    let by = if method == Method::DISCOVER { &mut refused.discover } else { &mut refused.initialize };
                    by.get_or_insert(number);
                }
                (None, _) => {}
            }
            looked_at += 1;
            if looked_at >= CANDIDATES {
                break;
            }
        }
    }
    if let Some(opening) = pooled {
        return Ok(Pooled { opening, refused: Refused::default() });
    }
    if refused.by(Era::Modern).is_some() && is_entered(tape, selected)? {
        // Whoever went on without `server/discover` heard that there is none.
        refused.initialize = None;
    }
    if selected.is_some() {
        let mut chosen = Vec::new();
        for session in (0..tape.index.sessions()).filter(|session| is_selected(selected, *session)) {
            chosen.extend(tape.of_session(session)?.take(LOOKED_AT as usize - chosen.len()));
        }
        return Ok(Pooled { opening: inferred(tape, &chosen)?, refused });
    }
    // All of them: the index knows what was used.
    let mut used = Vec::new();
    for method in Method::KNOWN {
        if tape.index.group(method_key(method))?.is_some() {
            used.push(*method);
        }
    }
    let facts = if tape.index.sessions() == 0 { None } else { Some(tape.facts(0)?) };
    let server_info = facts.map(|facts| facts.server_info.clone()).unwrap_or_default();
    let mut opening = Opening::inferred(&server_info, used);
    let listeners = tape.index.group(about_key(&Method::SUBSCRIPTIONS_LISTEN, None))?;
    for number in listeners.into_iter().flat_map(|group| tape.members(group, CANDIDATES)) {
        let recorded = tape.recorded(number?)?;
        listened(tape, &recorded, &mut opening)?;
    }
    Ok(Pooled { opening, refused })
}

/// Whether somebody was served all the same: since 2026-07-28 nobody needs to be let in.
fn is_entered(tape: &Tape, selected: Option<&[bool]>) -> io::Result<bool> {
    for number in (0..tape.index.exchanges()).take(LOOKED_AT as usize) {
        let exchange = tape.index.exchange(number)?;
        let is_modern = exchange.revision().is_some_and(|revision| revision.era() == Era::Modern);
        if is_modern && exchange.flags.counts() && is_selected(selected, exchange.session) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What can be told of a server whose handshake was not recorded, from what it was asked.
fn inferred(tape: &Tape, numbers: &[u32]) -> io::Result<Opening> {
    let (mut used, mut server_info, mut listeners) = (Vec::new(), None, Vec::new());
    for number in numbers {
        let recorded = tape.recorded(*number)?;
        if request(&recorded).method() == Some(&Method::SUBSCRIPTIONS_LISTEN) && listeners.len() < CANDIDATES as usize {
            listeners.push(Arc::clone(&recorded));
        }
        if server_info.is_none() {
            server_info = Some(tape.facts(recorded.session)?.server_info.clone());
        }
        if let Some(method) = request(&recorded).method().filter(|method| !used.contains(*method)) {
            used.push(method.clone());
        }
    }
    let mut opening = Opening::inferred(&server_info.unwrap_or_default(), used.iter().map(Method::as_str));
    for listener in listeners {
        listened(tape, &listener, &mut opening)?;
    }
    Ok(opening)
}

/// What can be told of a server from somebody who listened to it: what it promised, or else what it was asked to tell.
fn listened(tape: &Tape, recorded: &Recorded, opening: &mut Opening) -> io::Result<()> {
    let promised = tape.facts(recorded.session)?.acknowledged.clone();
    let asked = || request(recorded).params()?.field("notifications")?.value().ok()?.as_object().cloned();
    if let Some(notifications) = promised.or_else(asked) {
        opening.tells(&notifications);
    }
    Ok(())
}

impl Shared {
    /// Begins to tell of changes, unless the recorded server did not.
    pub(super) fn listen(&self, asked: Asked) -> io::Result<Begun> {
        let wanted = match self.opening.wanted(&asked) {
            Ok(wanted) => wanted,
            Err(error) => return Ok(self.refuse(&asked, error)),
        };
        let key = self.options.likeness.key(&asked.method, Some(&asked.params));
        if let Some((number, answer)) = self.refused_to_listen(&asked, key)? {
            self.progress().note(number);
            self.ledger().matched += 1;
            return Ok(Begun::Answered(answer));
        }
        let wanted = match self.suiting(key, 1)?.first() {
            Some(number) => {
                let promised = &self.tape.facts(self.tape.index.exchange(*number)?.session)?.acknowledged;
                promised.as_ref().map_or(wanted.clone(), |promised| wanted.promised(promised))
            }
            None => wanted,
        };
        // Clients word what they listen to in different ways, so the nth subscription gets what followed the nth recorded one.
        let first = match self.take(about_key(&asked.method, None), &asked, Repeat::Error)? {
            Some(Taken::Fresh(number)) => {
                let (recorded, info) = (self.tape.recorded(number)?, self.opening.info.clone());
                Some(Box::new(RecordedPlay::new(vec![recorded], asked, key, info, self.options.pace)))
            }
            Some(Taken::Again(_) | Taken::UsedUp(_) | Taken::None) | None => None,
        };
        Ok(Begun::Listens(wanted, self.opening.info.clone(), first))
    }

    /// The refusal where nobody who asked for the same was let in, and nobody at all where nobody asked for the same.
    fn refused_to_listen(&self, asked: &Asked, key: RequestKey) -> io::Result<Option<(u32, Answer)>> {
        let (mut same, mut others) = (Vec::new(), Vec::new());
        let about = about_key(&asked.method, None);
        for number in self.suiting(about, CANDIDATES as usize)? {
            let recorded = self.tape.recorded(number)?;
            let params = request(&recorded).params().and_then(|params| params.value().ok());
            let is_same = self.options.likeness.key(&asked.method, params.as_ref().or(Some(&Value::Null))) == key;
            let is_let_in = self.tape.index.exchange(number)?.flags.is_let_in();
            let refusal = recorded.reply().filter(|_| !is_let_in);
            let refusal = refusal.map(|reply| (number, Answer::protocol(reply.clone())));
            if is_same { same.push(refusal) } else { others.push(refusal) }
        }
        let asked_like_this = if same.is_empty() { others } else { same };
        let all: Option<Vec<_>> = asked_like_this.into_iter().collect();
        Ok(all.and_then(|refusals| refusals.into_iter().next()))
    }
}
