//! Servers made from recordings of things that no SDK has a type for: they say them all the same.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use rehearsal::Client;
use rehearsal::client::Asked;
use rehearsal::core::message::Method;
use serde_json::{Value, json};

use crate::generated::{Trace, verified};
use crate::installed::{TIMEOUT, python};
use crate::recorded::rehearse;

/// A call: method, params and the answer, a result or an error.
pub(crate) type Called = (&'static str, Value, Value);

/// What a server may declare, and more.
fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": false, "own": {"a": 1}},
        "resources": {},
        "prompts": {},
        "completions": {"own": []},
        "experimental": {"own/thing": {"x": [1]}},
        "extensions": {"com.example/ui": {"mimeTypes": ["text/html"]}, "io.modelcontextprotocol/tasks": {}},
        "tasks": {"list": {}},
        "own": {"deep": true},
    })
}

/// What the types of the SDKs lose, add or refuse.
fn odd() -> Vec<Called> {
    let call = |turn: u64, result: Value| ("tools/call", json!({"name": "odd", "arguments": {"turn": turn}}), result);
    let tool = json!({"name": "odd", "inputSchema": {"type": "object", "own": null}, "own": {"x": null},
        "execution": {"taskSupport": "optional", "own": 1}, "annotations": {"own": true}});
    let chart = json!({"type": "chart", "points": [1, 2.5, null]});
    vec![
        ("tools/list", json!({}), json!({"tools": [tool, {"name": "ask", "inputSchema": {"type": "object"}}]})),
        call(1, json!({"content": [{"type": "text", "text": "a", "own": 1}, chart, {"type": "text", "text": "b"}]})),
        call(2, json!({"content": [], "isError": false})),
        call(
            3,
            json!({"content": [chart], "structuredContent": {"a": null, "n": 123456789.12345679}, "isError": true, "own": "field"}),
        ),
        call(4, json!({"content": [{"type": "text", "text": "plain", "annotations": {"priority": 0.9}}]})),
        call(5, json!({"code": -32000, "message": "no", "data": {"retry": null}})),
        (
            "resources/list",
            json!({}),
            json!({"resources": [{"uri": "note://a", "name": "a", "own": 1, "annotations": {"own": 2}}]}),
        ),
        (
            "resources/read",
            json!({"uri": "note://a"}),
            json!({"contents": [{"uri": "note://a", "text": "A", "own": 1}, {"uri": "note://b", "chart": [1]}]}),
        ),
        (
            "prompts/list",
            json!({}),
            json!({"prompts": [{"name": "p", "own": 1, "arguments": [{"name": "x", "own": 2}]}]}),
        ),
        (
            "prompts/get",
            json!({"name": "p"}),
            json!({"messages": [{"role": "user", "content": chart}, {"role": "critic", "content": {"type": "text", "text": "x"}}]}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}}),
            json!({"completion": {"values": ["a"], "own": 1}}),
        ),
        ("resources/templates/list", json!({}), json!({"code": -32601, "message": "Not here", "data": [1]})),
        ("own/method", json!({"a": 1}), json!({"code": -32601, "message": "Method not found"})),
    ]
}

/// Writes a journal of one session of 2025-11-25.
fn with_handshake(trace: &Trace, calls: &[Called]) {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"url": {}}},
        "clientInfo": {"name": "client", "version": "1"}});
    let introduced = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities(),
        "serverInfo": {"name": "odd", "version": "1"}});
    let mut messages = vec![
        ("client", json!({"type": "request", "id": 0, "method": "initialize", "params": hello})),
        ("server", json!({"type": "response", "id": 0, "result": introduced})),
        ("client", json!({"type": "notification", "method": "notifications/initialized"})),
    ];
    messages.extend(called(calls));
    journal(trace, messages);
}

/// The same of 2026-07-28.
pub(crate) fn stateless(trace: &Trace, calls: &[Called]) {
    let about = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"}});
    let discovered = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities(),
        "ttlMs": 0, "cacheScope": "private"});
    let mut all = vec![("server/discover", json!({}), discovered)];
    all.extend(calls.iter().cloned());
    for (method, params, answer) in &mut all {
        params["_meta"] = about.clone();
        let Some(result) = answer.as_object_mut().filter(|answer| !answer.contains_key("code")) else { continue };
        result
            .insert("_meta".to_owned(), json!({"io.modelcontextprotocol/serverInfo": {"name": "odd", "version": "1"}}));
        let kind = result.entry("resultType").or_insert(json!("complete")).clone();
        if kind == "complete" && (method.ends_with("/list") || *method == "resources/read") {
            result.insert("ttlMs".to_owned(), json!(0));
            result.insert("cacheScope".to_owned(), json!("private"));
        }
    }
    journal(trace, called(&all));
}

