//! Input requests: server requests, and rounds of `input_required`, some of which the recorded client abandoned.

use rehearsal::client::{ClientHandlers, Protocol};
use rehearsal::core::protocol::Revision;
use rehearsal::core::report::Verdict;
use rehearsal::replay::{Replay, ReplayOptions};
use rehearsal::store::{BadLines, Input, Recording};
use rehearsal::verify::Verification;
use serde_json::{Value, json};

use crate::replays::client;
use crate::transcript::{Peer, journal, replay, session};

/// Two input rounds; the client abandons the second.
const ABANDONED: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"book",META}}
< {"id":1,"result":{"resultType":"input_required","requestState":"1","inputRequests":{"day":{"method":"elicitation/create","params":{"message":"Which day?","requestedSchema":{"type":"object","properties":{}}}}}}}
> {"id":2,"method":"tools/call","params":{"name":"book","requestState":"1","inputResponses":{"day":{"action":"accept","content":{}}},META}}
< {"id":2,"result":{"resultType":"input_required","requestState":"2","inputRequests":{"hour":{"method":"elicitation/create","params":{"message":"Which hour?","requestedSchema":{"type":"object","properties":{}}}}}}}
"#;

/// An empty round that the client abandons.
const ONLY_STATE: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"wait",META}}
< {"id":1,"result":{"resultType":"input_required","requestState":"1"}}
"#;

const REFUSAL: &str =
    "the recording of tools/call book ends with an input request that the client never answered: session a, call 2";

async fn error(replay: &Replay, protocol: Protocol, tool: &str) -> (i64, String, Value) {
    let answers = ClientHandlers::new().elicitation_accept(json!({}));
    let client = client(replay).protocol(protocol).map_handlers(|_| answers).connect().await.unwrap();
    let response = client.call_tool(tool, json!({})).await.unwrap();
    let error = response.error().unwrap_or_else(|| panic!("{response:?}"));
    (error.code, error.message.clone(), error.data.as_ref().unwrap().value().unwrap())
}

#[tokio::test]
async fn a_client_that_continues_an_abandoned_round_gets_a_recording_ended_error() {
    for protocol in [Protocol::Modern, Protocol::Legacy(Revision::V2025_11_25), Protocol::Legacy(Revision::V2025_06_18)]
    {
        let replay = replay(&[session("a", ABANDONED)], ReplayOptions::default());
        let received = error(&replay, protocol, "book").await;
        assert_eq!(received, (-32603, REFUSAL.to_owned(), json!({"recording": "session a, call 2"})), "{protocol:?}");
        let ledger = replay.ledger().unwrap();
        assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (1, 1, 0), "{protocol:?}");
    }
}

/// Verifies a replay of `live` against the recording `recorded`; returns the verdicts and findings.
async fn verified(recorded: &str, live: &str, protocol: Protocol) -> Vec<(Verdict, String)> {
    let replay = replay(&[session("b", live)], ReplayOptions::default());
    let (_directory, path) = journal(&[session("a", recorded)]);
    let recording = Recording::open(&Input::File(path)).unwrap();
    let mut verification = Verification::new("abandoned", protocol);
    for moment in recording.timeline(BadLines::Refuse) {
        let mut server = || Ok::<_, std::convert::Infallible>(client(&replay));
        verification.check(moment.unwrap(), &mut server).await.unwrap();
    }
    let (report, _) = verification.finish();
    let shown = |case: &rehearsal::core::report::Case| {
        let findings: Vec<_> = case.findings.iter().map(|finding| finding.message.clone()).collect();
        (case.verdict(), findings.join("; "))
    };
    report.cases.iter().map(shown).collect()
}

