//! A mock answers: `>` goes in, what comes out is compared line by line, and time passes when it is told to.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::message::{Method, Reply};
use crate::protocol::{Revision, meta};
use crate::script::mock::MockFile;
use crate::script::read;

pub(super) fn mock(text: &str) -> Arc<Mock> {
    let file: MockFile = read("m.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    let source = Source { file: "m.yaml", mock: &file };
    let read =
        |_: &str, path: &str| if path == "there" { Ok(b"\x00\xff".to_vec()) } else { Err("not found".to_owned()) };
    Arc::new(Mock::compile(&[source], Otherwise::Refuse, &read).unwrap_or_else(|errors| panic!("{}", errors[0])))
}

pub(super) struct Stage {
    mock: Arc<Mock>,
    state: State,
    memory: Memory,
    seal: Seal,
    capabilities: Value,
}

impl Stage {
    pub(super) fn new(text: &str) -> Stage {
        let mock = mock(text);
        let (state, capabilities) = (State::new(&mock), json!({"elicitation": {}, "sampling": {}, "roots": {}}));
        Stage { mock, state, memory: Memory::default(), seal: Seal::new([1; 32]), capabilities }
    }

    /// A stage of the handshake era.
    pub(super) fn legacy(text: &str, revision: Revision) -> Stage {
        let mut stage = Stage::new(text);
        let (client, capabilities) = (json!({"name": "old"}), stage.capabilities.clone());
        stage.memory.handshake = Some(Handshake { revision, client, capabilities });
        stage
    }

    fn asked(&self, method: &str, params: Value) -> Asked {
        let mut params = params;
        if self.memory.handshake.is_none() {
            params["_meta"][meta::PROTOCOL_VERSION] = "2026-07-28".into();
            params["_meta"][meta::CLIENT_CAPABILITIES] = self.capabilities.clone();
        }
        let method = Method::from(method);
        let terms = Terms::of(&method, &params, &self.memory, self.mock.revisions()).unwrap();
        Asked::new(method, params, terms)
    }

    /// Everything that happens until the answer, a line each; questions are answered from `answers`.
    pub(super) fn ask(&mut self, method: &str, params: Value, answers: &Value) -> Vec<String> {
        let asked = self.asked(method, params);
        let world = World { now_ms: 1_000_000, seal: &self.seal };
        let (mut play, mut act) = match self.mock.begin(asked, &mut self.memory, &mut self.state, &world) {
            Begun::Answered(answer) => return vec![said(&answer)],
            Begun::Plays(play, act) => (play, act),
            Begun::Listens(wanted) => return vec![format!("listens {}", wanted.accepted())],
            Begun::AboutTask(about, _) => return vec![format!("{about:?}")],
        };
        let mut lines = Vec::new();
        loop {
            match act {
                Act::Wait(delay) => lines.push(format!("wait {:?}", delay.to)),
                Act::Notify { method, params } => lines.push(format!("{method} {params}")),
                Act::Tell(change) => lines.push(format!("tell {change:?}")),
                Act::Ask(questions) => {
                    for question in questions {
                        lines.push(format!("ask {} {} {}", question.name, question.method, question.params));
                        let answer = answers.get(&question.name).cloned().ok_or_else(|| "no answer".to_owned());
                        play.answered(&question.name, answer);
                    }
                }
                Act::CloseStream { retry } => lines.push(format!("close stream {:?}", retry.map(|retry| retry.to))),
                Act::Detach(terms) => lines.push(format!("task {:?}", terms.ttl_ms)),
                Act::Reply(answer) => {
                    lines.push(said(&answer));
                    return lines;
                }
            }
            act = play.next(&mut self.state, &world);
        }
    }

    /// The text of what a tool says.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> String {
        let lines = self.ask("tools/call", json!({"name": tool, "arguments": arguments}), &json!({}));
        let said = lines.last().cloned().unwrap_or_default();
        let value: Value = serde_json::from_str(&said).unwrap_or_default();
        value["content"][0]["text"].as_str().map_or(said, str::to_owned)
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let lines = self.ask(method, params, &json!({}));
        serde_json::from_str(lines.last().unwrap()).unwrap_or_else(|_| panic!("{lines:?}"))
    }
}

