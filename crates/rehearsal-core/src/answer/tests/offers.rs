//! Tests of offered, listed and read items, and of mistakes in a file.

use serde_json::{Value, json};

use super::*;

#[test]
fn resources_prompts_and_completions_are_answered() {
    let mut fixture = Fixture::new(
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
  - { name: exact, listed: { name: exact, arguments: [{ name: who }] }, messages: [] }
"#,
    );
    let read =
        |fixture: &mut Fixture, uri: &str| fixture.result("resources/read", json!({"uri": uri}))["contents"].clone();
    assert_eq!(
        read(&mut fixture, "a://text"),
        json!([{"uri": "a://text", "mimeType": "text/plain", "text": "Hi you"}])
    );
    assert_eq!(read(&mut fixture, "a://bytes"), json!([{"uri": "a://bytes", "blob": "AP8="}]));
    assert_eq!(
        read(&mut fixture, "a://rules"),
        json!([{"uri": "a://rules", "text": "first"}, {"uri": "a://other", "blob": "AAAA"}])
    );
    assert_eq!(read(&mut fixture, "a://rules"), json!([{"uri": "a://rules", "text": "otherwise"}]));
    assert_eq!(
        read(&mut fixture, "t://7/data"),
        json!([{"uri": "t://7/data", "mimeType": "application/json", "text": "{\"id\":\"7\"}"}])
    );
    let missing = fixture.run("resources/read", json!({"uri": "a://tex"}), &json!({}));
    assert_eq!(missing, ["-32602: there is no resource a://tex; did you mean a://text?"]);
    let prompt = fixture.result("prompts/get", json!({"name": "greet", "arguments": {"who": "Ada"}}));
    assert_eq!(prompt["messages"], json!([{"role": "user", "content": {"type": "text", "text": "Hello Ada"}}]));
    assert_eq!(
        fixture.run("prompts/get", json!({"name": "greet"}), &json!({})),
        ["-32602: the prompt greet needs who"]
    );
    let complete = |fixture: &mut Fixture, reference: Value, name: &str, value: &str| {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        fixture.result("completion/complete", params)["completion"].clone()
    };
    let prompt = json!({"type": "ref/prompt", "name": "greet"});
    let values = json!({"values": ["Ada", "Alan"], "total": 2, "hasMore": false});
    assert_eq!(complete(&mut fixture, prompt, "who", "a"), values);
    let nothing = json!({"values": [], "total": 0, "hasMore": false});
    let exact = json!({"type": "ref/prompt", "name": "exact"});
    assert_eq!(complete(&mut fixture, exact, "who", "a"), nothing);
    let template = json!({"type": "ref/resource", "uri": "t://{id}/data"});
    assert_eq!(complete(&mut fixture, template, "id", "t")["values"], json!(["two"]));
}

#[test]
fn list_pages_contain_only_what_the_client_can_use() {
    let mut fixture = Fixture::new(
        "page_size: 2\ntools: [{ name: a }, { name: b, needs: { sampling: {} } }, { name: c }, { name: d }]",
    );
    let first = fixture.result("tools/list", json!({}));
    assert_eq!((first["tools"].as_array().unwrap().len(), &first["nextCursor"]), (2, &json!("from-2")));
    let second = fixture.result("tools/list", json!({"cursor": "from-2"}));
    assert_eq!((&second["tools"][1]["name"], second.get("nextCursor")), (&json!("d"), None));
    assert_eq!(first["tools"][0], json!({"name": "a", "inputSchema": {"type": "object"}}));
    assert_eq!(
        fixture.run("tools/list", json!({"cursor": "x"}), &json!({})),
        ["-32602: this server never sent the cursor \"x\""]
    );
    fixture.capabilities = json!({});
    assert_eq!(fixture.result("tools/list", json!({}))["tools"][1]["name"], "c");
    assert_eq!(fixture.call("b", json!({})), "-32602: unknown tool \"b\"");
}

#[test]
fn hidden_items_answer_and_are_not_listed() {
    let mut fixture = Fixture::new(
        "page_size: 2\n\
         tools: [{ name: a, hidden: true, answers: [{ text: A }] }, { name: b, needs: { sampling: {} } }, { name: c }]\n\
         resources: [{ uri: \"r://a\", text: A, hidden: true }, { uri: \"r://b\", text: B }]\n\
         resource_templates: [{ uri_template: \"t://{x}\", text: T, hidden: true }]\n\
         prompts: [{ name: p, hidden: true, messages: [] }]",
    );
    let names = |fixture: &mut Fixture, list: &str, key: &str, name: &str| -> Vec<Value> {
        let result = fixture.result(list, json!({}));
        assert_eq!(result.get("nextCursor"), None);
        result[key].as_array().unwrap().iter().map(|it| it[name].clone()).collect()
    };
    assert_eq!(names(&mut fixture, "tools/list", "tools", "name"), ["b", "c"]);
    assert_eq!(names(&mut fixture, "resources/list", "resources", "uri"), ["r://b"]);
    assert!(names(&mut fixture, "resources/templates/list", "resourceTemplates", "uriTemplate").is_empty());
    assert!(names(&mut fixture, "prompts/list", "prompts", "name").is_empty());
    fixture.capabilities = json!({});
    assert_eq!(names(&mut fixture, "tools/list", "tools", "name"), ["c"]);
    assert_eq!(fixture.result("tools/call", json!({"name": "a"}))["content"][0]["text"], "A");
    for (uri, text) in [("r://a", "A"), ("t://x", "T")] {
        assert_eq!(fixture.result("resources/read", json!({"uri": uri}))["contents"][0]["text"], text);
    }
    assert_eq!(fixture.result("prompts/get", json!({"name": "p"}))["messages"], json!([]));
}

