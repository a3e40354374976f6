//! The same in 2026-07-28, over stdio. HTTP+SSE has no such era.

use rehearsal::core::exchange::Side;
use rehearsal::core::protocol::Revision;
use serde_json::json;

use crate::peer::{Peer, Transport, example};
use crate::play::play;

/// Nobody can be asked for anything.
const NO_CAPABILITIES: &str = r#""_meta":{"io.modelcontextprotocol/clientCapabilities":{}}"#;

const PLAYS: &[(&str, &str)] = &[
    (
        "server-stateless: discover",
        r#"
        > server/discover
        < {"resultType":"complete","capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"conformance"}}}
        "#,
    ),
    (
        "server-stateless: removed methods",
        r#"
        > initialize {"protocolVersion":"2026-07-28"}
        x {"code":-32601}
        > ping
        x {"code":-32601}
        > logging/setLevel {"level":"info"}
        x {"code":-32601}
        > resources/subscribe {"uri":"test://watched-resource"}
        x {"code":-32601}
        "#,
    ),
    (
        "server-stateless: what every request must say",
        r#"
        > tools/list {"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}
        x {"code":-32022,"data":{"requested":"2099-01-01"}}
        > tools/list {"_meta":{"io.modelcontextprotocol/clientCapabilities":[]}}
        x {"code":-32602}
        > tools/list {"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}
        x {"code":-32602}
        > tools/call {"name":"test_missing_capability",NO_CAPABILITIES}
        x {"code":-32021,"data":{"requiredCapabilities":{"sampling":{}}}}
        "#,
    ),
    (
        "server-stateless: log messages for those who want them",
        r#"
        >> tools/call {"name":"test_logging_tool","_meta":{"io.modelcontextprotocol/logLevel":"info"}}
        ! notifications/message {"level":"info","data":"Logged"}
        < {"content":[{"text":"Done"}]}
        "#,
    ),
    (
        "server-stateless: subscriptions",
        r#"
        >> subscriptions/listen {"notifications":{"toolsListChanged":true}}
        ! notifications/subscriptions/acknowledged {"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}
        > tools/call {"name":"test_trigger_prompt_change"}
        < {"content":[{"text":"Told"}]}
        > tools/call {"name":"test_trigger_tool_change"}
        < {"content":[{"text":"Told"}]}
        ! notifications/tools/list_changed {"_meta":{}}
        "#,
    ),
    (
        "caching",
        r#"
        > tools/list
        < {"ttlMs":0,"cacheScope":"private"}
        > resources/read {"uri":"test://static-text"}
        < {"ttlMs":0,"cacheScope":"private"}
        "#,
    ),
    (
        "input-required-result-basic-elicitation, -missing-input-response, -ignore-extra-params",
        r#"
        > tools/call {"name":"test_input_required_result_elicitation"}
        < {"resultType":"input_required","inputRequests":{"user_name":{"method":"elicitation/create"}}}
        > tools/call {"name":"test_input_required_result_elicitation","requestState":"$STATE","inputResponses":{"wrong":{"action":"accept","content":{}}}}
        < {"resultType":"input_required","inputRequests":{"user_name":{"method":"elicitation/create"}}}
        > tools/call {"name":"test_input_required_result_elicitation","requestState":"$STATE","inputResponses":{"user_name":{"action":"accept","content":{"name":"Ada"}},"more":{"action":"decline"}}}
        < {"resultType":"complete","content":[{"text":"Hello, Ada!"}]}
        "#,
    ),
    (
        "input-required-result-basic-sampling",
        r#"
        > tools/call {"name":"test_input_required_result_sampling"}
        < {"resultType":"input_required","inputRequests":{"capital_question":{"method":"sampling/createMessage","params":{"maxTokens":100}}}}
        > tools/call {"name":"test_input_required_result_sampling","requestState":"$STATE","inputResponses":{"capital_question":{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}}}
        < {"resultType":"complete","content":[{"text":"The model says: Paris"}]}
        "#,
    ),
    (
        "input-required-result-basic-list-roots",
        r#"
        > tools/call {"name":"test_input_required_result_list_roots"}
        < {"resultType":"input_required","inputRequests":{"client_roots":{"method":"roots/list"}}}
        > tools/call {"name":"test_input_required_result_list_roots","requestState":"$STATE","inputResponses":{"client_roots":{"roots":[{"uri":"file:///a"}]}}}
        < {"resultType":"complete","content":[{"text":"Folders: file:///a"}]}
        "#,
    ),
    (
        "input-required-result-multiple-input-requests",
        r#"
        > tools/call {"name":"test_input_required_result_multiple_inputs"}
        < {"resultType":"input_required","inputRequests":{"user_name":{},"greeting":{},"client_roots":{}}}
        > tools/call {"name":"test_input_required_result_multiple_inputs","requestState":"$STATE","inputResponses":{"user_name":{"action":"accept","content":{"name":"Ada"}},"greeting":{"role":"assistant","content":{"type":"text","text":"Hi"},"model":"m"},"client_roots":{"roots":[]}}}
        < {"resultType":"complete","content":[{"text":"Hi Ada, 0 folders"}]}
        "#,
    ),
    (
        "input-required-result-multi-round",
        r#"
        > tools/call {"name":"test_input_required_result_multi_round"}
        < {"resultType":"input_required","inputRequests":{"step1":{}}}
        > tools/call {"name":"test_input_required_result_multi_round","requestState":"$STATE","inputResponses":{"step1":{"action":"accept","content":{"name":"Ada"}}}}
        < {"resultType":"input_required","inputRequests":{"step2":{}}}
        > tools/call {"name":"test_input_required_result_multi_round","requestState":"$STATE","inputResponses":{"step2":{"action":"accept","content":{"color":"green"}}}}
        < {"resultType":"complete","content":[{"text":"Ada likes green"}]}
        "#,
    ),
    (
        "input-required-result-tampered-state",
        r#"
        > tools/call {"name":"test_input_required_result_tampered_state"}
        < {"resultType":"input_required"}
        > tools/call {"name":"test_input_required_result_tampered_state","requestState":"$STATE-tampered","inputResponses":{"confirm":{"action":"accept","content":{"ok":true}}}}
        x {"code":-32602}
        "#,
    ),
    (
        "input-required-result-non-tool-request",
        r#"
        > prompts/get {"name":"test_input_required_result_prompt"}
        < {"resultType":"input_required","inputRequests":{"user_context":{"method":"elicitation/create"}}}
        > prompts/get {"name":"test_input_required_result_prompt","requestState":"$STATE","inputResponses":{"user_context":{"action":"accept","content":{"context":"rain"}}}}
        < {"resultType":"complete","messages":[{"content":{"text":"Context: rain"}}]}
        "#,
    ),
    (
        "input-required-result-capability-check",
        r#"
        > tools/call {"name":"test_input_required_result_capabilities","_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}
        < {"resultType":"input_required","inputRequests":{"words":{"method":"sampling/createMessage"}}}
        > tools/call {"name":"test_input_required_result_capabilities",NO_CAPABILITIES}
        < {"resultType":"complete","content":[{"text":"There is nothing to ask"}]}
        "#,
    ),
    (
        "tasks-lifecycle, tasks-wire-fields",
        r#"
        > tools/call {"name":"slow_compute","arguments":{"seconds":0,"label":"x"}}
        < {"resultType":"task","ttlMs":300000,"pollIntervalMs":200}
        ~ tasks/get {"taskId":"$TASK"} {"resultType":"complete","status":"completed","result":{"content":[{"text":"Computed x"}]}}
        > tools/call {"name":"slow_compute","arguments":{"seconds":60}}
        < {"resultType":"task","status":"working"}
        > tasks/cancel {"taskId":"$TASK"}
        < {"resultType":"complete"}
        > tasks/cancel {"taskId":"$TASK"}
        < {"resultType":"complete"}
        ~ tasks/get {"taskId":"$TASK"} {"status":"cancelled"}
        > tools/call {"name":"protocol_error_job"}
        < {"resultType":"task"}
        ~ tasks/get {"taskId":"$TASK"} {"status":"failed","error":{"code":-32603}}
        > tools/call {"name":"greet","arguments":{"name":"Ada"}}
        < {"resultType":"complete","content":[{"text":"Hello, Ada!"}]}
        "#,
    ),
    (
        "tasks-capability-negotiation, tasks-required-task-error",
        r#"
        > tools/call {"name":"slow_compute","arguments":{"seconds":0,"label":"x"},NO_CAPABILITIES}
        < {"resultType":"complete","content":[{"text":"Computed x"}]}
        > tools/call {"name":"failing_job",NO_CAPABILITIES}
        x {"code":-32021,"data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
        > tasks/get {"taskId":"no-such-task",NO_CAPABILITIES}
        x {"code":-32021}
        "#,
    ),
    (
        "tasks-dispatch-and-envelope",
        r#"
        > tasks/result {"taskId":"no-such-task"}
        x {"code":-32601}
        > tasks/list
        x {"code":-32601}
        > tasks/get {"taskId":"no-such-task"}
        x {"code":-32602}
        "#,
    ),
    (
        "tasks-mrtr-input",
        r#"
        > tools/call {"name":"multi_input"}
        < {"resultType":"task"}
        ~ tasks/get {"taskId":"$TASK"} {"status":"input_required","inputRequests":{"first":{},"second":{}}}
        > tasks/update {"taskId":"$TASK","inputResponses":{"first":{"action":"accept","content":{"value":"1"}}}}
        < {"resultType":"complete"}
        ~ tasks/get {"taskId":"$TASK"} {"status":"input_required","inputRequests":{"second":{}}}
        > tasks/update {"taskId":"$TASK","inputResponses":{"second":{"action":"accept","content":{"value":"2"}}}}
        < {"resultType":"complete"}
        ~ tasks/get {"taskId":"$TASK"} {"status":"completed"}
        "#,
    ),
    (
        "tasks-mrtr-composition",
        r#"
        > tools/call {"name":"test_tool_with_task"}
        < {"resultType":"input_required","inputRequests":{"user_name":{}}}
        > tools/call {"name":"test_tool_with_task","requestState":"$STATE","inputResponses":{"user_name":{"action":"accept","content":{"name":"Ada"}}}}
        < {"resultType":"task"}
        ~ tasks/get {"taskId":"$TASK"} {"status":"completed","result":{"content":[{"text":"Done for Ada"}]}}
        "#,
    ),
];

#[tokio::test]
async fn every_play_over_stdio() {
    let mut peer = Peer::ready(&example("conformance.mock.yaml"), Transport::Stdio, Revision::V2026_07_28).await;
    for (name, lines) in PLAYS {
        play(&mut peer, name, &lines.replace("NO_CAPABILITIES", NO_CAPABILITIES)).await;
    }
    peer.end().await;
}

#[tokio::test]
async fn lists_never_ask_and_logs_are_not_told_to_those_who_did_not_want_them() {
    let mut peer = Peer::ready(&example("conformance.mock.yaml"), Transport::Stdio, Revision::V2026_07_28).await;
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"] {
        assert_eq!(peer.ask(method, None).await["result"]["resultType"], "complete", "{method}");
    }
    peer.ask("tools/call", Some(json!({"name": "test_tool_with_logging"}))).await;
    // The answer to a later question is later than everything that was told before.
    peer.ask("server/discover", None).await;
    assert_eq!(peer.findings(Side::Server), [""; 0]);
    assert_eq!(peer.waiting(), 0, "a log message came");
    peer.end().await;
}
