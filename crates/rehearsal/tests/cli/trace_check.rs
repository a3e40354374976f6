//! `rehearse trace check`

use crate::fixture::{Fixture, MOCK, rehearse};

/// Both eras, right and wrong.
const MIXED: &str = concat!(
    r#"{"format":1,"session_id":"handshake","server_info":{"name":"weather","version":"1.2"},"started_at":null,"metadata":{},"calls":["#,
    r#"{"request":{"seq":0,"at_ms":0,"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}},"response":{"seq":1,"at_ms":1,"success":true,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"1.2"}}},"duration_ms":1},"#,
    r#"{"request":{"seq":3,"at_ms":3,"id":1,"method":"tools/list"},"response":{"seq":4,"at_ms":4,"success":true,"result":{"tools":[{"name":"get_forecast","title":"Forecast","inputSchema":{"type":"object"}}]}},"duration_ms":1},"#,
    r#"{"request":{"seq":5,"at_ms":5,"id":2,"method":"tools/call","params":{"name":"get_forecast"}},"response":{"seq":8,"at_ms":8,"success":true,"result":{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}},"duration_ms":3}],"#,
    r#""messages":[{"type":"notification","seq":2,"at_ms":2,"from":"client","method":"notifications/initialized"},"#,
    r#"{"type":"garbled","seq":6,"at_ms":6,"from":"server","reason":"not JSON: expected value at line 1 column 1","text":"Server running on stdio"},"#,
    r#"{"type":"notification","seq":7,"at_ms":7,"from":"server","method":"notifications/progress","params":{"progress_token":7,"progress":"2"}}],"#,
    r#""ended_at":null,"end":null}"#,
    "\n",
    r#"{"format":1,"session_id":"stateless","server_info":{"url":"http://127.0.0.1:3000/mcp"},"started_at":null,"metadata":{},"calls":["#,
    r#"{"request":{"seq":1,"at_ms":1,"channel":1,"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}},"response":{"seq":3,"at_ms":3,"success":true,"result":{"tools":[]}},"duration_ms":2},"#,
    r#"{"request":{"seq":5,"at_ms":5,"channel":2,"id":2,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}},"response":{"seq":7,"at_ms":7,"success":false,"error":{"code":-32601,"message":"no such method"}},"duration_ms":2}],"#,
    r#""messages":[{"type":"http","seq":0,"at_ms":0,"from":"client","channel":1,"http":{"method":"POST","target":"/mcp","headers":[["MCP-Protocol-Version","2026-07-28"],["Mcp-Method","tools/call"]]}},"#,
    r#"{"type":"http","seq":2,"at_ms":2,"from":"server","channel":1,"http":{"status":200,"headers":[]}},"#,
    r#"{"type":"http","seq":4,"at_ms":4,"from":"client","channel":2,"http":{"method":"POST","target":"/mcp","headers":[["Mcp-Method","ping"]]}},"#,
    r#"{"type":"http","seq":6,"at_ms":6,"from":"server","channel":2,"http":{"status":200,"headers":[]}}],"#,
    r#""ended_at":null,"end":null}"#,
    "\n",
);

fn fixture() -> Fixture {
    Fixture::new().file("trace.jsonl", MIXED)
}

