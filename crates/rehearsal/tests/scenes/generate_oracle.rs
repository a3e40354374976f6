//! `rehearse generate --as mock`, held against its recording by `rehearse verify`: what is different was told as left out.

use serde_json::{Value, json};

use crate::stage::{Stage, rehearse};

/// A journal of one session of 2025-11-25 that declared these capabilities: method, params and the answer, a result or
/// an error, of each call.
fn session(capabilities: Value, calls: &[(&str, Value, Value)]) -> String {
    session_in("2025-11-25", json!({"name": "old", "version": "1"}), capabilities, calls)
}

/// The same of another version, by a server that says it is this.
fn session_in(version: &str, info: Value, capabilities: Value, calls: &[(&str, Value, Value)]) -> String {
    let hello = json!({"protocolVersion": version, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "a", "version": "1"}});
    let introduced = json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info});
    let mut messages = vec![
        ("client", json!({"type": "request", "id": 0, "method": "initialize", "params": hello})),
        ("server", json!({"type": "response", "id": 0, "result": introduced})),
        ("client", json!({"type": "notification", "method": "notifications/initialized"})),
    ];
    messages.extend(called(calls));
    journal(messages)
}

/// The same of 2026-07-28, whose client can be asked.
pub(crate) fn stateless(calls: &[(&str, Value, Value)]) -> String {
    let about = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"}});
    let mut calls = calls.to_vec();
    for (_, params, answer) in &mut calls {
        params["_meta"] = about.clone();
        if answer.get("code").is_none() {
            answer["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "1"}});
        }
    }
    journal(called(&calls))
}

/// Who said what of some calls.
fn called(calls: &[(&str, Value, Value)]) -> Vec<(&'static str, Value)> {
    let mut messages = Vec::new();
    for (at, (method, params, answer)) in calls.iter().enumerate() {
        let key = if answer.get("code").is_some() { "error" } else { "result" };
        messages.push(("client", json!({"type": "request", "id": at + 1, "method": method, "params": params})));
        messages.push(("server", json!({"type": "response", "id": at + 1, key: answer})));
    }
    messages
}

pub(crate) fn journal(messages: Vec<(&str, Value)>) -> String {
    let start = json!({"type": "start", "format": 1, "session_id": "s", "server_info": {"transport": "stdio"},
        "started_at": "2026-07-28T12:00:00Z", "metadata": {}});
    let lines = messages.into_iter().enumerate().map(|(at, (from, mut message))| {
        (message["seq"], message["at_ms"], message["from"]) = (at.into(), at.into(), from.into());
        message.to_string()
    });
    std::iter::once(start.to_string()).chain(lines).map(|line| line + "\n").collect()
}

pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

const ORACLE: &str = "rehearse generate old.journal --as mock -o new.mock.yaml --force && rehearse check new.mock.yaml \
                      && rehearse verify old.journal -- rehearse mock new.mock.yaml";

#[test]
fn a_tool_that_only_failed_fails_in_the_same_way() {
    let calls = [
        (
            "tools/call",
            json!({"name": "flaky", "arguments": {}}),
            json!({"code": -32000, "message": "upstream is down", "data": {"retry": 5}}),
        ),
        (
            "tools/call",
            json!({"name": "fails"}),
            json!({"content": [{"type": "text", "text": "went wrong"}], "isError": true}),
        ),
        ("prompts/get", json!({"name": "broken"}), json!({"code": -32603, "message": "prompt broke"})),
    ];
    let stage = Stage::new().file(
        "old.journal",
        &session(json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}}), &calls),
    );
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    4 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse list -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    TOOL
    flaky
    fails

    PROMPT
    broken
    ----- stderr -----
    old 1, protocol 2026-07-28
    ");
}

#[test]
fn what_is_left_out_is_told_on_one_line() {
    let tool = json!({"name": "two\nlines", "inputSchema": {"type": "object"}});
    let calls = [("tools/list", json!({}), json!({"tools": [tool, tool]}))];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {}}), &calls));
    rehearse!(stage, "rehearse generate old.journal --as python -o server.py && grep -A1 'left out' server.py", @r"
    exit: 0
    ----- stdout -----
    # Recorded, but left out:
    # - that two\nlines is in `tools` more than once
    ----- stderr -----
    left out: that two\nlines is in `tools` more than once
    wrote server.py
    ");
}

#[test]
fn what_clients_of_2026_07_28_do_not_hear_from_a_program_is_told() {
    let mut messages = called(&[("tools/call", json!({"name": "a", "arguments": {}}), text("done"))]);
    messages[0].1["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    messages[1].1["result"]["resultType"] = json!("complete");
    messages.insert(1, ("server", json!({"type": "notification", "method": "notifications/tools/list_changed"})));
    let stage = Stage::new().file("old.journal", &journal(messages));
    rehearse!(stage, "rehearse generate old.journal --as mock >/dev/null; rehearse generate old.journal --as python >/dev/null", @"
    exit: 0
    ----- stderr -----
    left out: notifications/tools/list_changed, which clients of 2026-07-28 do not hear
    ");
}

#[test]
fn structured_content_of_nothing_is_said_as_it_was() {
    let tools = json!({"tools": [{"name": "find", "inputSchema": {"type": "object"}}]});
    let nothing = json!({"content": [{"type": "text", "text": "null"}], "structuredContent": null});
    let calls = [("tools/list", json!({}), tools), ("tools/call", json!({"name": "find", "arguments": {}}), nothing)];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {"listChanged": true}}), &calls));
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    3 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "grep -A5 ^tools new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    tools:
      - name: find
        input_schema: { type: object }
        answers:
          - name: no arguments
            when: { exact: {} }
    "#);
}

