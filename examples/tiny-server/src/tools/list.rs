//! What clients are told about the tools.

use rehearsal_core::script::mock::LogLevel;
use serde_json::{Value, json};

/// Every tool, as the newest version lists it.
pub(crate) fn all() -> Vec<Value> {
    vec![
        json!({
            "name": "echo",
            "title": "Echo",
            "description": "Says what you say",
            "inputSchema": object(json!({"message": {"type": "string", "description": "What to say"}}), &["message"]),
            "annotations": reads(),
        }),
        json!({
            "name": "add",
            "title": "Add",
            "description": "Adds two numbers",
            "inputSchema": object(json!({"a": {"type": "number"}, "b": {"type": "number"}}), &["a", "b"]),
            "outputSchema": object(json!({"sum": {"type": "number"}}), &["sum"]),
            "annotations": reads(),
        }),
        json!({
            "name": "slow",
            "title": "Slow",
            "description": "Takes its time and tells how far it is; can be cancelled",
            "inputSchema": object(
                json!({
                    "steps": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many steps"},
                    "delay_ms": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": 10000,
                        "default": 100,
                        "description": "How long a step takes",
                    },
                }),
                &["steps"],
            ),
            "annotations": reads(),
        }),
        json!({
            "name": "log",
            "title": "Log",
            "description": "Sends you a log message, if you want to hear messages of that level",
            "inputSchema": object(
                json!({"level": {"type": "string", "enum": LogLevel::ALL.map(LogLevel::name)}, "message": {"type": "string"}}),
                &["level", "message"],
            ),
            "annotations": reads(),
        }),
        json!({
            "name": "fail",
            "title": "Fail",
            "description": "Fails, with your words",
            "inputSchema": object(json!({"message": {"type": "string", "description": "Why"}}), &["message"]),
            "annotations": reads(),
        }),
        json!({
            "name": "ask",
            "title": "Ask",
            "description": "Asks the person at your end for a name (elicitation)",
            "inputSchema": object(json!({"question": {"type": "string"}}), &["question"]),
            "annotations": asks(),
        }),
        json!({
            "name": "sample",
            "title": "Sample",
            "description": "Asks the model at your end (sampling)",
            "inputSchema": object(json!({"prompt": {"type": "string"}}), &["prompt"]),
            "annotations": asks(),
        }),
        json!({
            "name": "roots",
            "title": "Roots",
            "description": "Asks which folders it may see (roots)",
            "inputSchema": object(json!({}), &[]),
            "annotations": asks(),
        }),
        json!({
            "name": "picture",
            "title": "Picture",
            "description": "Shows a picture, links to it, and embeds a text",
            "inputSchema": object(json!({}), &[]),
            "annotations": reads(),
        }),
        json!({
            "name": "touch",
            "title": "Touch",
            "description": "Tells subscribers that tiny://greeting was updated and that the tools changed",
            "inputSchema": object(json!({}), &[]),
            "annotations": {
                "readOnlyHint": false,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        }),
    ]
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// A tool that changes nothing and talks to nobody.
fn reads() -> Value {
    json!({"readOnlyHint": true, "openWorldHint": false})
}

/// A tool that changes nothing, but whose answer comes from somebody else.
fn asks() -> Value {
    json!({"readOnlyHint": true, "openWorldHint": true})
}