fn said(answer: &Answer) -> String {
    match &answer.reply {
        Reply::Result(result) => {
            let mut result = result.value().unwrap();
            // What every result of 2026-07-28 repeats.
            if let Some(object) = result.as_object_mut() {
                let meta = object.get_mut("_meta").and_then(Value::as_object_mut);
                if meta.is_some_and(|meta| meta.shift_remove(meta::SERVER_INFO).is_some() && meta.is_empty()) {
                    object.shift_remove("_meta");
                }
            }
            result.to_string()
        }
        Reply::Error(error) => error.to_string(),
    }
}

const WEATHER: &str = r#"
server: { name: weather, version: "1.0" }
tools:
  - name: get_forecast
    input_schema: { type: object, properties: { city: { type: string } }, required: [city] }
    answers:
      - when: { city: Oslo }
        text: Rain in Oslo
      - when: { city: { matches: "^B" } }
        times: 1
        error: { code: -32000, message: "{{ arguments.city }} is down" }
      - when: { city: { matches: "^B" } }
        text: "Sun in {{ arguments.city }}, call {{ call }}"
"#;

#[test]
fn the_first_rule_that_fits_answers_and_times_counts() {
    let mut stage = Stage::new(WEATHER);
    assert_eq!(stage.call("get_forecast", json!({"city": "Oslo"})), "Rain in Oslo");
    assert_eq!(stage.call("get_forecast", json!({"city": "Bergen"})), "-32000: Bergen is down");
    assert_eq!(stage.call("get_forecast", json!({"city": "Bodø"})), "Sun in Bodø, call 3");
    stage.state = State::new(&stage.mock);
    assert_eq!(stage.call("get_forecast", json!({"city": "Bergen"})), "-32000: Bergen is down", "after a reset");
}

#[test]
fn what_nothing_answers_is_refused_with_the_closest_miss() {
    let mut stage = Stage::new(WEATHER);
    assert_eq!(
        stage.call("get_forecast", json!({"city": "Paris"})),
        "-32603: no answer for tool get_forecast; closest was `an object with {city: \"Oslo\"}`: \
         $.city: expected \"Oslo\", got \"Paris\""
    );
    assert_eq!(
        stage.call("get_forcast", json!({})),
        "-32602: unknown tool \"get_forcast\"; did you mean \"get_forecast\"?"
    );
}

#[test]
fn bad_arguments_get_what_a_good_server_says() {
    let mut stage = Stage::new(WEATHER);
    let lines = stage.ask("tools/call", json!({"name": "get_forecast", "arguments": {"city": 5}}), &json!({}));
    assert_eq!(
        lines,
        [
            r#"{"content":[{"type":"text","text":"invalid arguments for get_forecast:\n$.city: expected a string, got 5"}],"isError":true,"resultType":"complete"}"#
        ]
    );
    let mut lax = Stage::new(&WEATHER.replace("server:", "validate: off\nserver:"));
    assert!(lax.call("get_forecast", json!({"city": 5})).starts_with("-32603: no answer"));
}

#[test]
fn wrong_structured_content_is_an_internal_error_that_names_the_place() {
    let text = r#"
tools:
  - name: add
    output_schema: { type: object, properties: { sum: { type: number } }, required: [sum] }
    answers:
      - when: { a: 1 }
        structured_content: { sum: "{{ arguments.a + 1 }}" }
      - when: { a: 2 }
        structured_content: { sum: two }
      - text: three
"#;
    let mut stage = Stage::new(text);
    assert_eq!(
        stage.result("tools/call", json!({"name": "add", "arguments": {"a": 1}})),
        json!({"structuredContent": {"sum": 2}, "content": [{"type": "text", "text": "{\"sum\":2}"}], "resultType": "complete"})
    );
    assert_eq!(
        stage.call("add", json!({"a": 2})),
        "-32603: tool add, an object with {a: 2}: structured_content does not fit the output_schema: \
         $.sum: expected a number, got \"two\""
    );
    assert!(stage.call("add", json!({"a": 3})).contains("has no structured_content"));
    let mut lax = Stage::new(&text.replace("tools:", "validate: warn\ntools:"));
    assert_eq!(lax.call("add", json!({"a": 3})), "three");
}

