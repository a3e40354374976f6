//! What the server asked on the way: by requests, and in rounds of `input_required`, some of which nobody came back to.

use rehearsal::client::{ClientHandlers, Protocol};
use rehearsal::core::protocol::Revision;
use rehearsal::core::report::Verdict;
use rehearsal::replay::{Replay, ReplayOptions};
use rehearsal::store::{BadLines, Input, Recording};
use rehearsal::verify::Verification;
use serde_json::{Value, json};

use crate::replays::client;
use crate::transcript::{Peer, journal, replay, session};

/// Two rounds, and then no more.
const ABANDONED: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"book",META}}
< {"id":1,"result":{"resultType":"input_required","requestState":"1","inputRequests":{"day":{"method":"elicitation/create","params":{"message":"Which day?","requestedSchema":{"type":"object","properties":{}}}}}}}
> {"id":2,"method":"tools/call","params":{"name":"book","requestState":"1","inputResponses":{"day":{"action":"accept","content":{}}},META}}
< {"id":2,"result":{"resultType":"input_required","requestState":"2","inputRequests":{"hour":{"method":"elicitation/create","params":{"message":"Which hour?","requestedSchema":{"type":"object","properties":{}}}}}}}
"#;

/// A server that says "come back" and nothing else, to a client that did not.
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
async fn whoever_goes_on_where_the_recorded_client_did_not_is_told_that_the_recording_ends() {
    for protocol in [Protocol::Modern, Protocol::Legacy(Revision::V2025_11_25), Protocol::Legacy(Revision::V2025_06_18)]
    {
        let replay = replay(&[session("a", ABANDONED)], ReplayOptions::default());
        let told = error(&replay, protocol, "book").await;
        assert_eq!(told, (-32603, REFUSAL.to_owned(), json!({"recording": "session a, call 2"})), "{protocol:?}");
        let ledger = replay.ledger().unwrap();
        assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (1, 1, 0), "{protocol:?}");
    }
}

/// What is found when a recording is sent to a replay of another.
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
async fn verify_stops_where_the_recorded_client_did() {
    for recorded in [ABANDONED, ONLY_STATE] {
        let as_recorded = verified(recorded, recorded, Protocol::Auto).await;
        assert_eq!(as_recorded, [(Verdict::Passed, String::new())]);
        let elsewhere = verified(recorded, recorded, Protocol::Legacy(Revision::V2025_11_25)).await;
        assert_eq!(elsewhere, [(Verdict::Skipped, String::new())]);
    }
    let asks_otherwise = ABANDONED.replace("Which hour?", "Which minute?");
    let changed = verified(ABANDONED, &asks_otherwise, Protocol::Auto).await;
    assert_eq!(changed, [(Verdict::Failed, "changed: the params of the server request elicitation/create".to_owned())]);
    let answers = ONLY_STATE
        .replace(r#""resultType":"input_required","requestState":"1""#, r#""resultType":"complete","content":[]"#);
    let [(verdict, _)] = &verified(ONLY_STATE, &answers, Protocol::Auto).await[..] else { panic!("one case") };
    assert_eq!(*verdict, Verdict::Failed);
}

/// IncomingRequest as servers of the official TypeScript SDK ask.
const ASKS: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"id":1,"method":"tools/call","params":{"name":"look"}}
< {"id":ID,"method":"roots/list","params":{"_meta":{"progressToken":ID}}}
> {"id":ID,"result":{"roots":[]}}
< {"id":1,"result":{"content":[]}}
"#;

#[tokio::test]
async fn the_token_of_a_question_is_that_of_this_conversation() {
    let replay = replay(&[session("a", &ASKS.replace("ID", "0"))], ReplayOptions::default());
    Peer::of(&replay).play(&ASKS.replace("ID", "1")).await;
}

#[tokio::test]
async fn a_question_without_params_is_asked_without_them() {
    let asks = r#"
    > {"id":1,"method":"tools/call","params":{"name":"look",META}}
    < {"id":1,"result":{"resultType":"input_required","requestState":"1","inputRequests":{"roots":{"method":"roots/list"}}}}
    > {"id":2,"method":"tools/call","params":{"name":"look","requestState":"1","inputResponses":{"roots":{"roots":[]}},META}}
    < {"id":2,"result":{"resultType":"complete","content":[]}}
    "#;
    for (recorded, name) in [(asks, "roots"), (&ASKS.replace("ID", "0"), "question-1")] {
        let replay = replay(&[session("a", recorded)], ReplayOptions::default());
        let mut peer = Peer::of(&replay);
        let capable = json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        }, "name": "look"});
        peer.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": capable})).await;
        let heard: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
        let mut expected = json!({"method": "roots/list"});
        if name == "question-1" {
            expected["params"] = json!({});
        }
        assert_eq!(heard["result"]["inputRequests"], json!({name: expected}));
    }
}

/// A question about the roots, with this state, and the way back with it.
const ROOTS: [&str; 2] = [
    r#"{"id":ID,"method":"tools/call","params":{"name":"look",META}}"#,
    r#"{"id":ID,"result":{"resultType":"input_required",STATE"inputRequests":{"roots":{"method":"roots/list"}}}}"#,
];
const BACK: [&str; 2] = [
    r#"{"id":ID,"method":"tools/call","params":{"name":"look",STATE"inputResponses":{"roots":{"roots":[]}},META}}"#,
    r#"{"id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"TEXT"}]}}"#,
];

