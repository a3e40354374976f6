//! Plans the requests to send from the recorded calls.

use std::collections::HashMap;

use rehearsal_core::exchange::Side;
use rehearsal_core::message::{Body, Message, Method, Reply};
use rehearsal_core::protocol::{Era, Revision, meta};
use rehearsal_core::redact::has_pseudonym;
use rehearsal_core::trace::{
    PlacedMessage, RecordedCall, RelatedEvent, RequestIdentity, RequestKey, TimelineItem, subject,
};
use serde_json::{Map, Value};

use super::server_requests::{ExpectedRequest, RequestPlace};
use crate::client::is_discovery;

/// One step of a verification.
#[derive(Debug)]
pub(super) enum PlannedCheck {
    /// Compares the handshake.
    Handshake {
        /// The recorded handshake.
        call: Box<RecordedCall>,
    },
    /// Compares a list.
    List {
        /// The method of the list.
        method: Method,
        /// Its pages, in order.
        pages: Vec<RecordedCall>,
    },
    /// Compares the answer to a request.
    Request {
        /// The request; of several input rounds, the first.
        sent: Box<RecordedCall>,
        /// The call with the final answer.
        answered: Box<RecordedCall>,
        /// The requests of the server in between, with their responses.
        server_requests: Vec<ExpectedRequest>,
        /// The number of retries of the client, if the server still required input without an input request at the end.
        rounds: Option<usize>,
    },
    /// Nothing: this call cannot be compared.
    Skipped {
        /// The skipped call.
        call: Box<RecordedCall>,
        /// The reason.
        reason: &'static str,
    },
}

/// The unfinished parts of a session: input rounds, and pages of lists.
#[derive(Debug, Default)]
pub(super) struct VerificationPlan {
    rounds: HashMap<(RequestKey, Option<String>), Vec<OpenRound>>,
    pages: HashMap<Method, Vec<RecordedCall>>,
    /// Steps after the first request of input rounds that have not ended yet.
    held: Vec<PlannedCheck>,
}

/// At most this many steps are held back for input rounds that have not ended.
const MAX_HELD: usize = 1000;

impl PlannedCheck {
    /// The sequence number of the first request.
    fn seq(&self) -> u64 {
        match self {
            PlannedCheck::Handshake { call } | PlannedCheck::Skipped { call, .. } => call.request.seq,
            PlannedCheck::List { pages, .. } => pages.first().map_or(0, |page| page.request.seq),
            PlannedCheck::Request { sent, .. } => sent.request.seq,
        }
    }
}

#[derive(Debug)]
struct OpenRound {
    sent: RecordedCall,
    server_requests: Vec<ExpectedRequest>,
    /// The input requests of the last answer, by name; the next request has the responses.
    open: Map<String, Value>,
    /// The last answer, which is compared if no request follows.
    last: RecordedCall,
    /// The number of earlier retries of the client.
    count: usize,
}

impl OpenRound {
    /// Stores the responses to the open input requests, if any.
    fn close(&mut self, replies: Option<&Map<String, Value>>) {
        let PlacedMessage { seq, item, .. } = self.last.request;
        let answered = std::mem::take(&mut self.open).into_iter().filter_map(|(name, request)| {
            let reply = replies.and_then(|replies| replies.get(&name)).cloned();
            ExpectedRequest::of_round(RequestPlace { seq, item, name: Some(name) }, &request, reply)
        });
        self.server_requests.extend(answered);
    }
}

impl VerificationPlan {
    /// The steps that a recorded call completes, in the order of their requests.
    pub(super) fn call(&mut self, call: RecordedCall, inside: &[RelatedEvent]) -> Vec<PlannedCheck> {
        let step = self.step(call, inside);
        self.held.extend(step);
        let open = self.rounds.values().flatten().map(|round| round.sent.request.seq).min();
        let open = open.filter(|_| self.held.len() <= MAX_HELD).unwrap_or(u64::MAX);
        let (mut ready, held) = std::mem::take(&mut self.held).into_iter().partition(|step| step.seq() < open);
        self.held = held;
        in_order(&mut ready);
        ready
    }

