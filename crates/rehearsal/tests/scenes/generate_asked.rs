//! What a server asked before it answered, in what `rehearse generate` makes of it.

use serde_json::{Value, json};

use crate::generate_oracle::{journal, stateless, text};
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

/// Three calls, two rounds each, of a server that knows its clients again by what they bring.
fn without_state() -> String {
    let ask = |name: &str| {
        json!({"resultType": "input_required", "inputRequests": {name: {"method": "elicitation/create",
        "params": {"mode": "form", "message": name, "requestedSchema": {"type": "object", "properties": {}}}}}})
    };
    let says = |said: &str| json!({"resultType": "complete", "content": [{"type": "text", "text": said}]});
    let begin = json!({"name": "two", "arguments": {"a": 1, "b": 2}});
    let back = |name: &str| json!({"name": "two", "arguments": {"b": 2, "a": 1}, "inputResponses": {name: {"action": "decline"}}});
    let mut calls = Vec::new();
    for said in ["the first", "the second", "the last"] {
        calls.push(("tools/call", begin.clone(), ask("who")));
        calls.push(("tools/call", back("who"), ask("why")));
        calls.push(("tools/call", back("why"), says(said)));
    }
    stateless(&calls)
}

#[test]
fn a_round_that_had_no_state_has_none() {
    let stage = Stage::new().file("old.journal", &without_state());
    rehearse!(stage, "rehearse generate old.journal --as mock -o new.mock.yaml && rehearse verify old.journal -- rehearse mock new.mock.yaml \
                      && grep -A1 request_state new.mock.yaml", @"
    exit: 0
    ----- stdout -----
                request_state: false
                text: the first
    --
                request_state: false
                text: the second
    --
                request_state: false
                text: the last
    ----- stderr -----
    wrote new.mock.yaml
    3 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse call two --args '{\"a\":1,\"b\":2}' --answer 'elicitation/create={\"action\":\"decline\"}' \
                      -- rehearse record -q -o seen.jsonl -- rehearse mock new.mock.yaml; grep -c requestState seen.jsonl", @"
    exit: 1
    ----- stdout -----
    the first
    0
    ");
    rehearse!(stage, "rehearse generate old.journal --as python | grep -c withoutState", @"
    exit: 0
    ----- stdout -----
    4
    ");
}