#[test]
fn a_handshake_declares_the_offers_in_the_form_of_its_version() {
    let text = r#"
server: { name: s, version: "2", title: S, website_url: "https://example.com" }
instructions: be kind
capabilities: { experimental: { x: {} }, prompts: null }
tools: [{ name: t, task_support: optional, answers: [{ steps: [{ log: { level: info, data: x } }], text: y }] }]
prompts: [{ name: p, arguments: [{ name: a, complete: [b] }], messages: [] }]
"#;
    let mut fixture = Fixture::new(text);
    let discovered = fixture.result("server/discover", json!({}));
    assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(
        discovered["capabilities"],
        json!({
            "tools": {"listChanged": true}, "logging": {}, "completions": {},
            "extensions": {meta::TASKS_EXTENSION: {}}, "experimental": {"x": {}},
        })
    );
    let mut fixture = Fixture::legacy(text, Revision::V2025_11_25);
    let initialize = |fixture: &mut Fixture, version: &str| {
        let client = json!({"name": "c", "version": "1"});
        fixture.result("initialize", json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}))
    };
    let old = initialize(&mut fixture, "2024-11-05");
    assert_eq!(old["serverInfo"], json!({"name": "s", "version": "2"}));
    assert_eq!(old["capabilities"], json!({"tools": {"listChanged": true}, "logging": {}, "experimental": {"x": {}}}));
    assert_eq!((&old["protocolVersion"], &old["instructions"]), (&json!("2024-11-05"), &json!("be kind")));
    let newer = initialize(&mut fixture, "2026-07-28");
    assert_eq!(newer["protocolVersion"], "2025-11-25");
    assert!(newer["capabilities"].get("tasks").is_some() && newer["serverInfo"].get("websiteUrl").is_some());
}

#[test]
fn a_verbatim_result_is_unchanged_in_every_version() {
    let text = r#"
server: { name: s, version: "2", title: S }
refuses:
  resources/list: { code: -32601, message: "Method not found: {{", data: null }
tools:
  - name: t
    answers:
      - result: { structuredContent: { a: 1 }, content: [{ type: resource_link, uri: "a://b", name: b }] }
  - name: alone
    answers: [{ result: { structuredContent: { a: 1 }, ttlMs: 5, resultType: complete } }]
"#;
    let mut fixture = Fixture::legacy(text, Revision::V2024_11_05);
    let content = json!([{"type": "resource_link", "uri": "a://b", "name": "b"}]);
    let result = fixture.result("tools/call", json!({"name": "t"}));
    assert_eq!(result, json!({"structuredContent": {"a": 1}, "content": content}));
    // Without the members that only results of 2026-07-28 have.
    let alone = fixture.result("tools/call", json!({"name": "alone"}));
    assert_eq!(alone, json!({"structuredContent": {"a": 1}}));
    let alone = Fixture::new(text).result("tools/call", json!({"name": "alone"}));
    assert_eq!((&alone["ttlMs"], alone.get("content")), (&json!(5), None));
    let refused = fixture.run("resources/list", json!({}), &json!({}));
    assert_eq!(refused, ["-32601: Method not found: {{"]);
}

#[test]
fn a_schema_source_answers_tools_without_rules_and_marks_the_answers() {
    let text = r#"
tools:
  - name: add
    output_schema: { type: object, properties: { sum: { type: integer, minimum: 7 } }, required: [sum] }
    answers: [{ when: { a: 1 }, structured_content: { sum: 8 } }]
  - name: silent
  - name: endless
    output_schema: { type: object, properties: { kids: { type: array, minItems: 1, items: { $ref: '#' } } }, required: [kids] }
"#;
    let mock = mock(text);
    let script = Arc::new(ScriptSource::new(Arc::clone(&mock)));
    let mut fixture =
        Fixture::with_sources(vec![script, Arc::new(SchemaSource::default()), Arc::new(PlaceholderSource)]);
    let made_up = fixture.result("tools/call", json!({"name": "add", "arguments": {"a": 2}}));
    assert_eq!(made_up["structuredContent"], json!({"sum": 7}));
    assert_eq!(made_up["_meta"], json!({"rehearsal/provenance": "schema"}));
    let written = fixture.result("tools/call", json!({"name": "add", "arguments": {"a": 1}}));
    assert_eq!((&written["structuredContent"], written.get("_meta")), (&json!({"sum": 8}), None));
    assert_eq!(fixture.call("silent", json!({})), "placeholder: no answer is known for tool silent");
    assert_eq!(fixture.call("endless", json!({})), "-32603: no answer for tool endless: the mock declares none");
}

#[test]
fn a_prompt_without_a_required_argument_is_refused_unless_validation_is_off() {
    let text = |validate: &str| {
        format!(
            "validate: {validate}\nprompts:\n  - name: greet\n    arguments: [{{ name: who, required: true }}]\n    \
             answers: [{{ when: {{ exact: {{}} }}, error: {{ code: -1, message: whom? }} }}]\n"
        )
    };
    for (validate, expected) in
        [("strict", "-32602: the prompt greet needs who"), ("warn", "-1: whom?"), ("'off'", "-1: whom?")]
    {
        let refused = Fixture::new(&text(validate)).run("prompts/get", json!({"name": "greet"}), &json!({}));
        assert_eq!(refused, [expected], "{validate}");
    }
}
