//! The handshake era, 2024-11-05 to 2025-11-25.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod play;

use play::{hear, play};
use rehearsal_core::exchange::Channel;
use rehearsal_core::protocol::Revision;
use rehearsal_wire::memory;
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_conversation_begins_with_a_handshake() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"tools/call came before initialize; send initialize first, or name a version in _meta[\"io.modelcontextprotocol/protocolVersion\"]"}}
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"play","version":"1"}}}
        < {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{},"completions":{}},"serverInfo":{"name":"tiny-server","version":"0.1.0","title":"Tiny server"},"instructions":"Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return."}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}
        < {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"hi"}]}}
        > {"jsonrpc":"2.0","id":"five","method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":40}}}
        < {"jsonrpc":"2.0","id":"five","result":{"content":[{"type":"text","text":"42"}],"structuredContent":{"sum":42}}}
        > {"jsonrpc":"2.0","id":6,"method":"server/discover"}
        < {"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"there is no method server/discover in 2025-06-18"}}
    "#)
    .await;
}

/// The result of `initialize` and of one more request, in that version.
async fn after_handshake(version: &str, method: &str, params: Value) -> (Value, Value) {
    let (mut client, served) = memory::pair();
    tokio::spawn(tiny_server::serve(served));
    let initialize =
        json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "play", "version": "1"}});
    let mut results = Vec::new();
    for (id, method, params) in [(1, "initialize", initialize), (2, method, params)] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        client.sender.send_bytes(Channel::MAIN, request.to_string().into()).await.unwrap();
        results.push(hear(&mut client).await.unwrap()["result"].take());
    }
    let second = results.pop().unwrap();
    (results.pop().unwrap(), second)
}

#[tokio::test(start_paused = true)]
async fn a_handshake_settles_a_version_that_has_one() {
    for (wanted, settled) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let (initialized, _) = after_handshake(wanted, "ping", json!({})).await;
        assert_eq!(initialized["protocolVersion"], settled, "{wanted}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_version_sees_only_what_it_knows() {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.has_handshake()) {
        let (initialized, listed) = after_handshake(revision.as_str(), "tools/list", json!({})).await;
        assert_eq!(initialized["capabilities"].get("completions").is_some(), revision.has_completions_capability());
        let add = &listed["tools"][1];
        assert_eq!(add["name"], "add");
        assert_eq!(add.get("outputSchema").is_some(), revision.has_structured_content(), "{revision}");
        assert_eq!(add.get("title").is_some(), revision >= Revision::V2025_06_18, "{revision}");
        assert_eq!(add.get("annotations").is_some(), revision >= Revision::V2025_03_26, "{revision}");
        assert!(listed.get("resultType").is_none() && listed.get("ttlMs").is_none(), "{revision}");

        let (_, picture) = after_handshake(revision.as_str(), "tools/call", json!({"name": "picture"})).await;
        let blocks: Vec<_> = picture["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
        let newer = revision >= Revision::V2025_06_18;
        let expected = if newer { json!(["image", "resource_link", "resource"]) } else { json!(["image", "resource"]) };
        assert_eq!(json!(blocks), expected, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_an_argument_is_a_result_and_an_unknown_tool_an_error() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{}},"serverInfo":{"name":"tiny-server","version":"0.1.0"},"instructions":"Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return."}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":"40"}}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"argument `b` must be a number, not a string"}],"isError":true}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","arguments":{"steps":101}}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"argument `steps` must be an integer from 1 to 100, not 101"}],"isError":true}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"fail","arguments":{"message":"no luck"}}}
        < {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"no luck"}],"isError":true}}
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ecko"}}
        < {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"unknown tool \"ecko\""}}
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"echo","arguments":[]}}
        < {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"`arguments` must be an object"}}
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":["echo"]}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"params must be an object"}}
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"}}}
        < {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"elicitation exists since 2025-06-18, and this client speaks 2024-11-05"}],"isError":true}}
        > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"roots"}}
        < {"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"this client did not declare the capability roots"}],"isError":true}}
    "#)
    .await;
}

/// A play that begins after a handshake with a client that can do everything.
async fn after_the_handshake(version: &str, script: &str) {
    let completions = if version == "2024-11-05" { "" } else { r#","completions":{}"# };
    let title = if version < "2025-06-18" { "" } else { r#","title":"Tiny server""# };
    let opening = format!(
        r#"
        > {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"elicitation":{{}},"sampling":{{}},"roots":{{}}}}}}}}
        < {{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{"listChanged":true}},"resources":{{"subscribe":true}},"prompts":{{}},"logging":{{}}{completions}}},"serverInfo":{{"name":"tiny-server","version":"0.1.0"{title}}},"instructions":"Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return."}}}}
        > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        "#
    );
    play(&(opening + script)).await;
}

