//! Mocks in tests: `MockServer`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::AssertUnwindSafe;

use rehearsal::Client;
use rehearsal::client::Protocol;
use rehearsal::core::answer::Provenance;
use rehearsal::core::protocol::Revision;
use rehearsal::mock::{MockError, MockFiles, MockServer, error, template, text, tool_error};
use serde_json::json;

const WEATHER: &str = r#"
server: { name: weather, version: "1.0" }
state: { cities: [] }
tools:
  - name: get_forecast
    input_schema: { type: object, properties: { city: { type: string } }, required: [city] }
    answers:
      - when: { city: Oslo }
        name: rain in Oslo
        text: Rain in Oslo
      - steps: [{ append: { cities: "{{ arguments.city }}" } }]
        text: "Sun in {{ state.cities | join(', ') }}"
"#;

#[tokio::test]
async fn a_mock_serves_every_transport_and_returns_its_calls() {
    let weather = MockServer::from_text(WEATHER).unwrap();
    assert_eq!(weather.health_url(), weather.url().replace("/mcp", "/health"));
    weather.expect_tool("get_forecast", 4).expect_tool("other", ..1);
    let clients = [
        Client::url(weather.url()).protocol(Protocol::Modern),
        Client::url(weather.url()).protocol(Protocol::Legacy(Revision::V2025_06_18)),
        Client::url(weather.sse_url()),
        Client::connection(weather.connection()),
    ];
    for client in clients {
        let client = client.connect().await.unwrap();
        assert_eq!(client.server_info()["name"], "weather");
        let response = client.call_tool("get_forecast", json!({"city": "Oslo"})).await.unwrap();
        assert_eq!(response.content(), "Rain in Oslo");
        client.close().await;
    }
    assert_eq!(weather.calls_of("get_forecast"), vec![json!({"city": "Oslo"}); 4]);
    let calls = weather.calls();
    let rule =
        |provenance: &Provenance| matches!(provenance, Provenance::Script { rule, .. } if **rule == *"rain in Oslo");
    assert_eq!(calls.iter().filter(|call| rule(&call.provenance)).count(), 4);
}

#[tokio::test]
async fn a_new_test_case_restarts_counters_and_state() {
    let weather = MockServer::from_text(WEATHER).unwrap();
    let client = Client::url(weather.url()).connect().await.unwrap();
    let forecast =
        async |city: &str| client.call_tool("get_forecast", json!({"city": city})).await.unwrap().content().to_owned();
    assert_eq!(forecast("Rome").await, "Sun in Rome");
    assert_eq!(forecast("Bonn").await, "Sun in Rome, Bonn");
    weather.reset();
    assert_eq!(weather.calls().len(), 0);
    assert_eq!(forecast("Bonn").await, "Sun in Bonn");
    client.close().await;
}

#[test]
fn unmet_expectations_fail_the_test_when_the_mock_is_dropped() {
    let message = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let weather = MockServer::from_text(WEATHER).unwrap();
        weather.expect_tool("get_forecast", 1..=2);
    }));
    let message = message.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*message, "the tool get_forecast was expected 1 to 2 times, and was called 0 times; no tool was");
}

#[test]
fn a_test_that_panics_leaves_no_server_behind() {
    let url = std::sync::Mutex::new(String::new());
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let weather = MockServer::from_text(WEATHER).unwrap();
        weather.expect_tool("get_forecast", 7);
        *url.lock().unwrap() = weather.url();
        panic!("the test failed");
    }));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "the test failed");
    let address = url.lock().unwrap().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    assert!(std::net::TcpStream::connect(address).is_err(), "something still listens");
}

#[test]
fn errors_in_a_mock_file_are_reported_with_their_locations() {
    let error = MockServer::from_text("tools: [{ nme: x }]").unwrap_err();
    assert!(matches!(error, MockError::Load(_)));
    assert_eq!(error.to_string(), "mock:1:11: unknown key `nme`; did you mean `name`?");
}

#[test]
fn each_closed_stream_has_its_own_retry_delay() {
    let mock = MockServer::from_text(
        "tools:\n  - name: t\n    answers:\n      \
         - { when: { n: 1 }, steps: [{ close_stream: { retry: 10ms } }], text: one }\n      \
         - { when: { n: 2 }, steps: [{ close_stream: { retry: 70ms } }], text: two }\n      \
         - { steps: [{ close_stream: {} }], text: three }\n",
    )
    .unwrap();
    let url = mock.url();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let post = |headers: &str, body: &str| {
        let mut socket = TcpStream::connect(&address).unwrap();
        let length = body.len();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    let begun = post(
        "",
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    );
    let session = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().trim().to_owned();
    let headers = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
    let retries = |n: u64| {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"t","arguments":{{"n":{n}}}}}}}"#
        );
        let answer = post(&headers, &call);
        answer.lines().filter_map(|line| line.strip_prefix("retry: ").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(retries(1), ["10"]);
    assert_eq!(retries(2), ["70"]);
    assert_eq!(retries(3), [""; 0]);
}

