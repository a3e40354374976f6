//! Reads a recording and builds the model of its server.
//!
//! ```text
//! TimelineItem, … ──► handshake, lists ──► what the server is and what it lists
//!                 ──► calls ──► rounds joined, volatile params removed ──► distinct requests, answers in order
//! ```

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use rehearsal_core::exchange::Side;
use rehearsal_core::message::{Body, ErrorReply, Method, Reply};
use rehearsal_core::protocol::{Revision, meta};
use rehearsal_core::trace::{EntryBody, RecordedCall, RelatedEvent, RequestKey, SessionStart, TimelineItem};
use serde_json::Value;

use super::recorded_call::{
    input_requests, is_extension, is_input_required, is_task, name_requests, preceding_event, reply, request_view,
    without_envelope,
};
use super::roots_requests::{DuringCall, Relation, RootsRequests, is_roots_list, relation};
use super::secret::{has_secret, unify_secrets};
use super::server_model::{DistinctRequest, ModelAnswer, PrecedingEvent, RecordedReply, ServerModel};

/// At most this many bytes of answers are read, because users edit the generated file.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// The recording is too large for a file that users edit.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answers of the recording are larger than {} MB together", MAX_ANSWER_BYTES >> 20)]
pub struct TooLarge;

debug_as_display!(TooLarge);

/// Builds a model from recordings in the order in which they happened; all sessions go into one model.
#[derive(Debug, Default)]
pub struct Learner {
    model: ServerModel,
    /// The index of each request in the model.
    known: HashMap<RequestKey, usize>,
    /// The events of input rounds of 2026-07-28 that the client has not continued yet, by request and state.
    rounds: HashMap<(RequestKey, Option<String>), VecDeque<Vec<PrecedingEvent>>>,
    /// The version that this session agreed on.
    agreed: Option<Revision>,
    /// The version of the handshake that the server info is from.
    named_in: Option<Revision>,
    /// The methods that were answered with a result.
    served: HashSet<Method>,
    /// The errors of methods whose answer does not depend on the params.
    refused: BTreeMap<String, Vec<ErrorReply>>,
    /// The number of this session.
    session: usize,
    /// The session of each answer, by the index of its request.
    sessions: Vec<Vec<usize>>,
    roots: RootsRequests,
    bytes: usize,
}

impl Learner {
    /// Adds the next call or event of the recording.
    pub fn add(&mut self, item: TimelineItem) -> Result<(), TooLarge> {
        match item {
            TimelineItem::Start(start) => self.begin(&start),
            TimelineItem::Call { call, inside } if call.asker == Side::Client => self.add_call(&call, &inside)?,
            TimelineItem::Call { call, inside } => {
                inside.iter().for_each(|event| self.add_unattached(event));
                self.add_unattached(&RelatedEvent::Call(call));
            }
            TimelineItem::Entry(entry) => self.add_unattached(&RelatedEvent::Entry(entry)),
            TimelineItem::Finish { .. } => {}
        }
        Ok(())
    }

    fn begin(&mut self, start: &SessionStart) {
        self.agreed = None;
        self.session += 1;
        for key in ["name", "version"] {
            let value = start.server_info.get(key).filter(|value| value.is_string());
            if let Some(value) = value.filter(|_| !self.model.server.contains_key(key)) {
                self.model.server.insert(key.to_owned(), value.clone());
            }
        }
    }

    /// Counts an event that comes before no answer of the model.
    fn add_unattached(&mut self, event: &RelatedEvent) {
        match event {
            RelatedEvent::Call(call) if is_roots_list(call) => {
                self.roots.add_unattached((self.session, call.request.seq));
            }
            RelatedEvent::Entry(entry) => match &entry.what {
                EntryBody::Message { from: Side::Client, message, .. }
                    if message.method().is_some_and(|it| it.as_str() == "notifications/roots/list_changed") =>
                {
                    self.roots.add_change((self.session, entry.seq));
                }
                _ => {}
            },
            RelatedEvent::Call(_) => {}
        }
        let left_out = &mut self.model.left_out;
        match event {
            RelatedEvent::Call(call) if call.request.message.method() == Some(&Method::PING) => {}
            RelatedEvent::Call(_) => left_out.server_requests += 1,
            RelatedEvent::Entry(entry) => match &entry.what {
                EntryBody::Message { from, message, .. } => match (message.body(), from) {
                    (Body::Garbled(_), _) => left_out.garbled += 1,
                    // Every server acts on notifications and acknowledges subscriptions.
                    (Body::Notification(_), Side::Client) => {}
                    (Body::Notification(it), Side::Server) if it.method == Method::SUBSCRIPTION_ACKNOWLEDGED => {}
                    (Body::Request(_), Side::Server) => left_out.server_requests += 1,
                    (Body::Request(_), Side::Client) => left_out.unanswered += 1,
                    (Body::Notification(_) | Body::Response(_) | Body::Batch(_), _) => left_out.others += 1,
                },
                // A mock has its own transport.
                EntryBody::Http { .. }
                | EntryBody::Event { .. }
                | EntryBody::ChannelEnded { .. }
                | EntryBody::Stderr { .. }
                | EntryBody::Piece { .. }
                | EntryBody::Ended(_) => {}
            },
        }
    }

