//! The stateless era, 2026-07-28.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod play;

use play::{hear, play, play_with};
use rehearsal_core::exchange::Channel;
use rehearsal_wire::{Ending, memory};
use serde_json::json;
use tiny_server::{Options, Server};

#[tokio::test(start_paused = true)]
async fn every_request_stands_alone() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{$POOR}}
        < {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{},"completions":{}},"instructions":"Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return.","resultType":"complete","ttlMs":60000,"cacheScope":"public",$IT}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":0.5,"b":1},$POOR}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"1.5"}],"structuredContent":{"sum":1.5},"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fail","arguments":{"message":"no luck"},$POOR}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"no luck"}],"isError":true,"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"tiny://greeting/Ada",$POOR}}
        < {"jsonrpc":"2.0","id":4,"result":{"contents":[{"uri":"tiny://greeting/Ada","mimeType":"text/plain","text":"Hello Ada, from tiny-server"}],"resultType":"complete","ttlMs":60000,"cacheScope":"public",$IT}}
        > {"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"tiny://nothing",$POOR}}
        < {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"there is no resource tiny://nothing","data":{"uri":"tiny://nothing"}}}
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"ecko",$POOR}}
        < {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"unknown tool \"ecko\""}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_the_request_fails_to_say_is_not_guessed() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"server/discover"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"_meta lacks io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"_meta lacks io.modelcontextprotocol/clientCapabilities"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32022,"message":"unsupported protocol version \"2027-01-01\"","data":{"supported":["2026-07-28"],"requested":"2027-01-01"}}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn removed_methods_are_gone() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"]
    {
        play(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{$POOR}}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"there is no method {method} in 2026-07-28"}}}}
            "#
        ))
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_answers_with_a_question() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"},$ME}}
        < {"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"name":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name","description":"What to call you"}},"required":["name"]}}}},"requestState":"$STATE","resultType":"input_required",$IT}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"},"inputResponses":{"name":{"action":"accept","content":{"name":"Ada"}}},"requestState":"$STATE",$ME}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Hello, Ada!"}],"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"},"inputResponses":{"name":{"action":"cancel"}},"requestState":"$STATE",$ME}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"cancelled"}],"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"sample","arguments":{"prompt":"Say hi"},$ME}}
        < {"jsonrpc":"2.0","id":4,"result":{"inputRequests":{"model":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Say hi"}}],"maxTokens":100}}},"resultType":"input_required",$IT}}
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"sample","arguments":{"prompt":"Say hi"},"inputResponses":{"model":{"role":"assistant","model":"none","content":[{"type":"text","text":"hi"},{"type":"text","text":"there"}]}},$ME}}
        < {"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"model said: hi\nthere"}],"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"roots","arguments":{},$ME}}
        < {"jsonrpc":"2.0","id":6,"result":{"inputRequests":{"roots":{"method":"roots/list","params":{}}},"resultType":"input_required",$IT}}
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"roots","arguments":{},"inputResponses":{"roots":{"roots":[{"uri":"file:///a"}]}},$ME}}
        < {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"file:///a"}],"resultType":"complete",$IT}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_under_a_wrong_key_is_asked_for_again_and_a_changed_state_refused() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"roots","arguments":{},"inputResponses":{"rots":{"roots":[]}},$ME}}
        < {"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"roots":{"method":"roots/list","params":{}}},"resultType":"input_required",$IT}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"},"inputResponses":{"name":{"action":"decline"}},"requestState":"0123456789abcdef",$ME}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"requestState is not what was given"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"},"inputResponses":{"name":{"action":"decline"}},$ME}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"requestState is not what was given"}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_answer_is_told_what_it_lacks() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who?"},$POOR}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"this needs the capability elicitation","data":{"requiredCapabilities":{"elicitation":{}}}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sample","arguments":{"prompt":"hi"},$POOR}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"this needs the capability sampling","data":{"requiredCapabilities":{"sampling":{}}}}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"roots",$POOR}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"this needs the capability roots","data":{"requiredCapabilities":{"roots":{}}}}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn log_messages_are_sent_only_where_the_request_asks_for_them() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","arguments":{"level":"error","message":"unheard"},$POOR}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"logged"}],"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"log","arguments":{"level":"debug","message":"too quiet"},$ME}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"logged"}],"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"log","arguments":{"level":"info","message":"heard"},$ME}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"tiny-server","data":"heard"}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"logged"}],"resultType":"complete",$IT}}
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn slow_work_is_cancelled_over_a_pipe_by_a_note() {
    play(r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"steps":100,"delay_ms":10000},$ME}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":100,"message":"step 1 of 100"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        (silence)
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_acknowledged_first_and_tells_only_what_was_asked_for() {
    play(r#"
        > {"jsonrpc":"2.0","id":"a","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},$POOR}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}
        > {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["tiny://greeting","tiny://nothing"]},$POOR}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["tiny://greeting"]},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"touch",$POOR}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"touched"}],"resultType":"complete",$IT}}
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"tiny://greeting","_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"touch",$POOR}}
        < {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"touched"}],"resultType":"complete",$IT}}
        (silence)
    "#)
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_hears_what_is_touched_on_another_connection_and_how_it_ends() {
    let server = Server::new(Options::default());
    let (mut subscriber, served) = memory::pair();
    let first = tokio::spawn({
        let server = server.clone();
        async move { server.serve(served).await }
    });
    let (mut toucher, served) = memory::pair();
    tokio::spawn({
        let server = server.clone();
        async move { server.serve(served).await }
    });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true}, "_meta": meta,
    }});
    subscriber.sender.send_bytes(Channel::MAIN, listen.to_string().into()).await.unwrap();
    let acknowledged = hear(&mut subscriber).await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");

    let touch = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "touch", "_meta": meta}});
    toucher.sender.send_bytes(Channel::MAIN, touch.to_string().into()).await.unwrap();
    assert_eq!(hear(&mut toucher).await.unwrap()["result"]["content"][0]["text"], "touched");
    assert_eq!(hear(&mut subscriber).await.unwrap()["method"], "notifications/tools/list_changed");

    server.stop();
    let last = hear(&mut subscriber).await.unwrap();
    assert_eq!(last["id"], 1);
    assert_eq!(last["result"]["resultType"], "complete");
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!(first.await.unwrap(), Ending::Closed);
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_and_made_up_cursors_are_refused() {
    let options = Options { page_size: std::num::NonZeroUsize::new(1) };
    play_with(options, r#"
        > {"jsonrpc":"2.0","id":1,"method":"resources/list","params":{$POOR}}
        < {"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"tiny://greeting","name":"greeting","title":"Greeting","description":"A line of text","mimeType":"text/plain"}],"nextCursor":"from-1","resultType":"complete","ttlMs":60000,"cacheScope":"public",$IT}}
        > {"jsonrpc":"2.0","id":2,"method":"resources/list","params":{"cursor":"from-1",$POOR}}
        < {"jsonrpc":"2.0","id":2,"result":{"resources":[{"uri":"tiny://pixel","name":"pixel","title":"Pixel","description":"A PNG of one green pixel","mimeType":"image/png"}],"resultType":"complete","ttlMs":60000,"cacheScope":"public",$IT}}
        > {"jsonrpc":"2.0","id":3,"method":"resources/list","params":{"cursor":"from-2",$POOR}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"the cursor \"from-2\" was never given"}}
    "#)
    .await;
}