pub(crate) fn called(calls: &[Called]) -> Vec<(&'static str, Value)> {
    let mut messages = Vec::new();
    for (at, (method, params, answer)) in calls.iter().enumerate() {
        let key = if answer.get("code").is_some() { "error" } else { "result" };
        messages.push(("client", json!({"type": "request", "id": at + 1, "method": method, "params": params})));
        messages.push(("server", json!({"type": "response", "id": at + 1, key: answer})));
    }
    messages
}

pub(crate) fn journal(trace: &Trace, messages: Vec<(&str, Value)>) {
    let start = json!({"type": "start", "format": 1, "session_id": "s", "server_info": {"transport": "stdio"},
        "started_at": "2026-07-28T12:00:00Z", "metadata": {}});
    let lines = messages.into_iter().enumerate().map(|(at, (from, mut message))| {
        (message["seq"], message["at_ms"], message["from"]) = (at.into(), at.into(), from.into());
        message.to_string()
    });
    let lines: String = std::iter::once(start.to_string()).chain(lines).map(|line| line + "\n").collect();
    std::fs::write(trace.path("trace.jsonl"), lines).unwrap();
}

/// A question that sends somebody to a URL, and what follows.
fn signing_in() -> [Called; 2] {
    let question = json!({"method": "elicitation/create",
        "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/sign-in"}});
    let asked = json!({"resultType": "input_required", "inputRequests": {"sign_in": question}, "requestState": "s"});
    let call = json!({"name": "ask", "arguments": {}});
    let mut back = call.clone();
    back["requestState"] = json!("s");
    back["inputResponses"] = json!({"sign_in": {"action": "accept"}});
    [("tools/call", call, asked), ("tools/call", back, json!({"content": [{"type": "text", "text": "signed in"}]}))]
}

/// Runs a line in the folder of a recording, with the generated server as `$@`; what it printed.
pub(crate) fn printed(trace: &Trace, line: &str, server: &[String]) -> String {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line, "sh"]).args(server).current_dir(trace.path(".")).stdin(Stdio::null());
    shell.env("REHEARSE", rehearse());
    let ran = shell.output().unwrap();
    String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap()
}

#[test]
fn what_no_sdk_has_a_type_for_is_said_as_it_was_recorded() {
    for era in ["handshake", "stateless"] {
        let trace = Trace::new();
        match era {
            "handshake" => with_handshake(&trace, &odd()),
            _ => stateless(&trace, &[&odd()[..], &signing_in()].concat()),
        }
        for kind in ["python", "rust"] {
            let server: Vec<OsString> = trace.generate(kind).into_iter().map(OsString::from).collect();
            let (status, said) = verified(&trace, &[], &server);
            assert_eq!(status, Some(0), "{kind}, {era}: {said}");
        }
    }
}

/// What a client that declares this is asked before its call is answered.
async fn asked(server: &[String], protocol: &str, declared: Value) -> Vec<Value> {
    let (sender, asked) = mpsc::channel();
    let accepts = move |question: &Asked| {
        let mut params = question.params.clone();
        // An SDK may ask for progress by itself.
        params.as_object_mut().unwrap().remove("_meta");
        sender.send(params).unwrap();
        Ok(json!({"action": "accept"}))
    };
    let client =
        Client::command(&server[0]).arguments(&server[1..]).timeout(TIMEOUT).protocol(protocol.parse().unwrap());
    let client = client.answering(|answers| answers.on(Method::ELICITATION, accepts)).capabilities(declared);
    let client = client.connect().await.unwrap();
    let answer = client.call_tool("ask", json!({})).await.unwrap();
    assert_eq!(answer.content(), "signed in");
    client.close().await;
    asked.try_iter().collect()
}

#[tokio::test]
async fn whoever_takes_urls_is_sent_to_the_recorded_one_in_both_eras() {
    let trace = Trace::new();
    stateless(&trace, &signing_in());
    let url = json!({"mode": "url", "message": "Sign in", "url": "https://example.com/sign-in"});
    // Before 2026-07-28 it has an id.
    let mut named = url.clone();
    named["elicitationId"] = json!("sign_in");
    for kind in ["python", "rust"] {
        let server = trace.generate(kind);
        for (protocol, expected) in [("2026-07-28", &url), ("2025-11-25", &named)] {
            let seen = asked(&server, protocol, json!({"elicitation": {"url": {}}})).await;
            assert_eq!(seen, std::slice::from_ref(expected), "{kind}, {protocol}");
            // Whoever takes forms only is not asked, and what was recorded goes on.
            assert!(asked(&server, protocol, json!({"elicitation": {}})).await.is_empty(), "{kind}, {protocol}");
        }
    }
}

#[test]
fn a_person_overrides_how_requests_are_matched_and_what_is_answered() {
    let trace = Trace::new();
    with_handshake(&trace, &odd());
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
    let said = printed(&trace, line, &server);
    let lines: Vec<_> = said.lines().collect();
    let nothing = "error: -32602: Nothing was recorded for these arguments of odd";
    assert_eq!(lines[..3], ["matched", "plain", nothing], "{said}");
    assert!(said.contains("mine"), "{said}");
    assert!(said.contains("Unknown tool: none"), "{said}");
}