#[test]
fn ten_thousand_rules_are_looked_up_in_order() {
    let mut text = String::from("tools:\n  - name: t\n    answers:\n");
    for number in 0..10_000 {
        text.push_str(&format!("      - {{ when: {{ n: {number} }}, text: \"is {number}\" }}\n"));
        if number == 5000 {
            text.push_str("      - { when: { n: { gt: 9000 } }, text: big }\n");
        }
    }
    text.push_str("      - text: default\n");
    let mut stage = Stage::new(&text);
    assert_eq!(stage.call("t", json!({"n": 4000})), "is 4000");
    assert_eq!(stage.call("t", json!({"n": 4000.0})), "is 4000");
    assert_eq!(stage.call("t", json!({"n": 9001})), "big", "it stands before the literal");
    assert_eq!(stage.call("t", json!({"n": "x"})), "default");
    assert_eq!(stage.call("t", json!({})), "default");
}

#[test]
fn rules_look_at_everything_that_is_given() {
    let mut stage = Stage::new(
        r#"
state: { mode: quiet }
tools:
  - name: t
    answers:
      - given: { call: 1 }
        text: first
      - given: { state: { mode: loud } }
        text: LOUD
      - given: { capabilities: { sampling: { present: false } } }
        text: no sampling
      - given: { meta: { "x/y": 1 } }
        text: meta
      - given: { version: "2025-06-18" }
        text: old
      - given: { client: { name: old } }
        text: client
      - text: other
  - name: louder
    answers: [{ steps: [{ set: { mode: loud } }], text: "now {{ state.mode }}" }]
"#,
    );
    assert_eq!(stage.call("t", json!({})), "first");
    assert_eq!(stage.call("t", json!({})), "other");
    let with_meta = json!({"name": "t", "_meta": {"x/y": 1}});
    assert_eq!(stage.result("tools/call", with_meta)["content"][0]["text"], "meta");
    stage.capabilities = json!({});
    assert_eq!(stage.call("t", json!({})), "no sampling");
    assert_eq!(stage.call("louder", json!({})), "now loud");
    assert_eq!(stage.call("t", json!({})), "LOUD");
}

#[test]
fn state_is_set_appended_and_deleted() {
    let mut stage = Stage::new(
        r#"
state: { notes: [], gone: 1 }
tools:
  - name: add
    answers:
      - steps:
          - append: { notes: "{{ arguments }}", fresh: "{{ call }}" }
          - set: { last: "{{ arguments.text }}" }
          - delete: [gone]
        structured_content: "{{ state }}"
"#,
    );
    stage.call("add", json!({"text": "a"}));
    let result = stage.result("tools/call", json!({"name": "add", "arguments": {"text": "b", "n": [1]}}));
    let expected = json!({"notes": [{"text": "a"}, {"text": "b", "n": [1]}], "fresh": [1, 2], "last": "b"});
    assert_eq!(result["structuredContent"], expected);
}

