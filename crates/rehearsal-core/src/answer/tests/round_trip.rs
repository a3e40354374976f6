//! Recorded elements and results that are written to a mock file are sent unchanged by its mock.

use std::time::Duration;

use super::*;
use crate::message::ErrorReply;
use crate::script::mock::write::{DraftAnswer, DraftBody, DraftInputRequest, DraftItem, DraftStep, MockDraft};

fn offer(listed: Value, result: Value) -> DraftItem {
    DraftItem::new(listed, vec![DraftAnswer::new(DraftBody::Result(result))])
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Unusual list elements of other projects' servers.
fn unusual() -> Vec<Value> {
    vec![
        json!({"name": "plain", "description": "d", "inputSchema": {"type": "object"}}),
        json!({"inputSchema": {"type": "object"}, "description": "another order", "name": "order"}),
        json!({"name": "annotated", "inputSchema": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"},
               "annotations": {"readOnlyHint": true, "title": "T", "openWorldHint": false}, "title": "T",
               "icons": [{"mimeType": "image/png", "src": "data:,", "sizes": ["48x48"]}], "_meta": {"a/b": [1.0, 2]}}),
        json!({"name": "tasks", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}),
        json!({"name": "no name: for a file", "inputSchema": {"type": "object"}}),
        json!({"name": "vendor", "inputSchema": {"type": "object"}, "x-vendor": {"any": "thing"}}),
        json!({"name": "nulls", "title": null, "inputSchema": {"type": "object"}, "annotations": {"title": null}}),
        json!({"name": "broken_schema", "inputSchema": {"type": "object", "properties": {"a": {"type": "strin"}}}}),
        json!({"name": "no_schema"}),
    ]
}

#[test]
fn a_generated_mock_lists_every_element_byte_for_byte() {
    let draft = MockDraft {
        server: Some(json!({"version": "1", "name": "n", "title": "N"})),
        tools: unusual().into_iter().map(|listed| offer(listed, text("x"))).collect(),
        resources: vec![
            offer(
                json!({"uri": "a://b", "name": "b", "annotations": {"priority": 1}, "size": 3}),
                json!({"contents": []}),
            ),
            offer(json!({"uri": "no uri", "name": "b"}), json!({"contents": [{"uri": "no uri", "text": "{{"}]})),
        ],
        resource_templates: vec![
            offer(json!({"uriTemplate": "a://{b", "name": "broken"}), json!({"contents": [{"uri": "x", "text": "t"}]})),
            offer(
                json!({"uriTemplate": "a://x/{b}", "name": "b", "mimeType": "text/x"}),
                json!({"contents": [{"text": "t", "mimeType": "text/x"}]}),
            ),
        ],
        prompts: vec![
            offer(
                json!({"name": "p", "arguments": [{"name": "a"}, {"required": false, "name": "b"}]}),
                json!({"messages": []}),
            ),
            offer(json!({"name": "q", "arguments": []}), json!({"description": "other", "messages": []})),
        ],
        ..MockDraft::default()
    };
    let capabilities =
        json!({"prompts": {}, "tools": {"listChanged": false}, "resources": {}, "experimental": {"x": {}}});
    for revision in Revision::ALL {
        let verbatim = keep_listed_forms(draft.clone(), capabilities.as_object().unwrap(), revision).unwrap();
        let mock = mock(&verbatim.to_text());
        let lists = [
            (ListKind::Tools, &draft.tools),
            (ListKind::Resources, &draft.resources),
            (ListKind::ResourceTemplates, &draft.resource_templates),
            (ListKind::Prompts, &draft.prompts),
        ];
        for (key, offers) in lists {
            let expected: Vec<_> = offers.iter().map(|offer| offer.listed.to_string()).collect();
            assert_eq!(mock.lists().listed(key, revision), expected, "{revision}\n{}", verbatim.to_text());
        }
        assert_eq!(mock.capabilities(revision).to_string(), capabilities.to_string(), "{revision}");
        crate::script::mock::parse("m.yaml", &verbatim.to_text(), crate::script::mock::MissingAnswers::Refused)
            .unwrap();
    }
}

#[test]
fn a_misspelled_capability_is_written_as_a_comment() {
    let capabilities = json!({"tols": {}, "sampling": {}});
    let latest = Revision::ALL[Revision::ALL.len() - 1];
    let draft = MockDraft { server: Some(json!({"name": "n", "version": "1"})), ..MockDraft::default() };
    let written = keep_listed_forms(draft, capabilities.as_object().unwrap(), latest).unwrap().to_text();
    assert!(
        written.contains("# It also declares these, which look like misspelled capabilities: $.tols\n"),
        "{written}"
    );
    assert_eq!(mock(&written).capabilities(latest), json!({"sampling": {}}), "{written}");
}

#[test]
fn a_generated_mock_returns_the_recorded_result() {
    let results = [
        text("plain"),
        text("{{ arguments.x }} and {% endraw %}\n"),
        text("two\nlines\n"),
        json!({"content": [], "isError": true}),
        json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png", "annotations": {"priority": 0.5}}]}),
        json!({"content": [{"type": "image", "data": "not base64", "mimeType": "image/png"}]}),
        json!({"content": [{"type": "resource_link", "uri": "a://b", "name": "b", "title": "{{ t }}"}]}),
        json!({"content": [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "t", "text": "x"}}], "_meta": {"a": "{{"}}),
        json!({"content": [{"type": "text", "text": "x", "vendor": 1}], "more": {"vendor": "{{ x }}"}}),
        json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}}),
        json!({"content": [{"type": "text", "text": "words"}], "structuredContent": {"a": "{{ b }}", "list": [1.5]}, "isError": false}),
    ];
    for result in results {
        let listed = json!({"name": "t", "inputSchema": {"type": "object"}});
        let draft = MockDraft { tools: vec![offer(listed, result.clone())], ..MockDraft::default() };
        let file = draft.to_text();
        let mut fixture = Fixture::legacy(&file, Revision::V2025_11_25);
        assert_eq!(fixture.result("tools/call", json!({"name": "t", "arguments": {}})), result, "{file}");
    }
}