#[test]
fn what_was_not_listed_answers_as_recorded_and_is_not_listed() {
    let unknown = json!({"content": [{"type": "text", "text": "Unknown tool: none"}], "isError": true});
    let gone = json!({"code": -32602, "message": "Resource note://gone not found"});
    let calls = [
        ("tools/list", json!({}), json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
        ("tools/call", json!({"name": "none", "arguments": {}}), unknown),
        ("tools/call", json!({"name": "secret", "arguments": {}}), text("psst")),
        ("resources/list", json!({}), json!({"resources": [{"uri": "note://a", "name": "a"}]})),
        ("resources/read", json!({"uri": "note://gone"}), gone),
        ("prompts/list", json!({}), json!({"prompts": []})),
        ("prompts/get", json!({"name": "nobody"}), json!({"code": -32001, "message": "nobody knows"})),
    ];
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}, "prompts": {"listChanged": true}});
    let stage = Stage::new().file("old.journal", &session(capabilities, &calls));
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    8 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "cat new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    # Answers like old.journal. Edit it: rules are tried in order, and the first that fits answers.
    # `rehearse check` says what is wrong with it, `rehearse mock` serves it.
    server: { name: old, version: "1" }
    validate: "off"
    tools:
      - name: echo
        input_schema: { type: object }
        answers:
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of echo }
      - name: "none"
        input_schema: { type: object }
        hidden: true
        answers:
          - name: no arguments
            when: { exact: {} }
            text: "Unknown tool: none"
            is_error: true
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of none }
      - name: secret
        input_schema: { type: object }
        hidden: true
        answers:
          - name: no arguments
            when: { exact: {} }
            text: psst
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of secret }
    resources:
      - uri: "note://a"
        name: a
        answers:
          - name: anything else
            error: { code: -32002, message: "nothing was recorded for note://a" }
      - uri: "note://gone"
        name: "note://gone"
        hidden: true
        answers:
          - name: no arguments
            error: { code: -32602, message: "Resource note://gone not found" }
    prompts:
      - name: nobody
        hidden: true
        answers:
          - name: no arguments
            when: { exact: {} }
            error: { code: -32001, message: nobody knows }
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of nobody }
    "#);
}