#[tokio::test]
async fn answers_depend_on_headers_and_a_closed_stream_is_resumed() {
    let mock = MockServer::from_text(
        r#"
tools:
  - name: who
    answers:
      - given: { headers: { authorization: { matches: "^Bearer " } } }
        text: "user with {{ headers['x-team'] }}"
      - text: anonymous
  - name: away
    answers:
      - steps: [{ close_stream: { retry: 10ms } }, { wait: 20ms }]
        text: back again
"#,
    )
    .unwrap();
    for protocol in [Protocol::Modern, Protocol::Legacy(Revision::V2025_11_25)] {
        let anonymous = Client::url(mock.url()).protocol(protocol).connect().await.unwrap();
        assert_eq!(anonymous.call_tool("who", json!({})).await.unwrap().content(), "anonymous");
        assert_eq!(anonymous.call_tool("away", json!({})).await.unwrap().content(), "back again");
        anonymous.close().await;
        let user = Client::url(mock.url()).header("authorization", "Bearer x").header("x-team", "blue");
        let user = user.protocol(protocol).connect().await.unwrap();
        assert_eq!(user.call_tool("who", json!({})).await.unwrap().content(), "user with blue");
        user.close().await;
    }
}

#[tokio::test]
async fn a_mock_without_answers_may_generate_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sums.mock.yaml");
    let output = "{ type: object, properties: { sum: { type: integer, minimum: 7 } }, required: [sum] }";
    std::fs::write(&path, format!("tools: [{{ name: add, output_schema: {output} }}]")).unwrap();
    let refused = MockServer::start(&path).unwrap_err().to_string();
    assert!(refused.ends_with("1:17: the tool `add` has no answer; add `answers: [{ text: … }]`, or have answers invented with --schema-fill"), "{refused}");
    let mock = MockServer::start_files(MockFiles::new([&path]).schema_fill()).unwrap();
    let client = Client::url(mock.url()).connect().await.unwrap();
    let response = client.call_tool("add", json!({})).await.unwrap();
    assert_eq!(response.structured_content(), Some(&json!({"sum": 7})));
    assert!(matches!(mock.calls().last().unwrap().provenance, Provenance::Schema { .. }));
    assert_eq!(
        mock.stdio("rehearse").args,
        ["mock".to_owned(), "--schema-fill".to_owned(), path.display().to_string()]
    );
    client.close().await;
}

/// Keys of the protocol are in snake_case in a file and in camelCase on the wire; keys of the user are unchanged.
#[tokio::test]
async fn only_keys_of_the_protocol_change_their_case() {
    let mock = MockServer::from_text(
        r#"
tools:
  - name: snake_case_tool
    description: keeps_this and keepsThat
    input_schema: { type: object, properties: { user_name: { type: string }, userId: { type: integer } } }
    output_schema: { type: object, properties: { is_error: { type: boolean }, mimeType: { type: string } } }
    annotations: { read_only_hint: true }
    meta: { example.com/some_key: { mime_type: a, mimeType: b } }
    answers:
      - when: { user_name: { present: true } }
        content:
          - { type: image, data: AAAA, mime_type: image/png, meta: { a_b: 1, aB: 2 } }
          - { type: text, text: "mime_type of {{ arguments.user_name }}" }
        structured_content: { is_error: false, mimeType: x, deep: [{ input_schema: 1 }] }
        meta: { last_modified: 1 }
"#,
    )
    .unwrap();
    let client = Client::url(mock.url()).modern().connect().await.unwrap();
    let tool = &client.list_tools().await.unwrap()[0];
    let listed = json!({
        "name": "snake_case_tool",
        "description": "keeps_this and keepsThat",
        "inputSchema": {"type": "object", "properties": {"user_name": {"type": "string"}, "userId": {"type": "integer"}}},
        "outputSchema": {"type": "object", "properties": {"is_error": {"type": "boolean"}, "mimeType": {"type": "string"}}},
        "annotations": {"readOnlyHint": true},
        "_meta": {"example.com/some_key": {"mime_type": "a", "mimeType": "b"}},
    });
    assert_eq!(tool.raw, listed);
    let response = client.call_tool("snake_case_tool", json!({"user_name": "Ada_L", "userId": 1})).await.unwrap();
    let result = response.result();
    let blocks = json!([
        {"type": "image", "data": "AAAA", "mimeType": "image/png", "_meta": {"a_b": 1, "aB": 2}},
        {"type": "text", "text": "mime_type of Ada_L"},
    ]);
    assert_eq!(result["content"], blocks);
    assert_eq!(result["structuredContent"], json!({"is_error": false, "mimeType": "x", "deep": [{"input_schema": 1}]}));
    assert_eq!(result["_meta"]["last_modified"], 1);
    assert_eq!(mock.calls_of("snake_case_tool"), [json!({"user_name": "Ada_L", "userId": 1})]);
    client.close().await;
}

