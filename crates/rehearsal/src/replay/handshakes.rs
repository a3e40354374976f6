//! What servers declared in recorded handshakes: in all sessions that a replay answers from, and in one of them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::answer::{
    Answer, AnswerContext, IncomingRequest, Introduction, Offer, Provenance, RecordedExchange, WrittenFor,
};
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::Era;
use rehearsal_core::trace::{RequestIdentity, RequestKey};
use serde_json::Value;

use super::index::{method_key, subject_key};
use super::indexed_trace::{IndexedTrace, request as request_of};
use super::options::Repeat;
use super::recorded_source::MAX_SCANNED;
use super::replay::{CANDIDATES, ReplayState, is_selected};
use super::replay_position::NextRecording;

/// At most this many are kept in memory.
const CACHE_CAPACITY: usize = 1024;

/// The requests of a handshake or a discovery.
const HANDSHAKE_METHODS: [Method; 2] = [Method::INITIALIZE, Method::DISCOVER];

/// The `serverInfo` of some sessions, kept in memory.
#[derive(Debug, Default)]
pub(super) struct HandshakeCache(Mutex<HashMap<u32, Arc<Value>>>);

/// The combined handshake of all sessions that a replay answers from.
pub(super) struct MergedHandshake {
    /// The first handshake with the capabilities of all; without a handshake, what the recorded requests imply.
    pub(super) opening: Introduction,
    /// The recorded refusals, if every handshake was refused.
    pub(super) refused: RefusedHandshakes,
}

/// The recorded refusals, if every handshake was refused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RefusedHandshakes {
    initialize: Option<u32>,
    discover: Option<u32>,
}

impl RefusedHandshakes {
    /// The refusal for a client that opens a connection in this era. An error because `server/discover` is unknown is
    /// not a refusal of the client.
    pub(super) fn by(self, era: Era) -> Option<u32> {
        match era {
            Era::Legacy => self.initialize,
            Era::Modern => self.discover.or(self.initialize),
        }
    }
}

impl ReplayState {
    /// The `serverInfo` of a session, for answers in an era.
    pub(super) fn info_of(&self, session: u32, era: Era) -> io::Result<Arc<Value>> {
        // Before 2026-07-28 only the handshake contains it.
        if era == Era::Legacy || self.trace.index.sessions() == 1 {
            return Ok(self.introduction.info());
        }
        let kept = || self.handshakes.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(&session) {
            return Ok(Arc::clone(known));
        }
        let mut info = None;
        for method in HANDSHAKE_METHODS {
            let Some(group) = self.trace.index.group(self.options.likeness.key(&method, None))? else { continue };
            for number in self.trace.members_of_session(group, session, CANDIDATES as usize)? {
                let opening = Introduction::recorded(&self.trace.recorded(number)?.call);
                info = opening.map(|opening| opening.info()).or(info);
            }
        }
        let facts = self.trace.facts(session)?;
        let info = match info {
            Some(info) => info,
            None if facts.server_info.contains_key("name") => Introduction::inferred(&facts.server_info, []).info(),
            None => self.introduction.info(),
        };
        let mut kept = kept();
        if kept.len() >= CACHE_CAPACITY {
            kept.clear();
        }
        kept.insert(session, Arc::clone(&info));
        Ok(info)
    }
}

/// Combines the handshakes of all sessions that a replay answers from.
pub(super) fn merge_handshakes(trace: &IndexedTrace, selected: Option<&[bool]>) -> io::Result<MergedHandshake> {
    let (mut pooled, mut refused): (Option<Introduction>, _) = (None, RefusedHandshakes::default());
    for method in HANDSHAKE_METHODS {
        let Some(group) = trace.index.group(RequestIdentity::default().key(&method, None))? else { continue };
        let mut scanned = 0;
        for number in trace.members(group, group.count) {
            let number = number?;
            if !is_selected(selected, trace.index.exchange(number)?.session) {
                continue;
            }
            let recorded = trace.recorded(number)?;
            match (Introduction::recorded(&recorded.call), &mut pooled) {
                (Some(opening), Some(pooled)) => *pooled = pooled.clone().with_capabilities_of(&opening),
                (Some(opening), None) => pooled = Some(opening),
                (None, _) if matches!(recorded.reply(), Some(Reply::Error(_))) => {
                    let by = if method == Method::DISCOVER { &mut refused.discover } else { &mut refused.initialize };
                    by.get_or_insert(number);
                }
                (None, _) => {}
            }
            scanned += 1;
            if scanned >= CANDIDATES {
                break;
            }
        }
    }
    if let Some(opening) = pooled {
        return Ok(MergedHandshake { opening, refused: RefusedHandshakes::default() });
    }
    if refused.by(Era::Modern).is_some() && accepted_any_client(trace, selected)? {
        // The recorded clients were served without `server/discover`, so at most its error is replayed.
        refused.initialize = None;
    }
    if selected.is_some() {
        let mut chosen = Vec::new();
        for session in (0..trace.index.sessions()).filter(|session| is_selected(selected, *session)) {
            chosen.extend(trace.of_session(session)?.take(MAX_SCANNED as usize - chosen.len()));
        }
        return Ok(MergedHandshake { opening: inferred(trace, &chosen)?, refused });
    }
    // Without a selection, the index has the methods that were used.
    let mut used = Vec::new();
    for method in Method::KNOWN {
        if trace.index.group(method_key(method))?.is_some() {
            used.push(*method);
        }
    }
    let facts = if trace.index.sessions() == 0 { None } else { Some(trace.facts(0)?) };
    let server_info = facts.map(|facts| facts.server_info.clone()).unwrap_or_default();
    let mut opening = Introduction::inferred(&server_info, used);
    let listeners = trace.index.group(subject_key(&Method::SUBSCRIPTIONS_LISTEN, None))?;
    for number in listeners.into_iter().flat_map(|group| trace.members(group, CANDIDATES)) {
        let recorded = trace.recorded(number?)?;
        add_subscription(trace, &recorded, &mut opening)?;
    }
    Ok(MergedHandshake { opening, refused })
}

