//! Recorded exchanges replayed to clients of other versions, as transcripts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ContinuedRound, EventPhase, RecordedAnswer, RecordedExchange, ReplayEvent, ReplayPace};
use crate::answer::{
    Action, AnswerSource, Chain, ConnectionState, Decision, Environment, IncomingRequest, Introduction, LegacyState,
    MatchDepth, Miss, NegotiatedClient, Offer, RequestContext, StateSigner, adapt_reply as adapted,
};
use crate::exchange::{Channel, Side};
use crate::message::{Message, Method, Reply};
use crate::protocol::{Revision, meta};
use crate::trace::{Entry, EntryBody, PlacedMessage, RecordedCall, RelatedEvent, RequestIdentity};

fn placed(seq: u64, text: &str) -> PlacedMessage {
    PlacedMessage::new(seq, Duration::from_millis(seq * 10), Message::parse(text.to_owned()))
}

fn call(asker: Side, seqs: (u64, u64), method: &str, params: Value, result: Value) -> RecordedCall {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
    RecordedCall { asker, request: placed(seqs.0, &request), response: Some(placed(seqs.1, &response)) }
}

fn notification(seq: u64, method: &str, params: Value) -> ReplayEvent {
    let message = Message::notification(Method::from(method), Some(&params)).unwrap();
    let what = EntryBody::Message { from: Side::Server, channel: Channel::MAIN, message, event_id: None };
    let entry = Entry::new(seq, Duration::from_millis(seq * 10), what);
    ReplayEvent { event: RelatedEvent::Entry(entry), phase: EventPhase::Before }
}

fn recorded(number: u32, call: RecordedCall, events: Vec<ReplayEvent>, revision: Revision) -> Arc<RecordedExchange> {
    Arc::new(RecordedExchange {
        number,
        session: 0,
        place: "session a, call 1".into(),
        call,
        events,
        revision: Some(revision),
        adapted: Arc::default(),
    })
}

/// A booking with progress and an elicitation, recorded with a handshake.
fn legacy() -> Vec<Arc<RecordedExchange>> {
    let elicitation = json!({"message": "Which day?", "requestedSchema": {"type": "object"}});
    let server_request = call(Side::Server, (3, 4), "elicitation/create", elicitation, json!({"action": "accept"}));
    let server_request = ReplayEvent { event: RelatedEvent::Call(Box::new(server_request)), phase: EventPhase::Before };
    let progress = |seq, far| notification(seq, "notifications/progress", json!({"progressToken": 7, "progress": far}));
    let booked = json!({"content": [{"type": "text", "text": "booked"}]});
    let call = call(Side::Client, (1, 6), "tools/call", json!({"name": "book"}), booked);
    vec![recorded(5, call, vec![progress(2, 1), server_request, progress(5, 2)], Revision::V2025_11_25)]
}

/// The booking since 2026-07-28: two rounds.
fn modern() -> Vec<Arc<RecordedExchange>> {
    let requests = json!({"day": {"method": "elicitation/create", "params": {"message": "Which day?"}}});
    let required = json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"});
    let booked = json!({
        "resultType": "complete", "content": [{"type": "text", "text": "booked"}],
        "_meta": {meta::SERVER_INFO: {"name": "s", "version": "1"}},
    });
    let first = call(Side::Client, (1, 2), "tools/call", json!({"name": "book"}), required);
    let second = call(Side::Client, (3, 4), "tools/call", json!({"name": "book", "requestState": "s"}), booked);
    let at = Revision::V2026_07_28;
    vec![recorded(5, first, Vec::new(), at), recorded(6, second, Vec::new(), at)]
}

fn request(revision: Revision, more: Value) -> IncomingRequest {
    let mut params = json!({"name": "book", "_meta": {"progressToken": "mine"}});
    let capabilities = json!({"elicitation": {}});
    let mut memory = LegacyState::default();
    if revision.has_handshake() {
        let client = NegotiatedClient { revision, client: Arc::default(), capabilities: capabilities.into() };
        memory.client = Some(client);
    } else {
        params["_meta"][meta::PROTOCOL_VERSION] = revision.as_str().into();
        params["_meta"][meta::CLIENT_CAPABILITIES] = capabilities;
    }
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let context = RequestContext::new(&Method::TOOLS_CALL, &params, &memory, &Revision::ALL).unwrap();
    IncomingRequest::new(Method::TOOLS_CALL, params, context)
}