#[tokio::test]
async fn verify_stops_at_the_round_that_the_recorded_client_abandoned() {
    for recorded in [ABANDONED, ONLY_STATE] {
        let as_recorded = verified(recorded, recorded, Protocol::Auto).await;
        assert_eq!(as_recorded, [(Verdict::Passed, String::new())]);
        let legacy = verified(recorded, recorded, Protocol::Legacy(Revision::V2025_11_25)).await;
        assert_eq!(legacy, [(Verdict::Skipped, String::new())]);
    }
    let other_message = ABANDONED.replace("Which hour?", "Which minute?");
    let changed = verified(ABANDONED, &other_message, Protocol::Auto).await;
    assert_eq!(changed, [(Verdict::Failed, "changed: the params of the server request elicitation/create".to_owned())]);
    let answers = ONLY_STATE
        .replace(r#""resultType":"input_required","requestState":"1""#, r#""resultType":"complete","content":[]"#);
    let [(verdict, _)] = &verified(ONLY_STATE, &answers, Protocol::Auto).await[..] else { panic!("one case") };
    assert_eq!(*verdict, Verdict::Failed);
}

/// A server request with the progress token of the official TypeScript SDK.
const SERVER_REQUEST: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"id":1,"method":"tools/call","params":{"name":"look"}}
< {"id":ID,"method":"roots/list","params":{"_meta":{"progressToken":ID}}}
> {"id":ID,"result":{"roots":[]}}
< {"id":1,"result":{"content":[]}}
"#;

#[tokio::test]
async fn a_replayed_server_request_has_a_token_of_this_session() {
    let replay = replay(&[session("a", &SERVER_REQUEST.replace("ID", "0"))], ReplayOptions::default());
    Peer::new(&replay).play(&SERVER_REQUEST.replace("ID", "1")).await;
}

#[tokio::test]
async fn an_input_request_without_params_is_replayed_without_params() {
    let round = r#"
    > {"id":1,"method":"tools/call","params":{"name":"look",META}}
    < {"id":1,"result":{"resultType":"input_required","requestState":"1","inputRequests":{"roots":{"method":"roots/list"}}}}
    > {"id":2,"method":"tools/call","params":{"name":"look","requestState":"1","inputResponses":{"roots":{"roots":[]}},META}}
    < {"id":2,"result":{"resultType":"complete","content":[]}}
    "#;
    for (recorded, name) in [(round, "roots"), (&SERVER_REQUEST.replace("ID", "0"), "input-1")] {
        let replay = replay(&[session("a", recorded)], ReplayOptions::default());
        let mut peer = Peer::new(&replay);
        let capable = json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        }, "name": "look"});
        peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": capable})).await;
        let received: Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
        let mut expected = json!({"method": "roots/list"});
        if name == "input-1" {
            expected["params"] = json!({});
        }
        assert_eq!(received["result"]["inputRequests"], json!({name: expected}));
    }
}

/// The first request of an input round for the roots and its result; `STATE` is the request state.
const ROOTS: [&str; 2] = [
    r#"{"id":ID,"method":"tools/call","params":{"name":"look",META}}"#,
    r#"{"id":ID,"result":{"resultType":"input_required",STATE"inputRequests":{"roots":{"method":"roots/list"}}}}"#,
];
/// The second request of that round, with the input responses, and its result.
const BACK: [&str; 2] = [
    r#"{"id":ID,"method":"tools/call","params":{"name":"look",STATE"inputResponses":{"roots":{"roots":[]}},META}}"#,
    r#"{"id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"TEXT"}]}}"#,
];

/// A transcript of these messages, with their ids, the texts of their ids, and the request state.
fn transcript(messages: &[(char, &str, u32)], state: &str) -> String {
    let texts = ["", "", "", "A", "B"];
    let line = |(mark, what, id): &(char, &str, u32)| {
        let what = what.replace("ID", &id.to_string()).replace("STATE", state);
        format!("{mark} {}\n", what.replace("TEXT", texts.get(*id as usize).unwrap_or(&"")))
    };
    messages.iter().map(line).collect()
}

