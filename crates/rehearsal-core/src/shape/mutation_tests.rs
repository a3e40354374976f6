//! Tests with wrong messages, each with its findings.

use super::{check_notification, check_request, check_response};
use crate::exchange::Side;
use crate::message::{Body, Message};
use crate::protocol::Revision;
use crate::report::Finding;

const OLDEST: Revision = Revision::V2024_11_05;
const MARCH: Revision = Revision::V2025_03_26;
const JUNE: Revision = Revision::V2025_06_18;
const TASKS: Revision = Revision::V2025_11_25;
const NEWEST: Revision = Revision::V2026_07_28;

/// The `_meta` that every request of 2026-07-28 has.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
/// The members that every list result of 2026-07-28 has.
const CACHED: &str = r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#;

fn message_findings(from: Side, revision: Revision, members: &str) -> Vec<Finding> {
    let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#).replace("META", META));
    match message.body() {
        Body::Request(request) => check_request(request, from, revision),
        Body::Notification(notification) => check_notification(notification, from, revision),
        Body::Response(_) | Body::Batch(_) | Body::Garbled(_) => panic!("{message:?}"),
    }
}

fn response_findings(method: &str, revision: Revision, reply: &str) -> Vec<Finding> {
    let from = if method.starts_with("sampling") || method.starts_with("elicit") { Side::Server } else { Side::Client };
    let request = Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#));
    let response = Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,{reply}}}"#).replace("CACHED", CACHED));
    let response = response.as_response().unwrap_or_else(|| panic!("{response:?}"));
    check_response(response, request.as_request().unwrap(), from, revision)
}