    fn step(&mut self, call: RecordedCall, inside: &[RelatedEvent]) -> Option<PlannedCheck> {
        let method = call.request.message.method()?.clone();
        let skipped = |call: RecordedCall, reason| Some(PlannedCheck::Skipped { call: Box::new(call), reason });
        let Some(reply) = reply(&call) else {
            let why = match &call.response {
                Some(_) => "its answer cannot be understood",
                None if inside.iter().any(RelatedEvent::is_cancellation) => "its client cancelled it",
                None => "it was never answered",
            };
            return skipped(call, why);
        };
        match kind(&method) {
            CheckKind::Handshake if !is_handshake_result(&method, &reply) => {
                return skipped(call, NO_VERSION_NEGOTIATED);
            }
            CheckKind::Handshake => return Some(PlannedCheck::Handshake { call: Box::new(call) }),
            CheckKind::List => return self.page(method, call, &reply),
            CheckKind::Skipped(reason) => return skipped(call, reason),
            CheckKind::Compared => {}
        }
        if call.request.message.params().is_some_and(|params| params.value().is_err()) {
            return skipped(call, "its params have too many levels");
        }
        let params = params(&call.request.message);
        if params.get("task").is_some_and(|task| !task.is_null()) {
            return skipped(call, TASK_REASON);
        }
        if is_redacted(&params) {
            return skipped(call, REDACTED_PARAMS);
        }
        let mut inner: Vec<_> =
            inside.iter().filter_map(server_request_inside).filter(|it| !it.is_unscheduled()).collect();
        if inner.iter().any(|request| request.reply.as_ref().is_some_and(is_redacted_reply)) {
            return skipped(call, REDACTED_ANSWER);
        }
        let key = RequestIdentity::default().key(&method, Some(&params));
        let state = params.get("requestState").map(Value::to_string);
        let returns = params.get("inputResponses").is_some() || state.is_some();
        let before = if returns { self.rounds.get_mut(&(key, state)).and_then(Vec::pop) } else { None };
        let (first, mut server_requests, count) = match before {
            Some(mut round) => {
                round.close(params.get("inputResponses").and_then(Value::as_object));
                (round.sent, round.server_requests, round.count + 1)
            }
            None => (call.clone(), Vec::new(), 0),
        };
        server_requests.append(&mut inner);
        if let Some(open) = input_requests(&reply) {
            // An input request without a response that is sent again counts once: a client that responds at once
            // receives it once.
            let PlacedMessage { seq, item, .. } = call.request;
            let repeated: Vec<ExpectedRequest> = open
                .iter()
                .filter_map(|(name, request)| {
                    ExpectedRequest::of_round(RequestPlace { seq, item, name: Some(name.clone()) }, request, None)
                })
                .collect();
            server_requests.retain(|it| it.reply.is_some() || !repeated.iter().any(|now| now.same_request(it)));
            let state = match &reply {
                Reply::Result(result) => result.field("requestState").map(|state| state.as_str().to_owned()),
                Reply::Error(_) => None,
            };
            let round = OpenRound { sent: first, server_requests, open, last: call, count };
            self.rounds.entry((key, state)).or_default().push(round);
            return None;
        }
        Some(PlannedCheck::Request { sent: Box::new(first), answered: Box::new(call), server_requests, rounds: None })
    }

    /// The remaining steps at the end of the session.
    pub(super) fn finish(&mut self) -> Vec<PlannedCheck> {
        let rounds = std::mem::take(&mut self.rounds).into_values().flatten();
        let mut steps: Vec<PlannedCheck> = rounds
            .map(|mut round| {
                let rounds = round.open.is_empty().then_some(round.count);
                round.close(None);
                let OpenRound { sent, server_requests, last, .. } = round;
                PlannedCheck::Request { sent: Box::new(sent), answered: Box::new(last), server_requests, rounds }
            })
            .collect();
        let lists = std::mem::take(&mut self.pages).into_iter().filter(|(_, pages)| !pages.is_empty());
        steps.extend(lists.map(|(method, pages)| PlannedCheck::List { method, pages }));
        steps.append(&mut self.held);
        in_order(&mut steps);
        steps
    }

