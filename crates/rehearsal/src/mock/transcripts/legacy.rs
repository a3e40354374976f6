//! The handshake era, 2024-11-05 to 2025-11-25.

use super::{play, play_after_handshake};

const FILE: &str = r#"
tools:
  - name: greet
    title: Greet
    answers:
      - steps:
          - ask: { roots: roots, who: { elicitation: { message: Who?, requested_schema: { type: object, properties: {} } } } }
          - log: { level: warning, data: asked }
          - log: { level: info, data: quietly }
        content:
          - { type: text, text: "Hello {{ answers.who.content.name }}, {{ answers.roots.roots[0].uri }}" }
          - { type: resource_link, uri: "a://b", name: b }
  - name: touch
    answers: [{ steps: [{ changed: { resource: "a://b" } }, { changed: prompts }], text: touched }]
  - name: job
    task_support: optional
    answers:
      - task: { after: 5s }
        steps: [{ ask: { who: { elicitation: { message: Who?, requested_schema: { type: object, properties: {} } } } } }]
        text: "for {{ answers.who.action }}"
resources: [{ uri: "a://b", text: x }]
"#;

#[tokio::test(start_paused = true)]
async fn nothing_comes_before_the_handshake_but_ping() {
    play(
        FILE,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"tools/list came before initialize; send initialize first, or name a version in _meta[\"io.modelcontextprotocol/protocolVersion\"]"}}
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"play","version":"1"}}}
        < {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}},"serverInfo":{"name":"play","version":"1"}}}
        > [{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"none"}}]
        < [{"jsonrpc":"2.0","id":4,"result":{}},{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"unknown tool \"none\""}}]
        > not json
        <parse error
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn questions_are_requests_and_all_of_them_go_out_at_once() {
    play_after_handshake(
        "2025-11-25",
        FILE,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warning"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet"}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}
        < {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}
        > {"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"name":"Ada"}}}
        > {"jsonrpc":"2.0","id":1,"result":{"roots":[{"uri":"file:///a"}]}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"asked"}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Hello Ada, file:///a"},{"type":"resource_link","uri":"a://b","name":"b"}]}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_with_an_error_gets_a_failure_and_one_that_gives_up_nothing() {
    play_after_handshake(
        "2025-06-18",
        FILE,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet"}}
        <roots
        <elicitation
        > {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}
        > {"jsonrpc":"2.0","id":2,"result":{"action":"cancel"}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the client answered with an error: -1: no"}],"isError":true}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet"}}
        <roots
        <elicitation
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}
        (silence)
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_are_told_on_the_standing_stream() {
    play_after_handshake(
        "2025-06-18",
        FILE,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"touch"}}
        <either
        <or
        > {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"zzz:nothing"}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"there is no resource zzz:nothing","data":{"uri":"zzz:nothing"}}}
        > {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a://b"}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"touch"}}
        <one
        <two
        <three
        > {"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"a://b"}}
        < {"jsonrpc":"2.0","id":5,"result":{}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_whoever_waits_for_its_result() {
    play_after_handshake(
        "2025-11-25",
        FILE,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"job","task":{"ttl":60000}}}
        < {"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"$TASK","status":"working","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttl":60000}}}
        > {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"$TASK"}}
        < {"jsonrpc":"2.0","id":2,"result":{"taskId":"$TASK","status":"working","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttl":60000}}
        > {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"$TASK"}}
        < {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"$TASK"}}}}
        > {"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"for decline"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"$TASK"}}}}
        > {"jsonrpc":"2.0","id":4,"method":"tasks/list"}
        < {"jsonrpc":"2.0","id":4,"result":{"tasks":[{"taskId":"$TASK","status":"completed","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttl":60000}]}}
        > {"jsonrpc":"2.0","id":5,"method":"tasks/cancel","params":{"taskId":"$TASK"}}
        <ended
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"touch","task":{}}}
        <either
        <or
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_method_of_its_own_is_answered_by_rules_and_what_fits_none_by_the_server() {
    const REQUESTS: &str = r#"
prompts: [{ name: p, arguments: [{ name: city, complete: [Oslo] }], messages: [] }]
requests:
  - method: own/sum
    answers:
      - { when: { a: 1 }, result: { sum: "{{ arguments.a + 1 }}" } }
      - { when: { a: 2 }, times: 1, error: { code: -1, message: "no {{ call }}" } }
  - method: completion/complete
    answers:
      - { when: { argument: { value: O } }, result: { completion: { values: [Oslo], hasMore: true } } }
"#;
    play_after_handshake(
        "2025-11-25",
        REQUESTS,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"own/sum","params":{"a":1,"_meta":{"x":1}}}
        < {"jsonrpc":"2.0","id":1,"result":{"sum":2}}
        > {"jsonrpc":"2.0","id":2,"method":"own/sum","params":{"a":2}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no 2"}}
        > {"jsonrpc":"2.0","id":3,"method":"own/sum","params":{"a":2}}
        < {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"there is no method own/sum in 2025-11-25"}}
        > {"jsonrpc":"2.0","id":4,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"city","value":"O"}}}
        < {"jsonrpc":"2.0","id":4,"result":{"completion":{"values":["Oslo"],"hasMore":true}}}
        > {"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"city","value":"Os"}}}
        < {"jsonrpc":"2.0","id":5,"result":{"completion":{"values":["Oslo"],"total":1,"hasMore":false}}}
    "#,
    )
    .await;
}
