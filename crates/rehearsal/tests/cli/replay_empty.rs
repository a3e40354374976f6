//! `rehearse replay` of recordings that answer nothing.

use crate::fixture::{Fixture, rehearse};

const REQUESTS: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rain"}}
"#;

#[test]
fn a_recording_without_calls_is_served_with_a_warning() {
    let fixture = Fixture::new().file("empty.jsonl", "").file("requests", REQUESTS);
    rehearse!(fixture, "rehearse replay empty.jsonl < requests", @r#"
    exit: 0
    ----- stdout -----
    {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"recorded","version":"0"}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no recording of tools/call rain, nor of anything like it","data":{}}}
    ----- stderr -----
    the recording has no calls: everything but the handshake and pings is refused
    no recording of tools/call rain, nor of anything like it
    0 matched, 0 repeated, 1 unmatched, 0 unused
      unmatched: tools/call rain
    "#);
}

#[test]
fn messages_of_a_session_without_calls_are_counted() {
    let notifications = r#"{"format":1,"session_id":"a","server_info":{},"started_at":null,"metadata":{},"calls":[],"messages":[
        {"type":"notification","seq":0,"at_ms":0,"from":"server","method":"notifications/message","params":{"level":"info","data":"x"}},
        {"type":"notification","seq":1,"at_ms":5,"from":"server","method":"notifications/tools/list_changed"}],"ended_at":null,"end":null}"#;
    let fixture =
        Fixture::new().file("notifications.jsonl", &notifications.replace('\n', "")).file("requests", REQUESTS);
    rehearse!(fixture, "rehearse replay notifications.jsonl --strict < requests", @r#"
    exit: 1
    ----- stdout -----
    {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"recorded","version":"0"}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no recording of tools/call rain, nor of anything like it","data":{}}}
    ----- stderr -----
    the recording has no calls: everything but the handshake and pings is refused
    no recording of tools/call rain, nor of anything like it
    0 matched, 0 repeated, 1 unmatched, 0 unused, 2 undelivered
      unmatched: tools/call rain
    "#);
}

#[test]
fn a_recording_with_only_refused_handshakes_refuses_every_client() {
    let refused = r#"{"format":1,"session_id":"a","server_info":{},"started_at":null,"metadata":{},"calls":[
        {"request":{"seq":0,"at_ms":0,"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}},
         "response":{"seq":1,"at_ms":1,"success":false,"error":{"code":-32000,"message":"go away","data":{"x":1}}},"duration_ms":1}],
        "messages":[],"ended_at":null,"end":null}"#;
    let requests = REQUESTS.lines().next().unwrap();
    let fixture =
        Fixture::new().file("refused.jsonl", &refused.replace('\n', "")).file("requests", &format!("{requests}\n"));
    rehearse!(fixture, "rehearse replay refused.jsonl < requests", @r#"
    exit: 0
    ----- stdout -----
    {"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"go away","data":{"x":1}}}
    ----- stderr -----
    every recorded handshake was refused, so this replay refuses every client with the recorded error
    0 matched, 0 repeated, 0 unmatched, 0 unused
    "#);
}