#[test]
fn what_was_taken_out_of_a_list_is_not_listed_and_answers() {
    let list = |names: &[&str]| {
        let tools = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        json!({"tools": tools.collect::<Vec<_>>()})
    };
    let calls = [
        ("tools/list", json!({}), list(&["a", "b"])),
        ("tools/call", json!({"name": "b", "arguments": {}}), text("bye")),
        ("tools/list", json!({}), list(&["a", "c"])),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {"listChanged": true}}), &calls));
    rehearse!(stage, ORACLE, @"
    exit: 1
    ----- stdout -----
    ~ tools/list
      error: removed: the tool `b` is no longer listed (message 3)
      error: added: the tool `c` was not listed before (message 3)
    ----- stderr -----
    left out: that b was not always in `tools`
    left out: that c was not always in `tools`
    wrote new.mock.yaml
    1 file checked, nothing wrong
    3 as recorded, 1 different, 0 skipped
    hint: `--ignore PATH` passes over some; `--update` writes traces, and `rehearse trace convert` makes one
    ");
    rehearse!(stage, "rehearse generate old.journal --as python | grep -A 5 ^TOOLS", @r#"
    exit: 0
    ----- stdout -----
    TOOLS: list[dict[str, Any]] = [
        {"name": "a", "inputSchema": {"type": "object"}},
        {"name": "c", "inputSchema": {"type": "object"}},
    ]

    # What was recorded: for each method the distinct requests, and for each request its
    ----- stderr -----
    left out: that b was not always in `tools`
    left out: that c was not always in `tools`
    "#);
}

#[test]
fn what_no_suggestions_say_is_answered_by_rules() {
    let complete = |typed: &str, context: Option<Value>| {
        let mut params =
            json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": typed}});
        if let Some(context) = context {
            params["context"] = context;
        }
        params
    };
    let values = |values: &[&str]| json!({"completion": {"values": values, "total": values.len(), "hasMore": false}});
    let calls = [
        ("prompts/list", json!({}), json!({"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]})),
        ("completion/complete", complete("A", None), values(&["Ada", "Alan"])),
        ("completion/complete", complete("", None), values(&["Ada", "Bob", "Alan"])),
        ("completion/complete", complete("A", Some(json!({"arguments": {"z": "1"}}))), values(&["Ada in z"])),
        ("completion/complete", complete("ob", None), values(&["Bob"])),
        ("completion/complete", complete("x", None), values(&[])),
        ("completion/complete", complete("b", None), json!({"completion": {"values": ["Bob"]}})),
        ("completion/complete", complete("q", None), json!({"code": -32603, "message": "no"})),
    ];
    let capabilities = json!({"prompts": {"listChanged": true}, "completions": {}});
    let stage = Stage::new().file("old.journal", &session(capabilities, &calls));
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    9 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "grep -A 1 -e 'name: greet$' -e '- name:' new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
      - name: greet
        arguments: [{ name: who, complete: [Ada, Bob, Alan] }]
    --
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of greet }
    --
          - name: "typed A, context {\"z\":\"1\"}"
            when:
    --
          - name: ob
            when:
    --
          - name: b
            when: { exact: { ref: { type: ref/prompt, name: greet }, argument: { name: who, value: b } } }
    --
          - name: q
            when: { exact: { ref: { type: ref/prompt, name: greet }, argument: { name: who, value: q } } }
    "#);
}

#[test]
fn what_was_never_declared_is_not_declared_and_a_form_says_that_it_is_one() {
    let mock = r#"
capabilities: { tools: {}, prompts: null, logging: null, completions: null, resources: { subscribe: true } }
tools:
  - name: ask
    answers:
      - steps:
          - log: { level: info, data: hm }
          - ask:
              who:
                elicitation:
                  { mode: form, message: "Who?", requested_schema: { type: object, properties: { name: { type: string } } } }
        text: Hello
resources: [{ uri: "note://a", name: a, text: A }]
prompts: [{ name: greet, arguments: [{ name: who, complete: [Ada] }], messages: [] }]
"#;
    let stage = Stage::new().file("server.mock.yaml", mock);
    let answer = "--answer 'elicitation/create={\"action\":\"decline\"}'";
    for version in ["legacy", "2025-06-18", "modern"] {
        let record = "rehearse record -q -o old.journal -- rehearse mock server.mock.yaml";
        stage.play(&format!("rehearse call ask --protocol {version} {answer} -- {record}"));
        stage.play(&format!(
            "rehearse request prompts/get --params '{{\"name\":\"greet\"}}' --protocol {version} -- {record}"
        ));
    }
    rehearse!(stage, "grep -c '\"mode\"' old.journal", @"
    exit: 0
    ----- stdout -----
    2
    ");
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    [info] hm
    [info] hm
    15 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "grep -E '^capabilities|mode:' new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    capabilities: { tools: {}, resources: { subscribe: true }, prompts: null, logging: null }
                          mode: form
                          mode: form
    ");
    rehearse!(stage, "sed -i 's/mode: form/mode: url/' new.mock.yaml; rehearse check new.mock.yaml", @"
    exit: 2
    ----- stderr -----
    error: `mode` is `form` with a `requested_schema` and `url` with a `url`
      --> new.mock.yaml:19:29
       |
    19 |                       mode: url
       |                             ^^^
    error: `mode` is `form` with a `requested_schema` and `url` with a `url`
      --> new.mock.yaml:36:29
       |
    36 |                       mode: url
       |                             ^^^
    1 file checked, 2 problems found
    ");
}

#[test]
fn what_any_session_declared_is_declared() {
    let list = ("tools/list", json!({}), json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}));
    let more =
        session(json!({"tools": {"listChanged": true}, "prompts": {}, "logging": {}}), std::slice::from_ref(&list));
    let less = session(json!({"tools": {}}), &[list]);
    let stage = Stage::new().file("more.journal", &more).file("less.journal", &less);
    stage.play("for it in more less; do rehearse trace convert --to trace $it.journal >> old.journal; done");
    rehearse!(stage, "rehearse generate old.journal --as mock", @r#"
    exit: 0
    ----- stdout -----
    # Answers like old.journal. Edit it: rules are tried in order, and the first that fits answers.
    # `rehearse check` says what is wrong with it, `rehearse mock` serves it.
    server: { name: old, version: "1" }
    capabilities: { prompts: {}, logging: {} }
    validate: "off"
    tools:
      - name: a
        input_schema: { type: object }
        answers:
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of a }
    ----- stderr -----
    left out: that the capability `logging` was not always declared like that
    left out: that the capability `prompts` was not always declared like that
    left out: that the capability `tools` was not always declared like that
    "#);
    rehearse!(stage, "rehearse generate old.journal --as python | grep -A 5 ^CAPABILITIES", @r#"
    exit: 0
    ----- stdout -----
    CAPABILITIES: dict[str, Any] = {
        "tools": {"listChanged": True},
        "prompts": {},
        "logging": {},
    }

    ----- stderr -----
    left out: that the capability `logging` was not always declared like that
    left out: that the capability `prompts` was not always declared like that
    left out: that the capability `tools` was not always declared like that
    "#);
}

#[test]
fn extensions_are_declared_with_tasks_among_them() {
    let list = ("tools/list", json!({}), json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}));
    let tasks = json!({"com.example/ui": {"mimeTypes": ["text/html"]}, "io.modelcontextprotocol/tasks": {}});
    let capabilities = json!({"tools": {"listChanged": true}, "extensions": tasks});
    let stage = Stage::new().file("old.journal", &session(capabilities, &[list]));
    rehearse!(stage, "rehearse generate old.journal --as mock | grep -B 8 ^validate", @r#"
    exit: 0
    ----- stdout -----
    capabilities:
      extensions: { com.example/ui: { mimeTypes: [text/html] }, io.modelcontextprotocol/tasks: {} }
    # What the handshake of a version says otherwise than the rest of this file.
    introduced:
      "2025-11-25":
        capabilities:
          tools: { listChanged: true }
          extensions: { com.example/ui: { mimeTypes: [text/html] }, io.modelcontextprotocol/tasks: {} }
    validate: "off"
    "#);
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    2 as recorded, 0 different, 0 skipped
    ");
}

/// What a server of an old version says that only newer ones have.
fn newer_than_its_version() -> Vec<(&'static str, Value, Value)> {
    let link = json!({"type": "resource_link", "uri": "note://a", "name": "a"});
    let sound = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    let tool = json!({"name": "find", "title": "Find", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true}, "execution": {"taskSupport": "required"}, "_meta": {"a/b": 1}});
    let prompt = json!({"name": "greet", "title": "Greet", "description": "Greets", "arguments": [{"name": "who", "title": "Who"}]});
    let messages = json!([{"role": "user", "content": link}]);
    let complete = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": ""}});
    vec![
        ("tools/list", json!({}), json!({"tools": [tool, {"name": "plain", "inputSchema": {"type": "object"}}]})),
        ("tools/call", json!({"name": "plain", "arguments": {}}), text("plain")),
        (
            "tools/call",
            json!({"name": "find", "arguments": {"n": 1}}),
            json!({"content": [link, sound], "structuredContent": {"n": 1}}),
        ),
        ("tools/call", json!({"name": "find", "arguments": {"n": 2}}), json!({"structuredContent": {"n": 2}})),
        (
            "tools/call",
            json!({"name": "find", "arguments": {"n": 3}}),
            json!({"structuredContent": {"n": 3}, "content": []}),
        ),
        (
            "resources/list",
            json!({}),
            json!({"resources": [{"uri": "note://a", "name": "a", "title": "A", "mimeType": "text/plain"}]}),
        ),
        (
            "resources/read",
            json!({"uri": "note://a"}),
            json!({"contents": [{"uri": "note://a", "mimeType": "text/plain", "text": "A"}]}),
        ),
        ("prompts/list", json!({}), json!({"prompts": [prompt]})),
        ("prompts/get", json!({"name": "greet"}), json!({"description": "Greets", "messages": messages})),
        ("completion/complete", complete, json!({"completion": {"values": ["Ada"], "total": 1, "hasMore": false}})),
    ]
}

#[test]
fn what_is_newer_than_its_version_is_said_in_that_version() {
    let info = json!({"name": "old", "version": "1", "title": "Old"});
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true}, "completions": {}, "tasks": {"list": {}}, "extensions": {"com.example/ui": {}}});
    for version in ["2025-06-18", "2025-03-26"] {
        let recorded = session_in(version, info.clone(), capabilities.clone(), &newer_than_its_version());
        let played = Stage::new().file("old.journal", &recorded).play(ORACLE);
        let expected = "wrote new.mock.yaml\n1 file checked, nothing wrong\n11 as recorded, 0 different, 0 skipped\n";
        assert!(played.ends_with(expected) && !played.contains("left out"), "{version}: {played}");
    }
    let recorded = session_in("2024-11-05", info, capabilities, &newer_than_its_version());
    let stage = Stage::new().file("old.journal", &recorded);
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    11 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "cat new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    # Answers like old.journal. Edit it: rules are tried in order, and the first that fits answers.
    # `rehearse check` says what is wrong with it, `rehearse mock` serves it.
    server: { name: old, version: "1", title: Old }
    capabilities: { tasks: { list: {} }, extensions: { com.example/ui: {} } }
    # What the handshake of a version says otherwise than the rest of this file.
    introduced:
      "2024-11-05":
        server: { name: old, version: "1", title: Old }
        capabilities:
          tools: { listChanged: true }
          resources: { subscribe: true, listChanged: true }
          prompts: { listChanged: true }
          completions: {}
          tasks: { list: {} }
          extensions: { com.example/ui: {} }
    validate: "off"
    tools:
      - name: find
        listed:
          name: find
          title: Find
          inputSchema: { type: object }
          outputSchema: { type: object }
          annotations: { readOnlyHint: true }
          execution: { taskSupport: required }
          _meta: { a/b: 1 }
        task_support: optional
        answers:
          - name: n 1
            when: { exact: { "n": 1 } }
            result:
              content:
                - { type: resource_link, uri: "note://a", name: a }
                - { type: audio, data: AAAA, mimeType: audio/wav }
              structuredContent: { "n": 1 }
          - name: n 2
            when: { exact: { "n": 2 } }
            result: { structuredContent: { "n": 2 } }
          - name: n 3
            when: { exact: { "n": 3 } }
            result: { structuredContent: { "n": 3 }, content: [] }
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of find }
      - name: plain
        input_schema: { type: object }
        answers:
          - name: no arguments
            when: { exact: {} }
            text: plain
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of plain }
    resources:
      - uri: "note://a"
        listed: { uri: "note://a", name: a, title: A, mimeType: text/plain }
        answers:
          - name: no arguments
            contents: [{ uri: "note://a", mime_type: text/plain, text: A }]
    prompts:
      - name: greet
        listed:
          name: greet
          title: Greet
          description: Greets
          arguments: [{ name: who, title: Who }]
        arguments: [{ name: who, complete: [Ada] }]
        answers:
          - name: no arguments
            when: { exact: {} }
            result:
              description: Greets
              messages: [{ role: user, content: { type: resource_link, uri: "note://a", name: a } }]
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of greet }
    "#);
}

