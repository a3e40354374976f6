//! The stateless era, 2026-07-28.

use super::{play, play_with, server};
use crate::mock::load::chain_of;

const SLOW: &str = r#"
tools:
  - name: slow
    answers:
      - steps:
          - progress: { progress: 1, total: 2, message: half }
          - wait: 10s
          - log: { level: info, logger: l, data: { at: 2 } }
          - log: { level: debug, data: nobody wants this }
          - changed: tools
          - changed: { resource: "a://b" }
        text: done
  - name: quick
    answers: [{ text: quick }]
resources: [{ uri: "a://b", text: x }]
"#;

#[tokio::test(start_paused = true)]
async fn steps_go_out_before_the_answer_and_nobody_waits_for_somebody_else() {
    play(
        SLOW,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow",$ME}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":2,"message":"half"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"quick",$POOR}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"quick"}],"resultType":"complete",$IT}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"l","data":{"at":2}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete",$IT}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_not_answered() {
    play(
        SLOW,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow",$ME}}
        <progress
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        (silence)
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_hear_what_they_asked_for_and_the_end() {
    play(
        SLOW,
        r#"
        > {"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a://b","a://none"]},$POOR}}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow",$POOR}}
        <
        <
        <
        (stop)
        < {"jsonrpc":"2.0","id":"s","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"s","io.modelcontextprotocol/serverInfo":{"name":"play","version":"1"}}}}
    "#,
    )
    .await;
}

const ASKS: &str = r#"
tools:
  - name: delete
    answers:
      - when: { sure: false }
        steps: [{ ask: { confirm: { elicitation: { message: "Really?", requested_schema: { type: object, properties: {} } } } } }]
        text: "{{ answers.confirm.action }}"
      - task: { after: 1s, poll_interval_ms: 10 }
        steps:
          - ask:
              one: { elicitation: { message: One?, requested_schema: { type: object, properties: {} } } }
              two: roots
        text: "{{ answers.one.action }} {{ answers.two.roots | length }}"
"#;

#[tokio::test(start_paused = true)]
async fn questions_are_answered_in_rounds() {
    play(
        ASKS,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete","arguments":{"sure":false},$ME}}
        < {"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"confirm":{"method":"elicitation/create","params":{"message":"Really?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"$STATE","resultType":"input_required",$IT}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"delete","arguments":{"sure":false},"requestState":"$STATE","inputResponses":{"confirm":{"action":"decline"}},$ME}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"decline"}],"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"delete","arguments":{"sure":false},$POOR}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"this needs the capability elicitation","data":{"requiredCapabilities":{"elicitation":{}}}}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_works_asks_and_is_done() {
    play(
        ASKS,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete",$ME}}
        < {"jsonrpc":"2.0","id":1,"result":{"taskId":"$TASK","status":"working","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"resultType":"task",$IT}}
        > {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["$TASK"]},$ME}}
        <acknowledged
        < {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"$TASK","status":"input_required","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"inputRequests":{"one":{"method":"elicitation/create","params":{"message":"One?","requestedSchema":{"type":"object","properties":{}}}},"two":{"method":"roots/list","params":{}}},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
        > {"jsonrpc":"2.0","id":3,"method":"tasks/update","params":{"taskId":"$TASK","inputResponses":{"one":{"action":"accept","content":{}}},$ME}}
        < {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete",$IT}}
        <working
        <input_required
        > {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"$TASK",$ME}}
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"$TASK","status":"input_required","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"inputRequests":{"two":{"method":"roots/list","params":{}}},"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":5,"method":"tasks/update","params":{"taskId":"$TASK","inputResponses":{"two":{"roots":[]}},$ME}}
        <acknowledged
        <working
        <completed
        > {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"$TASK",$ME}}
        < {"jsonrpc":"2.0","id":6,"result":{"taskId":"$TASK","status":"completed","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"result":{"content":[{"type":"text","text":"accept 0"}],"resultType":"complete",$IT},"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"none",$ME}}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"there is no task \"none\""}}
        > {"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{"taskId":"$TASK",$ME}}
        < {"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"there is no method tasks/result in 2026-07-28"}}
        (stop)
        <listen
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_cancelled() {
    play(
        ASKS,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete",$ME}}
        <
        > {"jsonrpc":"2.0","id":2,"method":"tasks/cancel","params":{"taskId":"$TASK",$ME}}
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete",$IT}}
        (silence)
        > {"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":"$TASK",$ME}}
        < {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete",$IT}}
        > {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"$TASK",$ME}}
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"$TASK","status":"cancelled","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"resultType":"complete",$IT}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn removed_methods_are_gone() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list", "no/such"] {
        let script = format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{$POOR}}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"there is no method {method} in 2026-07-28"}}}}
            "#
        );
        play(ASKS, &script).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_file_answers_in_old_conversations_and_the_lists_are_told_to_have_changed() {
    let server = server("tools: [{ name: t, answers: [{ text: 'old {{ call }}' }] }]");
    let replaced = "server: { name: play, version: '1' }\ntools: [{ name: t, answers: [{ text: 'new {{ call }}' }] }]";
    let call = r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",$POOR}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"WHAT"}],"resultType":"complete",$IT}}
    "#;
    play_with(server.clone(), &call.replace("WHAT", "old 1")).await;
    server.replace(chain_of("play.yaml", replaced).expect("the file is valid"));
    play_with(server.clone(), &call.replace("WHAT", "new 1")).await;
    play_with(server.clone(), &call.replace("WHAT", "new 2")).await;
    server.reset();
    play_with(server, &call.replace("WHAT", "new 1")).await;
}
