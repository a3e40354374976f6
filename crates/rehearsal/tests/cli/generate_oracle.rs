//! `rehearse generate`, compared with its recording by `rehearse verify`: the mock answers as the recording did.

use serde_json::{Value, json};

use crate::fixture::{Fixture, rehearse};

/// Calls: method, params and the answer, a result or an error.
type Calls = Vec<(&'static str, Value, Value)>;

/// A journal of one session of 2025-11-25 whose server declared these capabilities.
fn session(capabilities: Value, calls: &Calls) -> String {
    let client = json!({"name": "a", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": client});
    let server = json!({"name": "old", "version": "1"});
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server});
    let mut messages = vec![
        ("client", json!({"type": "request", "id": 0, "method": "initialize", "params": params})),
        ("server", json!({"type": "response", "id": 0, "result": result})),
        ("client", json!({"type": "notification", "method": "notifications/initialized"})),
    ];
    messages.extend(messages_of(calls));
    journal(messages)
}

/// A journal of one session of 2026-07-28, whose client supports elicitation.
fn stateless(calls: &Calls) -> String {
    let about = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"}});
    let mut calls = calls.clone();
    for (_, params, answer) in &mut calls {
        params["_meta"] = about.clone();
        if answer.get("code").is_none() {
            answer["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "1"}});
        }
    }
    journal(messages_of(&calls))
}

fn messages_of(calls: &Calls) -> Vec<(&'static str, Value)> {
    let mut messages = Vec::new();
    for (at, (method, params, answer)) in calls.iter().enumerate() {
        let key = if answer.get("code").is_some() { "error" } else { "result" };
        messages.push(("client", json!({"type": "request", "id": at + 1, "method": method, "params": params})));
        messages.push(("server", json!({"type": "response", "id": at + 1, key: answer})));
    }
    messages
}

fn journal(messages: Vec<(&str, Value)>) -> String {
    let start = json!({"type": "start", "format": 1, "session_id": "s", "server_info": {"transport": "stdio"},
        "started_at": "2026-07-28T12:00:00Z", "metadata": {}});
    let lines = messages.into_iter().enumerate().map(|(at, (from, mut message))| {
        (message["seq"], message["at_ms"], message["from"]) = (at.into(), at.into(), from.into());
        message.to_string()
    });
    std::iter::once(start.to_string()).chain(lines).map(|line| line + "\n").collect()
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn error(code: i64, message: &str) -> Value {
    json!({"code": code, "message": message})
}

/// `tools/list` with tools of these names.
fn listing(names: &[&str]) -> (&'static str, Value, Value) {
    let tools = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    ("tools/list", json!({}), json!({"tools": tools.collect::<Vec<_>>()}))
}

fn call(name: &str, arguments: Value, answer: Value) -> (&'static str, Value, Value) {
    ("tools/call", json!({"name": name, "arguments": arguments}), answer)
}

/// A suggestion of a value of the argument `who` of the prompt `greet`.
fn complete(typed: &str, answer: Value) -> (&'static str, Value, Value) {
    let reference = json!({"type": "ref/prompt", "name": "greet"});
    ("completion/complete", json!({"ref": reference, "argument": {"name": "who", "value": typed}}), answer)
}

fn suggested(values: &[&str]) -> Value {
    json!({"completion": {"values": values, "total": values.len(), "hasMore": false}})
}

const ORACLE: &str = "rehearse generate old.journal --as mock -o new.mock.yaml --force && rehearse check new.mock.yaml \
                      && rehearse verify old.journal -- rehearse mock new.mock.yaml";

/// Recordings of servers, each unusual in its own way, and how many of their answers are compared.
fn recordings() -> Vec<(&'static str, String, usize)> {
    let tools = || json!({"tools": {"listChanged": true}});
    let failed = vec![
        call("flaky", json!({}), json!({"code": -32000, "message": "upstream is down", "data": {"retry": 5}})),
        call("fails", json!({}), json!({"content": [{"type": "text", "text": "went wrong"}], "isError": true})),
        ("prompts/get", json!({"name": "broken"}), error(-32603, "prompt broke")),
    ];
    let structured = vec![
        listing(&["find"]),
        call(
            "find",
            json!({"n": 1}),
            json!({"content": [{"type": "text", "text": "null"}], "structuredContent": null}),
        ),
        call("find", json!({"n": 2}), json!({"structuredContent": {"n": 2}})),
        call("find", json!({"n": 3}), json!({"structuredContent": {"n": 3}, "content": []})),
        call("find", json!({"n": 4}), json!({"content": [{"type": "chart", "own": null}], "own": "{{ member }}"})),
    ];
    let alike = vec![
        listing(&["echo"]),
        ("tools/call", json!({"name": "echo", "arguments": {}, "own": {"a": 1}}), text("one")),
        ("tools/call", json!({"name": "echo", "arguments": {}}), text("two")),
        ("tools/call", json!({"name": "echo", "arguments": {"exact": 1}, "more": null}), text("three")),
    ];
    let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    let extensions = json!({"com.example/ui": {"mimeTypes": ["text/html"]}});
    let declared = json!({"tools": {"listChanged": true}, "extensions": extensions, "tasks": tasks});
    let refused = vec![
        listing(&["a"]),
        ("resources/list", json!({}), error(-32601, "Method not found")),
        ("resources/templates/list", json!({}), json!({"code": -32001, "message": "not for you {{", "data": null})),
        ("resources/subscribe", json!({"uri": "note://a"}), error(-32601, "Method not found")),
        ("logging/setLevel", json!({"level": "info"}), error(-32601, "Method not found")),
    ];
    let empty = vec![
        listing(&["echo"]),
        ("prompts/list", json!({}), json!({"prompts": []})),
        ("resources/list", json!({}), json!({"resources": []})),
    ];
    let own = |number: u64, answer: Value| ("acme/look", json!({"number": number}), answer);
    let extension_methods = vec![
        own(1, error(-32000, "busy")),
        own(1, json!({"found": 1})),
        own(1, json!({"task": {"id": 1}})),
        own(2, error(-32001, "gone")),
        ("acme/never", json!({}), error(-32001, "gone")),
        ("resources/subscribe", json!({"uri": "note://a"}), json!({})),
        ("resources/unsubscribe", json!({"uri": "note://a"}), json!({"own": 1})),
        ("resources/subscribe", json!({"uri": "note://b"}), error(-5, "not that one")),
    ];
    let read = |uri: &str| {
        ("resources/read", json!({"uri": uri}), json!({"contents": [{"uri": uri, "text": format!("at {uri}")}]}))
    };
    let template = |uri: &str| json!({"uriTemplate": uri, "name": uri});
    let templates = vec![
        (
            "resources/templates/list",
            json!({}),
            json!({"resourceTemplates": [template("file:///{path}"), template("const://x")]}),
        ),
        read("file:///a%20b"),
        read("file:///c"),
        read("const://x"),
        read("other://y"),
    ];
    let completions = vec![
        ("prompts/list", json!({}), json!({"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]})),
        complete("A", suggested(&["Ada", "Alan"])),
        complete("", suggested(&["Ada", "Bob", "Alan"])),
        complete("ob", suggested(&["Bob"])),
        complete("b", json!({"completion": {"values": ["Bob"]}})),
        complete("q", error(-32603, "no")),
    ];
    let page = |names: &[&str], next: Option<&str>| {
        let (_, _, mut page) = listing(names);
        (page["resultType"], page["ttlMs"], page["cacheScope"]) = ("complete".into(), 0.into(), "private".into());
        next.into_iter().for_each(|next| page["nextCursor"] = next.into());
        page
    };
    let pages = vec![
        ("tools/list", json!({}), page(&["a", "b"], Some("x"))),
        ("tools/list", json!({"cursor": "x"}), page(&["c"], None)),
    ];
    vec![
        (
            "tools that only failed",
            session(json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}}), &failed),
            4,
        ),
        ("structured content", session(tools(), &structured), 6),
        ("calls that differ in what does not count", session(tools(), &alike), 5),
        ("tasks and extensions that are declared", session(declared, &vec![listing(&["a"])]), 2),
        ("lists that were refused", session(tools(), &refused), 6),
        ("empty lists that were not declared", session(tools(), &empty), 4),
        ("methods of its own", session(json!({"resources": {"subscribe": true}}), &extension_methods), 9),
        ("templates", session(json!({"resources": {}}), &templates), 6),
        ("completions", session(json!({"prompts": {"listChanged": true}, "completions": {}}), &completions), 7),
        ("pages", stateless(&pages), 1),
        ("input rounds", stateless(&rounds()), 1),
    ]
}

#[test]
fn a_generated_mock_answers_as_the_recording_did() {
    for (name, recorded, count) in recordings() {
        let played = Fixture::new().file("old.journal", &recorded).run(ORACLE);
        let expected = format!("1 file checked, no problems\n{count} as recorded, 0 different, 0 skipped\n");
        assert!(played.ends_with(&expected) && !played.contains("left out"), "{name}: {played}");
    }
}

/// A call of two rounds.
fn rounds() -> Calls {
    let form = |message: &str| {
        json!({"method": "elicitation/create", "params": {"mode": "form", "message": message,
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}})
    };
    let round = |name: &str, state: &str| json!({"resultType": "input_required", "inputRequests": {name: form(name)}, "requestState": state});
    let back = |name: &str, state: &str| json!({"name": "two", "arguments": {}, "requestState": state, "inputResponses": {name: {"action": "decline"}}});
    vec![
        call("two", json!({}), round("who", "1")),
        ("tools/call", back("who", "1"), round("why", "2")),
        ("tools/call", back("why", "2"), json!({"resultType": "complete", "content": []})),
    ]
}

#[test]
fn a_tool_that_was_called_but_never_listed_is_hidden() {
    let unknown = json!({"content": [{"type": "text", "text": "Unknown tool: none"}], "isError": true});
    let gone = json!({"code": -32602, "message": "Resource note://gone not found"});
    let calls = vec![
        ("tools/list", json!({}), json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
        ("tools/call", json!({"name": "none", "arguments": {}}), unknown),
        ("tools/call", json!({"name": "secret", "arguments": {}}), text("psst")),
        ("resources/list", json!({}), json!({"resources": [{"uri": "note://a", "name": "a"}]})),
        ("resources/read", json!({"uri": "note://gone"}), gone),
        ("prompts/list", json!({}), json!({"prompts": []})),
        ("prompts/get", json!({"name": "unknown"}), json!({"code": -32001, "message": "no such prompt"})),
    ];
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}, "prompts": {"listChanged": true}});
    let fixture = Fixture::new().file("old.journal", &session(capabilities, &calls));
    rehearse!(fixture, ORACLE, @r"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, no problems
    8 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "cat new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    # Answers like old.journal. Edit it: rules are tried in order, and the first that fits answers.
    # `rehearse check` reports its mistakes, `rehearse mock` serves it.
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
      - name: unknown
        hidden: true
        answers:
          - name: no arguments
            when: { exact: {} }
            error: { code: -32001, message: no such prompt }
          - name: anything else
            error: { code: -32602, message: nothing was recorded for these arguments of unknown }
    "#);
}

#[test]
fn a_mock_of_sessions_in_three_versions_answers_each_of_them() {
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
    let fixture = Fixture::new().file("server.mock.yaml", mock);
    let answer = "--answer 'elicitation/create={\"action\":\"decline\"}'";
    for version in ["legacy", "2025-06-18", "modern"] {
        let record = "rehearse record -q -o old.journal -- rehearse mock server.mock.yaml";
        fixture.run(&format!("rehearse call ask --protocol {version} {answer} -- {record}"));
        fixture.run(&format!(
            "rehearse request prompts/get --params '{{\"name\":\"greet\"}}' --protocol {version} -- {record}"
        ));
    }
    rehearse!(fixture, ORACLE, @r"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, no problems
    [info] hm
    [info] hm
    15 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "grep -E '^capabilities|mode:' new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    capabilities: { tools: {}, resources: { subscribe: true }, prompts: null, logging: null }
                          mode: form
                          mode: form
    ");
}

#[test]
fn a_mock_supports_no_version_newer_than_the_recorded_one() {
    let calls =
        vec![listing(&["a"]), ("x/y", json!({"a": 1}), json!({"code": -32601, "message": "What?", "data": "x/y"}))];
    let older = session(json!({"tools": {}}), &calls).replace("2025-11-25", "2024-11-05");
    let fixture = Fixture::new().file("old.journal", &older.replacen("2024-11-05", "2025-06-18", 1));
    rehearse!(fixture, ORACLE, @r"
    exit: 0
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, no problems
    3 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "grep 'versions:\\|refuses:' new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
    versions: ["2024-11-05", "2026-07-28"]
    refuses: { x/y: { code: -32601, message: "What?", data: x/y } }
    "#);
    rehearse!(fixture, "rehearse generate old.journal --as python -o old.py; grep -A 2 '^REFUSES' old.py", @r#"
    exit: 0
    ----- stdout -----
    REFUSES: dict[str, dict[str, Any]] = {
        "x/y": {"code": -32601, "message": "What?", "data": "x/y"},
    }
    ----- stderr -----
    wrote old.py
    "#);
}

#[test]
fn a_request_with_any_secret_is_answered() {
    let login = |password: &str| json!({"name": "login", "arguments": {"user": "bob", "password": password}});
    let fetch = json!({"name": "fetch", "arguments": {"url": "https://a.b/?token=[redacted:11111111]&n=1"}});
    let calls = vec![
        ("tools/call", login("[redacted:11111111]"), text("wrong")),
        ("tools/call", login("[redacted:22222222]"), text("welcome")),
        ("tools/call", fetch, text("fetched")),
        (
            "resources/read",
            json!({"uri": "feed://a?key=[redacted:33333333]"}),
            json!({"contents": [{"uri": "feed://a", "text": "news"}]}),
        ),
    ];
    let fixture = Fixture::new().file("old.journal", &session(json!({"tools": {}, "resources": {}}), &calls));
    rehearse!(fixture, "rehearse generate old.journal --as mock -o new.mock.yaml && grep -A 1 when: new.mock.yaml", @r#"
    exit: 0
    ----- stdout -----
            when: { all_of: [{ subset: { user: bob, password: { type: string } }, length: 2 }] }
            in_turn:
    --
            when:
              all_of: [{ subset: { url: { matches: "(?s)^https://a\\.b/\\?token=.*\\&n=1$" } }, length: 1 }]
    ----- stderr -----
    left out: 1 request that differs only in a secret
    wrote new.mock.yaml
    "#);
    rehearse!(fixture, "rehearse call fetch url='https://a.b/?token=mine&n=1' -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    fetched
    ");
    rehearse!(fixture, "rehearse read 'feed://a?key=mine' -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    news
    ");
    rehearse!(fixture, "rehearse call login user=eve password=mine -- rehearse mock new.mock.yaml", @"
    exit: 1
    ----- stderr -----
    error: -32602: nothing was recorded for these arguments of login
    ");
}

/// A session whose client refuses an elicitation.
fn refused() -> String {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "a", "version": "1"}});
    let introduced = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}});
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let no = json!({"code": -32601, "message": "not here"});
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
fn a_server_request_that_the_client_refused_may_be_refused() {
    let fixture = Fixture::new().file("old.journal", &refused());
    rehearse!(fixture, "rehearse generate old.journal --as mock -o new.mock.yaml && rehearse check new.mock.yaml && grep -A2 steps new.mock.yaml", @r"
    exit: 0
    ----- stdout -----
            steps:
              - try_ask:
                  input_1: { elicitation: { message: m, requested_schema: { type: object, properties: {} } } }
    ----- stderr -----
    wrote new.mock.yaml
    1 file checked, no problems
    ");
    rehearse!(fixture, "rehearse verify old.journal -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
    // A client without elicitation gets the answer at once.
    rehearse!(fixture, "rehearse call a -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    went on
    ");
}

/// A session whose client has roots. `messages` come after the handshake.
fn session_with_roots(messages: Vec<(&'static str, Value)>) -> String {
    let client = json!({"name": "a", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {"listChanged": true}}, "clientInfo": client});
    let server = json!({"name": "old", "version": "1"});
    let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server});
    let handshake = vec![
        ("client", json!({"type": "request", "id": 0, "method": "initialize", "params": params})),
        ("server", json!({"type": "response", "id": 0, "result": result})),
        ("client", json!({"type": "notification", "method": "notifications/initialized"})),
    ];
    journal(handshake.into_iter().chain(messages).collect())
}

/// A call of the tool `a`, without the events between request and response.
fn call_of_a(id: u64) -> [(&'static str, Value); 2] {
    let params = json!({"name": "a", "arguments": {}});
    [
        ("client", json!({"type": "request", "id": id, "method": "tools/call", "params": params})),
        ("server", json!({"type": "response", "id": id, "result": text("done")})),
    ]
}

fn roots_list(id: &str) -> [(&'static str, Value); 2] {
    [
        ("server", json!({"type": "request", "id": id, "method": "roots/list"})),
        ("client", json!({"type": "response", "id": id, "result": {"roots": []}})),
    ]
}

#[test]
fn a_client_without_roots_can_call_a_tool_that_requested_roots() {
    let ([request, response], [roots, answer]) = (call_of_a(1), roots_list("r"));
    let recorded = session_with_roots(vec![request, roots, answer, response]);
    let fixture = Fixture::new().file("old.journal", &recorded);
    rehearse!(fixture, "rehearse generate old.journal --as mock -o new.mock.yaml && grep -A1 steps new.mock.yaml", @"
    exit: 0
    ----- stdout -----
            steps: [{ try_ask: { input_1: roots } }]
            text: done
    ----- stderr -----
    wrote new.mock.yaml
    ");
    rehearse!(fixture, "rehearse call a -- rehearse mock new.mock.yaml && rehearse verify old.journal -- rehearse mock new.mock.yaml", @"
    exit: 0
    ----- stdout -----
    done
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn a_second_roots_request_belongs_to_the_call_in_flight() {
    let ([request, response], [first, one], [roots, answer]) = (call_of_a(1), roots_list("r"), roots_list("s"));
    let recorded = session_with_roots(vec![first, one, request, roots, answer, response]);
    let fixture = Fixture::new().file("old.journal", &recorded);
    rehearse!(fixture, "rehearse generate old.journal --as mock | grep steps", @"
    exit: 0
    ----- stdout -----
            steps: [{ ask: { input_1: roots } }]
    ----- stderr -----
    left out: 1 server request
    ");
}

#[test]
fn roots_requests_after_each_handshake_are_left_out_of_calls() {
    let ([request, response], [roots, answer]) = (call_of_a(1), roots_list("r"));
    let mut other = call_of_a(1).to_vec();
    other[1].1["result"] = text("other");
    let outside = session_with_roots([roots_list("r").to_vec(), other].concat());
    let during = session_with_roots(vec![request, roots, answer, response]);
    let both = during + &outside.replace(r#""session_id":"s""#, r#""session_id":"t""#);
    let fixture = Fixture::new().file("old.journal", &both);
    rehearse!(fixture, "rehearse generate old.journal --as mock | grep -A4 when", @"
    exit: 0
    ----- stdout -----
            when: { exact: {} }
            in_turn:
              - text: done
              - text: other
          - name: anything else
    ----- stderr -----
    left out: 2 server requests
    ");
}

#[test]
fn roots_that_arrive_after_the_result_of_a_call_are_left_out() {
    let ([request, response], [roots, answer]) = (call_of_a(1), roots_list("r"));
    let recorded = session_with_roots(vec![request, roots, response, answer]);
    let fixture = Fixture::new().file("old.journal", &recorded);
    rehearse!(fixture, "rehearse generate old.journal --as mock | grep -A1 when", @"
    exit: 0
    ----- stdout -----
            when: { exact: {} }
            text: done
    ----- stderr -----
    left out: 1 server request
    ");
}

#[test]
fn a_prompt_that_was_never_listed_has_its_recorded_arguments() {
    let get = |arguments: Value| {
        let messages =
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": arguments.to_string()}}]});
        ("prompts/get", json!({"name": "greet", "arguments": arguments}), messages)
    };
    let calls = vec![get(json!({"who": "Ada"})), get(json!({"who": "Bob", "style": "formal"}))];
    let fixture = Fixture::new().file("old.journal", &session(json!({"prompts": {"listChanged": true}}), &calls));
    rehearse!(fixture, "rehearse generate old.journal --as mock -o new.mock.yaml && grep -A1 'name: greet' new.mock.yaml", @"
    exit: 0
    ----- stdout -----
      - name: greet
        arguments: [{ name: who }, { name: style }]
    ----- stderr -----
    wrote new.mock.yaml
    ");
    rehearse!(fixture, "rehearse generate old.journal --as python | grep -A2 '^PROMPTS'", @r#"
    exit: 0
    ----- stdout -----
    PROMPTS: list[dict[str, Any]] = [
        {"name": "greet", "arguments": [{"name": "who"}, {"name": "style"}]},
    ]
    "#);
}
