//! Generated servers are code: an author changes how requests are matched and what is answered.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::generated::{Trace, built};
use crate::installation::python;
use crate::recorded::rehearse;

/// Writes a recording of a server with the tool `odd`, which answered once, and the prompt `p`.
fn record(trace: &Trace) {
    let exchanges = [
        (
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}),
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}},
                "serverInfo": {"name": "odd", "version": "1"}}),
        ),
        ("tools/list", json!({}), json!({"tools": [{"name": "odd", "inputSchema": {"type": "object"}}]})),
        (
            "tools/call",
            json!({"name": "odd", "arguments": {"turn": 4}}),
            json!({"content": [{"type": "text", "text": "plain"}]}),
        ),
        ("prompts/list", json!({}), json!({"prompts": [{"name": "p"}]})),
        ("prompts/get", json!({"name": "p"}), json!({"messages": []})),
    ];
    let start = json!({"type": "start", "format": 1, "session_id": "s", "server_info": {"transport": "stdio"},
        "started_at": "2026-07-28T12:00:00Z", "metadata": {}});
    let mut lines = vec![start];
    for (id, (method, params, result)) in exchanges.into_iter().enumerate() {
        lines.push(json!({"seq": 2 * id, "at_ms": 2 * id, "from": "client", "type": "request", "id": id, "method": method, "params": params}));
        lines.push(json!({"seq": 2 * id + 1, "at_ms": 2 * id + 1, "from": "server", "type": "response", "id": id, "result": result}));
    }
    let lines: String = lines.iter().map(|line: &Value| format!("{line}\n")).collect();
    std::fs::write(trace.path("trace.jsonl"), lines).unwrap();
}

/// Runs a line in the folder of a recording, with the generated server as `$@`; what it printed.
fn printed(trace: &Trace, line: &str, server: &[String]) -> String {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line, "sh"]).args(server).current_dir(trace.path(".")).stdin(Stdio::null());
    shell.env("REHEARSE", rehearse());
    let ran = shell.output().unwrap();
    String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap()
}

#[test]
fn an_author_overrides_matching_and_answers_in_generated_python() {
    let trace = Trace::new();
    record(&trace);
    trace.generate("python");
    std::fs::rename(trace.path("generated.python"), trace.path("odd_server.py")).unwrap();
    let mine = r#"
import asyncio

import mcp_types as types
from odd_server import MockMCPServer


class MyServer(MockMCPServer):
    def _find_matching_response(self, method, params):
        if params.get("arguments") == {"turn": "mine"}:
            return {"result": {"content": [{"type": "text", "text": "matched"}]}}
        return super()._find_matching_response(method, params)

    async def handle_get_prompt(self, context, params):
        content = types.TextContent(text="mine")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


asyncio.run(MyServer().run())
"#;
    std::fs::write(trace.path("mine.py"), mine).unwrap();
    let server = [python("python").to_str().unwrap().to_owned(), trace.name("mine.py")];
    let line = "for turn in '\"mine\"' 4 6; do $REHEARSE call odd --args \"{\\\"turn\\\":$turn}\" -- \"$@\"; done 2>&1; \
                $REHEARSE prompt p -- \"$@\"; $REHEARSE request tools/call --params '{\"name\":\"none\"}' -- \"$@\"";
    let output = printed(&trace, line, &server);
    let lines: Vec<_> = output.lines().collect();
    let nothing = "error: -32602: Nothing was recorded for these arguments of odd";
    assert_eq!(lines[..3], ["matched", "plain", nothing], "{output}");
    assert!(output.contains("mine"), "{output}");
    assert!(output.contains("Unknown tool: none"), "{output}");
}

#[test]
fn an_author_changes_the_answers_of_a_generated_rust_project() {
    let trace = Trace::new();
    record(&trace);
    trace.generate("rust");
    let matching = trace.path("generated.rust/src/matching.rs");
    let source = std::fs::read_to_string(&matching).unwrap();
    // The example in the comment, as it is.
    let example: String = source
        .lines()
        .filter_map(|line| line.strip_prefix("    /// "))
        .skip_while(|line| *line != "```text")
        .skip(1)
        .take_while(|line| *line != "```")
        .map(|line| format!("        {line}\n"))
        .collect();
    assert!(example.contains("return Some(Response"), "{example}");
    let beginning = "-> Option<Response> {\n";
    let changed = source.replacen(beginning, &format!("{beginning}{example}"), 1);
    std::fs::write(&matching, changed).unwrap();
    let server = [built(&trace.path("generated.rust")).to_str().unwrap().to_owned()];
    let line = "for tool in now none odd; do $REHEARSE request tools/call --params \"{\\\"name\\\":\\\"$tool\\\"}\" -- \"$@\"; done 2>&1";
    let output = printed(&trace, line, &server);
    assert!(output.contains("SystemTime"), "{output}");
    assert!(output.contains("Unknown tool: none"), "{output}");
    assert!(output.contains("Nothing was recorded for these arguments of odd"), "{output}");
}
