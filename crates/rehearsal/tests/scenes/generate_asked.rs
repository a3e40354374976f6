//! What a server asked before it answered, in what `rehearse generate` makes of it.

use serde_json::{Value, json};

use crate::generate_oracle::{journal, text};
use crate::stage::{Stage, rehearse};

/// A session whose client declares these capabilities and refuses whatever it is asked.
fn refused(capabilities: Value) -> String {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "a", "version": "1"}});
    let introduced = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}});
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let no = json!({"code": -32601, "message": "nobody is here"});
    journal(vec![
        ("client", json!({"type": "request", "id": 0, "method": "initialize", "params": hello})),
        ("server", json!({"type": "response", "id": 0, "result": introduced})),
        ("client", json!({"type": "notification", "method": "notifications/initialized"})),
        (
            "client",
            json!({"type": "request", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {}}}),
        ),
        ("server", json!({"type": "request", "id": "q", "method": "elicitation/create", "params": form})),
        ("client", json!({"type": "response", "id": "q", "error": no})),
        ("server", json!({"type": "response", "id": 1, "result": text("went on")})),
    ])
}

#[test]
fn a_server_that_went_on_where_its_client_refused_goes_on() {
    let stage = Stage::new().file("old.journal", &refused(json!({"elicitation": {}})));
    rehearse!(stage, "rehearse generate old.journal --as mock -o new.mock.yaml && rehearse check new.mock.yaml && grep -A2 steps new.mock.yaml", @"
    exit: 0
    ----- stdout -----
            steps:
              - try_ask:
                  question_1: { elicitation: { message: m, requested_schema: { type: object, properties: {} } } }
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    ");
    rehearse!(stage, "rehearse verify old.journal -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
    // Whoever can be asked nothing is asked nothing.
    rehearse!(stage, "rehearse call a -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    went on
    ");
}

#[test]
fn what_a_client_was_asked_that_had_not_declared_it_is_told() {
    let stage = Stage::new().file("old.journal", &refused(json!({})));
    rehearse!(stage, "rehearse generate old.journal --as mock -o new.mock.yaml", @"
    exit: 0
    ----- stderr -----
    left out: that elicitation/create was asked of a client that had not declared it
    wrote new.mock.yaml
    ");
    rehearse!(stage, "rehearse call a -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    went on
    ");
}