#[test]
fn what_a_version_cannot_be_asked_is_asked_as_it_was() {
    let form = json!({"message": "Which?", "mode": "form", "requestedSchema": {"type": "object", "properties": {
        "one": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "many": {"type": "array", "items": {"type": "string", "enum": ["a"]}}}}});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "a", "version": "1"}});
    let introduced = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "old", "version": "1"}});
    let stage = Stage::new().file(
        "old.journal",
        &journal(vec![
            ("client", json!({"type": "request", "id": 0, "method": "initialize", "params": hello})),
            ("server", json!({"type": "response", "id": 0, "result": introduced})),
            ("client", json!({"type": "notification", "method": "notifications/initialized"})),
            (
                "client",
                json!({"type": "request", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": {}}}),
            ),
            ("server", json!({"type": "request", "id": 0, "method": "elicitation/create", "params": form})),
            ("client", json!({"type": "response", "id": 0, "result": {"action": "decline"}})),
            ("server", json!({"type": "response", "id": 1, "result": text("as you like")})),
        ]),
    );
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    2 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "grep -A 12 steps: new.mock.yaml", @"
    exit: 0
    ----- stdout -----
            steps:
              - ask:
                  question_1:
                    request:
                      method: elicitation/create
                      params:
                        message: Which?
                        mode: form
                        requestedSchema:
                          type: object
                          properties:
                            one: { type: string, oneOf: [{ const: a, title: A }] }
                            many: { type: array, items: { type: string, enum: [a] } }
    ");
    rehearse!(stage, "sed -i 's,elicitation/create,\"\",' new.mock.yaml; rehearse check new.mock.yaml", @r#"
    exit: 2
    ----- stderr -----
    error: a request has a method
      --> new.mock.yaml:15:27
       |
    15 |                   method: ""
       |                           ^^
       |
       = help: write `elicitation/create`, `sampling/createMessage` or `roots/list`
    1 file checked, 1 problem found
    "#);
}

/// Whoever asks for a version that it does not speak is given its newest.
#[test]
fn a_server_of_older_versions_speaks_no_newer_ones() {
    let older = session_in(
        "2024-11-05",
        json!({"name": "old", "version": "1"}),
        json!({"tools": {}}),
        &[
            ("tools/list", json!({}), json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]})),
            ("x/y", json!({"a": 1}), json!({"code": -32601, "message": "What?", "data": "x/y"})),
        ],
    );
    let stage = Stage::new().file("old.journal", &older.replacen("2024-11-05", "2025-06-18", 1));
    rehearse!(stage, ORACLE, @r#"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    3 as recorded, 0 different, 0 skipped
    "#);
    rehearse!(stage, "grep 'versions:\\|refuses:' new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    versions: ["2024-11-05", "2026-07-28"]
    refuses: { x/y: { code: -32601, message: "What?", data: x/y } }
    "#);
    rehearse!(stage, "rehearse generate old.journal --as python -o old.py; grep -A 2 '^REFUSES' old.py", @r#"
    exit: 0
    ----- stdout -----
    REFUSES: dict[str, dict[str, Any]] = {
        "x/y": {"code": -32601, "message": "What?", "data": "x/y"},
    }
    ----- stderr -----
    left out: that 2024-11-05 is the newest version with a handshake
    wrote old.py
    "#);
}

#[test]
fn a_list_that_was_refused_is_refused() {
    let missing = json!({"code": -32601, "message": "Method not found"});
    let calls = [
        ("tools/list", json!({}), json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]})),
        ("resources/list", json!({}), missing.clone()),
        ("resources/templates/list", json!({}), json!({"code": -32001, "message": "not for you {{", "data": null})),
        ("resources/subscribe", json!({"uri": "note://a"}), missing.clone()),
        ("logging/setLevel", json!({"level": "info"}), missing.clone()),
        ("prompts/list", json!({}), missing),
        ("prompts/list", json!({}), json!({"prompts": []})),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {"listChanged": true}}), &calls));
    // Once refused and once not: that is told.
    rehearse!(stage, ORACLE, @r#"
    exit: 1
    ----- stdout -----
    ~ prompts/list
      error: removed (message 13)
        $.error: missing, expected {"code":-32601,"message":"Method not found"}
      error: added (message 13)
        $.result: expected nothing, got {"prompts":[]}
    ----- stderr -----
    left out: prompts/list, which was refused
    wrote new.mock.yaml
    1 file checked, nothing wrong
    7 as recorded, 1 different, 0 skipped
    hint: `--ignore PATH` passes over some; `--update` writes traces, and `rehearse trace convert` makes one
    "#);
    rehearse!(stage, "grep -A 4 refuses: new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    refuses:
      logging/setLevel: { code: -32601, message: Method not found }
      resources/list: { code: -32601, message: Method not found }
      resources/subscribe: { code: -32601, message: Method not found }
      resources/templates/list: { code: -32001, message: "not for you {{", data: null }
    "#);
}

#[test]
fn what_is_nested_too_deep_for_a_file_is_told() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let call = |arguments: Value, levels: usize| {
        let result = json!({"content": [], "structuredContent": {"deep": nested(levels)}});
        ("tools/call", json!({"name": "dig", "arguments": arguments}), result)
    };
    let tool =
        |name: &str, levels: usize| json!({"name": name, "inputSchema": {"type": "object", "default": nested(levels)}});
    let calls = [
        ("tools/list", json!({}), json!({"tools": [tool("dig", 1), tool("deep", 100)]})),
        call(json!({"n": 1}), 49),
        call(json!({"n": 2}), 50),
        call(json!({"n": nested(60)}), 1),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {"listChanged": true}}), &calls));
    rehearse!(stage, "rehearse generate old.journal --as mock -o new.mock.yaml && rehearse check new.mock.yaml", @"
    exit: 0
    ----- stderr -----
    left out: how deep is listed, which has more than 50 levels
    left out: what tools/call of dig was answered with, which has more than 50 levels
    wrote new.mock.yaml
    1 file checked, nothing wrong
    ");
    let deep = format!("state: {{ a: {} }}", nested(70));
    let stage = stage.file("deep.mock.yaml", &deep);
    rehearse!(stage, "rehearse check deep.mock.yaml 2>&1 | sed 's/1 | .*/1 | …/'", @"
    exit: 0
    ----- stdout -----
    error: this is nested more than 64 levels deep
     --> deep.mock.yaml:1:75
      |
    1 | …
      |                                                                           ^
      |
      = help: JSON in a text has no levels; `rehearse replay` says again whatever was recorded
    1 file checked, 1 problem found
    ");
}

#[test]
fn each_version_is_told_what_it_was_told() {
    let info = json!({"name": "old", "version": "1", "title": "Old"});
    let whole = json!({"name": "a", "title": "A", "inputSchema": {"type": "object"}});
    let result = json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"x": 1}});
    let list = |tool: &Value| ("tools/list", json!({}), json!({"tools": [tool]}));
    let call = |result: &Value| ("tools/call", json!({"name": "a", "arguments": {}}), result.clone());
    let newer = session_in(
        "2025-11-25",
        info.clone(),
        json!({"tools": {"listChanged": true}, "extensions": {"a/b": {}}}),
        &[list(&whole), call(&result)],
    );
    // A strict server says less in a version that knows less.
    let older = session_in(
        "2024-11-05",
        json!({"name": "old", "version": "1"}),
        json!({"tools": {}}),
        &[list(&json!({"name": "a", "inputSchema": {"type": "object"}})), call(&text("x"))],
    );
    let stage = Stage::new().file("newer.journal", &newer).file("older.journal", &older);
    stage.play("for it in newer older; do rehearse trace convert --to trace $it.journal >> old.journal; done");
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    6 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "cat new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    # Answers like old.journal. Edit it: rules are tried in order, and the first that fits answers.
    # `rehearse check` says what is wrong with it, `rehearse mock` serves it.
    server: { name: old, version: "1", title: Old }
    capabilities: { extensions: { a/b: {} } }
    # What the handshake of a version says otherwise than the rest of this file.
    introduced:
      "2024-11-05": { capabilities: { tools: {} } }
      "2025-11-25": { capabilities: { tools: { listChanged: true }, extensions: { a/b: {} } } }
    validate: "off"
    tools:
      - name: a
        title: A
        input_schema: { type: object }
        answers:
          - name: no arguments
            when: { exact: {} }
            text: x
            structured_content: { x: 1 }
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of a }
    "#);
    rehearse!(stage, "rehearse generate old.journal --as python > /dev/null", @"
    exit: 0
    ----- stderr -----
    left out: that the capability `extensions` was not always declared like that
    left out: that the capability `tools` was not always declared like that
    left out: how a was listed in 2024-11-05
    ");
}

