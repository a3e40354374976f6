//! Clients of the handshake era, 2024-11-05 to 2025-11-25.

use crate::transcript::{Peer, mock, play};

/// The first messages of a client that can do everything.
const HANDSHAKE: &str = r#"
    > {"id":0,"method":"initialize","params":{"protocolVersion":"VERSION","capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
    < "id":0,"result"
    > {"method":"notifications/initialized"}
"#;

async fn play_after_handshake(version: &str, file: &str, transcript: &str) {
    play(&mock(file), &format!("{}{transcript}", HANDSHAKE.replace("VERSION", version))).await;
}

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
async fn only_ping_is_answered_before_the_handshake() {
    let mut peer = Peer::with(&mock(FILE));
    peer.play(
        r#"
        > {"id":1,"method":"tools/list"}
        < {"id":1,"error":{"code":-32600,"message":"tools/list came before initialize; send initialize first, or name a version in _meta[\"io.modelcontextprotocol/protocolVersion\"]"}}
        > {"id":2,"method":"ping"}
        < {"id":2,"result":{}}
        > {"id":3,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
        < {"id":3,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}},"serverInfo":{"name":"mock","version":"1"}}}
        > [{"id":4,"method":"ping"},{"id":5,"method":"tools/call","params":{"name":"none"}}]
        < [{"id":4,"result":{}},{"id":5,"error":{"code":-32602,"message":"unknown tool \"none\""}}]
    "#,
    )
    .await;
    peer.send_text("not json".to_owned()).await;
    peer.play("< -32700").await;
    peer.finish().await;
}

#[tokio::test(start_paused = true)]
async fn input_requests_are_server_requests_and_are_sent_together() {
    play_after_handshake(
        "2025-11-25",
        FILE,
        r#"
        > {"id":1,"method":"logging/setLevel","params":{"level":"warning"}}
        < {"id":1,"result":{}}
        > {"id":2,"method":"tools/call","params":{"name":"greet"}}
        < {"id":1,"method":"roots/list","params":{}}
        < {"id":2,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}
        > {"id":2,"result":{"action":"accept","content":{"name":"Ada"}}}
        > {"id":1,"result":{"roots":[{"uri":"file:///a"}]}}
        < {"method":"notifications/message","params":{"level":"warning","data":"asked"}}
        < {"id":2,"result":{"content":[{"type":"text","text":"Hello Ada, file:///a"},{"type":"resource_link","uri":"a://b","name":"b"}]}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_error_response_fails_the_call_and_a_cancellation_ends_it() {
    let mut peer = Peer::with(&mock(FILE));
    peer.play(&HANDSHAKE.replace("VERSION", "2025-06-18")).await;
    peer.play(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"greet"}}
        < roots/list
        < elicitation/create
        > {"id":1,"error":{"code":-1,"message":"no"}}
        > {"id":2,"result":{"action":"cancel"}}
        < {"id":1,"result":{"content":[{"type":"text","text":"the client answered with an error: -1: no"}],"isError":true}}
        > {"id":2,"method":"tools/call","params":{"name":"greet"}}
        < roots/list
        < elicitation/create
        > {"method":"notifications/cancelled","params":{"requestId":2}}
        < {"method":"notifications/cancelled","params":{"requestId":3}}
        < {"method":"notifications/cancelled","params":{"requestId":4}}
    "#,
    )
    .await;
    peer.silence().await;
    peer.finish().await;
}

#[tokio::test(start_paused = true)]
async fn changed_resources_are_sent_to_their_subscribers_only() {
    play_after_handshake(
        "2025-06-18",
        FILE,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"touch"}}
        <
        <
        > {"id":2,"method":"resources/subscribe","params":{"uri":"zzz:nothing"}}
        < {"id":2,"error":{"code":-32002,"message":"there is no resource zzz:nothing","data":{"uri":"zzz:nothing"}}}
        > {"id":3,"method":"resources/subscribe","params":{"uri":"a://b"}}
        < {"id":3,"result":{}}
        > {"id":4,"method":"tools/call","params":{"name":"touch"}}
        <
        <
        <
        > {"id":5,"method":"resources/unsubscribe","params":{"uri":"a://b"}}
        < {"id":5,"result":{}}
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_sends_its_input_request_on_the_request_for_its_result() {
    play_after_handshake(
        "2025-11-25",
        FILE,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"job","task":{"ttl":60000}}}
        < {"id":1,"result":{"task":{"taskId":"$TASK","status":"working","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttl":60000}}}
        > {"id":2,"method":"tasks/get","params":{"taskId":"$TASK"}}
        < {"id":2,"result":{"taskId":"$TASK","status":"working","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttl":60000}}
        > {"id":3,"method":"tasks/result","params":{"taskId":"$TASK"}}
        < {"id":1,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"$TASK"}}}}
        > {"id":1,"result":{"action":"decline"}}
        < {"id":3,"result":{"content":[{"type":"text","text":"for decline"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"$TASK"}}}}
        > {"id":4,"method":"tasks/list"}
        < {"id":4,"result":{"tasks":[{"taskId":"$TASK","status":"completed","createdAt":"$TIME","lastUpdatedAt":"$TIME","ttl":60000}]}}
        > {"id":5,"method":"tasks/cancel","params":{"taskId":"$TASK"}}
        < "id":5,"error"
        > {"id":6,"method":"tools/call","params":{"name":"touch","task":{}}}
        <
        <
    "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn rules_answer_methods_and_the_protocol_answers_the_others() {
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
        > {"id":1,"method":"own/sum","params":{"a":1,"_meta":{"x":1}}}
        < {"id":1,"result":{"sum":2}}
        > {"id":2,"method":"own/sum","params":{"a":2}}
        < {"id":2,"error":{"code":-1,"message":"no 2"}}
        > {"id":3,"method":"own/sum","params":{"a":2}}
        < {"id":3,"error":{"code":-32601,"message":"there is no method own/sum in 2025-11-25"}}
        > {"id":4,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"city","value":"O"}}}
        < {"id":4,"result":{"completion":{"values":["Oslo"],"hasMore":true}}}
        > {"id":5,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"city","value":"Os"}}}
        < {"id":5,"result":{"completion":{"values":["Oslo"],"total":1,"hasMore":false}}}
    "#,
    )
    .await;
}
