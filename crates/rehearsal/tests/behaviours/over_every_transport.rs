//! Everything that `examples/conformance.mock.yaml` can do, over stdio and HTTP+SSE.
//!
//! Each play is named after what it shows.

use rehearsal::core::protocol::Revision;
use rehearsal::core::shape::Versions;
use serde_json::json;

use crate::peer::{Peer, Transport, example};
use crate::play::play;

const ALL: Versions = Versions::ALL;
const LEGACY: Versions = Versions { since: Revision::V2024_11_05, until: Revision::V2025_11_25 };
const OLD: Versions = Versions { since: Revision::V2024_11_05, until: Revision::V2025_03_26 };
const FORMS: Versions = Versions { since: Revision::V2025_06_18, until: Revision::V2025_11_25 };
const FORMS_ONLY: Versions = Versions { since: Revision::V2025_06_18, until: Revision::V2025_06_18 };
const TASKS: Versions = Versions { since: Revision::V2025_11_25, until: Revision::V2025_11_25 };
const SINCE_MARCH: Versions = Versions { since: Revision::V2025_03_26, until: Revision::V2026_07_28 };
const OLDEST: Versions = Versions { since: Revision::V2024_11_05, until: Revision::V2024_11_05 };
const MODERN: Versions = Versions { since: Revision::V2026_07_28, until: Revision::V2026_07_28 };