    fn page(&mut self, method: Method, call: RecordedCall, reply: &Reply) -> Option<PlannedCheck> {
        let Reply::Result(result) = reply else {
            return Some(PlannedCheck::Request {
                sent: Box::new(call.clone()),
                answered: Box::new(call),
                server_requests: Vec::new(),
                rounds: None,
            });
        };
        let has_next = result.field("nextCursor").is_some_and(|cursor| !cursor.is_null());
        let pages = self.pages.entry(method.clone()).or_default();
        // The client started to read the list from the start.
        if params(&call.request.message).get("cursor").is_none_or(Value::is_null) && !pages.is_empty() {
            self.held.push(PlannedCheck::List { method: method.clone(), pages: std::mem::take(pages) });
        }
        pages.push(call);
        if has_next { None } else { Some(PlannedCheck::List { method, pages: std::mem::take(pages) }) }
    }
}

fn in_order(steps: &mut [PlannedCheck]) {
    steps.sort_by_key(PlannedCheck::seq);
}

/// The reply to a call; `None` if it is missing or garbled.
pub(super) fn reply(call: &RecordedCall) -> Option<Reply> {
    match call.response.as_ref()?.message.body() {
        Body::Response(response) => Some(response.reply.clone()),
        Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => None,
    }
}

/// The params of a request; `null` without params.
pub(super) fn params(message: &Message) -> Value {
    message.params().and_then(|params| params.value().ok()).unwrap_or_default()
}

/// The title of a request in a report: `tools/call echo`.
pub(super) fn request_title(message: &Message) -> String {
    let method = message.method().map_or_else(String::new, ToString::to_string);
    match subject(message) {
        Some(subject) => format!("{method} {subject}"),
        None => method,
    }
}

/// Maximum length of the arguments that a report shows, in characters.
const MAX_SHOWN: usize = 200;

