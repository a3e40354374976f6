//! Calls that nobody had answered when they were recorded.

use rehearsal::core::answer::Pace;
use rehearsal::replay::{Options, Replay};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::transcript::{HANDSHAKE, META, Peer, replay, session};

/// A call that its client gave up after 3 ms, the same call answered, and one that was never answered.
const RECORDED: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"slow",META}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":2}}
> {"method":"notifications/cancelled","params":{"requestId":1}}
> {"id":2,"method":"tools/call","params":{"name":"slow",META}}
< {"id":2,"result":{"resultType":"complete","content":[]}}
> {"id":3,"method":"tools/call","params":{"name":"lost",META}}
"#;

fn recorded(pace: Pace) -> Replay {
    replay(&[session("a", RECORDED)], Options { pace, ..Options::default() })
}

const SLOW: &str = r#"
> {"id":7,"method":"tools/call","params":{"name":"slow",META}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":2}}
"#;

const ANSWERED: &str = r#"
> {"id":8,"method":"tools/call","params":{"name":"slow",META}}
< {"id":8,"result":{"resultType":"complete","content":[]}}
"#;

async fn error(peer: &mut Peer) -> Value {
    let heard: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
    heard["error"].clone()
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_give_up_is_told_that_there_is_no_answer() {
    // As long as it took and a second more; where time is kept, so many times as long.
    for (pace, least) in [(Pace::None, 1_003), (Pace::Times(1.0), 1_003), (Pace::Times(1000.0), 4_000)] {
        let replay = recorded(pace);
        let mut peer = Peer::of(&replay);
        let began = Instant::now();
        peer.play(SLOW).await;
        let told = error(&mut peer).await;
        assert_eq!(
            told,
            json!({"code": -32603, "data": {"recording": "session a, call 1"}, "message":
                "the recording of tools/call slow has no answer, because its client cancelled it before it was answered: session a, call 1"})
        );
        let (took, least) = (began.elapsed(), Duration::from_millis(least));
        assert!(took >= least && took < least + Duration::from_millis(200), "{took:?} with {pace:?}");
        let ledger = replay.ledger().unwrap();
        assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (0, 1, 2));
        assert_eq!(ledger.unmatched_requests[0].to_string(), "tools/call slow");
        // Whoever asks again gets what was recorded next.
        peer.play(ANSWERED).await;
        assert_eq!(replay.ledger().unwrap().matched, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_hears_nothing_more() {
    let replay = recorded(Pace::None);
    let mut peer = Peer::of(&replay);
    peer.play(SLOW).await;
    let cancelled = r#"> {"method":"notifications/cancelled","params":{"requestId":7}}"#;
    peer.play(&[cancelled, ANSWERED].concat()).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    peer.play(&ANSWERED.replace('8', "9")).await;
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.repeated, ledger.unmatched), (3, 1, 0));
}

/// A question that must be of the one that was never answered, after another was.
const ASKS_LATE: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"long"}}
> {"id":2,"method":"tools/call","params":{"name":"quick"}}
< {"id":2,"result":{"content":[]}}
< {"id":1,"method":"roots/list","params":{}}
> {"id":1,"result":{"roots":[]}}
< {"method":"notifications/message","params":{"level":"info","data":"got it"}}
> {"method":"notifications/cancelled","params":{"requestId":1}}
> {"id":3,"method":"tools/call","params":{"name":"other"}}
< {"id":3,"result":{"content":[]}}
"#;

