//! Tests of the actions before an answer: steps, input requests, tasks.

use serde_json::{Value, json};

use super::*;

const GREETING: &str = r#"
tools:
  - name: greet
    answers:
      - steps:
          - log: { level: info, data: "asking for {{ arguments.what }}" }
          - ask:
              who:
                elicitation:
                  message: "Your {{ arguments.what }}?"
                  requested_schema: { type: object, properties: { name: { type: string } }, required: [name] }
        choose:
          - when: { who: { action: accept } }
            steps:
              - ask: { words: { sampling: { prompt: "Greet {{ answers.who.content.name }}" } } }
            text: "{{ answers.words.content.text }}, {{ answers.who.content.name }}"
          - when: { who: { action: decline } }
            text: as you like
"#;

fn ada() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}

fn words() -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}})
}

#[test]
fn input_requests_keep_the_order_of_the_file() {
    let text = "tools:\n  - name: t\n    answers:\n      - steps: [{ ask: { who: roots, how: roots, a: roots } }]\n        text: x\n";
    let answer = json!({"roots": []});
    let answers = json!({"who": answer, "how": answer, "a": answer});
    let mut legacy = Fixture::legacy(text, Revision::V2025_11_25);
    let lines = legacy.run("tools/call", json!({"name": "t"}), &answers);
    let names: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("ask ")?.split(' ').next()).collect();
    assert_eq!(names, ["who", "how", "a"]);
    let round = Fixture::new(text).result("tools/call", json!({"name": "t"}));
    assert_eq!(round["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["who", "how", "a"]);
}

#[test]
fn a_legacy_client_gets_server_requests() {
    let mut fixture = Fixture::legacy(GREETING, Revision::V2025_11_25);
    let params = json!({"name": "greet", "arguments": {"what": "name"}});
    assert_eq!(
        fixture.run("tools/call", params.clone(), &json!({"who": ada(), "words": words()})),
        [
            r#"notifications/message {"level":"info","data":"asking for name"}"#,
            r#"ask who elicitation/create {"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#,
            r#"ask words sampling/createMessage {"messages":[{"role":"user","content":{"type":"text","text":"Greet Ada"}}],"maxTokens":100}"#,
            r#"{"content":[{"type":"text","text":"Hello, Ada"}]}"#,
        ]
    );
    let declined = fixture.run("tools/call", params.clone(), &json!({"who": {"action": "decline"}}));
    assert_eq!(declined.last().unwrap(), r#"{"content":[{"type":"text","text":"as you like"}]}"#);
    let cancelled = fixture.run("tools/call", params.clone(), &json!({"who": {"action": "cancel"}}));
    assert!(
        cancelled.last().unwrap().contains("closest was `an object with {who: an object with {action: "),
        "{cancelled:?}"
    );
    let garbage =
        fixture.run("tools/call", params.clone(), &json!({"who": {"action": "accept", "content": {"name": 5}}}));
    assert!(garbage.last().unwrap().contains(r#""isError":true"#), "{garbage:?}");
    let silent = fixture.run("tools/call", params.clone(), &json!({}));
    assert_eq!(silent.last().unwrap(), r#"{"content":[{"type":"text","text":"no answer"}],"isError":true}"#);
    let mut old = Fixture::legacy(GREETING, Revision::V2025_03_26);
    assert!(old.run("tools/call", params, &json!({})).last().unwrap().contains("exists since 2025-06-18"));
}

#[test]
fn a_verbatim_input_request_is_unchanged_in_every_version() {
    let text = r#"
tools:
  - name: t
    answers:
      - steps:
          - ask:
              plain: { elicitation: { message: Which?, requested_schema: { type: object, properties: { a: { type: array } } } } }
        text: x
  - name: exactly
    answers:
      - steps:
          - ask:
              which:
                request:
                  method: elicitation/create
                  params: { mode: form, message: "{{ arguments.it }}?", requestedSchema: { type: object, properties: { a: { type: array } } } }
              own: { request: { method: vendor/ask } }
        text: x
"#;
    let answers = json!({"which": {"action": "decline"}, "own": {}});
    let mut old = Fixture::legacy(text, Revision::V2025_06_18);
    let refused = old.run("tools/call", json!({"name": "t"}), &answers);
    assert!(refused.last().unwrap().contains("exists since 2025-11-25"), "{refused:?}");
    let params = json!({"name": "exactly", "arguments": {"it": "Which"}});
    assert_eq!(
        old.run("tools/call", params.clone(), &answers),
        [
            r#"ask which elicitation/create {"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"a":{"type":"array"}}}}"#,
            "ask own vendor/ask null",
            r#"{"content":[{"type":"text","text":"x"}]}"#,
        ]
    );
    let mut without = Fixture::legacy(text, Revision::V2025_06_18);
    without.state.legacy.client.as_mut().unwrap().capabilities = json!({"roots": {}}).into();
    let refused = without.run("tools/call", params.clone(), &answers);
    assert!(refused.last().unwrap().contains("did not declare the capability elicitation"), "{refused:?}");
    let round = Fixture::new(text).result("tools/call", params);
    assert_eq!(round["inputRequests"]["own"], json!({"method": "vendor/ask"}));
    assert_eq!(round["inputRequests"]["which"]["params"]["mode"], "form");
}

#[test]
fn a_modern_client_gets_input_required_and_retries_with_input_responses() {
    let mut fixture = Fixture::new(GREETING);
    let first = json!({"name": "greet", "arguments": {"what": "name"}});
    let round = fixture.result("tools/call", first.clone());
    assert_eq!(round["resultType"], "input_required");
    assert_eq!(round["inputRequests"]["who"]["params"]["message"], "Your name?");
    let mut second = first.clone();
    second["requestState"] = round["requestState"].clone();
    let nothing = fixture.result("tools/call", second.clone());
    assert_eq!(nothing["inputRequests"], round["inputRequests"], "requested again");
    second["inputResponses"] = json!({"wrong": ada(), "who": {"action": "accept", "content": {}}});
    assert_eq!(fixture.result("tools/call", second.clone())["inputRequests"], round["inputRequests"], "garbage");
    second["inputResponses"] = json!({"who": ada(), "extra": 1});
    let round = fixture.result("tools/call", second);
    assert_eq!(round["inputRequests"].as_object().unwrap().len(), 1);
    assert_eq!(round["inputRequests"]["words"]["method"], "sampling/createMessage");
    let mut third = first.clone();
    third["requestState"] = round["requestState"].clone();
    third["inputResponses"] = json!({"words": words()});
    assert_eq!(fixture.result("tools/call", third.clone())["content"][0]["text"], "Hello, Ada");
    let mut forged = third.clone();
    forged["requestState"] = "forged".into();
    let lines = fixture.run("tools/call", forged, &json!({}));
    assert_eq!(lines, ["-32602: requestState was changed, or belongs to another request"]);
    third["arguments"]["what"] = "game".into();
    assert!(fixture.run("tools/call", third, &json!({}))[0].contains("belongs to another request"));
}

#[test]
fn a_repeated_name_requests_new_input() {
    let text = "
tools:
  - name: t
    answers: [{ steps: [{ ask: { who: roots } }, empty_round: {}, { ask: { who: roots } }], text: '{{ answers.who.roots | length }}' }]
";
    let mut fixture = Fixture::new(text);
    let mut call = json!({"name": "t"});
    for (roots, has_request) in [(0, true), (1, false), (0, true), (3, false)] {
        let root = |number: usize| json!({"uri": format!("file:///{number}")});
        let brought: Vec<_> = (0..roots).map(root).collect();
        call["inputResponses"] = if roots > 0 { json!({"who": {"roots": brought}}) } else { json!({}) };
        let result = fixture.result("tools/call", call.clone());
        assert_eq!(result["inputRequests"].get("who").is_some(), has_request, "{result}");
        call["requestState"] = result["requestState"].clone();
        if roots == 3 {
            assert_eq!(result["content"][0]["text"], "3");
        }
    }
    let lines = Fixture::legacy(text, Revision::V2025_06_18).run(
        "tools/call",
        json!({"name": "t"}),
        &json!({"who": {"roots": []}}),
    );
    assert_eq!(lines.len(), 3, "{lines:?}");
}

#[test]
fn a_round_without_request_state_is_recognized_by_its_request() {
    let text = r#"
tools:
  - name: t
    answers:
      - in_turn:
          - { steps: [{ ask: { who: roots } }], request_state: false, text: one }
          - { steps: [{ ask: { who: roots } }], request_state: false, text: two }
"#;
    let mut fixture = Fixture::new(text);
    let begin = json!({"name": "t", "arguments": {"a": 1, "b": 2}});
    for _ in 0..2 {
        let round = fixture.result("tools/call", begin.clone());
        assert_eq!((round["resultType"].as_str(), round.get("requestState")), (Some("input_required"), None));
    }
    let back = json!({"name": "t", "arguments": {"b": 2, "a": 1}, "inputResponses": {"who": {"roots": []}}});
    let mut other = back.clone();
    other["arguments"]["a"] = 2.into();
    for (request, expected) in [(back.clone(), "one"), (other, "two"), (back, "two")] {
        assert_eq!(fixture.result("tools/call", request)["content"][0]["text"], expected);
    }
}

#[test]
fn a_client_without_the_capability_gets_an_error() {
    let mut fixture = Fixture::new(GREETING);
    fixture.capabilities = json!({"sampling": {}});
    let lines = fixture.run("tools/call", json!({"name": "greet", "arguments": {"what": "name"}}), &json!({}));
    assert_eq!(lines, ["-32021: this needs the capability elicitation"]);
}

#[test]
fn try_ask_continues_with_null_without_valid_input() {
    let text = r#"
tools:
  - name: t
    answers:
      - steps: [{ try_ask: { who: { elicitation: { message: Who?, requested_schema: { type: object } } } } }]
        choose:
          - { when: { who: null }, text: anonymous }
          - text: "{{ answers.who.action }}"
"#;
    let params = json!({"name": "t"});
    let text_of = |fixture: &mut Fixture, answers: Value| {
        let lines = fixture.run("tools/call", params.clone(), &answers);
        let result: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        (lines.len(), result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    };
    let mut legacy = Fixture::legacy(text, Revision::V2025_11_25);
    assert_eq!(text_of(&mut legacy, json!({"who": {"action": "decline"}})), (2, "decline".to_owned()));
    assert_eq!(text_of(&mut legacy, json!({"who": {"action": "fly"}})), (2, "anonymous".to_owned()));
    assert_eq!(text_of(&mut legacy, json!({})), (2, "anonymous".to_owned()));
    legacy.state.legacy.client.as_mut().unwrap().capabilities = json!({"roots": {}}).into();
    assert_eq!(text_of(&mut legacy, json!({})), (1, "anonymous".to_owned()));
    let mut modern = Fixture::new(text);
    assert_eq!(modern.result("tools/call", params.clone())["resultType"], "input_required");
    modern.capabilities = json!({});
    assert_eq!(text_of(&mut modern, json!({})), (1, "anonymous".to_owned()));
}

#[test]
fn an_empty_round_has_only_request_state() {
    let mut fixture = Fixture::new(
        "tools: [{ name: t, answers: [{ steps: [{ empty_round: {} }, { set: { a: 1 } }], text: done }] }]",
    );
    let round = fixture.result("tools/call", json!({"name": "t"}));
    assert_eq!((round["resultType"].as_str(), round.get("inputRequests")), (Some("input_required"), None));
    let done = fixture.result("tools/call", json!({"name": "t", "requestState": round["requestState"]}));
    assert_eq!(done["content"][0]["text"], "done");
}

#[test]
fn steps_precede_the_answer_and_respect_the_client_settings() {
    let text = r#"
tools:
  - name: slow
    answers:
      - delay: { from: 10ms, to: 20ms }
        steps:
          - progress: { progress: 0.5, total: 2, message: "{{ arguments.a }} of 2" }
          - wait: 50ms
          - log: { level: debug, logger: me, data: { a: "{{ arguments.a }}" } }
          - notify: { method: notifications/custom, params: { n: "{{ call }}" } }
          - changed: tools
          - changed: { resource: "a://{{ arguments.a }}" }
          - close_stream: { retry: 100ms }
        text: done
"#;
    let mut fixture = Fixture::legacy(text, Revision::V2025_11_25);
    let params = json!({"name": "slow", "arguments": {"a": 1}, "_meta": {"progressToken": "t"}});
    assert_eq!(
        fixture.run("tools/call", params.clone(), &json!({})),
        [
            "wait 20ms",
            r#"notifications/progress {"progressToken":"t","progress":0.5,"total":2,"message":"1 of 2"}"#,
            "wait 50ms",
            r#"notifications/message {"level":"debug","logger":"me","data":{"a":1}}"#,
            r#"notifications/custom {"n":1}"#,
            "notify Tools",
            r#"notify Resource("a://1")"#,
            "close stream Some(100ms)",
            r#"{"content":[{"type":"text","text":"done"}]}"#,
        ]
    );
    let mut quiet = Fixture::new(text);
    let lines = quiet.run("tools/call", json!({"name": "slow", "arguments": {"a": 1}}), &json!({}));
    assert!(
        !lines.iter().any(|line| line.contains("progress") || line.contains("message") || line.contains("close")),
        "{lines:?}"
    );
}

const TASKS: &str = r#"
tools:
  - name: job
    task_support: optional
    answers:
      - when: { kind: slow }
        task: { after: 1s, ttl_ms: 60000, required: true, status_message: "{{ arguments.kind }} work" }
        text: slow
      - text: quick
  - name: plain
    answers: [{ text: plain }]
"#;

#[test]
fn a_task_starts_only_for_clients_that_support_tasks() {
    let mut fixture = Fixture::legacy(TASKS, Revision::V2025_11_25);
    let params = json!({"name": "job", "arguments": {"kind": "slow"}, "task": {}});
    let done = r#"{"content":[{"type":"text","text":"slow"}]}"#;
    assert_eq!(fixture.run("tools/call", params, &json!({})), ["task Some(60000) slow work", "wait 1s", done]);
    let refused = fixture.run("tools/call", json!({"name": "job", "arguments": {"kind": "slow"}}), &json!({}));
    assert_eq!(refused, ["-32601: this tool can only be called as a task"]);
    let quick = fixture.run("tools/call", json!({"name": "job", "task": {}}), &json!({}));
    assert_eq!(quick, ["task None", r#"{"content":[{"type":"text","text":"quick"}]}"#]);

    let mut fixture = Fixture::new(TASKS);
    let params = json!({"name": "job", "arguments": {"kind": "slow"}});
    let refused = fixture.run("tools/call", params.clone(), &json!({}));
    assert_eq!(refused, ["-32021: this needs the extension io.modelcontextprotocol/tasks"]);
    assert_eq!(fixture.run("tasks/get", json!({"taskId": "x"}), &json!({}))[0][..6], *"-32021");
    fixture.capabilities = json!({"extensions": {meta::TASKS_EXTENSION: {}}});
    let lines = fixture.run("tools/call", params, &json!({}));
    assert_eq!(lines[..2], ["task Some(60000) slow work".to_owned(), "wait 1s".to_owned()]);
    assert_eq!(fixture.run("tasks/get", json!({"taskId": "x"}), &json!({})), [r#"Get("x")"#]);
    assert_eq!(fixture.run("tasks/list", json!({}), &json!({}))[0][..6], *"-32601");
    assert_eq!(fixture.call("job", json!({})), "quick", "the server decides, and this rule has no task");
}
