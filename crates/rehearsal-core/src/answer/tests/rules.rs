//! Tests of which rule answers, and of the refusal if none does.

use serde_json::json;

use super::*;

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
fn the_first_matching_rule_answers_until_its_times_are_used() {
    let mut fixture = Fixture::new(WEATHER);
    assert_eq!(fixture.call("get_forecast", json!({"city": "Oslo"})), "Rain in Oslo");
    assert_eq!(fixture.call("get_forecast", json!({"city": "Bergen"})), "-32000: Bergen is down");
    assert_eq!(fixture.call("get_forecast", json!({"city": "Bodø"})), "Sun in Bodø, call 3");
    fixture.chain.reset();
    assert_eq!(fixture.call("get_forecast", json!({"city": "Bergen"})), "-32000: Bergen is down", "after a reset");
}

#[test]
fn answers_in_turn_are_used_in_order_and_the_last_is_repeated() {
    let text = r#"
tools:
  - name: poll
    answers:
      - name: job 1
        when: { job: 1 }
        in_turn:
          - text: queued
          - { times: 2, text: "running, call {{ call }}" }
          - error: { code: -32000, message: lost }
          - text: done
      - when: { job: 2 }
        in_turn: [{ name: at first, text: queued }, { times: 1, text: done }]
      - text: no such job
"#;
    let mut fixture = Fixture::new(text);
    let answers: Vec<_> = (0..6).map(|_| fixture.call("poll", json!({"job": 1}))).collect();
    assert_eq!(answers, ["queued", "running, call 2", "running, call 3", "-32000: lost", "done", "done"]);
    let answers: Vec<_> = (0..3).map(|_| fixture.call("poll", json!({"job": 2}))).collect();
    assert_eq!(answers, ["queued", "done", "no such job"], "an exhausted rule is skipped");
    fixture.chain.reset();
    assert_eq!(fixture.call("poll", json!({"job": 1})), "queued", "after a reset");
}

#[test]
fn a_request_without_a_matching_rule_is_refused_with_the_closest() {
    let mut fixture = Fixture::new(WEATHER);
    assert_eq!(
        fixture.call("get_forecast", json!({"city": "Paris"})),
        "-32603: no answer for tool get_forecast; closest was `an object with {city: \"Oslo\"}`: \
         $.city: expected \"Oslo\", got \"Paris\""
    );
    assert_eq!(
        fixture.call("get_forcast", json!({})),
        "-32602: unknown tool \"get_forcast\"; did you mean \"get_forecast\"?"
    );
}

#[test]
fn a_refusal_names_only_the_first_100_mismatches() {
    let text = r#"
tools:
  - name: echo
    answers: [{ when: { exact: {} }, text: empty }]
  - name: count
    input_schema: { type: object, additionalProperties: { type: integer } }
"#;
    let mut fixture = Fixture::new(text);
    let many: serde_json::Map<_, _> = (0..5_000).map(|key| (format!("key-{key}"), json!("text"))).collect();
    for tool in ["echo", "count"] {
        let refused = fixture.call(tool, many.clone().into());
        assert!(refused.ends_with("and 4900 more places") && refused.len() < 8_000, "{refused}");
    }
}

#[test]
fn invalid_arguments_get_an_error_result() {
    let mut fixture = Fixture::new(WEATHER);
    let lines = fixture.run("tools/call", json!({"name": "get_forecast", "arguments": {"city": 5}}), &json!({}));
    assert_eq!(
        lines,
        [
            r#"{"content":[{"type":"text","text":"invalid arguments for get_forecast:\n$.city: expected a string, got 5"}],"isError":true,"resultType":"complete"}"#
        ]
    );
    let mut lax = Fixture::new(&WEATHER.replace("server:", "validate: off\nserver:"));
    assert!(lax.call("get_forecast", json!({"city": 5})).starts_with("-32603: no answer"));
}