#[tokio::test(start_paused = true)]
async fn what_was_never_answered_asks_after_those_that_were() {
    let handshake = HANDSHAKE.replace(r#""capabilities":{},"#, r#""capabilities":{"roots":{}},"#);
    let whole = [&handshake, ASKS_LATE].concat();
    let replay = replay(&[session("a", &whole)], Options::default());
    let began = Instant::now();
    Peer::of(&replay).play(&whole).await;
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_never_answered_is_refused_at_once() {
    let replay = recorded(Pace::None);
    let mut peer = Peer::of(&replay);
    let began = Instant::now();
    peer.play(r#"> {"id":7,"method":"tools/call","params":{"name":"lost",META}}"#).await;
    let told = error(&mut peer).await;
    let why = "the recording of tools/call lost has no answer, because it was never answered: session a, call 3";
    assert_eq!(told, json!({"code": -32603, "message": why, "data": {"recording": "session a, call 3"}}));
    assert!(began.elapsed() < Duration::from_millis(200));
    assert_eq!(replay.ledger().unwrap().unmatched, 1);
}

#[tokio::test]
async fn a_question_that_is_withdrawn_says_why_as_it_did() {
    let recorded = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
> {"id":1,"method":"tools/call","params":{"name":"ask"}}
< {"id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}
< {"method":"notifications/cancelled","params":{"requestId":"q","reason":"timeout","_meta":{"why":1}}}
< {"id":1,"result":{"content":[]}}
"#;
    let replay = replay(&[session("a", recorded)], Options::default());
    let mut peer = Peer::of(&replay);
    peer.play(recorded.split("< {\"id\":\"q\"").next().unwrap()).await;
    let asked: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
    let withdrawn: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
    assert_eq!(withdrawn["params"], json!({"requestId": asked["id"], "reason": "timeout", "_meta": {"why": 1}}));
}

/// A call that ended in a question, one that ended after its question was answered, and one beside them.
const ASKED: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
> {"id":1,"method":"tools/call","params":{"name":"book"}}
< {"id":"q","method":"elicitation/create","params":{"message":"When?","requestedSchema":{"type":"object","properties":{}}}}
> {"id":2,"method":"tools/call","params":{"name":"look"}}
< {"id":2,"result":{"content":[]}}
> {"id":3,"method":"tools/call","params":{"name":"sail"}}
< {"id":"r","method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}}}}
> {"id":"r","result":{"action":"cancel"}}
"#;

const BOOK: &str = "the recording of tools/call book ends with a question, which nobody answered: session a, call 2";
const SAIL: &str = "the recording of tools/call sail has no answer, because it was never answered: session a, call 4";

#[tokio::test]
async fn a_call_that_ended_in_a_question_asks_it_and_then_says_that_the_recording_ends() {
    let replay = replay(&[session("a", ASKED)], Options::default());
    let mut peer = Peer::of(&replay);
    peer.play(
        &r#"
    HANDSHAKE
    > {"id":1,"method":"tools/call","params":{"name":"book"}}
    < {"id":1,"method":"elicitation/create","params":{"message":"When?","requestedSchema":{"type":"object","properties":{}}}}
    > {"id":2,"method":"tools/call","params":{"name":"look"}}
    < {"id":2,"result":{"content":[]}}
    > {"id":3,"method":"tools/call","params":{"name":"sail"}}
    < {"id":2,"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}}}}
    > {"id":1,"result":{"action":"decline"}}
    "#
        .replace("HANDSHAKE", ASKED.split("> {\"id\":1").next().unwrap()),
    )
    .await;
    assert_eq!(error(&mut peer).await["message"], BOOK);
    peer.play(r#"> {"id":2,"result":{"action":"decline"}}"#).await;
    assert_eq!(error(&mut peer).await["message"], SAIL);
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (1, 2, 0));
}

#[tokio::test]
async fn a_client_of_2026_is_sent_away_by_a_question_that_nobody_answered() {
    let replay = replay(&[session("a", ASKED)], Options::default());
    let mut peer = Peer::of(&replay);
    for (tool, asks, ends) in [("book", "When?", BOOK), ("sail", "Where?", SAIL)] {
        let call = r#"> {"id":7,"method":"tools/call","params":{"name":"TOOL",META}}"#.replace("TOOL", tool);
        peer.play(&call).await;
        let heard: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
        let asked = &heard["result"];
        assert_eq!(asked["inputRequests"]["question-1"]["params"]["message"], asks, "{heard}");
        let back = json!({"question-1": {"action": "decline"}});
        let back = format!(r#""inputResponses":{back},"requestState":{},"_meta""#, asked["requestState"]);
        peer.play(&call.replace("META", META).replace(r#""_meta""#, &back)).await;
        assert_eq!(error(&mut peer).await["message"], ends);
    }
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (0, 2, 1));
}