#[test]
fn every_part_of_a_draft_answer_is_written() {
    let step = |method: &str, params: Value| DraftStep::Notify { method: method.to_owned(), params };
    let request = |name: &str, method: &str, params: Value| DraftInputRequest {
        name: name.to_owned(),
        method: method.to_owned(),
        params,
    };
    let answer = DraftAnswer {
        comment: "The second call".to_owned(),
        name: Some("slow".to_owned()),
        when: Some(json!({"city": "Oslo"})),
        given: Some(json!({"call": 2})),
        times: Some(1),
        delay: Some(Duration::from_millis(20)),
        steps: vec![
            DraftStep::Wait(Duration::from_millis(5)),
            step("notifications/progress", json!({"progressToken": 1, "progress": 1, "total": 2.5, "message": "half"})),
            step("notifications/message", json!({"level": "info", "data": {"a": "{{"}, "logger": "l"})),
            step("notifications/resources/updated", json!({"uri": "a://b"})),
            step("notifications/tools/list_changed", json!({})),
            step("notifications/vendor", json!({"x": 1})),
            DraftStep::Ask(vec![
                request(
                    "form",
                    "elicitation/create",
                    json!({"message": "who?", "requestedSchema": {"type": "object"}}),
                ),
                request("words", "sampling/createMessage", json!({"messages": [], "maxTokens": 5, "temperature": 0.5})),
                request("folders", "roots/list", json!({})),
                request("vendor", "vendor/ask", json!({"about": "{{"})),
            ]),
        ],
        body: DraftBody::Template(text("{{ answers.form.action }}")),
    };
    let error = DraftAnswer::new(DraftBody::Error(ErrorReply::new(-32000, "no").with_data(&json!({"why": "{{"}))));
    let listed = json!({"name": "t", "inputSchema": {"type": "object"}});
    let tool = DraftItem { comment: "A tool".to_owned(), ..DraftItem::new(listed, vec![answer, error]) };
    let prompt = DraftItem {
        complete: vec![("who".to_owned(), vec!["Ada".to_owned()])],
        ..offer(
            json!({"name": "greet", "arguments": [{"name": "who", "required": true}]}),
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}),
        )
    };
    let draft = MockDraft {
        comment: "A draft\n\nof two lines".to_owned(),
        server: Some(json!({"name": "s", "version": "1"})),
        instructions: Some("Be kind.\nBe brief.".to_owned()),
        versions: vec![Revision::V2025_11_25],
        tools: vec![tool],
        prompts: vec![prompt],
        ..MockDraft::default()
    };
    let file = draft.to_text();
    insta::assert_snapshot!(file);
    crate::script::mock::parse("m.yaml", &file, crate::script::mock::MissingAnswers::Refused).unwrap();
    let mut fixture = Fixture::legacy(&file, Revision::V2025_11_25);
    let call = json!({"name": "t", "arguments": {"city": "Oslo"}, "_meta": {"progressToken": 7}});
    assert_eq!(fixture.run("tools/call", call.clone(), &json!({})), ["-32000: no"]);
    let answers = json!({
        "form": {"action": "accept", "content": {}},
        "words": {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
        "folders": {"roots": []},
        "vendor": {},
    });
    insta::assert_snapshot!(fixture.run("tools/call", call, &answers).join("\n"));
}

#[test]
fn a_generated_mock_returns_the_bytes_of_a_resource() {
    for listed in [json!({"uri": "a:b", "name": "n", "mimeType": "image/png"}), json!({"uri": "a:b", "name": "n"})] {
        let mut contents = json!({"uri": "a:b", "blob": "aGk="});
        if let Some(kind) = listed.get("mimeType") {
            contents["mimeType"] = kind.clone();
        }
        let result = json!({"contents": [contents]});
        let named = DraftAnswer { name: Some("first".into()), ..DraftAnswer::new(DraftBody::Result(result.clone())) };
        let several = DraftAnswer::new(DraftBody::InTurn(vec![
            DraftAnswer::new(DraftBody::Result(result.clone())),
            named.clone(),
        ]));
        for answer in [DraftAnswer::new(DraftBody::Result(result.clone())), named, several] {
            let draft =
                MockDraft { resources: vec![DraftItem::new(listed.clone(), vec![answer])], ..MockDraft::default() };
            let mut fixture = Fixture::new(&draft.to_text());
            let read = fixture.result("resources/read", json!({"uri": "a:b"}));
            assert_eq!(read["contents"], result["contents"], "{}", draft.to_text());
        }
    }
}