#[tokio::test]
async fn a_mock_in_rust_answers_tools_resources_and_prompts() {
    let server = MockServer::builder()
        .name("calculator")
        .instructions("Adds")
        .tool("add")
        .description("Adds two numbers")
        .when(json!({"a": 2}))
        .respond(text("{{ 42 }}"))
        .when(json!({"a": {"type": "string"}}))
        .respond(tool_error("not a number"))
        .respond(template("{{ arguments.a }} and more"))
        .tool("divide")
        .respond(error(-32602, "division by zero").data(json!({"by": 0})))
        .tool("forecast")
        .respond(json!({"rain": true}))
        .resource("notes://today")
        .mime_type("text/plain")
        .respond(text("Buy milk"))
        .prompt("greet")
        .argument("name")
        .respond(template("Greet {{ arguments.name }}"))
        .start()
        .unwrap();
    for url in [server.url(), server.sse_url()] {
        let client = Client::url(url).connect().await.unwrap();
        assert_eq!((&client.server_info()["name"], client.instructions()), (&json!("calculator"), Some("Adds")));
        let call = async |tool: &str, arguments| client.call_tool(tool, arguments).await.unwrap();
        assert_eq!(call("add", json!({"a": 2, "b": 40})).await.content(), "{{ 42 }}");
        assert_eq!(call("add", json!({"a": 3})).await.content(), "3 and more");
        let failed = call("add", json!({"a": "two"})).await;
        assert!(failed.is_tool_error() && failed.content() == "not a number", "{failed:?}");
        let refused = call("divide", json!({})).await;
        assert!(refused.is_protocol_error(), "{refused:?}");
        assert_eq!((refused.error_code(), &refused.raw()["error"]["data"]), (Some(-32602), &json!({"by": 0})));
        let structured = call("forecast", json!({})).await;
        assert_eq!(structured.structured_content(), Some(&json!({"rain": true})));
        assert_eq!(client.read_resource("notes://today").await.unwrap().content(), "Buy milk");
        assert_eq!(client.get_prompt("greet", json!({"name": "Ada"})).await.unwrap().content(), "Greet Ada");
        assert_eq!(client.list_tools().await.unwrap()[0].description.as_deref(), Some("Adds two numbers"));
        client.close().await;
    }
}

#[tokio::test]
async fn a_mock_in_rust_counts_the_requests_of_each_answer() {
    let server = MockServer::builder()
        .tool("add")
        .when(json!({"a": 2}))
        .respond(text("42"))
        .times(2)
        .respond(text("other"))
        .times(..=1)
        .tool("delete")
        .never()
        .resource("notes://today")
        .respond(text("Buy milk"))
        .times(1..)
        .start()
        .unwrap();
    let client = Client::url(server.url()).connect().await.unwrap();
    client.call_tool("add", json!({"a": 2})).await.unwrap();
    client.call_tool("add", json!({"a": 3})).await.unwrap();
    let deleted = client.call_tool("delete", json!({"all": true})).await.unwrap();
    assert_eq!(deleted.error_message().as_deref(), Some("the test expects no request for the tool delete"));
    client.close().await;
    let failure = std::panic::catch_unwind(AssertUnwindSafe(|| drop(server))).unwrap_err();
    assert_eq!(
        *failure.downcast::<String>().unwrap(),
        "the tool add with {\"a\":2} was expected 2 times, and was called 1 time\n  with {\"a\":2}\n\
         the tool delete was expected never, and was called 1 time\n  with {\"all\":true}\n\
         the resource notes://today was expected at least 1 time, and was called 0 times; add, delete were"
    );
}

#[test]
fn a_mock_in_rust_without_an_answer_does_not_start() {
    let error = MockServer::builder().tool("add").start().unwrap_err();
    assert!(matches!(error, MockError::Load(_)), "{error}");
}