const ASKS: &str = r#"
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
fn a_client_of_the_handshake_era_is_asked_at_once() {
    let mut stage = Stage::legacy(ASKS, Revision::V2025_11_25);
    let params = json!({"name": "greet", "arguments": {"what": "name"}});
    assert_eq!(
        stage.ask("tools/call", params.clone(), &json!({"who": ada(), "words": words()})),
        [
            r#"notifications/message {"level":"info","data":"asking for name"}"#,
            r#"ask who elicitation/create {"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#,
            r#"ask words sampling/createMessage {"messages":[{"role":"user","content":{"type":"text","text":"Greet Ada"}}],"maxTokens":100}"#,
            r#"{"content":[{"type":"text","text":"Hello, Ada"}]}"#,
        ]
    );
    let declined = stage.ask("tools/call", params.clone(), &json!({"who": {"action": "decline"}}));
    assert_eq!(declined.last().unwrap(), r#"{"content":[{"type":"text","text":"as you like"}]}"#);
    let cancelled = stage.ask("tools/call", params.clone(), &json!({"who": {"action": "cancel"}}));
    assert!(
        cancelled.last().unwrap().contains("closest was `an object with {who: an object with {action: "),
        "{cancelled:?}"
    );
    let garbage =
        stage.ask("tools/call", params.clone(), &json!({"who": {"action": "accept", "content": {"name": 5}}}));
    assert!(garbage.last().unwrap().contains(r#""isError":true"#), "{garbage:?}");
    let silent = stage.ask("tools/call", params.clone(), &json!({}));
    assert_eq!(silent.last().unwrap(), r#"{"content":[{"type":"text","text":"no answer"}],"isError":true}"#);
    let mut old = Stage::legacy(ASKS, Revision::V2025_03_26);
    assert!(old.ask("tools/call", params, &json!({})).last().unwrap().contains("exists since 2025-06-18"));
}

#[test]
fn a_client_of_the_stateless_era_is_sent_away_and_comes_back() {
    let mut stage = Stage::new(ASKS);
    let first = json!({"name": "greet", "arguments": {"what": "name"}});
    let asked = stage.result("tools/call", first.clone());
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(asked["inputRequests"]["who"]["params"]["message"], "Your name?");
    let mut second = first.clone();
    second["requestState"] = asked["requestState"].clone();
    let nothing = stage.result("tools/call", second.clone());
    assert_eq!(nothing["inputRequests"], asked["inputRequests"], "asked again");
    second["inputResponses"] = json!({"wrong": ada(), "who": {"action": "accept", "content": {}}});
    assert_eq!(stage.result("tools/call", second.clone())["inputRequests"], asked["inputRequests"], "garbage");
    second["inputResponses"] = json!({"who": ada(), "extra": 1});
    let asked = stage.result("tools/call", second);
    assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 1);
    assert_eq!(asked["inputRequests"]["words"]["method"], "sampling/createMessage");
    let mut third = first.clone();
    third["requestState"] = asked["requestState"].clone();
    third["inputResponses"] = json!({"words": words()});
    assert_eq!(stage.result("tools/call", third.clone())["content"][0]["text"], "Hello, Ada");
    let mut forged = third.clone();
    forged["requestState"] = "forged".into();
    let lines = stage.ask("tools/call", forged, &json!({}));
    assert_eq!(lines, ["-32602: requestState is not what was given, or belongs to another request"]);
    third["arguments"]["what"] = "game".into();
    assert!(stage.ask("tools/call", third, &json!({}))[0].contains("belongs to another request"));
}

#[test]
fn a_client_that_cannot_is_not_asked() {
    let mut stage = Stage::new(ASKS);
    stage.capabilities = json!({"sampling": {}});
    let lines = stage.ask("tools/call", json!({"name": "greet", "arguments": {"what": "name"}}), &json!({}));
    assert_eq!(lines, ["-32021: this needs the capability elicitation"]);
}

#[test]
fn a_client_may_be_sent_away_with_nothing_but_state() {
    let mut stage =
        Stage::new("tools: [{ name: t, answers: [{ steps: [{ again: {} }, { set: { a: 1 } }], text: done }] }]");
    let asked = stage.result("tools/call", json!({"name": "t"}));
    assert_eq!((asked["resultType"].as_str(), asked.get("inputRequests")), (Some("input_required"), None));
    let done = stage.result("tools/call", json!({"name": "t", "requestState": asked["requestState"]}));
    assert_eq!(done["content"][0]["text"], "done");
}

#[test]
fn steps_come_before_the_answer_and_only_to_those_who_want_them() {
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
    let mut stage = Stage::legacy(text, Revision::V2025_11_25);
    let params = json!({"name": "slow", "arguments": {"a": 1}, "_meta": {"progressToken": "t"}});
    assert_eq!(
        stage.ask("tools/call", params.clone(), &json!({})),
        [
            "wait 20ms",
            r#"notifications/progress {"progressToken":"t","progress":0.5,"total":2,"message":"1 of 2"}"#,
            "wait 50ms",
            r#"notifications/message {"level":"debug","logger":"me","data":{"a":1}}"#,
            r#"notifications/custom {"n":1}"#,
            "tell Tools",
            r#"tell Resource("a://1")"#,
            "close stream Some(100ms)",
            r#"{"content":[{"type":"text","text":"done"}]}"#,
        ]
    );
    let mut quiet = Stage::new(text);
    let lines = quiet.ask("tools/call", json!({"name": "slow", "arguments": {"a": 1}}), &json!({}));
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
        task: { after: 1s, ttl_ms: 60000, required: true }
        text: slow
      - text: quick
  - name: plain
    answers: [{ text: plain }]
"#;

#[test]
fn a_task_begins_only_for_clients_that_know_tasks() {
    let mut stage = Stage::legacy(TASKS, Revision::V2025_11_25);
    let params = json!({"name": "job", "arguments": {"kind": "slow"}, "task": {}});
    let done = r#"{"content":[{"type":"text","text":"slow"}]}"#;
    assert_eq!(stage.ask("tools/call", params, &json!({})), ["task Some(60000)", "wait 1s", done]);
    let refused = stage.ask("tools/call", json!({"name": "job", "arguments": {"kind": "slow"}}), &json!({}));
    assert_eq!(refused, ["-32601: this tool can only be called as a task"]);
    let quick = stage.ask("tools/call", json!({"name": "job", "task": {}}), &json!({}));
    assert_eq!(quick, ["task None", r#"{"content":[{"type":"text","text":"quick"}]}"#]);

    let mut stage = Stage::new(TASKS);
    let params = json!({"name": "job", "arguments": {"kind": "slow"}});
    let refused = stage.ask("tools/call", params.clone(), &json!({}));
    assert_eq!(refused, ["-32021: this needs the extension io.modelcontextprotocol/tasks"]);
    assert_eq!(stage.ask("tasks/get", json!({"taskId": "x"}), &json!({}))[0][..6], *"-32021");
    stage.capabilities = json!({"extensions": {meta::TASKS_EXTENSION: {}}});
    let lines = stage.ask("tools/call", params, &json!({}));
    assert_eq!(lines[..2], ["task Some(60000)".to_owned(), "wait 1s".to_owned()]);
    assert_eq!(stage.ask("tasks/get", json!({"taskId": "x"}), &json!({})), [r#"Get("x")"#]);
    assert_eq!(stage.ask("tasks/list", json!({}), &json!({}))[0][..6], *"-32601");
    assert_eq!(stage.call("job", json!({})), "quick", "the server decides, and this rule has no task");
}

#[test]
fn resources_prompts_and_completions_are_answered() {
    let mut stage = Stage::new(
        r#"
resources:
  - { uri: "a://text", mime_type: text/plain, text: "Hi {{ client.name | default('you') }}" }
  - { uri: "a://bytes", file: there }
  - uri: "a://rules"
    text: otherwise
    answers: [{ given: { call: 1 }, contents: [{ text: first }, { uri: "a://other", blob: AAAA }] }]
resource_templates:
  - { uri_template: "t://{id}/data", mime_type: application/json, text: '{"id":"{{ arguments.id }}"}', complete: { id: [one, two] } }
prompts:
  - name: greet
    description: Says hello
    arguments: [{ name: who, required: true, complete: [Ada, Alan, Grace] }]
    messages: [{ role: user, content: { type: text, text: "Hello {{ arguments.who }}" } }]
"#,
    );
    let read = |stage: &mut Stage, uri: &str| stage.result("resources/read", json!({"uri": uri}))["contents"].clone();
    assert_eq!(read(&mut stage, "a://text"), json!([{"uri": "a://text", "mimeType": "text/plain", "text": "Hi you"}]));
    assert_eq!(read(&mut stage, "a://bytes"), json!([{"uri": "a://bytes", "blob": "AP8="}]));
    assert_eq!(
        read(&mut stage, "a://rules"),
        json!([{"uri": "a://rules", "text": "first"}, {"uri": "a://other", "blob": "AAAA"}])
    );
    assert_eq!(read(&mut stage, "a://rules"), json!([{"uri": "a://rules", "text": "otherwise"}]));
    assert_eq!(
        read(&mut stage, "t://7/data"),
        json!([{"uri": "t://7/data", "mimeType": "application/json", "text": "{\"id\":\"7\"}"}])
    );
    let missing = stage.ask("resources/read", json!({"uri": "a://tex"}), &json!({}));
    assert_eq!(missing, ["-32602: there is no resource a://tex; did you mean a://text?"]);
    let prompt = stage.result("prompts/get", json!({"name": "greet", "arguments": {"who": "Ada"}}));
    assert_eq!(prompt["messages"], json!([{"role": "user", "content": {"type": "text", "text": "Hello Ada"}}]));
    assert_eq!(stage.ask("prompts/get", json!({"name": "greet"}), &json!({})), ["-32602: the prompt greet needs who"]);
    let complete = |stage: &mut Stage, reference: Value, name: &str, value: &str| {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        stage.result("completion/complete", params)["completion"].clone()
    };
    let prompt = json!({"type": "ref/prompt", "name": "greet"});
    let values = json!({"values": ["Ada", "Alan"], "total": 2, "hasMore": false});
    assert_eq!(complete(&mut stage, prompt, "who", "a"), values);
    let template = json!({"type": "ref/resource", "uri": "t://{id}/data"});
    assert_eq!(complete(&mut stage, template, "id", "t")["values"], json!(["two"]));
}

#[test]
fn lists_come_in_pages_and_only_with_what_the_client_can_use() {
    let mut stage = Stage::new(
        "page_size: 2\ntools: [{ name: a }, { name: b, needs: { sampling: {} } }, { name: c }, { name: d }]",
    );
    let first = stage.result("tools/list", json!({}));
    assert_eq!((first["tools"].as_array().unwrap().len(), &first["nextCursor"]), (2, &json!("from-2")));
    let second = stage.result("tools/list", json!({"cursor": "from-2"}));
    assert_eq!((&second["tools"][1]["name"], second.get("nextCursor")), (&json!("d"), None));
    assert_eq!(first["tools"][0], json!({"name": "a", "inputSchema": {"type": "object"}}));
    assert_eq!(
        stage.ask("tools/list", json!({"cursor": "x"}), &json!({})),
        ["-32602: the cursor \"x\" was never given"]
    );
    stage.capabilities = json!({});
    assert_eq!(stage.result("tools/list", json!({}))["tools"][1]["name"], "c");
    assert_eq!(stage.call("b", json!({})), "-32602: unknown tool \"b\"");
}

#[test]
fn a_handshake_tells_what_is_offered_in_the_words_of_its_version() {
    let text = r#"
server: { name: s, version: "2", title: S, website_url: "https://example.com" }
instructions: be kind
capabilities: { experimental: { x: {} }, prompts: null }
tools: [{ name: t, task_support: optional, answers: [{ steps: [{ log: { level: info, data: x } }], text: y }] }]
prompts: [{ name: p, arguments: [{ name: a, complete: [b] }], messages: [] }]
"#;
    let mut stage = Stage::new(text);
    let discovered = stage.result("server/discover", json!({}));
    assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(
        discovered["capabilities"],
        json!({
            "tools": {"listChanged": true}, "logging": {}, "completions": {},
            "extensions": {meta::TASKS_EXTENSION: {}}, "experimental": {"x": {}},
        })
    );
    let mut stage = Stage::legacy(text, Revision::V2025_11_25);
    let initialize = |stage: &mut Stage, version: &str| {
        let client = json!({"name": "c", "version": "1"});
        stage.result("initialize", json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}))
    };
    let old = initialize(&mut stage, "2024-11-05");
    assert_eq!(old["serverInfo"], json!({"name": "s", "version": "2"}));
    assert_eq!(old["capabilities"], json!({"tools": {"listChanged": true}, "logging": {}, "experimental": {"x": {}}}));
    assert_eq!((&old["protocolVersion"], &old["instructions"]), (&json!("2024-11-05"), &json!("be kind")));
    let newer = initialize(&mut stage, "2026-07-28");
    assert_eq!(newer["protocolVersion"], "2025-11-25");
    assert!(newer["capabilities"].get("tasks").is_some() && newer["serverInfo"].get("websiteUrl").is_some());
}

#[test]
fn problems_have_places() {
    let text =
        "tools:\n  - name: a\n    answers: [{ when: { a: { matches: '(' } }, text: '{{ nope }}' }]\n  - name: a\n";
    let file: MockFile = read("m.yaml", text).unwrap();
    let errors = Mock::compile(&[Source { file: "m.yaml", mock: &file }], Otherwise::Refuse, &|_, _| Ok(Vec::new()));
    let problems: Vec<_> = errors.unwrap_err()[0].problems.iter().map(|it| (it.at.line, it.message.clone())).collect();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!(problems.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 3, 4]);
}

mod faults_and_harness {
    use super::*;
    use crate::answer::harness::{Harness, MOCK_FILE};
    use crate::script::mock::FaultKind;

    fn answer(stage: &mut Stage, method: &str, params: Value) -> Answer {
        let asked = stage.asked(method, params);
        let world = World { now_ms: 1, seal: &stage.seal };
        match stage.mock.begin(asked, &mut stage.memory, &mut stage.state, &world) {
            Begun::Answered(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_fault_of_the_tool_comes_before_one_of_the_file_and_both_count() {
        let text = "faults: [{ fault: wrong_id, method: tools/call, call: { any_of: [1, 2] } }]\n\
                    tools:\n  - name: a\n    answers: [{ text: x }]\n    faults: [{ fault: malformed_json, call: 1 }]\n  \
                    - name: b\n    answers: [{ text: x, fault: invalid_utf8 }]";
        let mut stage = Stage::new(text);
        let mut fault = |name: &str| answer(&mut stage, "tools/call", json!({"name": name})).fault;
        assert_eq!(fault("a"), Some(FaultKind::MalformedJson));
        assert_eq!(fault("a"), Some(FaultKind::WrongId), "the second of all calls");
        assert_eq!(fault("a"), None);
        assert_eq!(fault("b"), Some(FaultKind::InvalidUtf8), "as its own rule says");
        assert_eq!(answer(&mut stage, "tools/list", json!({})).fault, None);
    }

    #[test]
    fn what_nobody_will_see_is_not_done() {
        let text = "faults: [{ fault: hang, call: 1 }]\n\
                    tools: [{ name: a, answers: [{ steps: [{ set: { n: 1 } }], text: \"{{ state.n }}\" }] }]";
        let mut stage = Stage::new(text);
        let hanging = answer(&mut stage, "tools/call", json!({"name": "a"}));
        assert_eq!(hanging.fault, Some(FaultKind::Hang));
        assert!(stage.state.values().get("n").is_none());
    }

    #[test]
    fn the_universal_tool_answers_in_the_shape_of_every_version() {
        for revision in Revision::ALL {
            let mut stage = Stage::new(MOCK_FILE);
            let harness = Arc::new(Harness::default());
            let responses = br#"[{"content": [{"type": "audio", "data": "AA==", "mime_type": "audio/wav"}],
                "structured_content": {"a_b": 1}, "delay": "5ms"}, {"error": {"code": -5, "message": "no"}, "fault": "hang"}]"#;
            harness.load("t", responses, 0).unwrap();
            let file: MockFile = read("harness", MOCK_FILE).unwrap();
            let source = Source { file: "harness", mock: &file };
            let mock = Mock::compile(&[source], Otherwise::Refuse, &|_, _| Err(String::new())).unwrap();
            stage.mock = Arc::new(mock.with_harness(harness));
            if revision.era() == crate::protocol::Era::Legacy {
                let (client, capabilities) = (json!({}), json!({}));
                stage.memory.handshake = Some(Handshake { revision, client, capabilities });
            }
            let call = |task: &str| json!({"name": "get_data", "arguments": {"task_description": task}});
            let first = answer(&mut stage, "tools/call", call("[test_case_id=t]"));
            let Reply::Result(result) = first.reply else { panic!("{revision}") };
            let result = result.value().unwrap();
            assert_eq!(result.get("structuredContent").is_some(), revision.has_structured_content(), "{revision}");
            assert_eq!(result.get("resultType").is_some(), revision == Revision::V2026_07_28, "{revision}");
            assert_eq!(first.delay, Some(std::time::Duration::from_millis(5)));
            assert_eq!(first.provenance.to_string(), "script: tool get_data, test case \"t\", response 1");
            let second = answer(&mut stage, "tools/call", call("[test_case_id=t]"));
            assert_eq!(second.fault, Some(FaultKind::Hang));
            assert!(matches!(second.reply, Reply::Error(error) if error.code == -5));
            let third = answer(&mut stage, "tools/call", call("[test_case_id=t]"));
            let Reply::Result(result) = third.reply else { panic!("{revision}") };
            assert_eq!(result.value().unwrap()["isError"], true);
            assert!(third.remarks[0].starts_with("no response is left"), "{:?}", third.remarks);
            let missing = answer(&mut stage, "tools/call", json!({"name": "get_data", "arguments": {}}));
            assert!(missing.remarks[0].contains("`task_description` must be text"), "{:?}", missing.remarks);
        }
    }
}