/// An answer source that answers every request from the same rounds.
#[derive(Debug)]
struct Rounds(Vec<Arc<RecordedExchange>>, ReplayPace);

impl AnswerSource for Rounds {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut crate::answer::AnswerContext<'_>) -> Offer {
        let key = RequestIdentity::default().key(&request.method, Some(&request.params));
        let Ok(continued) = ContinuedRound::from_request(request, key, context) else {
            return Offer::Pass(MatchDepth::Name);
        };
        let (rounds, server) = (self.0.clone(), json!({"name": "s"}).into());
        let answer = RecordedAnswer { rounds, key, server, pace: self.1, again: false, instead: None };
        answer.offer(request, continued.as_ref(), context)
    }

    fn closest(&self, request: &IncomingRequest, context: &mut crate::answer::AnswerContext<'_>) -> Option<Miss> {
        let key = RequestIdentity::default().key(&request.method, Some(&request.params));
        let error = ContinuedRound::from_request(request, key, context).err()?;
        Some(Miss { error, is_remark: false })
    }
}

/// Every action until the answer, one per line, and the result.
fn replayed_lines(
    rounds: Vec<Arc<RecordedExchange>>,
    request: IncomingRequest,
    pace: ReplayPace,
) -> (Vec<String>, Value) {
    let signer = StateSigner::new([7; 32]);
    let environment = Environment { now_ms: 1_000_000, signer: &signer };
    let chain = Chain::new(vec![Arc::new(Rounds(rounds, pace))]);
    let (mut state, request) = (ConnectionState::default(), Arc::new(request));
    let mut lines = Vec::new();
    let result = |reply: Reply| match reply {
        Reply::Result(result) => result.value().unwrap(),
        Reply::Error(error) => panic!("{error:?}"),
    };
    let (mut active, mut action) = match chain.begin(&request, &mut state, environment) {
        Decision::Answer(answer) => return (lines, result(answer.reply)),
        Decision::Respond(active, action) => (active, action),
        other => panic!("{other:?}"),
    };
    loop {
        match action {
            Action::Wait(delay) => lines.push(format!("wait {:?}", delay.to)),
            Action::Notify { method, params } => lines.push(format!("{method} {params}")),
            Action::RequestInput(requests) => {
                for request in requests {
                    lines.push(format!("ask {} {}", request.method, request.params));
                    active.responder.set_input(&request.name, Ok(json!({"action": "decline"})));
                }
            }
            Action::Reply(answer) => return (lines, result(answer.reply)),
            Action::AwaitInput(_) => {}
            action => lines.push(format!("{action:?}")),
        }
        action = chain.next(&mut active, &request, &mut state, environment);
    }
}

#[test]
fn replayed_events_precede_the_answer_with_the_token_of_this_client() {
    let (lines, result) = replayed_lines(legacy(), request(Revision::V2025_06_18, json!({})), ReplayPace::None);
    assert_eq!(
        lines,
        [
            r#"notifications/progress {"progressToken":"mine","progress":1}"#,
            "wait 50ms",
            r#"ask elicitation/create {"message":"Which day?","requestedSchema":{"type":"object"}}"#,
            r#"notifications/progress {"progressToken":"mine","progress":2}"#,
            "wait 50ms",
        ]
    );
    assert_eq!(result, json!({"content": [{"type": "text", "text": "booked"}]}));
}