/// The image of the mock.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// Its name, who has it, and what is said.
const PLAYS: &[(&str, Versions, &str)] = &[
    ("ping", LEGACY, "> ping\n< {}"),
    ("logging-set-level", LEGACY, "> logging/setLevel {\"level\":\"info\"}\n< {}"),
    (
        "completion-complete",
        ALL,
        r#"
        > completion/complete {"ref":{"type":"ref/prompt","name":"test_prompt_with_arguments"},"argument":{"name":"arg1","value":"par"}}
        < {"completion":{"values":["paris","park","party"]}}
        "#,
    ),
    (
        "tools-call-simple-text",
        ALL,
        r#"
        > tools/call {"name":"test_simple_text"}
        < {"content":[{"type":"text","text":"This is a simple text response for testing."}]}
        "#,
    ),
    (
        "tools-call-image",
        ALL,
        r#"
        > tools/call {"name":"test_image_content","arguments":{}}
        < {"content":[{"type":"image","data":"PNG","mimeType":"image/png"}]}
        "#,
    ),
    (
        "tools-call-audio",
        SINCE_MARCH,
        r#"
        > tools/call {"name":"test_audio_content"}
        < {"content":[{"type":"audio","mimeType":"audio/wav"}]}
        "#,
    ),
    (
        "tools-call-audio",
        OLDEST,
        r#"
        > tools/call {"name":"test_audio_content"}
        < {"content":[{"type":"resource","resource":{"mimeType":"audio/wav"}}]}
        "#,
    ),
    (
        "tools-call-embedded-resource",
        ALL,
        r#"
        > tools/call {"name":"test_embedded_resource"}
        < {"content":[{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain"}}]}
        "#,
    ),
    (
        "tools-call-mixed-content",
        ALL,
        r#"
        > tools/call {"name":"test_multiple_content_types"}
        < {"content":[{"type":"text"},{"type":"image"},{"type":"resource"}]}
        "#,
    ),
    (
        "tools-call-error",
        ALL,
        r#"
        > tools/call {"name":"test_error_handling"}
        < {"isError":true,"content":[{"text":"This tool intentionally returns an error for testing"}]}
        > tools/call {"name":"no_such_tool"}
        x {"code":-32602}
        > no/such/method
        x {"code":-32601}
        "#,
    ),
    (
        "tools-call-with-logging",
        LEGACY,
        r#"
        >> tools/call {"name":"test_tool_with_logging"}
        ! notifications/message {"level":"info","data":"Tool execution started"}
        ! notifications/message {"level":"info","data":"Tool processing data"}
        ! notifications/message {"level":"info","data":"Tool execution completed"}
        < {"content":[{"type":"text"}]}
        "#,
    ),
    (
        "tools-call-with-progress",
        ALL,
        r#"
        >> tools/call {"name":"test_tool_with_progress","_meta":{"progressToken":"t1"}}
        ! notifications/progress {"progressToken":"t1","progress":0,"total":100}
        ! notifications/progress {"progressToken":"t1","progress":50,"total":100}
        ! notifications/progress {"progressToken":"t1","progress":100,"total":100}
        < {"content":[{"type":"text"}]}
        "#,
    ),
    (
        "tools-call-sampling",
        LEGACY,
        r#"
        >> tools/call {"name":"test_sampling","arguments":{"prompt":"Say something"}}
        ? sampling/createMessage {"maxTokens":100,"messages":[{"role":"user","content":{"type":"text","text":"Say something"}}]}
        = {"role":"assistant","content":{"type":"text","text":"something"},"model":"m"}
        < {"content":[{"text":"LLM response: something"}]}
        "#,
    ),
    (
        "tools-call-elicitation",
        FORMS,
        r#"
        >> tools/call {"name":"test_elicitation","arguments":{"message":"Who are you?"}}
        ? elicitation/create {"message":"Who are you?","requestedSchema":{"type":"object","required":["username","email"]}}
        = {"action":"accept","content":{"username":"ada","email":"ada@example.com"}}
        < {"content":[{"text":"User response: action: accept, content: {\"username\": \"ada\", \"email\": \"ada@example.com\"}"}]}
        >> tools/call {"name":"test_elicitation","arguments":{"message":"Who are you?"}}
        ? elicitation/create
        = {"action":"decline"}
        < {"content":[{"type":"text"}]}
        "#,
    ),
    (
        "tools-call-elicitation",
        OLD,
        r#"
        > tools/call {"name":"test_elicitation","arguments":{"message":"Who are you?"}}
        < {"isError":true}
        "#,
    ),
    (
        "elicitation-sep1034-defaults",
        FORMS,
        r#"
        >> tools/call {"name":"test_elicitation_sep1034_defaults"}
        ? elicitation/create {"requestedSchema":{"properties":{"name":{"default":"John Doe"},"age":{"default":30},"score":{"default":95.5},"status":{"default":"active"},"verified":{"default":true}}}}
        = {"action":"accept","content":{"name":"Jane"}}
        < {"content":[{"text":"Elicitation completed: action=accept, content={\"name\": \"Jane\"}"}]}
        "#,
    ),
    (
        "elicitation-sep1330-enums",
        TASKS,
        r#"
        >> tools/call {"name":"test_elicitation_sep1330_enums"}
        ? elicitation/create {"requestedSchema":{"properties":{"untitledSingle":{"enum":["option1","option2","option3"]},"legacyEnum":{"enumNames":["Option One","Option Two","Option Three"]},"untitledMulti":{"type":"array"}}}}
        = {"action":"cancel"}
        < {"content":[{"type":"text"}]}
        "#,
    ),
    (
        "elicitation-sep1330-enums",
        FORMS_ONLY,
        r#"
        > tools/call {"name":"test_elicitation_sep1330_enums"}
        < {"isError":true}
        "#,
    ),
    (
        "resources-read-text",
        ALL,
        r#"
        > resources/read {"uri":"test://static-text"}
        < {"contents":[{"uri":"test://static-text","mimeType":"text/plain","text":"This is the content of the static text resource."}]}
        "#,
    ),
    (
        "resources-read-binary",
        ALL,
        r#"
        > resources/read {"uri":"test://static-binary"}
        < {"contents":[{"uri":"test://static-binary","mimeType":"image/png","blob":"PNG"}]}
        "#,
    ),
    (
        "resources-templates-read",
        ALL,
        r#"
        > resources/templates/list
        < {"resourceTemplates":[{"uriTemplate":"test://template/{id}/data","mimeType":"application/json"}]}
        > resources/read {"uri":"test://template/123/data"}
        < {"contents":[{"uri":"test://template/123/data","text":"{\"id\":\"123\",\"templateTest\":true,\"data\":\"Data for ID: 123\"}"}]}
        "#,
    ),
    (
        "resources-subscribe, resources-unsubscribe",
        LEGACY,
        r#"
        > resources/subscribe {"uri":"test://watched-resource"}
        < {}
        > resources/unsubscribe {"uri":"test://watched-resource"}
        < {}
        "#,
    ),
    ("resource-not-found", LEGACY, "> resources/read {\"uri\":\"test://nowhere\"}\nx {\"code\":-32002}"),
    (
        "sep-2164-resource-not-found",
        MODERN,
        r#"
        > resources/read {"uri":"test://nowhere"}
        x {"code":-32602,"data":{"uri":"test://nowhere"}}
        "#,
    ),
    (
        "prompts-get-simple",
        ALL,
        r#"
        > prompts/get {"name":"test_simple_prompt"}
        < {"messages":[{"role":"user","content":{"type":"text","text":"This is a simple prompt for testing."}}]}
        "#,
    ),
    (
        "prompts-get-with-args",
        ALL,
        r#"
        > prompts/get {"name":"test_prompt_with_arguments","arguments":{"arg1":"a","arg2":"b"}}
        < {"messages":[{"role":"user","content":{"text":"Prompt with arguments: arg1='a', arg2='b'"}}]}
        > prompts/get {"name":"test_prompt_with_arguments","arguments":{"arg1":"a"}}
        x {"code":-32602}
        "#,
    ),
    (
        "prompts-get-embedded-resource",
        ALL,
        r#"
        > prompts/get {"name":"test_prompt_with_embedded_resource","arguments":{"resourceUri":"test://r"}}
        < {"messages":[{"content":{"type":"resource","resource":{"uri":"test://r"}}},{"content":{"type":"text"}}]}
        "#,
    ),
    (
        "prompts-get-with-image",
        ALL,
        r#"
        > prompts/get {"name":"test_prompt_with_image"}
        < {"messages":[{"content":{"type":"image","data":"PNG"}},{"content":{"type":"text"}}]}
        "#,
    ),
    (
        "list changes",
        LEGACY,
        r#"
        >> tools/call {"name":"test_trigger_tool_change"}
        ! notifications/tools/list_changed
        < {"content":[{"text":"Told"}]}
        >> tools/call {"name":"test_trigger_prompt_change"}
        ! notifications/prompts/list_changed
        < {"content":[{"text":"Told"}]}
        "#,
    ),
    (
        "tasks of 2025-11-25",
        TASKS,
        r#"
        > tools/call {"name":"slow_compute","arguments":{"seconds":0,"label":"x"},"task":{"ttl":60000}}
        < {"task":{}}
        ~ tasks/get {"taskId":"$TASK"} {"taskId":"$TASK","status":"completed"}
        > tasks/result {"taskId":"$TASK"}
        < {"content":[{"text":"Computed x"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"$TASK"}}}
        > tasks/get {"taskId":"no-such-task"}
        x {"code":-32602}
        "#,
    ),
    (
        "cancellation",
        LEGACY,
        r#"
        >> tools/call {"name":"test_sampling","arguments":{"prompt":"Say something"}}
        ? sampling/createMessage
        - notifications/cancelled {"requestId":$ID,"reason":"never mind"}
        > ping
        < {}
        "#,
    ),
];

async fn all(transport: Transport, revision: Revision) {
    let mut peer = Peer::ready(&example("conformance.mock.yaml"), transport, revision).await;
    let mut played = 0;
    for (name, versions, lines) in PLAYS {
        if versions.contain(revision) {
            play(&mut peer, name, &lines.replace("PNG", PNG)).await;
            played += 1;
        }
    }
    assert!(played > 15, "{played}");
    lists(&mut peer).await;
    peer.end().await;
}

/// What is listed has names, and stands in the same order twice.
async fn lists(peer: &mut Peer) {
    for (method, key, first) in [
        ("tools/list", "tools", "test_simple_text"),
        ("resources/list", "resources", "Static text"),
        ("prompts/list", "prompts", "test_simple_prompt"),
    ] {
        let answer = peer.ask(method, None).await;
        assert_eq!(answer["result"][key][0]["name"], first, "{answer}");
        let listed = answer["result"][key].as_array().unwrap();
        for element in listed {
            let name = element["name"].as_str().unwrap();
            assert!(element["description"].is_string(), "{name}");
        }
        assert_eq!(peer.ask(method, Some(json!({}))).await["result"][key], answer["result"][key]);
    }
}

#[tokio::test]
async fn over_stdio_in_every_version() {
    for revision in Revision::ALL {
        all(Transport::Stdio, revision).await;
    }
}

#[tokio::test]
async fn over_http_sse_in_every_version_with_a_handshake() {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.has_handshake()) {
        all(Transport::Sse, revision).await;
    }
}