/// The params of a request that are shown in addition to its name. `clean` redacts them before they are cut.
pub(super) fn arguments_note(message: &Message, clean: impl Fn(&str) -> String) -> Option<String> {
    let params = params(message);
    let shown = match message.method()?.as_str() {
        "completion/complete" => params.get("argument")?,
        _ => params.get("arguments").filter(|arguments| arguments.as_object().is_none_or(|all| !all.is_empty()))?,
    };
    let mut text = clean(&shown.to_string());
    if let Some((end, _)) = text.char_indices().nth(MAX_SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    Some(text)
}

/// The input requests of an `input_required` result of 2026-07-28; `None` for any other reply.
pub(super) fn input_requests(reply: &Reply) -> Option<Map<String, Value>> {
    let Reply::Result(result) = reply else { return None };
    result.field("resultType").and_then(|kind| kind.text()).filter(|kind| kind == "input_required")?;
    let requests = result.field("inputRequests").and_then(|requests| requests.value().ok());
    Some(requests.and_then(|requests| requests.as_object().cloned()).unwrap_or_default())
}

/// A server request inside a call, before 2026-07-28.
fn server_request_inside(inside: &RelatedEvent) -> Option<ExpectedRequest> {
    match inside {
        RelatedEvent::Call(call) if call.asker == Side::Server => server_request(call),
        RelatedEvent::Call(_) | RelatedEvent::Entry(_) => None,
    }
}

fn server_request(call: &RecordedCall) -> Option<ExpectedRequest> {
    let method = call.request.message.method()?.clone();
    if method == Method::PING {
        return None;
    }
    let PlacedMessage { seq, item, .. } = call.request;
    let place = RequestPlace { seq, item, name: None };
    Some(ExpectedRequest { place, method, params: params(&call.request.message), reply: reply(call) })
}

/// Server requests that belong to no compared call, so that a server may send them earlier or later.
pub(super) fn unscheduled_requests(item: &TimelineItem) -> Vec<ExpectedRequest> {
    match item {
        TimelineItem::Call { call, .. } if call.asker == Side::Server => server_request(call).into_iter().collect(),
        TimelineItem::Call { call, inside } => {
            let compared = call.request.message.method().is_none_or(|method| kind(method) == CheckKind::Compared);
            let inner = inside.iter().filter_map(server_request_inside);
            inner.filter(|it| !compared || it.is_unscheduled()).collect()
        }
        TimelineItem::Start(_) | TimelineItem::Entry(_) | TimelineItem::Finish { .. } => Vec::new(),
    }
}

/// How a call is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckKind {
    Handshake,
    List,
    /// The answer is compared.
    Compared,
    /// Not at all, with the reason.
    Skipped(&'static str),
}

const REDACTED_PARAMS: &str = "a secret was redacted from its params; a recording made with --no-redact has it";

/// Whether the params contain a pseudonym, so that the server would answer to the pseudonym.
fn is_redacted(params: &Value) -> bool {
    let sent = params.as_object().into_iter().flatten().filter(|(key, _)| *key != "_meta");
    sent.into_iter().any(|(_, value)| has_pseudonym(&value.to_string()))
}

const REDACTED_ANSWER: &str =
    "a secret was redacted from its client's input response; a recording made with --no-redact has it";

/// Whether the reply contains a pseudonym, which would be sent to the server.
fn is_redacted_reply(reply: &Reply) -> bool {
    match reply {
        Reply::Result(result) => has_pseudonym(result.as_str()),
        Reply::Error(_) => false,
    }
}

/// Why a `server/discover` or `initialize` is not sent again.
pub(super) const NO_VERSION_NEGOTIATED: &str = "it negotiated no version";

/// Whether the answer to a handshake or a discovery describes the server.
fn is_handshake_result(method: &Method, reply: &Reply) -> bool {
    match reply {
        Reply::Result(result) => *method != Method::DISCOVER || is_discovery(result),
        Reply::Error(_) => false,
    }
}

const TASK_REASON: &str = "the id of a task differs in every run";

fn kind(method: &Method) -> CheckKind {
    match method.as_str() {
        "initialize" | "server/discover" => CheckKind::Handshake,
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => CheckKind::List,
        "ping" => CheckKind::Skipped("a ping has nothing to compare"),
        "subscriptions/listen" => CheckKind::Skipped("a subscription has no answer until it ends"),
        name if name.starts_with("tasks/") => CheckKind::Skipped(TASK_REASON),
        _ => CheckKind::Compared,
    }
}

/// Whose version and client information the `_meta` of a request contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetaSource {
    /// The version and the client information of our client, if it sends any.
    Ours,
    /// The version and the client information of the recorded client, if it sent any.
    Recorded,
}

/// Params without the members that belong to the recorded connection, and whether progress is requested.
pub(super) fn resend_params(params: Value, claim: MetaSource) -> (Value, bool) {
    let Value::Object(mut fields) = params else { return (params, false) };
    for key in ["inputResponses", "requestState"] {
        fields.shift_remove(key);
    }
    let mut wants_progress = false;
    if let Some(Value::Object(about)) = fields.shift_remove("_meta") {
        wants_progress = about.contains_key(meta::PROGRESS_TOKEN);
        let claimed = |key: &str| claim == MetaSource::Ours && key.starts_with("io.modelcontextprotocol/");
        let ours = |key: &str| key == meta::PROGRESS_TOKEN || claimed(key);
        let theirs: Map<String, Value> = about.into_iter().filter(|(key, _)| !ours(key)).collect();
        if !theirs.is_empty() {
            fields.insert("_meta".to_owned(), theirs.into());
        }
    }
    (fields.into(), wants_progress)
}

/// Why a request cannot be made in this version.
pub(super) fn unsupported_reason(
    sent: &RecordedCall,
    answered: &RecordedCall,
    revision: Revision,
) -> Option<&'static str> {
    let gone = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    let method = sent.request.message.method()?;
    let is_open = reply(answered).is_some_and(|reply| input_requests(&reply).is_some());
    match revision.era() {
        Era::Modern => gone.contains(&method.as_str()).then_some("2026-07-28 has no such request"),
        Era::Legacy => {
            is_open.then_some("the recorded client abandoned this input round, and only 2026-07-28 has input rounds")
        }
    }
}