/// The lines of progress that a client gets in one call, for rounds of 2026-07-28 with this progress.
fn progress_of(rounds: &[&[f64]]) -> Vec<String> {
    let last = rounds.len() - 1;
    let round = |(at, far): (usize, &&[f64])| {
        let seq = 10 * at as u64;
        let params = json!({"name": "book", "requestState": at.to_string()});
        let continued = json!({"resultType": "input_required", "requestState": (at + 1).to_string()});
        let result = if at < last { continued } else { json!({"resultType": "complete", "content": []}) };
        let progress = |(nth, far): (u64, &f64)| {
            let number = if far.fract() == 0.0 { json!(*far as u64) } else { json!(far) };
            notification(
                seq + nth,
                "notifications/progress",
                json!({"progressToken": at, "progress": number, "total": 3}),
            )
        };
        let events = (1..).zip(far.iter()).map(progress).collect();
        let call = call(Side::Client, (seq, seq + 9), "tools/call", params, result);
        recorded(5 + at as u32, call, events, Revision::V2026_07_28)
    };
    let rounds = rounds.iter().enumerate().map(round).collect();
    let (lines, _) = replayed_lines(rounds, request(Revision::V2025_06_18, json!({})), ReplayPace::None);
    let progress = lines.iter().filter_map(|line| line.strip_prefix("notifications/progress "));
    let far = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    progress.map(far).map(|far| format!("{} of {}", far["progress"], far["total"])).collect()
}

#[test]
fn progress_increases_through_all_rounds_of_one_call() {
    assert_eq!(progress_of(&[&[1.0], &[1.0], &[1.0]]), ["1 of 3", "2 of 4", "3 of 5"]);
    assert_eq!(progress_of(&[&[0.5, 1.0], &[], &[0.5, 2.0]]), ["0.5 of 3", "1 of 3", "1.5 of 4", "3 of 4"]);
    // Progress that increases across rounds is unchanged.
    assert_eq!(progress_of(&[&[1.0], &[2.0], &[3.0]]), ["1 of 3", "2 of 3", "3 of 3"]);
    // Progress that does not increase is skipped, unless it is that of a single request.
    assert_eq!(progress_of(&[&[1.0], &[0.0, 1.0]]), ["1 of 3", "2 of 4"]);
    assert_eq!(progress_of(&[&[2.0, 1.0]]), ["2 of 3", "1 of 3"]);
}

#[test]
fn a_form_is_unchanged_in_its_version_and_stripped_for_older_ones() {
    let fields = json!({"name": {"type": "string"}, "many": {"type": "array"}, "one": {"oneOf": []}});
    let form = json!({"type": "object", "properties": fields, "required": ["name", "many"]});
    let booked = |revision| {
        let elicitation = json!({"message": "Who?", "requestedSchema": form});
        let elicitation = call(Side::Server, (2, 3), "elicitation/create", elicitation, json!({"action": "accept"}));
        let elicitation = ReplayEvent { event: RelatedEvent::Call(Box::new(elicitation)), phase: EventPhase::Before };
        let call = call(Side::Client, (1, 4), "tools/call", json!({"name": "book"}), json!({"content": []}));
        vec![recorded(5, call, vec![elicitation], revision)]
    };
    let lines = |from, to| replayed_lines(booked(from), request(to, json!({})), ReplayPace::None).0;
    let whole = format!(r#"ask elicitation/create {{"message":"Who?","requestedSchema":{form}}}"#);
    for same in [Revision::V2024_11_05, Revision::V2025_06_18, Revision::V2025_11_25] {
        assert_eq!(lines(same, same), [whole.as_str()], "{same}");
    }
    let known = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let known = format!(r#"ask elicitation/create {{"message":"Who?","requestedSchema":{known}}}"#);
    assert_eq!(lines(Revision::V2025_11_25, Revision::V2025_06_18), [known]);
    assert_eq!(lines(Revision::V2025_11_25, Revision::V2025_03_26), [""; 0], "it has no elicitation");
}

#[test]
fn recorded_capabilities_are_declared_in_their_version() {
    let result = json!({"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "1", "icons": []},
        "capabilities": {"tools": {}, "tasks": {"list": {}}, "ours": {}}});
    let handshake = call(Side::Client, (1, 2), "initialize", json!({"protocolVersion": "2025-06-18"}), result.clone());
    let introduction = Introduction::recorded(&handshake).unwrap();
    let initialize_result = |revision: Revision| {
        let params = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {}});
        let request = IncomingRequest { method: Method::INITIALIZE, params, ..request(revision, json!({})) };
        value(&introduction.initialize(&request, &mut LegacyState::default(), &Revision::ALL).unwrap())
    };
    assert_eq!(initialize_result(Revision::V2025_06_18), result);
    let older = initialize_result(Revision::V2025_03_26);
    assert_eq!(older["capabilities"].get("tasks"), None, "{older}");
}