    fn add_call(&mut self, call: &RecordedCall, inside: &[RelatedEvent]) -> Result<(), TooLarge> {
        self.bytes += call.response.as_ref().map_or(0, |response| response.message.raw().len());
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(TooLarge);
        }
        let has_answer = match call.request.message.method().cloned() {
            Some(method) => self.add_answer(call, &method, inside),
            None => {
                self.model.left_out.others += 1;
                false
            }
        };
        if !has_answer {
            inside.iter().for_each(|event| self.add_unattached(event));
        }
        Ok(())
    }

    /// Adds a call to the model. Returns whether its answer is in the model, with the events before it.
    fn add_answer(&mut self, call: &RecordedCall, method: &Method, inside: &[RelatedEvent]) -> bool {
        // A subscription that was acknowledged was not refused, however it ended.
        if inside.iter().any(RelatedEvent::is_subscription_ack) {
            self.served.insert(Method::SUBSCRIPTIONS_LISTEN);
            return false;
        }
        let Some(reply) = reply(call) else {
            self.model.left_out.unanswered += 1;
            return false;
        };
        let result = match &reply {
            Reply::Result(result) => {
                self.served.insert(method.clone());
                result.value().unwrap_or_default()
            }
            Reply::Error(_) => Value::Null,
        };
        let revision = self.revision(call);
        match (method.as_str(), reply) {
            (
                "tools/call"
                | "prompts/get"
                | "resources/read"
                | "completion/complete"
                | "resources/subscribe"
                | "resources/unsubscribe",
                reply,
            ) => return self.add_exchange(call, method, reply, result, inside),
            (_, reply) if is_extension(method) => return self.add_exchange(call, method, reply, result, inside),
            // A client that was refused tries the other handshake.
            ("initialize" | "server/discover", Reply::Error(_)) => {}
            (
                "tools/list"
                | "prompts/list"
                | "resources/list"
                | "resources/templates/list"
                | "ping"
                | "logging/setLevel"
                | "subscriptions/listen",
                Reply::Error(error),
            ) => self.refused.entry(method.as_str().to_owned()).or_default().push(error),
            ("initialize", _) => {
                self.agreed = result.get("protocolVersion").and_then(Value::as_str).and_then(|it| it.parse().ok());
                self.note_version(call);
                let revision = self.agreed.unwrap_or(Revision::LATEST_LEGACY);
                self.add_handshake(revision, &result, result.get("serverInfo"));
            }
            ("server/discover", _) => {
                self.model.supported_versions = result.get("supportedVersions").cloned();
                let info = result.get("_meta").and_then(|about| about.get(meta::SERVER_INFO));
                self.add_handshake(Revision::V2026_07_28, &result, info);
            }
            ("tools/list", _) => self.model.tools.add_page(&result, revision),
            ("prompts/list", _) => self.model.prompts.add_page(&result, revision),
            ("resources/list", _) => self.model.resources.add_page(&result, revision),
            ("resources/templates/list", _) => self.model.resource_templates.add_page(&result, revision),
            // A generated server answers these itself.
            ("ping" | "logging/setLevel" | "subscriptions/listen", _) => {}
            _ => self.model.left_out.others += 1,
        }
        false
    }

    /// The version that a request is made in.
    fn revision(&self, call: &RecordedCall) -> Option<Revision> {
        let params = call.request.message.params();
        let claimed = params.and_then(|params| params.at(&["_meta", meta::PROTOCOL_VERSION])?.text());
        claimed.and_then(|version| version.parse().ok()).or(self.agreed)
    }

    /// Notes the version that was agreed on: a server that does not support the requested one names its newest.
    fn note_version(&mut self, call: &RecordedCall) {
        let requested = call.request.message.params().and_then(|params| params.field("protocolVersion")?.text());
        let (Some(agreed), Some(requested)) = (self.agreed, requested) else { return };
        let known = self.model.newest_legacy;
        if known.is_some() || *requested != *agreed.as_str() {
            self.model.newest_legacy = known.max(Some(agreed));
        }
    }

    fn add_handshake(&mut self, revision: Revision, result: &Value, info: Option<&Value>) {
        if let Some(info) = info.and_then(Value::as_object).filter(|_| Some(revision) >= self.named_in) {
            self.model.server.clone_from(info);
            self.named_in = Some(revision);
        }
        if let Some(capabilities) = result.get("capabilities").and_then(Value::as_object) {
            self.model.declare(capabilities);
        }
        if let Some(instructions) = result.get("instructions").and_then(Value::as_str) {
            self.model.instructions = Some(instructions.to_owned());
        }
    }

    fn add_exchange(
        &mut self,
        call: &RecordedCall,
        method: &Method,
        reply: Reply,
        result: Value,
        inside: &[RelatedEvent],
    ) -> bool {
        let params = call.request.message.params().and_then(|params| params.value().ok()).unwrap_or_default();
        let Some(mut view) = request_view(method, &params) else {
            self.model.left_out.others += 1;
            return false;
        };
        let state = params.get("requestState").map(Value::to_string);
        let key = RequestKey::from_view(&unify_secrets(&view));
        let mut before = if params.get("inputResponses").is_some() || state.is_some() {
            self.rounds.get_mut(&(key, state)).and_then(VecDeque::pop_front).unwrap_or_default()
        } else {
            Vec::new()
        };
        let reply = match (reply, result) {
            (Reply::Error(error), _) => RecordedReply::Error(ErrorReply { more: None, ..error }),
            (Reply::Result(_), Value::Object(result)) if is_input_required(&result) => {
                self.add_preceding(&mut before, call, inside);
                before.push(input_requests(&result));
                let state = result.get("requestState").map(Value::to_string);
                self.rounds.entry((key, state)).or_default().push_back(before);
                return true;
            }
            (Reply::Result(_), Value::Object(result)) if is_extension(method) || !is_task(&result) => {
                RecordedReply::Result(without_envelope(result))
            }
            (Reply::Result(_), _) => {
                self.model.left_out.others += 1;
                return false;
            }
        };
        let roots = self.add_preceding(&mut before, call, inside);
        let requests = &mut self.model.requests;
        let at = *self.known.entry(key).or_insert_with(|| {
            let params = view["params"].clone();
            requests.push(DistinctRequest { method: method.clone(), params, answers: Vec::new() });
            self.sessions.push(Vec::new());
            requests.len() - 1
        });
        for (event, seq) in roots {
            let (position, answer) = ((self.session, seq), requests[at].answers.len());
            self.roots.add_during_call(DuringCall { position, request: at, answer, event });
        }
        self.sessions[at].push(self.session);
        let differs = view["params"].take() != requests[at].params;
        self.model.left_out.secrets += usize::from(differs && has_secret(&requests[at].params));
        requests[at].answers.push(ModelAnswer { before, reply });
        true
    }

    /// Adds the events before an answer; an event that cannot be sent again is left out. Returns the index and the sequence
    /// number of each `roots/list` that may be unrelated to the call.
    fn add_preceding(
        &mut self,
        before: &mut Vec<PrecedingEvent>,
        call: &RecordedCall,
        inside: &[RelatedEvent],
    ) -> Vec<(usize, u64)> {
        let mut unclear = Vec::new();
        for event in inside {
            let (relation, seq) = match event {
                RelatedEvent::Call(request) => (relation(request, call), request.request.seq),
                RelatedEvent::Entry(entry) => (Relation::Related, entry.seq),
            };
            match preceding_event(event).filter(|_| relation != Relation::Unrelated) {
                Some(event) => {
                    unclear.extend((relation == Relation::Unclear).then_some((before.len(), seq)));
                    before.push(event);
                }
                None => self.add_unattached(event),
            }
        }
        unclear
    }

    /// The finished model.
    pub fn finish(mut self) -> ServerModel {
        let roots = std::mem::take(&mut self.roots);
        self.model.left_out.server_requests += roots.settle(&mut self.model.requests, &self.sessions);
        let answers = self.model.requests.iter_mut().flat_map(|request| &mut request.answers);
        answers.for_each(|answer| name_requests(&mut answer.before));
        self.refuse_methods();
        let mut model = self.model;
        model.newest_legacy = model.newest_legacy.filter(|newest| *newest < Revision::LATEST_LEGACY);
        model.left_out.unanswered += self.rounds.into_values().map(|rounds| rounds.len()).sum::<usize>();
        // A request for something known comes before one that fits any secret.
        model.requests.sort_by_key(|request| has_secret(&request.params));
        model
    }

    /// Finds the methods that were always refused with the same error, whatever was requested.
    fn refuse_methods(&mut self) {
        for (method, errors) in std::mem::take(&mut self.refused) {
            match &errors[..] {
                [first, others @ ..]
                    if !self.served.contains(&Method::from(method.as_str())) && others.iter().all(|it| it == first) =>
                {
                    self.model.refuses.insert(method, first.clone());
                }
                _ => self.model.left_out.others += errors.len(),
            }
        }
        let has_rules = ["tools/call", "prompts/get", "resources/read"];
        let methods: Vec<_> = self.model.requests.iter().map(|request| request.method.clone()).collect();
        for method in methods.into_iter().filter(|method| !has_rules.contains(&method.as_str())) {
            if let Some(error) = self.always_refused(&method) {
                self.model.requests.retain(|request| request.method != method);
                self.model.refuses.insert(method.as_str().to_owned(), error);
            }
        }
    }

    fn always_refused(&self, method: &Method) -> Option<ErrorReply> {
        let answers = self.model.requests_of(method).flat_map(|request| &request.answers);
        let mut errors = answers.map(|answer| match &answer.reply {
            RecordedReply::Error(error) if answer.before.is_empty() => Some(error),
            RecordedReply::Error(_) | RecordedReply::Result(_) => None,
        });
        let first = errors.next()??;
        errors.all(|other| other == Some(first)).then(|| first.clone())
    }
}
