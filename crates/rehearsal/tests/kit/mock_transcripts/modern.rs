//! Clients of the stateless era, 2026-07-28.

use rehearsal::serve::Server;

use crate::transcript::{Peer, mock, mock_chain, play};

const SLOW: &str = r#"
tools:
  - name: slow
    answers:
      - steps:
          - progress: { progress: 1, total: 2, message: half }
          - wait: 10s
          - log: { level: info, logger: l, data: { at: 2 } }
          - log: { level: debug, data: below the level of the client }
          - changed: tools
          - changed: { resource: "a://b" }
        text: done
  - name: quick
    answers: [{ text: quick }]
resources: [{ uri: "a://b", text: x }]
"#;

#[tokio::test(start_paused = true)]
async fn steps_are_sent_before_the_answer_and_calls_run_concurrently() {
    play(
        &mock(SLOW),
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"slow",META}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":2,"message":"half"}}
        > {"id":2,"method":"tools/call","params":{"name":"quick",BARE_META}}
        < {"id":2,"result":{"content":[{"type":"text","text":"quick"}],"resultType":"complete",SERVER_META}}
        < {"method":"notifications/message","params":{"level":"info","logger":"l","data":{"at":2}}}
        < {"id":1,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete",SERVER_META}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_not_answered() {
    let server = mock(SLOW);
    let mut peer = Peer::with(&server);
    peer.play(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"slow",META}}
        < notifications/progress
        > {"method":"notifications/cancelled","params":{"requestId":1}}
    "#,
    )
    .await;
    peer.silence().await;
    peer.finish().await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_the_changes_they_listen_to_and_the_end() {
    let server = mock(SLOW);
    let mut peer = Peer::with(&server);
    peer.play(
        r#"
        > {"id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a://b","a://none"]},BARE_META}}
        < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}
        > {"id":1,"method":"tools/call","params":{"name":"slow",BARE_META}}
        <
        <
        <
    "#,
    )
    .await;
    server.stop();
    peer.play(r#"< {"id":"s","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"s","io.modelcontextprotocol/serverInfo":{"name":"mock","version":"1"}}}}"#).await;
    peer.finish().await;
}

const INPUTS: &str = r#"
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
async fn input_requests_are_answered_in_rounds() {
    play(
        &mock(INPUTS),
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"delete","arguments":{"sure":false},META}}
        < {"id":1,"result":{"inputRequests":{"confirm":{"method":"elicitation/create","params":{"message":"Really?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"$STATE","resultType":"input_required",SERVER_META}}
        > {"id":2,"method":"tools/call","params":{"name":"delete","arguments":{"sure":false},"requestState":"$STATE","inputResponses":{"confirm":{"action":"decline"}},META}}
        < {"id":2,"result":{"content":[{"type":"text","text":"decline"}],"resultType":"complete",SERVER_META}}
        > {"id":3,"method":"tools/call","params":{"name":"delete","arguments":{"sure":false},BARE_META}}
        < {"id":3,"error":{"code":-32021,"message":"this needs the capability elicitation","data":{"requiredCapabilities":{"elicitation":{}}}}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_works_requests_input_and_completes() {
    let server = mock(INPUTS);
    let mut peer = Peer::with(&server);
    peer.play(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"delete",META}}
        < {"id":1,"result":{"taskId":"$TASK","status":"working","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"resultType":"task",SERVER_META}}
        > {"id":2,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["$TASK"]},META}}
        < notifications/subscriptions/acknowledged
        < {"method":"notifications/tasks","params":{"taskId":"$TASK","status":"input_required","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"inputRequests":{"one":{"method":"elicitation/create","params":{"message":"One?","requestedSchema":{"type":"object","properties":{}}}},"two":{"method":"roots/list","params":{}}},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
        > {"id":3,"method":"tasks/update","params":{"taskId":"$TASK","inputResponses":{"one":{"action":"accept","content":{}}},META}}
        < {"id":3,"result":{"resultType":"complete",SERVER_META}}
        < "status":"working"
        < "status":"input_required"
        > {"id":4,"method":"tasks/get","params":{"taskId":"$TASK",META}}
        < {"id":4,"result":{"taskId":"$TASK","status":"input_required","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"inputRequests":{"two":{"method":"roots/list","params":{}}},"resultType":"complete",SERVER_META}}
        > {"id":5,"method":"tasks/update","params":{"taskId":"$TASK","inputResponses":{"two":{"roots":[]}},META}}
        < {"id":5,"result":{"resultType":"complete",SERVER_META}}
        < "status":"working"
        < "status":"completed"
        > {"id":6,"method":"tasks/get","params":{"taskId":"$TASK",META}}
        < {"id":6,"result":{"taskId":"$TASK","status":"completed","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"result":{"content":[{"type":"text","text":"accept 0"}],"resultType":"complete",SERVER_META},"resultType":"complete",SERVER_META}}
        > {"id":7,"method":"tasks/get","params":{"taskId":"none",META}}
        < {"id":7,"error":{"code":-32602,"message":"there is no task \"none\""}}
        > {"id":8,"method":"tasks/result","params":{"taskId":"$TASK",META}}
        < {"id":8,"error":{"code":-32601,"message":"there is no method tasks/result in 2026-07-28"}}
    "#,
    )
    .await;
    server.stop();
    peer.play(r#"< "id":2,"result""#).await;
    peer.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_cancelled() {
    let server = mock(INPUTS);
    let mut peer = Peer::with(&server);
    peer.play(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"delete",META}}
        <
        > {"id":2,"method":"tasks/cancel","params":{"taskId":"$TASK",META}}
        < {"id":2,"result":{"resultType":"complete",SERVER_META}}
    "#,
    )
    .await;
    peer.silence().await;
    peer.play(
        r#"
        > {"id":3,"method":"tasks/cancel","params":{"taskId":"$TASK",META}}
        < {"id":3,"result":{"resultType":"complete",SERVER_META}}
        > {"id":4,"method":"tasks/get","params":{"taskId":"$TASK",META}}
        < {"id":4,"result":{"taskId":"$TASK","status":"cancelled","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttlMs":null,"pollIntervalMs":10,"resultType":"complete",SERVER_META}}
    "#,
    )
    .await;
    peer.finish().await;
}

#[tokio::test(start_paused = true)]
async fn removed_methods_are_gone() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list", "no/such"] {
        let script = format!(
            r#"
            > {{"id":1,"method":"{method}","params":{{BARE_META}}}}
            < {{"id":1,"error":{{"code":-32601,"message":"there is no method {method} in 2026-07-28"}}}}
            "#
        );
        play(&mock(INPUTS), &script).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_file_answers_new_calls_and_a_reset_restarts_its_counters() {
    let chain =
        |text: &str| mock_chain(&format!("tools: [{{ name: t, answers: [{{ text: '{text} {{{{ call }}}}' }}] }}]"));
    let call = r#"
        > {"id":1,"method":"tools/call","params":{"name":"t",BARE_META}}
        < {"id":1,"result":{"content":[{"type":"text","text":"TEXT"}],"resultType":"complete",SERVER_META}}
    "#;
    let server = Server::new(chain("old"));
    play(&server, &call.replace("TEXT", "old 1")).await;
    server.replace(chain("new"));
    play(&server, &call.replace("TEXT", "new 1")).await;
    play(&server, &call.replace("TEXT", "new 2")).await;
    server.reset();
    play(&server, &call.replace("TEXT", "new 1")).await;
}