/// What is said, with the ids and the texts that make the difference.
fn transcript(said: &[(char, &str, u32)], state: &str) -> String {
    let texts = ["", "", "", "A", "B"];
    let line = |(mark, what, id): &(char, &str, u32)| {
        let what = what.replace("ID", &id.to_string()).replace("STATE", state);
        format!("{mark} {}\n", what.replace("TEXT", texts.get(*id as usize).unwrap_or(&"")))
    };
    said.iter().map(line).collect()
}

/// What a client hears that makes the same call again and again, and answers whatever it is asked.
async fn heard(replay: &Replay, calls: usize) -> Vec<String> {
    let answers = ClientHandlers::new().roots([("file:///a", "a")]).elicitation_accept(json!({}));
    let client = client(replay).protocol(Protocol::Modern).map_handlers(|_| answers).connect().await.unwrap();
    let mut heard = Vec::new();
    for _ in 0..calls {
        let response = client.call_tool("look", json!({})).await.unwrap();
        let text = response.result()["content"][0]["text"].as_str().map(str::to_owned);
        heard.push(text.or_else(|| response.error().map(|error| error.message.clone())).unwrap());
    }
    heard
}

#[tokio::test]
async fn two_clients_that_are_asked_the_same_at_once_go_on_each_with_its_own() {
    let at_once = [('>', ROOTS[0], 1), ('>', ROOTS[0], 2), ('<', ROOTS[1], 1), ('<', ROOTS[1], 2)];
    let in_turn = [('>', ROOTS[0], 1), ('<', ROOTS[1], 1), ('>', ROOTS[0], 2), ('<', ROOTS[1], 2)];
    let back = [('>', BACK[0], 3), ('>', BACK[0], 4), ('<', BACK[1], 3), ('<', BACK[1], 4)];
    for asked in [at_once, in_turn] {
        for state in ["", r#""requestState":"asked once","#] {
            let recorded = transcript(&[asked, back].concat(), state);
            let replay = replay(&[session("a", &recorded)], ReplayOptions::default());
            assert_eq!(heard(&replay, 2).await, ["A", "B"], "{state}");
            assert_eq!(replay.ledger().unwrap().unused, 0);
        }
    }
}

#[tokio::test]
async fn an_answer_goes_on_with_the_round_that_asked_for_it() {
    let named = |what: &str| what.replace("roots\":{", "more\":{");
    let (asks_more, answers_more) = (named(ROOTS[1]), BACK[0].replace(r#""roots":{"roots""#, r#""more":{"roots""#));
    let recorded = [
        ('>', ROOTS[0], 1),
        ('<', ROOTS[1], 1),
        ('>', ROOTS[0], 2),
        ('<', ROOTS[1], 2),
        // The first is asked more, and answers that before the second comes back.
        ('>', BACK[0], 5),
        ('<', &asks_more, 5),
        ('>', &answers_more, 3),
        ('<', BACK[1], 3),
        ('>', BACK[0], 4),
        ('<', BACK[1], 4),
    ];
    let replay = replay(&[session("a", &transcript(&recorded, ""))], ReplayOptions::default());
    assert_eq!(heard(&replay, 2).await, ["A", "B"]);
}

#[tokio::test]
async fn what_sends_a_client_away_has_what_was_recorded_and_nothing_else() {
    let call = r#"{"id":1,"method":"tools/call","params":{"name":"look",META}}"#;
    for more in ["", r#","_meta":{"a/b":1.0},"note":"n""#] {
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"roots":{{"method":"roots/list"}}}},"requestState":"1"{more}}}"#
        );
        let recorded = format!("> {call}\n< {{\"id\":1,\"result\":{result}}}");
        let replay = replay(&[session("a", &recorded)], ReplayOptions::default());
        let mut peer = Peer::of(&replay);
        peer.play(&format!("> {call}")).await;
        let mut heard: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
        let mut expected: Value = serde_json::from_str(&result).unwrap();
        assert!(heard["result"]["requestState"].is_string());
        // The state is ours.
        expected["requestState"] = heard["result"]["requestState"].take();
        heard["result"]["requestState"] = expected["requestState"].clone();
        assert_eq!(heard["result"], expected);
    }
}

#[tokio::test]
async fn an_input_required_result_has_a_request_state_even_if_the_recorded_one_had_none() {
    let recorded = [('>', ROOTS[0], 1), ('<', ROOTS[1], 1), ('>', BACK[0], 3), ('<', BACK[1], 3)];
    let replay = replay(&[session("a", &transcript(&recorded, ""))], ReplayOptions::default());
    let mut peer = Peer::of(&replay);
    peer.play(&format!("> {}", ROOTS[0].replace("ID", "7"))).await;
    let heard: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
    let state = format!(r#""requestState":{},"#, heard["result"]["requestState"]);
    peer.play(&transcript(&[('>', BACK[0], 3), ('<', BACK[1], 3)], &state)).await;
}
