//! Replays of recordings in the format of the Python interceptor, in all its variants.

use crate::fixture::{Fixture, rehearse};

/// A session with arguments in `args`, in `kwargs` and in both, nulls, `_type`, snake case, an image, and errors as a text
/// and as an object.
const SESSION: &str = r##"{"session_id": "550e8400-e29b-41d4-a716-446655440000", "server_info": {"url": "https://example.com/mcp", "name": "example-server"}, "started_at": "2025-10-30T10:30:45.000000", "ended_at": "2025-10-30T10:31:00.000000", "metadata": {}, "calls": [
    {"request": {"method": "initialize", "args": [], "kwargs": {}, "timestamp": "2025-10-30T10:30:45.100000"}, "response": {"success": true, "result": {"_type": "InitializeResult", "meta": null, "protocolVersion": "2025-06-18", "capabilities": {"experimental": {}, "logging": null, "prompts": {"listChanged": false}, "resources": {"subscribe": false, "listChanged": false}, "tools": {"listChanged": false}, "completions": null}, "serverInfo": {"name": "example", "title": null, "version": "1.9.4"}, "instructions": null}, "error": null, "timestamp": "2025-10-30T10:30:45.110000"}, "duration_ms": 10.0},
    {"request": {"method": "list_tools", "args": [], "kwargs": {}, "timestamp": "2025-10-30T10:30:45.123456"}, "response": {"success": true, "result": {"_type": "ListToolsResult", "meta": null, "nextCursor": null, "tools": [{"name": "weather", "title": null, "description": "Weather of a city", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}, "outputSchema": null, "annotations": null, "meta": null}, {"name": "chart", "title": null, "description": null, "inputSchema": {"type": "object"}, "outputSchema": null, "annotations": null, "meta": null}]}, "error": null, "timestamp": "2025-10-30T10:30:45.2"}, "duration_ms": 5.5},
    {"request": {"method": "call_tool", "args": ["weather"], "kwargs": {"arguments": {"city": "Oslo"}}, "timestamp": "2025-10-30T10:30:46.123456"}, "response": {"success": true, "result": {"_type": "CallToolResult", "content": [{"type": "text", "text": "rain"}]}, "error": null, "timestamp": "2025-10-30T10:30:46.234567"}, "duration_ms": 111.234},
    {"request": {"method": "call_tool", "args": ["weather", {"city": "Bergen"}], "kwargs": {}, "timestamp": "2025-10-30T10:30:47.1"}, "response": {"success": true, "result": {"_type": "CallToolResult", "meta": null, "content": [{"_type": "TextContent", "type": "text", "text": "more rain", "annotations": null, "meta": null}], "structuredContent": null, "isError": false}, "error": null, "timestamp": "2025-10-30T10:30:47.2"}, "duration_ms": 1},
    {"request": {"method": "call_tool", "args": [], "kwargs": {"name": "chart", "arguments": {"days": 3}, "read_timeout_seconds": null}, "timestamp": "2025-10-30T10:30:48.1"}, "response": {"success": true, "result": {"_type": "CallToolResult", "content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}], "structured_content": {"days": 3}, "is_error": false}, "error": null, "timestamp": "2025-10-30T10:30:48.2"}, "duration_ms": 1},
    {"request": {"method": "call_tool", "args": ["weather"], "kwargs": {"arguments": {"city": "Atlantis"}}, "timestamp": "2025-10-30T10:30:49.1"}, "response": {"success": false, "result": null, "error": {"type": "McpError", "message": "no such city"}, "timestamp": "2025-10-30T10:30:49.2"}, "duration_ms": 1},
    {"request": {"method": "call_tool", "args": ["weather"], "kwargs": {"arguments": {"city": "El Dorado"}}, "timestamp": "2025-10-30T10:30:49.5"}, "response": {"success": false, "result": null, "error": "Timed out", "timestamp": "2025-10-30T10:30:49.6"}, "duration_ms": 1},
    {"request": {"method": "read_resource", "args": ["file:///notes.md"], "kwargs": {}, "timestamp": "2025-10-30T10:30:50.1"}, "response": {"success": true, "result": {"_type": "ReadResourceResult", "contents": [{"uri": "file:///notes.md", "mimeType": "text/markdown", "meta": null, "text": "# Notes"}]}, "error": null, "timestamp": "2025-10-30T10:30:50.2"}, "duration_ms": 1},
    {"request": {"method": "get_prompt", "args": ["greet", {"who": "Ada"}], "kwargs": {}, "timestamp": "2025-10-30T10:30:51.1"}, "response": {"success": true, "result": {"_type": "GetPromptResult", "description": null, "messages": [{"role": "user", "content": {"type": "text", "text": "Hello Ada", "annotations": null}}]}, "error": null, "timestamp": "2025-10-30T10:30:51.2"}, "duration_ms": 1}
]}"##;

/// A log of the Python interceptor, without a handshake.
const LOG: &str = r#"{"type": "request", "timestamp": "2025-10-30T10:30:45.123456", "method": "call_tool", "args": ["weather"], "kwargs": {"arguments": {"city": "Oslo"}}}
{"type": "response", "timestamp": "2025-10-30T10:30:45.234567", "method": "call_tool", "result": {"_type": "CallToolResult", "content": [{"type": "text", "text": "rain"}]}}
"#;

/// The commands of the clients.
const COMMANDS: [&str; 9] = [
    "list",
    "call weather city=Oslo",
    "call weather city=Bergen",
    "call chart days=3",
    "call weather city=Atlantis",
    "call weather 'city=El Dorado'",
    "call weather city=Rome",
    "read file:///notes.md",
    "prompt greet who=Ada",
];

fn outputs(fixture: &Fixture, protocol: &str, server: &str) -> String {
    let lines = COMMANDS.iter().map(|command| format!("rehearse {command} --protocol {protocol} {server} 2>&1"));
    fixture.run(&format!("({}) | grep -v '^hint\\|^  data'", lines.collect::<Vec<_>>().join("; ")))
}

fn fixture() -> Fixture {
    Fixture::new().file("seed.jsonl", &(SESSION.replace('\n', "") + "\n")).file("log.jsonl", LOG)
}

#[test]
fn every_trace_format_is_replayed_to_clients_of_every_version() {
    let fixture = fixture();
    let modern = outputs(&fixture, "2026-07-28", "-- rehearse replay -q seed.jsonl");
    insta::assert_snapshot!(modern, @r#"
    exit: 0
    ----- stdout -----
    example 1.9.4, protocol 2026-07-28
    TOOL     ARGUMENTS      DESCRIPTION
    weather  [city=string]  Weather of a city
    chart

    RESOURCE          NAME
    file:///notes.md  file:///notes.md

    PROMPT  ARGUMENTS
    greet   [who]
    rain
    more rain
    [image image/png, 8 bytes]
    {
      "days": 3
    }
    error: -32603: no such city
    error: -32603: Timed out
    error: -32603: no recording of tools/call weather; closest is session 550e8400-e29b-41d4-a716-446655440000, call 3: $.params.arguments.city: expected "Oslo", got "Rome"
    # Notes
    user:
    Hello Ada
    "#);
    let legacy = modern.replace("2026-07-28", "2024-11-05").replace("{\n  \"days\": 3\n}\n", "");
    assert_eq!(outputs(&fixture, "2024-11-05", "-- rehearse replay -q seed.jsonl"), legacy);
    rehearse!(fixture, "rehearse call weather city=Oslo --protocol 2025-11-25 -- rehearse replay -q log.jsonl", @"
    exit: 0
    ----- stdout -----
    rain
    ");
}

#[test]
fn rounds_of_2026_07_28_are_replayed_verified_and_generated() {
    let rounds = include_str!("../../../../fixtures/traces/python/rounds.jsonl");
    let fixture = Fixture::new().file("rounds.jsonl", rounds);
    let answers = r#"--answer 'elicitation/create={"action":"accept","content":{"is_error":"bob"}}' --answer 'sampling/createMessage={"role":"assistant","content":{"type":"text","text":"hello"},"model":"m"}'"#;
    rehearse!(fixture, &format!("rehearse call a x=1 {answers} -- rehearse replay -q rounds.jsonl"), @"
    exit: 0
    ----- stdout -----
    hi bob
    ");
    rehearse!(fixture, "rehearse verify rounds.jsonl -- rehearse replay -q rounds.jsonl", @"
    exit: 0
    ----- stderr -----
    9 as recorded, 0 different, 0 skipped
    ");
    fixture.run("rehearse generate rounds.jsonl --as mock -o rounds.mock.yaml");
    rehearse!(fixture, &format!("rehearse call a x=1 {answers} -- rehearse mock rounds.mock.yaml"), @"
    exit: 0
    ----- stdout -----
    hi bob
    ");
}

#[test]
fn a_trace_that_is_truncated_while_it_is_served_is_reported() {
    let call = r#"{"request":{"seq":0,"at_ms":0,"id":1,"method":"tools/call","params":{"name":"t"}},"response":{"seq":1,"at_ms":1,"success":true,"result":{"content":[]}},"duration_ms":1}"#;
    // A recording without a handshake: its first call is read when the recording is opened.
    let later =
        call.replace(r#""seq":1"#, r#""seq":3"#).replace(r#""seq":0"#, r#""seq":2"#).replace(r#""id":1"#, r#""id":2"#);
    let trace = format!(
        r#"{{"format":1,"session_id":"s","server_info":{{}},"started_at":null,"metadata":{{}},"calls":[{call},{later}],"messages":[],"ended_at":null,"end":null}}"#
    );
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let served = format!(
        "mkfifo in; rehearse replay trace.jsonl < in > out & exec 3>in; echo '{ping}' >&3; \
         until [ -s out ]; do sleep 0.01; done; : > trace.jsonl; exec 3>&-; wait $!"
    );
    let fixture = Fixture::new().file("trace.jsonl", &trace);
    rehearse!(fixture, &served, @"
    exit: 2
    ----- stderr -----
    error: cannot read trace.jsonl: the trace was changed after it was opened; start again
    ");
}

/// A session of a 2025-11-25 server as the models of the Python package `mcp` 2 write it: with the members of 2026-07-28 and
/// `isError`, which the server did not send. An exception has only a message.
const FILLED_IN: &str = r##"{"session_id": "a", "server_info": {}, "started_at": null, "metadata": {}, "calls": [
    {"request": {"method": "initialize", "args": [], "kwargs": {}}, "response": {"success": true, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}, "resultType": "complete"}, "error": null}},
    {"request": {"method": "list_tools", "args": [], "kwargs": {}}, "response": {"success": true, "result": {"ttlMs": 0, "cacheScope": "private", "resultType": "complete", "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}, "error": null}},
    {"request": {"method": "call_tool", "args": ["t", {"a": 1}], "kwargs": {}}, "response": {"success": true, "result": {"resultType": "complete", "content": [{"type": "text", "text": "x"}], "isError": false}, "error": null}},
    {"request": {"method": "call_tool", "args": ["t", {"a": 2}], "kwargs": {}}, "response": {"success": false, "result": null, "error": "no such thing"}}
]}"##;

const WITHOUT_DEFAULTS: &str = r#"
server: { name: s, version: "1" }
capabilities: { tools: {} }
tools:
  - name: t
    input_schema: { type: object }
    answers:
      - when: { a: 1 }
        result: { content: [{ type: text, text: x }] }
      - error: { code: -32001, message: no such thing, data: { a: 2 } }
"#;

#[test]
fn members_added_by_python_models_are_not_replayed() {
    let fixture =
        Fixture::new().file("seed.jsonl", &(FILLED_IN.replace('\n', "") + "\n")).file("s.mock.yaml", WITHOUT_DEFAULTS);
    rehearse!(fixture, "rehearse verify --protocol 2025-11-25 seed.jsonl -- rehearse mock s.mock.yaml", @"
    exit: 0
    ----- stderr -----
    4 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "rehearse call t a=1 --protocol 2025-11-25 --json -- rehearse replay -q seed.jsonl", @r#"
    exit: 0
    ----- stdout -----
    {"content":[{"type":"text","text":"x"}],"isError":false}
    "#);
    // The conversion keeps the members.
    let both = "rehearse trace convert seed.jsonl t.jsonl && rehearse trace convert t.jsonl --to python";
    let output = fixture.run(&format!("({both}) | grep -o 'cacheScope\\|resultType'"));
    assert_eq!((output.matches("resultType").count(), output.matches("cacheScope").count()), (3, 1), "{output}");
}