fn lines(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn valid_messages_have_no_findings() {
    let client = [
        (
            OLDEST,
            r#""id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"c","version":"1"}}"#,
        ),
        (OLDEST, r#""id":1,"method":"tools/list""#),
        (
            JUNE,
            r#""id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"},"context":{"arguments":{"c":"d"}}}"#,
        ),
        (
            TASKS,
            r#""id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":null},"task":{"ttl":5},"_meta":{"progressToken":1}}"#,
        ),
        (
            NEWEST,
            r#""id":1,"method":"tools/call","params":{"name":"a",META,"inputResponses":{"k":{"action":"accept","content":{"n":"x"}}},"requestState":"s"}"#,
        ),
        (
            NEWEST,
            r#""id":1,"method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}}"#,
        ),
        (OLDEST, r#""method":"notifications/roots/list_changed""#),
        (TASKS, r#""method":"notifications/cancelled","params":{"requestId":"x","reason":"y"}"#),
    ];
    for (revision, members) in client {
        assert_eq!(message_findings(Side::Client, revision, members), [], "{members}");
    }
    let server = [
        (
            MARCH,
            r#""method":"notifications/progress","params":{"progressToken":1,"progress":0.5,"total":1,"message":"m"}"#,
        ),
        (
            JUNE,
            r#""id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","format":"email"},"b":{"type":"integer","minimum":0}}}}"#,
        ),
        (
            TASKS,
            r#""id":1,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a","elicitationId":"1"}"#,
        ),
        (
            TASKS,
            r#""id":1,"method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[]}]}],"tools":[]}"#,
        ),
        (
            NEWEST,
            r#""method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#,
        ),
    ];
    for (revision, members) in server {
        assert_eq!(message_findings(Side::Server, revision, members), [], "{members}");
    }
    let answers = [
        ("tools/call", OLDEST, r#""result":{"content":[{"type":"text","text":""}],"vendor":1}"#),
        (
            "tools/call",
            TASKS,
            r#""result":{"task":{"taskId":"1","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}"#,
        ),
        (
            "tools/call",
            NEWEST,
            r#""result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[]}}}}"#,
        ),
        ("tools/call", NEWEST, r#""result":{"resultType":"complete","content":[],"structuredContent":[1]}"#),
        (
            "tools/call",
            NEWEST,
            r#""result":{"resultType":"task","taskId":"1","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null}"#,
        ),
        (
            "tasks/get",
            NEWEST,
            r#""result":{"resultType":"complete","taskId":"1","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttlMs":5,"result":{"content":[]}}"#,
        ),
        (
            "server/discover",
            NEWEST,
            r#""result":{CACHED,"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"a/b":{}}}}"#,
        ),
        ("elicitation/create", TASKS, r#""result":{"action":"accept","content":{"a":1.5,"b":["x"],"c":true}}"#),
        ("resources/read", OLDEST, r#""error":{"code":-32002,"message":"m"}"#),
        (
            "tools/call",
            NEWEST,
            r#""error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}"#,
        ),
        ("tools/call", OLDEST, r#""error":{"code":7,"message":"an error of its own"}"#),
    ];
    for (method, revision, reply) in answers {
        assert_eq!(response_findings(method, revision, reply), [], "{method} {reply}");
    }
}

#[test]
fn each_wrong_message_has_its_finding() {
    let client = |revision, members: &str| lines(&message_findings(Side::Client, revision, members));
    let server = |revision, members: &str| lines(&message_findings(Side::Server, revision, members));
    let table = [
        client(OLDEST, r#""id":1,"method":"tools/call""#),
        client(TASKS, r#""id":1,"method":"tools/call","params":{"name":7,"arguments":[]}"#),
        client(TASKS, r#""id":1,"method":"tools/call","params":["get_rain"]"#),
        client(TASKS, r#""id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1.5}}"#),
        client(NEWEST, r#""id":1,"method":"tools/list""#),
        client(NEWEST, r#""id":1,"method":"tools/list","params":{"_meta":{}}"#),
        client(NEWEST, r#""id":1,"method":"ping","params":{META}"#),
        client(MARCH, r#""id":1,"method":"server/discover""#),
        client(MARCH, r#""id":1,"method":"tools/cal""#),
        client(MARCH, r#""id":1,"method":"vendor/thing""#),
        client(MARCH, r#""id":1,"method":"roots/list""#),
        client(MARCH, r#""method":"tools/list""#),
        client(MARCH, r#""id":1,"method":"notifications/initialized""#),
        client(MARCH, r#""id":1,"method":"logging/setLevel","params":{"level":"warn"}"#),
        client(MARCH, r#""id":1,"method":"resources/read","params":{"uri":"notes.md"}"#),
        client(
            TASKS,
            r#""id":1,"method":"completion/complete","params":{"ref":{"type":"ref/tool","name":"p"},"argument":{"name":"a"}}"#,
        ),
        client(TASKS, r#""id":1,"method":"prompts/get","params":{"name":"p","arguments":{"n":5}}"#),
        client(JUNE, r#""id":1,"method":"tools/list","params":{"cursor":null}"#),
        client(JUNE, r#""id":1,"method":"tools/list","params":{"_meta":{"a b":1}}"#),
        client(OLDEST, r#""id":1,"method":"tools/call","params":{"name":"a","task":{"ttl":5}}"#),
        server(NEWEST, r#""id":1,"method":"sampling/createMessage","params":{}"#),
        server(MARCH, r#""id":1,"method":"elicitation/create","params":{}"#),
        server(
            JUNE,
            r#""id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{}}}}}"#,
        ),
        server(
            MARCH,
            r#""id":1,"method":"sampling/createMessage","params":{"messages":[{"role":"system","content":{"type":"text"}}],"max_tokens":5}"#,
        ),
        server(NEWEST, r#""method":"notifications/tools/list_changed""#),
        server(TASKS, r#""method":"notifications/progress","params":{"progressToken":1,"progress":"50"}"#),
        server(TASKS, r#""method":"notifications/message","params":{"level":"info"}"#),
    ];
    insta::assert_snapshot!(table.join("\n\n"));
}

#[test]
fn each_wrong_answer_has_its_finding() {
    let table = [
        (
            "initialize",
            MARCH,
            r#""result":{"protocolVersion":"2025-03-26","capabilities":{"tools":true},"serverInfo":{"name":"s"}}"#,
        ),
        ("tools/list", OLDEST, r#""result":{"tools":[{"name":"a","input_schema":{"type":"object"}}]}"#),
        (
            "tools/list",
            TASKS,
            r#""result":{"tools":[{"name":"a","inputSchema":{"type":"string"},"annotations":{"readOnlyHint":"yes"}}]}"#,
        ),
        ("tools/list", MARCH, r#""result":{"tools":[{"name":"a","title":"A","inputSchema":{"type":"object"}}]}"#),
        ("tools/list", NEWEST, r#""result":{"tools":[]}"#),
        ("tools/list", NEWEST, r#""result":{"resultType":"input_required","requestState":"x"}"#),
        ("tools/list", NEWEST, r#""result":{CACHED,"cacheScope":"shared","ttlMs":-1,"tools":[]}"#),
        ("tools/call", OLDEST, r#""result":{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}"#),
        ("tools/call", MARCH, r#""result":{"content":[{"type":"resource_link","uri":"a:b","name":"b"}]}"#),
        (
            "tools/call",
            TASKS,
            r#""result":{"content":[{"type":"txt","text":"hi"},{"text":"hi"},{"type":"image","data":"a b","mimeType":"image/png"}]}"#,
        ),
        ("tools/call", TASKS, r#""result":{"content":"hi"}"#),
        ("tools/call", TASKS, r#""result":{"structuredContent":[1]}"#),
        ("tools/call", TASKS, r#""result":{"content":[{"type":"resource","resource":{"uri":"a:b"}}]}"#),
        ("tools/call", NEWEST, r#""result":{"content":[]}"#),
        ("tools/call", NEWEST, r#""result":{"resultType":"input_required"}"#),
        ("tools/call", NEWEST, r#""result":{"resultType":"input_required","inputRequests":{"a":{"method":"ping"}}}"#),
        ("tools/call", NEWEST, r#""result":{"resultType":"done","content":[]}"#),
        (
            "tasks/get",
            NEWEST,
            r#""result":{"resultType":"complete","taskId":"1","status":"failed","createdAt":"x","lastUpdatedAt":"x","ttlMs":5}"#,
        ),
        ("resources/read", JUNE, r#""result":{"contents":[{"uri":"a:b","text":"t","mimeType":null}]}"#),
        ("completion/complete", JUNE, r#""result":{"completion":{"values":[1]}}"#),
        ("prompts/get", JUNE, r#""result":{"messages":[{"role":"user","content":[{"type":"text","text":"t"}]}]}"#),
        ("elicitation/create", JUNE, r#""result":{"action":"accepted","content":{"a":{}}}"#),
        ("resources/read", NEWEST, r#""error":{"code":-32002,"message":"m"}"#),
        ("tools/call", NEWEST, r#""error":{"code":-32021,"message":"m","data":{"requiredCapabilities":["sampling"]}}"#),
        ("tools/call", NEWEST, r#""error":{"code":-32022,"message":"m"}"#),
        ("tools/call", NEWEST, r#""error":{"code":-32050,"message":"m"}"#),
        ("tools/call", OLDEST, r#""error":{"code":-32500,"message":"m"}"#),
        (
            "tools/call",
            TASKS,
            r#""error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","message":"m","url":"https://a"}]}}"#,
        ),
    ];
    let message_findings: Vec<String> =
        table.iter().map(|(method, revision, reply)| lines(&response_findings(method, *revision, reply))).collect();
    insta::assert_snapshot!(message_findings.join("\n\n"));
}

#[test]
fn findings_beyond_the_limit_are_counted() {
    let blocks = vec![r#"{"type":"text"}"#; 50].join(",");
    let findings = response_findings("tools/call", TASKS, &format!(r#""result":{{"content":[{blocks}]}}"#));
    assert_eq!(findings.len(), super::MAX_FINDINGS + 1);
    assert_eq!(
        findings.last().unwrap().to_string(),
        "error: 30 more mismatches in the result of tools/call in 2025-11-25"
    );
}

#[test]
fn a_too_deep_result_is_not_checked_but_a_huge_number_is() {
    assert_eq!(response_findings("tools/call", TASKS, r#""result":{"content":[],"x":1e400}"#), []);
    let deep = format!(r#""result":{{"content":[],"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let findings = response_findings("tools/call", TASKS, &deep);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.starts_with("result of tools/call cannot be checked"), "{findings:?}");
}
