//! Messages during several concurrent calls are replayed with the call that they belong to.

use rehearsal::core::answer::ReplayPace;
use rehearsal::replay::{Replay, ReplayOptions};
use serde_json::{Value, json};

use crate::replays::client;
use crate::transcript::{META, Peer, replay, session};

#[tokio::test]
async fn messages_during_a_call_and_a_ping_belong_to_the_call() {
    let call = r#"> {"id":"a","method":"tools/call","params":{"name":"a"}}"#;
    let log = r#"< {"method":"notifications/message","params":{"level":"error","data":"x"}}"#;
    let answer = r#"< {"id":"a","result":{"content":[]}}"#;
    let (ping, pong) = (r#"> {"id":"b","method":"ping"}"#, r#"< {"id":"b","result":{}}"#);
    for first in [[ping, call], [call, ping]] {
        let whole = [HANDSHAKE, &first.join("\n"), log, pong, answer].join("\n");
        let replay = replay(&[session("a", &whole)], ReplayOptions::default());
        Peer::new(&replay).play(&[HANDSHAKE, call, log, answer].join("\n")).await;
    }
}

#[tokio::test]
async fn a_server_request_that_names_a_task_belongs_to_it() {
    let recorded = r#"
    > {"id":1,"method":"tools/call","params":{"name":"a"}}
    > {"id":2,"method":"tools/call","params":{"name":"dig","task":{}}}
    < {"id":2,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}
    > {"id":3,"method":"tasks/result","params":{"taskId":"t"}}
    < {"id":9,"method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
    > {"id":9,"result":{"roots":[]}}
    < {"id":1,"result":{"content":[]}}
    < {"id":3,"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
    "#;
    let handshake = HANDSHAKE.replace("2025-06-18", "2025-11-25");
    let replayed = r#"
    > {"id":1,"method":"tools/call","params":{"name":"a"}}
    < {"id":1,"result":{"content":[]}}
    > {"id":2,"method":"tools/call","params":{"name":"dig","task":{}}}
    < {"id":2,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}
    > {"id":3,"method":"tasks/result","params":{"taskId":"t"}}
    < {"id":1,"method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
    "#;
    let replay = replay(&[session("a", &[&handshake, recorded].concat())], ReplayOptions::default());
    Peer::new(&replay).play(&[&handshake, replayed].concat()).await;
}

/// Over stdio a log message names no call, but a call without a log level gets none.
#[tokio::test]
async fn a_log_message_belongs_to_a_call_that_requested_logs() {
    let logs = r#""_meta":{"io.modelcontextprotocol/logLevel":"debug","#;
    let logging = |name: &str| {
        let call = r#"> {"id":"NAME","method":"tools/call","params":{"name":"NAME",META}}"#.replace("NAME", name);
        call.replace("META", &META.replace(r#""_meta":{"#, logs))
    };
    let log = r#"< {"method":"notifications/message","params":{"level":"error","data":"x"}}"#;
    let answer =
        |name: &str| r#"< {"id":"NAME","result":{"resultType":"complete","content":[]}}"#.replace("NAME", name);
    let without_logs = r#"> {"id":"a","method":"tools/call","params":{"name":"a",META}}"#;
    let two = [without_logs, &logging("b"), log, &answer("a"), &answer("b")].join("\n");
    let three = [without_logs, &logging("b"), &logging("c"), log, &answer("a"), &answer("c"), &answer("b")].join("\n");
    for (recorded, logs, other) in [(two, "b", "b"), (three, "c", "b")] {
        let replay = replay(&[session("a", &recorded)], ReplayOptions::default());
        let mut peer = Peer::new(&replay);
        peer.play(&[without_logs, &answer("a"), &logging(logs), log, &answer(logs)].join("\n")).await;
        if other != logs {
            peer.play(&[logging(other), answer(other)].join("\n")).await;
        }
    }
}

#[tokio::test]
async fn progress_with_equal_tokens_belongs_to_the_call_of_its_stream() {
    let recorded = session(
        "a",
        r#"
> {"channel":1,"id":1,"method":"tools/call","params":{"name":"dig","arguments":{"what":"gold"},META}}
> {"channel":2,"id":1,"method":"tools/call","params":{"name":"dig","arguments":{"what":"iron"},META}}
< {"channel":1,"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"gold"}}
< {"channel":2,"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"iron"}}
< {"channel":1,"id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"gold"}]}}
< {"channel":2,"id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"iron"}]}}
"#,
    );
    let replay = replay(&[recorded], ReplayOptions::default());
    let mut peer = Peer::new(&replay);
    for what in ["iron", "gold"] {
        let talk = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig","arguments":{"what":"WHAT"},META}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"WHAT"}}
< {"id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"WHAT"}]}}
"#;
        peer.play(&talk.replace("WHAT", what)).await;
    }
}

const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// The messages of the input request that a client of 2026-07-28 gets for a tool.
async fn input_requests(replay: &Replay, name: &str, arguments: Value) -> Vec<Value> {
    let client = client(replay).modern().capabilities(json!({"elicitation": {}, "roots": {}})).connect().await.unwrap();
    let mut params = json!({"name": name, "arguments": arguments});
    let mut received = Vec::new();
    loop {
        let mut result = client.request("tools/call", params.clone()).await.unwrap().into_result().unwrap();
        if result["resultType"] != "input_required" {
            return received;
        }
        let requests = result["inputRequests"].as_object().unwrap();
        received.extend(requests.values().map(|request| match &request["params"]["message"] {
            Value::Null => request["method"].clone(),
            message => message.clone(),
        }));
        params["inputResponses"] = requests.keys().map(|key| (key.clone(), json!({"action": "cancel"}))).collect();
        params["requestState"] = result["requestState"].take();
    }
}

#[tokio::test]
async fn a_server_request_belongs_to_the_latest_pending_call() {
    let talk = r#"
> {"id":1,"method":"tools/call","params":{"name":"slow","arguments":{"n":3}}}
> {"id":2,"method":"tools/call","params":{"name":"ask","arguments":{"question":"u0?"}}}
> {"id":3,"method":"tools/call","params":{"name":"other","arguments":{}}}
< {"id":3,"result":{"content":[]}}
< {"id":7,"method":"elicitation/create","params":{"message":"u0?","requestedSchema":{"type":"object","properties":{}}}}
> {"id":7,"result":{"action":"accept","content":{"name":"A:u0?"}}}
< {"id":1,"result":{"content":[]}}
< {"id":2,"result":{"content":[{"type":"text","text":"accept: A:u0?"}]}}
"#;
    let replay = replay(&[session("a", &[HANDSHAKE, talk].concat())], ReplayOptions::default());
    assert_eq!(input_requests(&replay, "other", json!({})).await, [] as [&str; 0]);
    assert_eq!(input_requests(&replay, "slow", json!({"n": 3})).await, [] as [&str; 0]);
    assert_eq!(input_requests(&replay, "ask", json!({"question": "u0?"})).await, ["u0?"]);
}

#[tokio::test]
async fn the_second_server_request_of_a_call_follows_its_first() {
    let talk = r#"
> {"id":1,"method":"tools/call","params":{"name":"work","arguments":{"id":"c0"},"_meta":{"progressToken":"T0"}}}
> {"id":2,"method":"tools/call","params":{"name":"work","arguments":{"id":"c1"},"_meta":{"progressToken":"T1"}}}
< {"id":1,"method":"elicitation/create","params":{"message":"c1-q0","requestedSchema":{"type":"object","properties":{}}}}
> {"id":1,"result":{"action":"accept","content":{"name":"N:c1-q0"}}}
< {"method":"notifications/progress","params":{"progressToken":"T1","progress":1}}
< {"id":2,"method":"elicitation/create","params":{"message":"c1-q2","requestedSchema":{"type":"object","properties":{}}}}
> {"id":2,"result":{"action":"accept","content":{"name":"N:c1-q2"}}}
< {"id":2,"result":{"content":[{"type":"text","text":"c1 done N:c1-q0 N:c1-q2"}]}}
< {"id":1,"result":{"content":[{"type":"text","text":"c0 done"}]}}
"#;
    let talk = [HANDSHAKE, talk].concat();
    let replay = replay(&[session("a", &talk)], ReplayOptions::default());
    assert_eq!(input_requests(&replay, "work", json!({"id": "c0"})).await, [] as [&str; 0]);
    assert_eq!(input_requests(&replay, "work", json!({"id": "c1"})).await, ["c1-q0", "c1-q2"]);
}

/// The first call takes 300 ms longer than the second.
#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_answered_when_ready_or_at_their_recorded_times() {
    let calls = r#"
> {"id":1,"method":"tools/call","params":{"name":"slow"}}
> {"id":2,"method":"tools/call","params":{"name":"quick"}}
"#;
    let [quick, slow] = [2, 1].map(|id| format!("< {{\"id\":{id},\"result\":{{\"content\":[]}}}}\n"));
    let journal = session("a", &[HANDSHAKE, calls, &quick, &slow].concat());
    let last = journal.lines().count() - 1;
    let delayed = journal.lines().enumerate().map(|(at, line)| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if at == last {
            line["at_ms"] = json!(300);
        }
        format!("{line}\n")
    });
    let recorded: String = delayed.collect();
    for (pace, answers) in [(ReplayPace::None, [&slow, &quick]), (ReplayPace::Times(1.0), [&quick, &slow])] {
        let replay = replay(std::slice::from_ref(&recorded), ReplayOptions { pace, ..ReplayOptions::default() });
        Peer::new(&replay).play(&[HANDSHAKE, calls, answers[0], answers[1]].concat()).await;
    }
}
