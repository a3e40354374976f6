//! What was said and asked while several calls were in flight comes again with the call that it belongs to.

use rehearsal::replay::{Options, Replay};
use serde_json::{Value, json};

use crate::replays::client;
use crate::transcript::{META, Peer, replay, session};

#[tokio::test]
async fn what_was_answered_between_two_questions_of_another_call_comes_between_them() {
    let whole = r#"
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}
    < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
    > {"method":"notifications/initialized"}
    > {"id":"a","method":"tools/call","params":{"name":"a"}}
    > {"id":"b","method":"tools/call","params":{"name":"b"}}
    < {"id":1,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"b one"}}],"maxTokens":5}}
    < {"id":"a","result":{"content":[]}}
    < {"id":2,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"b two"}}],"maxTokens":5}}
    > {"id":1,"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}
    > {"id":2,"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}
    < {"id":"b","result":{"content":[]}}
    "#;
    Peer::of(&replay(&[session("a", whole)], Options::default())).play(whole).await;
}

#[tokio::test]
async fn what_was_said_beside_a_list_or_a_ping_is_heard_by_who_makes_neither() {
    let call = r#"> {"id":"a","method":"tools/call","params":{"name":"a"}}"#;
    let log = r#"< {"method":"notifications/message","params":{"level":"error","data":"x"}}"#;
    let answer = r#"< {"id":"a","result":{"content":[]}}"#;
    for (request, result) in [("tools/list", r#"{"tools":[]}"#), ("ping", "{}")] {
        let beside = format!(r#"> {{"id":"b","method":"{request}"}}"#);
        let answered = format!(r#"< {{"id":"b","result":{result}}}"#);
        for first in [[&*beside, call], [call, &*beside]] {
            let whole = [HANDSHAKE, &first.join("\n"), log, &answered, answer].join("\n");
            let replay = replay(&[session("a", &whole)], Options::default());
            Peer::of(&replay).play(&whole).await;
            Peer::of(&replay).play(&[HANDSHAKE, call, log, answer].join("\n")).await;
        }
    }
}

#[tokio::test]
async fn what_was_said_after_a_client_gave_up_comes_after_that() {
    let whole = r#"
    > {"id":1,"method":"tools/call","params":{"name":"b"}}
    < {"id":1,"result":{"content":[]}}
    > {"id":2,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":2}}}
    < {"method":"notifications/progress","params":{"progressToken":2,"progress":1}}
    > {"method":"notifications/cancelled","params":{"requestId":2}}
    < {"method":"notifications/tools/list_changed"}
    > {"id":3,"method":"tools/call","params":{"name":"c"}}
    < {"id":3,"result":{"content":[]}}
    "#;
    let whole = [&HANDSHAKE.replace(r#""tools":{}"#, r#""tools":{"listChanged":true}"#), whole].concat();
    Peer::of(&replay(&[session("a", &whole)], Options::default())).play(&whole).await;
}

#[tokio::test]
async fn a_question_that_names_its_task_is_of_that_task() {
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
    let replay = replay(&[session("a", &[&handshake, recorded].concat())], Options::default());
    let mut peer = Peer::of(&replay);
    for (name, kind) in [("a", "complete"), ("dig", "input_required")] {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"NAME",META}}"#;
        peer.say_text(call.replace("NAME", name).replace("META", META)).await;
        let heard: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
        assert_eq!(heard["result"]["resultType"], kind, "{name}: {heard}");
    }
}

/// Over a pipe nothing says which call a log message is of, but who asked for none has none.
#[tokio::test]
async fn a_log_message_is_of_a_call_that_asked_for_it() {
    let asks = r#""_meta":{"io.modelcontextprotocol/logLevel":"debug","#;
    let logging = |name: &str| {
        let call = r#"> {"id":"NAME","method":"tools/call","params":{"name":"NAME",META}}"#.replace("NAME", name);
        call.replace("META", &META.replace(r#""_meta":{"#, asks))
    };
    let log = r#"< {"method":"notifications/message","params":{"level":"error","data":"x"}}"#;
    let answer =
        |name: &str| r#"< {"id":"NAME","result":{"resultType":"complete","content":[]}}"#.replace("NAME", name);
    let deaf = r#"> {"id":"a","method":"tools/call","params":{"name":"a",META}}"#;
    let two = [deaf, &logging("b"), log, &answer("a"), &answer("b")].join("\n");
    let three = [deaf, &logging("b"), &logging("c"), log, &answer("a"), &answer("c"), &answer("b")].join("\n");
    for whole in [two, three] {
        let replay = replay(&[session("a", &whole)], Options::default());
        Peer::of(&replay).play(&whole).await;
    }
}

#[tokio::test]
async fn progress_of_two_clients_with_one_token_comes_with_the_call_of_its_stream() {
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
    let replay = replay(&[recorded], Options::default());
    let mut peer = Peer::of(&replay);
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

/// What a client of 2026-07-28 is asked when it uses a tool.
async fn asked(replay: &Replay, name: &str, arguments: Value) -> Vec<Value> {
    let client = client(replay).modern().capabilities(json!({"elicitation": {}, "roots": {}})).connect().await.unwrap();
    let mut params = json!({"name": name, "arguments": arguments});
    let mut asked = Vec::new();
    loop {
        let mut result = client.request("tools/call", params.clone()).await.unwrap().into_result().unwrap();
        if result["resultType"] != "input_required" {
            return asked;
        }
        let questions = result["inputRequests"].as_object().unwrap();
        asked.extend(questions.values().map(|question| match &question["params"]["message"] {
            Value::Null => question["method"].clone(),
            message => message.clone(),
        }));
        params["inputResponses"] = questions.keys().map(|key| (key.clone(), json!({"action": "cancel"}))).collect();
        params["requestState"] = result["requestState"].take();
    }
}

#[tokio::test]
async fn a_question_comes_with_a_call_that_waited_for_its_answer() {
    let talk = r#"
> {"id":1,"method":"tools/call","params":{"name":"ask","arguments":{"question":"u0?"}}}
> {"id":2,"method":"tools/call","params":{"name":"other","arguments":{}}}
> {"id":3,"method":"tools/call","params":{"name":"slow","arguments":{"n":3}}}
< {"id":7,"method":"elicitation/create","params":{"message":"u0?","requestedSchema":{"type":"object","properties":{}}}}
< {"id":2,"result":{"content":[]}}
> {"id":7,"result":{"action":"accept","content":{"name":"A:u0?"}}}
< {"id":1,"result":{"content":[{"type":"text","text":"accept: A:u0?"}]}}
< {"id":3,"result":{"content":[]}}
"#;
    let replay = replay(&[session("a", &[HANDSHAKE, talk].concat())], Options::default());
    assert_eq!(asked(&replay, "other", json!({})).await, [] as [&str; 0]);
    assert_eq!(asked(&replay, "slow", json!({"n": 3})).await, [] as [&str; 0]);
    assert_eq!(asked(&replay, "ask", json!({"question": "u0?"})).await, ["u0?"]);
}

#[tokio::test]
async fn a_question_on_the_standing_stream_comes_with_the_call_that_it_is_about() {
    let talk = r#"
> {"channel":4,"id":1,"method":"tools/call","params":{"name":"count","arguments":{}}}
> {"channel":5,"id":2,"method":"tools/call","params":{"name":"roots","arguments":{}}}
> {"channel":6,"id":3,"method":"tools/call","params":{"name":"slow","arguments":{}}}
< {"channel":3,"id":7,"method":"roots/list"}
< {"channel":4,"id":1,"result":{"content":[{"type":"text","text":"8"}]}}
> {"channel":7,"id":7,"result":{"roots":[{"uri":"file:///u1"}]}}
< {"channel":6,"id":3,"result":{"content":[]}}
< {"channel":5,"id":2,"result":{"content":[{"type":"text","text":"file:///u1"}]}}
"#;
    let replay = replay(&[session("a", &[HANDSHAKE, talk].concat())], Options::default());
    assert_eq!(asked(&replay, "count", json!({})).await, [] as [&str; 0]);
    assert_eq!(asked(&replay, "slow", json!({})).await, [] as [&str; 0]);
    assert_eq!(asked(&replay, "roots", json!({})).await, ["roots/list"]);
}

#[tokio::test]
async fn the_second_question_of_a_call_comes_after_its_first() {
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
    let replay = replay(&[session("a", &talk)], Options::default());
    Peer::of(&replay).play(&talk).await;
    assert_eq!(asked(&replay, "work", json!({"id": "c0"})).await, [] as [&str; 0]);
    assert_eq!(asked(&replay, "work", json!({"id": "c1"})).await, ["c1-q0", "c1-q2"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_call_whose_client_thinks_about_a_question() {
    let talk = r#"
> {"id":1,"method":"tools/call","params":{"name":"ask","arguments":{"n":1}}}
> {"id":2,"method":"tools/call","params":{"name":"ask","arguments":{"n":2}}}
< {"id":7,"method":"elicitation/create","params":{"message":"1?","requestedSchema":{"type":"object","properties":{}}}}
< {"id":8,"method":"elicitation/create","params":{"message":"2?","requestedSchema":{"type":"object","properties":{}}}}
> {"id":3,"method":"tools/call","params":{"name":"echo","arguments":{"n":3}}}
< {"id":3,"result":{"content":[{"type":"text","text":"3"}]}}
> {"id":4,"method":"tools/call","params":{"name":"echo","arguments":{"n":4}}}
< {"id":4,"result":{"content":[{"type":"text","text":"4"}]}}
> {"id":8,"result":{"action":"accept","content":{}}}
< {"id":2,"result":{"content":[{"type":"text","text":"2"}]}}
> {"id":7,"result":{"action":"accept","content":{}}}
< {"id":1,"result":{"content":[{"type":"text","text":"1"}]}}
"#;
    let talk = [HANDSHAKE, talk].concat();
    let replay = replay(&[session("a", &talk)], Options::default());
    // The ids of questions are the replay's own.
    let again = talk.replace(r#""id":7,"#, r#""id":1,"#).replace(r#""id":8,"#, r#""id":2,"#);
    let began = tokio::time::Instant::now();
    Peer::of(&replay).play(&again).await;
    assert!(began.elapsed() < std::time::Duration::from_millis(100), "{:?}", began.elapsed());
}

#[tokio::test]
async fn log_messages_of_calls_in_flight_come_in_their_order_whosever_they_are() {
    let log = |word: &str| {
        format!("< {{\"method\":\"notifications/message\",\"params\":{{\"level\":\"info\",\"data\":\"{word}\"}}}}\n")
    };
    let call = |id: u32| {
        format!(
            "> {{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"arguments\":{{\"n\":{id}}}}}}}\n"
        )
    };
    let answer = |id: u32| format!("< {{\"id\":{id},\"result\":{{\"content\":[]}}}}\n");
    let calls: String = (1..=4).map(call).collect();
    let said = [log("a"), log("b"), answer(3), log("c"), log("d"), log("e"), answer(2), log("f"), answer(4), log("g")];
    let talk = [HANDSHAKE, &calls, &said.concat(), &answer(1)].concat();
    let replay = replay(&[session("a", &talk)], Options::default());
    Peer::of(&replay).play(&talk).await;
}