/// The results that a client gets for repeated calls; it answers every input request.
async fn results(replay: &Replay, calls: usize) -> Vec<String> {
    let answers = ClientHandlers::new().roots([("file:///a", "a")]).elicitation_accept(json!({}));
    let client = client(replay).protocol(Protocol::Modern).map_handlers(|_| answers).connect().await.unwrap();
    let mut results = Vec::new();
    for _ in 0..calls {
        let response = client.call_tool("look", json!({})).await.unwrap();
        let text = response.result()["content"][0]["text"].as_str().map(str::to_owned);
        results.push(text.or_else(|| response.error().map(|error| error.message.clone())).unwrap());
    }
    results
}

#[tokio::test]
async fn two_concurrent_clients_with_equal_input_requests_get_their_own_results() {
    let concurrent = [('>', ROOTS[0], 1), ('>', ROOTS[0], 2), ('<', ROOTS[1], 1), ('<', ROOTS[1], 2)];
    let sequential = [('>', ROOTS[0], 1), ('<', ROOTS[1], 1), ('>', ROOTS[0], 2), ('<', ROOTS[1], 2)];
    let back = [('>', BACK[0], 3), ('>', BACK[0], 4), ('<', BACK[1], 3), ('<', BACK[1], 4)];
    for requests in [concurrent, sequential] {
        for state in ["", r#""requestState":"state","#] {
            let recorded = transcript(&[requests, back].concat(), state);
            let replay = replay(&[session("a", &recorded)], ReplayOptions::default());
            assert_eq!(results(&replay, 2).await, ["A", "B"], "{state}");
            assert_eq!(replay.ledger().unwrap().unused, 0);
        }
    }
}

#[tokio::test]
async fn an_input_response_continues_the_round_that_requested_it() {
    let named = |what: &str| what.replace("roots\":{", "more\":{");
    let (second_request, second_response) =
        (named(ROOTS[1]), BACK[0].replace(r#""roots":{"roots""#, r#""more":{"roots""#));
    let recorded = [
        ('>', ROOTS[0], 1),
        ('<', ROOTS[1], 1),
        ('>', ROOTS[0], 2),
        ('<', ROOTS[1], 2),
        // The first call needs a second round, and completes it before the second call continues.
        ('>', BACK[0], 5),
        ('<', &second_request, 5),
        ('>', &second_response, 3),
        ('<', BACK[1], 3),
        ('>', BACK[0], 4),
        ('<', BACK[1], 4),
    ];
    let replay = replay(&[session("a", &transcript(&recorded, ""))], ReplayOptions::default());
    assert_eq!(results(&replay, 2).await, ["A", "B"]);
}

#[tokio::test]
async fn a_replayed_input_required_result_equals_the_recorded_one() {
    let call = r#"{"id":1,"method":"tools/call","params":{"name":"look",META}}"#;
    for more in ["", r#","_meta":{"a/b":1.0},"note":"n""#] {
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"roots":{{"method":"roots/list"}}}},"requestState":"1"{more}}}"#
        );
        let recorded = format!("> {call}\n< {{\"id\":1,\"result\":{result}}}");
        let replay = replay(&[session("a", &recorded)], ReplayOptions::default());
        let mut peer = Peer::new(&replay);
        peer.play(&format!("> {call}")).await;
        let mut received: Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
        let mut expected: Value = serde_json::from_str(&result).unwrap();
        assert!(received["result"]["requestState"].is_string());
        // The replay signs its own request state.
        expected["requestState"] = received["result"]["requestState"].take();
        received["result"]["requestState"] = expected["requestState"].clone();
        assert_eq!(received["result"], expected);
    }
}

#[tokio::test]
async fn a_replayed_input_required_result_always_has_a_request_state() {
    let recorded = [('>', ROOTS[0], 1), ('<', ROOTS[1], 1), ('>', BACK[0], 3), ('<', BACK[1], 3)];
    let replay = replay(&[session("a", &transcript(&recorded, ""))], ReplayOptions::default());
    let mut peer = Peer::new(&replay);
    peer.play(&format!("> {}", ROOTS[0].replace("ID", "7"))).await;
    let received: Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
    let state = format!(r#""requestState":{},"#, received["result"]["requestState"]);
    peer.play(&transcript(&[('>', BACK[0], 3), ('<', BACK[1], 3)], &state)).await;
}