#[test]
fn each_finding_names_its_message_path_and_expectation() {
    rehearse!(fixture(), "rehearse trace check", @r#"
    exit: 1
    ----- stdout -----
    session 1  handshake  weather 1.2
      error: wrong result of tools/call in 2024-11-05 (message 8)
        $.result.content[0].type: expected "text", "image" or "resource", got "audio"
        hint: "audio" exists in 2025-03-26 and later
      error: not a message: not JSON: expected value at line 1 column 1 (message 6)
      error: wrong params of notifications/progress in 2024-11-05 (message 7)
        $.params.progressToken: missing, expected a string or an integer
        hint: `progress_token` is written `progressToken`
      error: wrong params of notifications/progress in 2024-11-05 (message 7)
        $.params.progress: expected a number, got "2"
        hint: write it without quotes
    session 2  stateless
      error: wrong headers of tools/list in 2026-07-28: header Mcp-Method is "tools/call", the body has "tools/list" (message 0)
        hint: headers repeat values of the body; servers reject a request whose headers differ
      error: wrong result of tools/list in 2026-07-28 (message 3)
        $.result.ttlMs: missing, expected an integer from 0
        hint: `ttlMs` is required in 2026-07-28
      error: wrong result of tools/list in 2026-07-28 (message 3)
        $.result.cacheScope: missing, expected "public" or "private"
        hint: `cacheScope` is required in 2026-07-28
      error: wrong result of tools/list in 2026-07-28 (message 3)
        $.result.resultType: missing, expected "complete"
        hint: `resultType` is required in 2026-07-28
      error: 2026-07-28 has no request ping (message 5)
        hint: `ping` exists in versions up to 2025-11-25
      error: wrong headers of ping in 2026-07-28: header MCP-Protocol-Version is missing (message 4)
        hint: every POST has the header `MCP-Protocol-Version: 2026-07-28`
      error: wrong status 200 for error -32601 of ping in 2026-07-28 (message 6)
        hint: -32601 comes with status 404
    ----- stderr -----
    2 sessions, 13 messages: 11 errors, no warnings, 1 note
    hint: `--notes` prints the notes too
    "#);
}

#[test]
fn findings_are_filtered_by_side_and_include_notes_on_demand() {
    rehearse!(fixture(), "rehearse trace check --from server --notes | head -4", @r#"
    exit: 0
    ----- stdout -----
    session 1  handshake  weather 1.2
      note: result of tools/list with a key that 2024-11-05 does not define (message 4)
        $.result.tools[0].title: expected no such key in 2024-11-05, got "Forecast"
        hint: `title` exists in 2025-06-18 and later
    ----- stderr -----
    2 sessions, 13 messages: 8 errors, no warnings, 1 note
    "#);
}

#[test]
fn findings_are_json_for_programs() {
    rehearse!(fixture(), "rehearse trace check --json - < trace.jsonl | sed -n '1p;3p'", @r#"
    exit: 0
    ----- stdout -----
    {"file":"stdin","session":1,"session_id":"handshake","sequence":8,"from":"server","method":"tools/call","version":"2024-11-05","severity":"error","message":"wrong result of tools/call in 2024-11-05","path":"$.result.content[0].type","expected":"\"text\", \"image\" or \"resource\"","got":"\"audio\"","hint":"\"audio\" exists in 2025-03-26 and later"}
    {"file":"stdin","session":1,"session_id":"handshake","sequence":7,"from":"server","method":"notifications/progress","version":"2024-11-05","severity":"error","message":"wrong params of notifications/progress in 2024-11-05","path":"$.params.progressToken","expected":"a string or an integer","got":null,"hint":"`progress_token` is written `progressToken`"}
    ----- stderr -----
    2 sessions, 13 messages: 11 errors, no warnings, 1 note
    hint: `--notes` prints the notes too
    "#);
}

#[test]
fn messages_of_a_mock_and_of_the_client_conform_to_every_version() {
    let fixture = Fixture::new();
    let line = format!(
        "for version in 2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28; do \
                rehearse list --protocol $version -- rehearse record -q -o trace.jsonl -- rehearse mock {MOCK} >/dev/null || exit 9; \
                done; rehearse trace check --strict --notes"
    );
    rehearse!(fixture, &line, @"
    exit: 0
    ----- stderr -----
    tiny-mock 1.0, protocol 2024-11-05
    tiny-mock 1.0, protocol 2025-03-26
    tiny-mock 1.0, protocol 2025-06-18
    tiny-mock 1.0, protocol 2025-11-25
    tiny-mock 1.0, protocol 2026-07-28
    5 sessions, 54 messages: no errors, no warnings, no notes
    ");
}

#[test]
fn an_invalid_file_and_a_malformed_line_are_reported() {
    rehearse!(Fixture::new().file("a.txt", "hello\n"), "rehearse trace check a.txt", @r#"
    exit: 2
    ----- stderr -----
    error: a.txt: not a recording: it begins with "hello"
    hint: a trace has one session a line, a journal one message a line; `rehearse record` writes both
    "#);
    let broken = format!("{{\"format\":1,\"session_id\":5}}\n{MIXED}");
    let fixture = Fixture::new().file("trace.jsonl", &broken);
    rehearse!(fixture, "rehearse trace check", @r"
    exit: 2
    ----- stderr -----
    error: trace.jsonl, line 1, column 26: invalid type: integer `5`, expected a string
    hint: `--skip-bad` continues with the next line
    ");
    rehearse!(fixture, "rehearse trace check --skip-bad --from client", @r#"
    exit: 1
    ----- stdout -----
    session 2  stateless
      error: wrong headers of tools/list in 2026-07-28: header Mcp-Method is "tools/call", the body has "tools/list" (message 0)
        hint: headers repeat values of the body; servers reject a request whose headers differ
      error: 2026-07-28 has no request ping (message 5)
        hint: `ping` exists in versions up to 2025-11-25
      error: wrong headers of ping in 2026-07-28: header MCP-Protocol-Version is missing (message 4)
        hint: every POST has the header `MCP-Protocol-Version: 2026-07-28`
    ----- stderr -----
    skipped: trace.jsonl, line 1, column 26: invalid type: integer `5`, expected a string
    2 sessions, 13 messages: 3 errors, no warnings, no notes
    "#);
}