#[test]
fn invalid_structured_content_is_an_internal_error_with_its_path() {
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
    let mut fixture = Fixture::new(text);
    assert_eq!(
        fixture.result("tools/call", json!({"name": "add", "arguments": {"a": 1}})),
        json!({"structuredContent": {"sum": 2}, "content": [{"type": "text", "text": "{\"sum\":2}"}], "resultType": "complete"})
    );
    assert_eq!(
        fixture.call("add", json!({"a": 2})),
        "-32603: tool add, an object with {a: 2}: structured_content does not fit the output_schema: \
         $.sum: expected a number, got \"two\""
    );
    assert!(fixture.call("add", json!({"a": 3})).contains("has no structured_content"));
    let mut lax = Fixture::new(&text.replace("tools:", "validate: warn\ntools:"));
    assert_eq!(lax.call("add", json!({"a": 3})), "three");
    let remarks = |validate: &str, arguments: Value| {
        let mut fixture = Fixture::new(&text.replace("tools:", &format!("validate: {validate}\ntools:")));
        fixture.answer("tools/call", json!({"name": "add", "arguments": arguments})).remarks
    };
    let wrong = "structured_content does not fit the output_schema: $.sum: expected a number, got \"two\"";
    assert_eq!(remarks("warn", json!({"a": 2})), [format!("tool add, an object with {{a: 2}}: {wrong}")]);
    assert_eq!(remarks("warn", json!({"a": 1})), [""; 0]);
    assert_eq!(remarks("off", json!({"a": 2})), [""; 0]);
}

#[test]
fn ten_thousand_rules_keep_their_order() {
    let mut text = String::from("tools:\n  - name: t\n    answers:\n");
    for number in 0..10_000 {
        text.push_str(&format!("      - {{ when: {{ n: {number} }}, text: \"is {number}\" }}\n"));
        if number == 5000 {
            text.push_str("      - { when: { n: { gt: 9000 } }, text: big }\n");
        }
    }
    text.push_str("      - text: default\n");
    let mut fixture = Fixture::new(&text);
    assert_eq!(fixture.call("t", json!({"n": 4000})), "is 4000");
    assert_eq!(fixture.call("t", json!({"n": 4000.0})), "is 4000");
    assert_eq!(fixture.call("t", json!({"n": 9001})), "big", "it precedes the literal");
    assert_eq!(fixture.call("t", json!({"n": "x"})), "default");
    assert_eq!(fixture.call("t", json!({})), "default");
}

#[test]
fn given_conditions_match_every_part_of_a_request() {
    let mut fixture = Fixture::new(
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
    assert_eq!(fixture.call("t", json!({})), "first");
    assert_eq!(fixture.call("t", json!({})), "other");
    let with_meta = json!({"name": "t", "_meta": {"x/y": 1}});
    assert_eq!(fixture.result("tools/call", with_meta)["content"][0]["text"], "meta");
    fixture.capabilities = json!({});
    assert_eq!(fixture.call("t", json!({})), "no sampling");
    assert_eq!(fixture.call("louder", json!({})), "now loud");
    assert_eq!(fixture.call("t", json!({})), "LOUD");
}

#[test]
fn state_is_set_appended_and_deleted() {
    let mut fixture = Fixture::new(
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
    fixture.call("add", json!({"text": "a"}));
    let result = fixture.result("tools/call", json!({"name": "add", "arguments": {"text": "b", "n": [1]}}));
    let expected = json!({"notes": [{"text": "a"}, {"text": "b", "n": [1]}], "fresh": [1, 2], "last": "b"});
    assert_eq!(result["structuredContent"], expected);
}

#[test]
fn an_argument_may_have_the_name_of_an_operator() {
    let mut fixture = Fixture::new(
        "tools: [{ name: t, answers: [{ when: { matches: x, length: 2 }, text: words }, \
         { when: { subset: { matches: x, any_of: [1] } }, text: these }, { text: others }] }]",
    );
    assert_eq!(fixture.call("t", json!({"matches": "x", "length": 2})), "words");
    assert_eq!(fixture.call("t", json!({"matches": "x", "any_of": [1]})), "these");
    assert_eq!(fixture.call("t", json!({"matches": "y", "any_of": [1]})), "others");
}

#[test]
fn operators_combine_matchers_for_whole_arguments() {
    let mut fixture = Fixture::new(
        "tools: [{ name: t, answers: [{ when: { any_of: [{ city: A }, { city: B }] }, text: either }, \
         { when: { not: { city: C } }, text: other }, { text: C }] }]",
    );
    for (city, expected) in [("A", "either"), ("B", "either"), ("C", "C"), ("D", "other")] {
        assert_eq!(fixture.call("t", json!({"city": city})), expected);
    }
}