#[test]
fn replay_keeps_the_recorded_times_but_not_those_of_the_client() {
    let (lines, _) = replayed_lines(legacy(), request(Revision::V2025_11_25, json!({})), ReplayPace::Times(2.0));
    let waits: Vec<_> = lines.iter().filter(|line| line.starts_with("wait")).collect();
    assert_eq!(waits, ["wait 20ms", "wait 20ms", "wait 20ms", "wait 20ms"]);
}

#[test]
fn a_recorded_server_request_is_an_input_round_for_a_modern_client() {
    let (lines, first) = replayed_lines(legacy(), request(Revision::V2026_07_28, json!({})), ReplayPace::None);
    assert_eq!(lines, [r#"notifications/progress {"progressToken":"mine","progress":1}"#, "wait 50ms"]);
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["input-1"]["method"], "elicitation/create");
    let again = json!({"requestState": first["requestState"], "inputResponses": {"input-1": {"action": "accept"}}});
    let (lines, last) = replayed_lines(legacy(), request(Revision::V2026_07_28, again), ReplayPace::None);
    assert_eq!(lines, [r#"notifications/progress {"progressToken":"mine","progress":2}"#, "wait 50ms"]);
    assert_eq!((&last["resultType"], &last["content"][0]["text"]), (&json!("complete"), &json!("booked")));
    let nothing = json!({"requestState": first["requestState"], "inputResponses": {}});
    let (_, repeated) = replayed_lines(legacy(), request(Revision::V2026_07_28, nothing), ReplayPace::None);
    assert_eq!(repeated["resultType"], "input_required");
}

#[test]
fn recorded_rounds_are_one_call_for_a_legacy_client() {
    let (lines, result) = replayed_lines(modern(), request(Revision::V2025_11_25, json!({})), ReplayPace::None);
    assert_eq!(lines, [r#"ask elicitation/create {"message":"Which day?"}"#]);
    assert_eq!(result, json!({"content": [{"type": "text", "text": "booked"}]}));
}

#[test]
fn recorded_rounds_are_rounds_for_a_modern_client() {
    let (_, first) = replayed_lines(modern(), request(Revision::V2026_07_28, json!({})), ReplayPace::None);
    assert_eq!(first["inputRequests"]["day"]["params"]["message"], "Which day?");
    let again = json!({"requestState": first["requestState"], "inputResponses": {"day": {"action": "accept"}}});
    let (_, last) = replayed_lines(modern(), request(Revision::V2026_07_28, again), ReplayPace::None);
    assert_eq!(last, modern()[1].reply().map(value).unwrap());
}

#[test]
fn rounds_with_the_same_input_name_are_all_sent() {
    let rounds = || {
        let required = |message: &str| {
            let elicitation = json!({"method": "elicitation/create", "params": {"message": message}});
            json!({"resultType": "input_required", "inputRequests": {"q": elicitation}, "requestState": message})
        };
        let first = call(Side::Client, (1, 2), "tools/call", json!({"name": "book"}), required("Which day?"));
        let second = json!({"name": "book", "requestState": "Which day?"});
        let second = call(Side::Client, (3, 4), "tools/call", second, required("Which month?"));
        let third = json!({"name": "book", "requestState": "Which month?"});
        let done = json!({"resultType": "complete", "content": []});
        let third = call(Side::Client, (5, 6), "tools/call", third, done);
        let calls = (5..).zip([first, second, third]);
        calls.map(|(number, call)| recorded(number, call, Vec::new(), Revision::V2026_07_28)).collect::<Vec<_>>()
    };
    let (mut more, mut messages) = (json!({}), Vec::new());
    loop {
        let (_, result) = replayed_lines(rounds(), request(Revision::V2026_07_28, more), ReplayPace::None);
        if result["resultType"] == "complete" {
            break;
        }
        messages.push(result["inputRequests"]["q"]["params"]["message"].clone());
        more = json!({"requestState": result["requestState"], "inputResponses": {"q": {"action": "accept"}}});
    }
    assert_eq!(messages, ["Which day?", "Which month?"]);
}

#[test]
fn input_that_a_client_has_sent_is_not_requested_again() {
    let rounds = || {
        let elicitation = json!({"method": "elicitation/create", "params": {"message": "?"}});
        let required = json!({"a": elicitation, "b": elicitation, "c": elicitation});
        let required = json!({"resultType": "input_required", "inputRequests": required, "requestState": "s"});
        let first = call(Side::Client, (1, 2), "tools/call", json!({"name": "book"}), required);
        let second = json!({"name": "book", "requestState": "s"});
        let done = json!({"resultType": "complete", "content": []});
        let second = call(Side::Client, (3, 4), "tools/call", second, done);
        let at = Revision::V2026_07_28;
        vec![recorded(5, first, Vec::new(), at), recorded(6, second, Vec::new(), at)]
    };
    let (mut more, mut names) = (json!({}), Vec::new());
    loop {
        let (_, result) = replayed_lines(rounds(), request(Revision::V2026_07_28, more), ReplayPace::None);
        let Some(requests) = result["inputRequests"].as_object() else { break };
        names.push(requests.keys().cloned().collect::<String>());
        let first = requests.keys().next().unwrap();
        more = json!({"requestState": result["requestState"], "inputResponses": {first: {"action": "accept"}}});
    }
    assert_eq!(names, ["abc", "bc", "c"]);
}

#[test]
fn a_request_state_that_was_never_sent_is_refused() {
    let request = Arc::new(request(Revision::V2026_07_28, json!({"requestState": "s"})));
    let (signer, chain) = (StateSigner::new([7; 32]), Chain::new(vec![Arc::new(Rounds(legacy(), ReplayPace::None))]));
    let environment = Environment { now_ms: 0, signer: &signer };
    let mut state = ConnectionState::default();
    let Decision::Unanswered(passed) = chain.begin(&request, &mut state, environment) else { panic!("answered") };
    let refused = chain.refusal(&request, &passed, &mut state, environment);
    assert_eq!(value(&refused.reply)["code"], -32602);
}

fn value(reply: &Reply) -> Value {
    match reply {
        Reply::Result(result) => result.value().unwrap(),
        Reply::Error(error) => json!({"code": error.code}),
    }
}

#[test]
fn a_reply_is_adapted_to_the_version_of_the_client() {
    let info = json!({"name": "s", "version": "1"});
    let newest =
        json!({"tools": [{"name": "t", "title": "T", "inputSchema": {}}], "resultType": "complete", "ttlMs": 5});
    let reply = Reply::Result(crate::json::RawJson::from_value(&newest));
    let to = |revision| value(&adapted(&reply, &Method::TOOLS_LIST, Some(Revision::V2026_07_28), revision, &info));
    assert_eq!(to(Revision::V2026_07_28), newest);
    assert_eq!(to(Revision::V2025_06_18), json!({"tools": [{"name": "t", "title": "T", "inputSchema": {}}]}));
    assert_eq!(to(Revision::V2024_11_05), json!({"tools": [{"name": "t", "inputSchema": {}}]}));
    let old = Reply::Result(crate::json::RawJson::from_value(&json!({"tools": []})));
    let new = value(&adapted(&old, &Method::TOOLS_LIST, Some(Revision::V2024_11_05), Revision::V2026_07_28, &info));
    assert_eq!((&new["resultType"], &new["cacheScope"]), (&json!("complete"), &json!("private")));
    let code = |code, from, to| {
        let missing = Reply::Error(crate::message::ErrorReply::new(code, "no").with_data(&json!({"uri": "a:b"})));
        value(&adapted(&missing, &Method::RESOURCES_READ, Some(from), to, &info))["code"].clone()
    };
    assert_eq!(code(-32002, Revision::V2025_11_25, Revision::V2026_07_28), -32602);
    assert_eq!(code(-32602, Revision::V2026_07_28, Revision::V2025_06_18), -32002);
    // The recorded server used a code that its version does not define for this error; the code is kept.
    assert_eq!(code(-32002, Revision::V2025_11_25, Revision::V2025_06_18), -32002);
    assert_eq!(code(-32602, Revision::V2025_11_25, Revision::V2025_06_18), -32602);
}