#[test]
fn rounds_that_were_in_hand_together_are_answered_in_the_order_of_asking() {
    let ask = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}});
    let asks =
        |state: &str| json!({"resultType": "input_required", "inputRequests": {"k": ask}, "requestState": state});
    let says = |said: &str| json!({"resultType": "complete", "content": [{"type": "text", "text": said}]});
    let begin = json!({"name": "two", "arguments": {}});
    // No answer for a form that wants a name, but this server took it.
    let back = |state: &str, key: &str| json!({"name": "two", "arguments": {}, "requestState": state, "inputResponses": {key: {"action": "accept"}}});
    let calls = [
        ("tools/call", begin.clone(), asks("c1")),
        ("tools/call", begin, asks("c2")),
        ("tools/call", back("c2", "k"), says("the second")),
        // It was not answered, so it is asked again.
        ("tools/call", back("c1", "other"), asks("c1")),
        ("tools/call", back("c1", "k"), says("the first")),
    ];
    let stage = Stage::new().file("old.journal", &stateless(&calls));
    rehearse!(stage, "rehearse generate old.journal --as mock -o new.mock.yaml; cat new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    # Answers like old.journal. Edit it: rules are tried in order, and the first that fits answers.
    # `rehearse check` says what is wrong with it, `rehearse mock` serves it.
    server: { name: new, version: "1" }
    validate: "off"
    tools:
      - name: two
        input_schema: { type: object }
        answers:
          - name: no arguments
            when: { exact: {} }
            in_turn:
              - steps: &same-1
                  - ask:
                      k:
                        elicitation:
                          message: name?
                          mode: form
                          requested_schema: { type: object, properties: { name: { type: string } }, required: [name] }
                text: the first
              - steps: *same-1
                text: the second
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of two }
    ----- stderr -----
    wrote new.mock.yaml
    "#);
    rehearse!(stage, "rehearse generate old.journal --as python | grep -oE 'the (first|second)\"'", @r#"
    exit: 0
    ----- stdout -----
    the first"
    the second"
    "#);
    rehearse!(stage, "rehearse call two --answer 'elicitation/create={\"action\":\"accept\"}' -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    the first
    ");
}

#[test]
fn a_list_that_came_in_pages_comes_in_pages_or_is_told() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let page = |names: &[&str], next: Option<&str>| {
        let tools: Vec<_> = names.iter().map(|name| tool(name)).collect();
        let mut page = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools});
        next.into_iter().for_each(|next| page["nextCursor"] = next.into());
        page
    };
    let even = [
        ("tools/list", json!({}), page(&["a", "b"], Some("x"))),
        ("tools/list", json!({"cursor": "x"}), page(&["c"], None)),
    ];
    let odd = [
        ("tools/list", json!({}), page(&["a"], Some("x"))),
        ("tools/list", json!({"cursor": "x"}), page(&["b", "c"], Some("y"))),
        ("tools/list", json!({"cursor": "y"}), page(&["d"], None)),
    ];
    let stage = Stage::new().file("old.journal", &stateless(&even)).file("odd.journal", &stateless(&odd));
    rehearse!(stage, "rehearse generate old.journal --as mock | grep page_size", @"
    exit: 0
    ----- stdout -----
    page_size: 2
    ");
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    1 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse generate odd.journal --as mock | grep page_size", @"
    exit: 1
    ----- stderr -----
    left out: that `tools` comes in pages
    ");
    rehearse!(stage, "rehearse generate old.journal --as python | grep -A1 Recorded,", @"
    exit: 0
    ----- stdout -----
    # Recorded, but left out:
    # - that `tools` comes in pages
    ----- stderr -----
    left out: that `tools` comes in pages
    ");
}

#[test]
fn what_a_result_does_not_say_of_itself_is_told() {
    let tools =
        json!({"resultType": "complete", "ttlMs": 0, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]});
    let calls = [("tools/list", json!({}), tools), ("tools/call", json!({"name": "t"}), json!({"content": []}))];
    let stage = Stage::new().file("old.journal", &stateless(&calls));
    rehearse!(stage, "rehearse generate old.journal --as mock -o new.mock.yaml", @"
    exit: 0
    ----- stderr -----
    left out: that tools/call does not say `resultType`
    left out: that tools/list does not say `cacheScope`
    wrote new.mock.yaml
    ");
}

#[test]
fn how_long_something_may_be_kept_is_said_of_what_is_read_and_told_of_lists() {
    let kept = |mut result: Value| {
        (result["resultType"], result["ttlMs"], result["cacheScope"]) =
            ("complete".into(), 1234.into(), "public".into());
        result
    };
    let calls = [
        ("resources/list", json!({}), kept(json!({"resources": [{"uri": "note://a", "name": "a"}]}))),
        ("resources/read", json!({"uri": "note://a"}), kept(json!({"contents": [{"uri": "note://a", "text": "A"}]}))),
    ];
    let stage = Stage::new().file("old.journal", &stateless(&calls));
    rehearse!(stage, ORACLE, @r#"
    exit: 1
    ----- stdout -----
    ~ resources/list
      error: changed (message 0)
        $.result.ttlMs: expected 1234, got 0
        $.result.cacheScope: expected "public", got "private"
    ----- stderr -----
    left out: `ttlMs` and `cacheScope` of resources/list
    wrote new.mock.yaml
    1 file checked, nothing wrong
    1 as recorded, 1 different, 0 skipped
    hint: `--ignore PATH` passes over some; `--update` writes traces, and `rehearse trace convert` makes one
    "#);
    for version in ["legacy", "modern"] {
        let read = format!(
            "rehearse request resources/read --params '{{\"uri\":\"note://a\"}}' --protocol {version} -- rehearse mock new.mock.yaml"
        );
        stage.play(&format!("{read} > {version}.json"));
    }
    rehearse!(stage, "grep -oE 'ttlMs|text' legacy.json modern.json", @"
    exit: 0
    ----- stdout -----
    legacy.json:text
    modern.json:text
    modern.json:ttlMs
    modern.json:text
    ");
    rehearse!(stage, "rehearse generate old.journal --as python | grep '\"ttlMs\": 1'", @r#"
    exit: 0
    ----- stdout -----
                            "ttlMs": 1234,
    ----- stderr -----
    left out: `ttlMs` and `cacheScope` of resources/list
    "#);
}

#[test]
fn calls_that_differ_in_what_no_rule_looks_at_are_one_with_both_answers() {
    let calls = [
        ("tools/list", json!({}), json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
        ("tools/call", json!({"name": "echo", "arguments": {}, "own": {"a": 1}}), text("one")),
        ("tools/call", json!({"name": "echo", "arguments": {}}), text("two")),
        ("tools/call", json!({"name": "echo", "arguments": {"n": 1}, "more": null}), text("three")),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {}}), &calls));
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    5 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse generate old.journal --as python | grep -A 9 ^MOCK_RESPONSES", @r#"
    exit: 0
    ----- stdout -----
    MOCK_RESPONSES: dict[str, list[dict[str, Any]]] = {
        "tools/call": [
            {
                "params": {"name": "echo", "arguments": {}},
                "responses": [
                    {"result": {"content": [{"type": "text", "text": "one"}]}},
                    {"result": {"content": [{"type": "text", "text": "two"}]}},
                ],
            },
            {
    "#);
}

#[test]
fn whatever_is_in_the_place_of_a_secret_is_answered() {
    let login = |password: &str| json!({"name": "login", "arguments": {"user": "bob", "password": password}});
    let fetch = json!({"name": "fetch", "arguments": {"url": "https://a.b/?token=[redacted:11111111]&n=1"}});
    let calls = [
        ("tools/call", login("[redacted:11111111]"), text("wrong")),
        ("tools/call", login("[redacted:22222222]"), text("welcome")),
        ("tools/call", fetch, text("fetched")),
        (
            "resources/read",
            json!({"uri": "feed://a?key=[redacted:33333333]"}),
            json!({"contents": [{"uri": "feed://a", "text": "news"}]}),
        ),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {}, "resources": {}}), &calls));
    rehearse!(stage, "rehearse generate old.journal --as mock -o new.mock.yaml && grep -A 1 when: new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
            when: { all_of: [{ subset: { user: bob, password: { type: string } }, length: 2 }] }
            in_turn:
    --
            when:
              all_of: [{ subset: { url: { matches: "(?s)^https://a\\.b/\\?token=.*\\&n=1$" } }, length: 1 }]
    ----- stderr -----
    left out: which secret brought which answer of tools/call of login
    wrote new.mock.yaml
    "#);
    rehearse!(stage, "rehearse call fetch url='https://a.b/?token=mine&n=1' -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    fetched
    ");
    rehearse!(stage, "rehearse read 'feed://a?key=mine' -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    news
    ");
    rehearse!(stage, "rehearse call login user=eve password=mine -- rehearse mock new.mock.yaml", @"
    exit: 1
    ----- stderr -----
    error: -32602: nothing was recorded for these arguments of login
    ");
}

#[test]
fn methods_of_its_own_and_subscriptions_are_answered_by_rules() {
    let calls = [
        ("acme/reindex", json!({"what": null, "name": "x"}), json!({"queued": true})),
        ("acme/reindex", json!({"what": null, "name": "x"}), json!({"queued": false})),
        ("acme/status", json!({}), json!({"task": {"id": 1}})),
        ("resources/subscribe", json!({"uri": "note://a"}), json!({})),
        ("resources/unsubscribe", json!({"uri": "note://a"}), json!({"own": 1})),
        ("resources/subscribe", json!({"uri": "note://b"}), json!({"code": -5, "message": "not that one"})),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"resources": {"subscribe": true}}), &calls));
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    7 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse generate old.journal --as python >/dev/null", @"
    exit: 0
    ----- stderr -----
    left out: 2 × acme/reindex, which is no question about tools, prompts or resources
    left out: acme/status, which is no question about tools, prompts or resources
    ");
}

#[test]
fn an_empty_list_that_nobody_declared_is_listed() {
    let calls = [
        ("tools/list", json!({}), json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
        ("prompts/list", json!({}), json!({"prompts": []})),
        ("resources/list", json!({}), json!({"resources": []})),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {}}), &calls));
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    4 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse generate old.journal --as python | grep -E '^(RESOURCES|PROMPTS)|on_list'", @"
    exit: 0
    ----- stdout -----
    RESOURCES: list[dict[str, Any]] = []
    PROMPTS: list[dict[str, Any]] = []
                on_list_tools=exactly(self.handle_list_tools),
                on_list_resources=exactly(self.handle_list_resources),
                on_list_resource_templates=exactly(self.handle_list_resource_templates),
                on_list_prompts=exactly(self.handle_list_prompts),
    ");
}

#[test]
fn members_of_lists_and_notifications_that_nothing_generated_says_are_told() {
    let call = json!({"type": "request", "id": 2, "method": "tools/call",
        "params": {"name": "echo", "_meta": {"progressToken": 1}}});
    let progress = json!({"progressToken": 1, "progress": 1, "_meta": {"own": 1}});
    let log = json!({"level": "info", "data": null, "own": 1});
    let tools = json!([{"name": "echo", "inputSchema": {"type": "object"}}]);
    let stage = Stage::new().file(
        "old.journal",
        &journal(vec![
            ("client", json!({"type": "request", "id": 1, "method": "tools/list"})),
            (
                "server",
                json!({"type": "response", "id": 1, "result": {"tools": tools, "_meta": {"page": 1}, "own": 1}}),
            ),
            ("client", call),
            ("server", json!({"type": "notification", "method": "notifications/progress", "params": progress})),
            ("server", json!({"type": "notification", "method": "notifications/message", "params": log})),
            ("server", json!({"type": "response", "id": 2, "result": text("done")})),
        ]),
    );
    rehearse!(stage, "rehearse generate old.journal --as mock >/dev/null", @"
    exit: 0
    ----- stderr -----
    left out: `_meta` of tools/list
    left out: `own` of tools/list
    left out: `_meta` of notifications/progress
    left out: `own` of notifications/message
    ");
    rehearse!(stage, "rehearse generate old.journal --as python >/dev/null", @"
    exit: 0
    ----- stderr -----
    left out: `_meta` of tools/list
    left out: `own` of tools/list
    left out: `null` as the data of a log message, which the package mcp does not say
    left out: `_meta` of notifications/progress
    left out: `own` of notifications/message
    ");
}

#[test]
fn tasks_that_were_declared_are_declared_and_there() {
    let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    let calls = [("tools/call", json!({"name": "a"}), text("done"))];
    let recorded = session(json!({"tools": {}, "tasks": tasks}), &calls);
    let stage = Stage::new().file("old.journal", &recorded);
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    2 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse request tasks/list --protocol 2025-11-25 -- rehearse mock new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    {
      "tasks": []
    }
    "#);
}

#[test]
fn a_log_message_below_the_level_that_was_set_comes_all_the_same() {
    let mut messages = called(&[("logging/setLevel", json!({"level": "error"}), json!({}))]);
    let told = |level: &str| json!({"type": "notification", "method": "notifications/message", "params": {"level": level, "data": level}});
    let mut call = called(&[("tools/call", json!({"name": "a"}), text("done"))]);
    (call[0].1["id"], call[1].1["id"]) = (2.into(), 2.into());
    call.splice(1..1, [("server", told("info")), ("server", told("alert"))]);
    messages.extend(call);
    let stage = Stage::new().file("old.journal", &journal(messages));
    rehearse!(stage, "rehearse generate old.journal --as mock | grep -A3 steps", @"
    exit: 0
    ----- stdout -----
            steps:
              - { notify: { method: notifications/message, params: { level: info, data: info } } }
              - { log: { level: alert, data: alert } }
              - { wait: 5ms }
    ");
}

#[test]
fn a_change_of_a_resource_that_nobody_subscribed_to_comes_all_the_same() {
    let mut messages = called(&[("resources/subscribe", json!({"uri": "a://1"}), json!({}))]);
    let told = |uri: &str| json!({"type": "notification", "method": "notifications/resources/updated", "params": {"uri": uri}});
    let mut call = called(&[("tools/call", json!({"name": "a"}), text("done"))]);
    (call[0].1["id"], call[1].1["id"]) = (2.into(), 2.into());
    call.splice(1..1, [("server", told("a://1")), ("server", told("a://2"))]);
    messages.extend(call);
    let stage = Stage::new().file("old.journal", &journal(messages));
    rehearse!(stage, "rehearse generate old.journal --as mock | grep -A2 steps", @r#"
    exit: 0
    ----- stdout -----
            steps:
              - { changed: { resource: "a://1" } }
              - { notify: { method: notifications/resources/updated, params: { uri: "a://2" } } }
    "#);
}

#[test]
fn uris_that_a_template_takes_for_one_each_have_their_answer() {
    let read = |uri: &str, text: &str| {
        ("resources/read", json!({"uri": uri}), json!({"contents": [{"uri": uri, "text": text}]}))
    };
    let template = |uri: &str| json!({"uriTemplate": uri, "name": uri});
    let templates = json!({"resourceTemplates": [template("file:///{path}"), template("const://x")]});
    let calls = [
        ("resources/templates/list", json!({}), templates),
        read("file:///a%20b", "encoded"),
        read("file:///a b", "plain"),
        read("const://x", "constant"),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"resources": {}}), &calls));
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    5 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn servers_that_were_recorded_together_are_named() {
    let of = |name: &str, tool: &str| {
        let call = [("tools/call", json!({"name": tool}), text(name))];
        session_in("2025-11-25", json!({"name": name, "version": "1"}), json!({"tools": {}}), &call)
    };
    let stage = Stage::new().file("a.journal", &of("weather", "a"));
    let stage = stage.file("b.journal", &of("notes", "b").replace(r#""session_id":"s""#, r#""session_id":"t""#));
    rehearse!(stage, "rehearse trace merge *.journal > both.jsonl && rehearse generate both.jsonl --as mock -o new.mock.yaml", @"
    exit: 0
    ----- stderr -----
    merged 2 sessions from 2 files
    left out: that `notes` and `weather` are different servers, which are one here (`rehearse trace split` parts their sessions)
    wrote new.mock.yaml
    ");
}

#[test]
fn a_method_of_its_own_that_failed_at_times_fails_in_its_turn() {
    let own = |number: u64, answer: Value| ("acme/look", json!({"number": number}), answer);
    let (busy, gone) =
        (json!({"code": -32000, "message": "busy"}), json!({"code": -32001, "message": "gone", "data": 1}));
    let calls = [
        own(1, busy.clone()),
        own(1, json!({"found": 1})),
        own(2, gone.clone()),
        own(1, busy.clone()),
        own(1, json!({"found": 2})),
        ("acme/never", json!({}), gone.clone()),
        ("acme/never", json!({"other": true}), gone),
        ("tools/call", json!({"name": "a"}), text("done")),
    ];
    let stage = Stage::new().file("old.journal", &session(json!({"tools": {}}), &calls));
    rehearse!(stage, ORACLE, @"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, nothing wrong
    9 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "grep ^refuses new.mock.yaml; sed -n '/^requests/,$p' new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    refuses: { acme/never: { code: -32001, message: gone, data: 1 } }
    requests:
      - method: acme/look
        answers:
          - name: number 1
            when: { exact: { number: 1 } }
            in_turn:
              - error: { code: -32000, message: busy }
              - result: { found: 1 }
              - error: { code: -32000, message: busy }
              - result: { found: 2 }
          - name: number 2
            when: { exact: { number: 2 } }
            error: { code: -32001, message: gone, data: 1 }
    "#);
}