#[tokio::test(start_paused = true)]
async fn slow_work_tells_how_far_it_is() {
    after_the_handshake("2025-11-25", r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"steps":2},"_meta":{"progressToken":7}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":2,"message":"step 1 of 2"}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":2,"total":2,"message":"step 2 of 2"}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done in 2 steps"}]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"steps":2,"delay_ms":0}}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done in 2 steps"}]}}
    "#)
    .await;
    after_the_handshake("2024-11-05", r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"steps":1},"_meta":{"progressToken":"t"}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":1}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done in 1 steps"}]}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_work_stops_and_is_not_answered() {
    after_the_handshake("2025-06-18", r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"steps":100,"delay_ms":10000},"_meta":{"progressToken":7}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":100,"message":"step 1 of 100"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}
        (silence)
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn others_are_answered_while_one_is_slow() {
    after_the_handshake(
        "2025-06-18",
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"steps":1}}}
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the id 1 is still in flight"}}
        > {"jsonrpc":"2.0","id":"1","method":"ping"}
        < {"jsonrpc":"2.0","id":"1","result":{}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done in 1 steps"}]}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_server_asks_with_requests_of_its_own() {
    after_the_handshake("2025-11-25", r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"}}}
        < {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name","description":"What to call you"}},"required":["name"]}}}
        > {"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Hello, Ada!"}]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"}}}
        < {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name","description":"What to call you"}},"required":["name"]}}}
        > {"jsonrpc":"2.0","id":2,"result":{"action":"decline"}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"declined"}]}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sample","arguments":{"prompt":"Say hi"}}}
        < {"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Say hi"}}],"maxTokens":100}}
        > {"jsonrpc":"2.0","id":3,"result":{"role":"assistant","model":"none","content":{"type":"text","text":"hi"}}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"model said: hi"}]}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"roots"}}
        < {"jsonrpc":"2.0","id":4,"method":"roots/list","params":{}}
        > {"jsonrpc":"2.0","id":4,"result":{"roots":[{"uri":"file:///a"},{"uri":"file:///b","name":"b"}]}}
        < {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"file:///a\nfile:///b"}]}}
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"roots"}}
        < {"jsonrpc":"2.0","id":5,"method":"roots/list","params":{}}
        > {"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"no roots here"}}
        < {"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"the client answered with an error: -32601: no roots here"}],"isError":true}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_question_is_withdrawn_when_the_call_that_needs_it_is_cancelled() {
    after_the_handshake(
        "2025-11-25",
        r#"
        > {"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"roots"}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        > {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
        (silence)
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn log_messages_below_the_level_are_not_sent() {
    after_the_handshake("2025-06-18", r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","arguments":{"level":"debug","message":"all"}}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","logger":"tiny-server","data":"all"}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"logged"}]}}
        > {"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"log","arguments":{"level":"notice","message":"quiet"}}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"logged"}]}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"log","arguments":{"level":"warning","message":"loud"}}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"tiny-server","data":"loud"}}
        < {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"logged"}]}}
        > {"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"loud"}}
        < {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"unknown level \"loud\"; there are debug, info, notice, warning, error, critical, alert, emergency"}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn resources_are_read_and_subscribed_to() {
    after_the_handshake("2025-06-18", r#"
        > {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"tiny://greeting"}}
        < {"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"tiny://greeting","mimeType":"text/plain","text":"Hello from tiny-server"}]}}
        > {"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"tiny://nothing"}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"there is no resource tiny://nothing","data":{"uri":"tiny://nothing"}}}
        > {"jsonrpc":"2.0","id":3,"method":"resources/templates/list"}
        < {"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[{"uriTemplate":"tiny://greeting/{name}","name":"greeting for a name","title":"Greeting for a name","description":"A line of text for somebody","mimeType":"text/plain"}]}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"touch"}}
        < {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"touched"}]}}
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
        > {"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"tiny://greeting"}}
        < {"jsonrpc":"2.0","id":5,"result":{}}
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"touch"}}
        < {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"touched"}]}}
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"tiny://greeting"}}
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
        > {"jsonrpc":"2.0","id":7,"method":"resources/unsubscribe","params":{"uri":"tiny://greeting"}}
        < {"jsonrpc":"2.0","id":7,"result":{}}
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"touch"}}
        < {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"touched"}]}}
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn prompts_are_filled_and_completed() {
    after_the_handshake("2025-06-18", r#"
        > {"jsonrpc":"2.0","id":1,"method":"prompts/list"}
        < {"jsonrpc":"2.0","id":1,"result":{"prompts":[{"name":"greet","title":"Greet somebody","description":"Says hello","arguments":[{"name":"who","description":"Whom to greet","required":true}]}]}}
        > {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"greet","arguments":{"who":"Ada"}}}
        < {"jsonrpc":"2.0","id":2,"result":{"description":"Says hello","messages":[{"role":"user","content":{"type":"text","text":"Hello Ada"}}]}}
        > {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"greet"}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"the prompt greet needs a string argument `who`"}}
        > {"jsonrpc":"2.0","id":4,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"}}}
        < {"jsonrpc":"2.0","id":4,"result":{"completion":{"values":["Ada","Alan"],"total":2,"hasMore":false}}}
        > {"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"tiny://greeting/{name}"},"argument":{"name":"name","value":""}}}
        < {"jsonrpc":"2.0","id":5,"result":{"completion":{"values":["Ada","Alan","Grace","Linus"],"total":4,"hasMore":false}}}
        > {"jsonrpc":"2.0","id":6,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"whom","value":"A"}}}
        < {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"completion needs `argument.name` \"who\" and a string value"}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_message_by_message_in_the_only_version_that_has_it() {
    after_the_handshake("2025-03-26", r#"
        > [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/other"},{"jsonrpc":"2.0","id":2},{"jsonrpc":"2.0","id":3,"method":"ping"}]
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"no `method`, no `result`, no `error`"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
    "#)
    .await;
    after_the_handshake(
        "2025-06-18",
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"ping"}]
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"only 2025-03-26 has batches"}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_understood_is_answered_too() {
    play(
        r#"
        > hello?
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON: expected value at line 1 column 1"}}
        > {"jsonrpc":"1.0","id":7,"method":"ping"}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"`jsonrpc` is \"1.0\" instead of \"2.0\""}}
        > 42
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"JSON, but a number instead of an object"}}
        > {"jsonrpc":"2.0","method":"notifications/nobody/knows"}
        > {"jsonrpc":"2.0","id":99,"result":{}}
        (silence)
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
    "#,
    )
    .await;
}