/// Whether a recorded client continued although every handshake was refused: since 2026-07-28 none is required.
fn accepted_any_client(trace: &IndexedTrace, selected: Option<&[bool]>) -> io::Result<bool> {
    for number in (0..trace.index.exchanges()).take(MAX_SCANNED as usize) {
        let exchange = trace.index.exchange(number)?;
        let is_modern = exchange.revision().is_some_and(|revision| revision.era() == Era::Modern);
        if is_modern && exchange.flags.counts() && is_selected(selected, exchange.session) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Infers the handshake of a server from the recorded requests.
fn inferred(trace: &IndexedTrace, numbers: &[u32]) -> io::Result<Introduction> {
    let (mut used, mut server_info, mut listeners) = (Vec::new(), None, Vec::new());
    for number in numbers {
        let recorded = trace.recorded(*number)?;
        if request_of(&recorded).method() == Some(&Method::SUBSCRIPTIONS_LISTEN)
            && listeners.len() < CANDIDATES as usize
        {
            listeners.push(Arc::clone(&recorded));
        }
        if server_info.is_none() {
            server_info = Some(trace.facts(recorded.session)?.server_info.clone());
        }
        if let Some(method) = request_of(&recorded).method().filter(|method| !used.contains(*method)) {
            used.push(method.clone());
        }
    }
    let mut opening = Introduction::inferred(&server_info.unwrap_or_default(), used.iter().map(Method::as_str));
    for listener in listeners {
        add_subscription(trace, &listener, &mut opening)?;
    }
    Ok(opening)
}

/// Adds the change notices of a recorded subscription: those that were acknowledged, or else those that were requested.
fn add_subscription(trace: &IndexedTrace, recorded: &RecordedExchange, opening: &mut Introduction) -> io::Result<()> {
    let acknowledged = trace.facts(recorded.session)?.acknowledged.clone();
    let requested = || request_of(recorded).params()?.field("notifications")?.value().ok()?.as_object().cloned();
    if let Some(notifications) = acknowledged.or_else(requested) {
        opening.add_notices(&notifications);
    }
    Ok(())
}

impl ReplayState {
    /// Begins a subscription, unless the recorded server refused it.
    pub(super) fn subscribe(
        &self,
        request: &Arc<IncomingRequest>,
        context: &mut AnswerContext<'_>,
    ) -> io::Result<Offer> {
        let filter = match self.introduction.subscription_filter(request) {
            Ok(filter) => filter,
            Err(error) => return Ok(Offer::Answer(Answer::protocol(Reply::Error(error)))),
        };
        let key = self.options.likeness.key(&request.method, Some(&request.params));
        if let Some((number, answer)) = self.recorded_refusal(request, key)? {
            self.used().note(number);
            self.ledger().matched += 1;
            return Ok(Offer::Answer(answer));
        }
        let filter = match self.answering(key, 1)?.first() {
            Some(number) => {
                let acknowledged = &self.trace.facts(self.trace.index.exchange(*number)?.session)?.acknowledged;
                acknowledged.as_ref().map_or(filter.clone(), |acknowledged| filter.limited_to(acknowledged))
            }
            None => filter,
        };
        // Clients write their filters in different ways, so the nth subscription gets what followed the nth recorded one.
        let first = match self.take(subject_key(&request.method, None), context, Repeat::Error)? {
            Some(NextRecording::Fresh(number)) => {
                let answer = self.recorded_answer(vec![self.trace.recorded(number)?], request, key)?;
                Some(answer.events_after(request))
            }
            Some(NextRecording::Again(_) | NextRecording::Exhausted(_) | NextRecording::None) | None => None,
        };
        Ok(Offer::Listen(filter, first))
    }

    /// The recorded refusal, if every equal subscription was refused. If there is no equal one, the same applies to all
    /// recorded subscriptions.
    fn recorded_refusal(&self, request: &IncomingRequest, key: RequestKey) -> io::Result<Option<(u32, Answer)>> {
        let (mut same, mut others) = (Vec::new(), Vec::new());
        let about = subject_key(&request.method, None);
        for number in self.answering(about, CANDIDATES as usize)? {
            let recorded = self.trace.recorded(number)?;
            let params = request_of(&recorded).params().and_then(|params| params.value().ok());
            let is_same = self.options.likeness.key(&request.method, params.as_ref().or(Some(&Value::Null))) == key;
            let is_accepted = self.trace.index.exchange(number)?.flags.is_listen_accepted();
            let refusal = recorded.reply().filter(|_| !is_accepted);
            let refusal = refusal.map(|reply| {
                let provenance = Provenance::Recording { place: Arc::clone(&recorded.place), again: false };
                let written_for = WrittenFor::Recorded(recorded.revision);
                (number, Answer { written_for, ..Answer::new(reply.clone(), provenance) })
            });
            if is_same { same.push(refusal) } else { others.push(refusal) }
        }
        let all: Option<Vec<_>> = if same.is_empty() { others } else { same }.into_iter().collect();
        Ok(all.and_then(|refusals| refusals.into_iter().next()))
    }
}
