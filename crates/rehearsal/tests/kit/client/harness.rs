//! The universal test server, its queues and its control interface.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::protocol::Revision;
use rehearsal::mock::{ExpectedCall, MockServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

fn task(test_case: &str, responses: &Value) -> Value {
    let base64 = STANDARD.encode(responses.to_string());
    json!({"task_description": format!("Fetch it. [test_case_id={test_case}] [mcp_responses_json={base64}]")})
}

#[tokio::test]
async fn the_agent_gets_the_next_response_in_every_turn() {
    let server = MockServer::harness().unwrap();
    let responses = json!([
        {"content": [{"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"}]},
        {"structured_content": {"mime_type": "stays"}},
    ]);
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let client = match revision {
            Revision::V2026_07_28 => Client::url(server.url()).modern(),
            legacy => Client::url(server.url()).legacy(legacy),
        };
        let client = client.connect().await.unwrap();
        let task = task(revision.as_str(), &responses);
        let first = client.call_tool("get_data", task.clone()).await.unwrap();
        assert_eq!(first.result()["content"][0]["mimeType"], "image/png");
        let second = client.call_tool("get_data", task.clone()).await.unwrap();
        assert_eq!(second.structured_content(), Some(&json!({"mime_type": "stays"})));
        let third = client.call_tool("get_data", task).await.unwrap();
        assert!(third.is_tool_error());
        assert!(third.content().contains("all 2 were used, and this is call 3"), "{}", third.content());
    }
}

#[tokio::test]
async fn the_harness_runs_as_a_process() {
    let client = Client::command(env!("CARGO_BIN_EXE_rehearse")).args(["mock", "--harness"]);
    let client = client.connect().await.unwrap();
    let tools = client.list_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["get_data"]);
    let answer = client.call_tool("get_data", task("a", &json!([{"text": "{{ hello }}"}]))).await.unwrap();
    assert_eq!(answer.content(), "{{ hello }}");
    let nothing = client.call_tool("get_data", json!({"task_description": "Fetch it."})).await.unwrap();
    assert!(nothing.is_tool_error() && nothing.content().starts_with("no [test_case_id=ID] in the task description"));
}

/// The number of clients of the server; the test cases of one client also run concurrently.
const CLIENTS: usize = 40;
const CASES: usize = 1_000;
const TURNS: usize = 3;

/// The expected content of a response, by test case and turn.
fn expected(case: usize, turn: usize) -> String {
    format!("turn {turn} of test case {case}")
}

fn responses(case: usize) -> Value {
    (1..=TURNS).map(|turn| json!({"content": [{"type": "text", "text": expected(case, turn)}]})).collect()
}

/// A client of each transport and era in turn.
fn client(server: &MockServer, number: usize) -> ClientBuilder {
    match number % 4 {
        0 => Client::url(server.url()).modern(),
        1 => Client::url(server.url()).legacy(Revision::V2025_11_25),
        2 => Client::url(server.url()).legacy(Revision::V2025_03_26),
        _ => Client::url(server.sse_url()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_concurrent_test_cases_get_their_own_responses() {
    let server = MockServer::harness().unwrap();
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(client(&server, number).connect().await.unwrap());
    }
    let mut cases = JoinSet::new();
    for case in 0..CASES {
        // Every other test case has its responses in the task text; the others are loaded before.
        let task = if case % 2 == 0 {
            task(&format!("case {case}"), &responses(case))
        } else {
            server.load_queue(&format!("case {case}"), &responses(case)).unwrap();
            json!({"task_description": format!("Fetch it. [test_case_id=case {case}]")})
        };
        let client = clients[case % CLIENTS].clone();
        cases.spawn(async move {
            for turn in 1..=TURNS {
                let response = client.call_tool("get_data", task.clone()).await.unwrap();
                assert_eq!(response.content(), expected(case, turn), "turn {turn}");
            }
            let response = client.call_tool("get_data", task).await.unwrap();
            let empty = format!("no response is left for test case \"case {case}\": all {TURNS} were used");
            assert!(response.is_tool_error() && response.content().contains(&empty), "{}", response.content());
        });
    }
    let finished = cases.join_all().await;
    assert_eq!(finished.len(), CASES);
    for case in 0..CASES {
        let queue = server.queue(&format!("case {case}")).unwrap();
        assert_eq!((queue.given, queue.left), (TURNS, 0), "case {case}");
    }
    server.verify(&[ExpectedCall::tool("get_data").times((CASES * (TURNS + 1)) as u64)]).unwrap();
    for client in clients {
        client.close().await;
    }
}

#[tokio::test]
async fn queues_are_loaded_and_calls_are_verified_over_the_control_api() {
    let server = MockServer::harness().unwrap();
    let loaded = server.load_queue("a", &json!([{"text": "one"}, {"error": {"code": -5, "message": "no"}}])).unwrap();
    assert_eq!((loaded.left, loaded.given), (2, 0));
    assert!(server.load_queue("a", &json!([{"txt": 1}])).unwrap_err().to_string().contains("did you mean `text`?"));
    let client = Client::url(server.url()).modern().connect().await.unwrap();
    let task = json!({"task_description": "[test_case_id=a]"});
    assert_eq!(client.call_tool("get_data", task.clone()).await.unwrap().content(), "one");
    assert_eq!(client.call_tool("get_data", task.clone()).await.unwrap().error_code(), Some(-5));
    assert_eq!(server.queue("a").map(|queue| queue.left), Some(0));
    server.verify(&[ExpectedCall::tool("get_data").times(2)]).unwrap();
    let unmet = server.verify(&[ExpectedCall::tool("other")]).unwrap_err();
    assert_eq!(unmet, "expected tools/call other at least once, and it came 0 times");
    server.reset();
    assert_eq!((server.queue("a"), server.calls().len()), (None, 0));
}

/// Sends one HTTP request.
async fn http(server: &MockServer, method: &str, path: &str, body: &str) -> (u16, Value) {
    let url = server.url();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n");
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|_| body.into()))
}

#[tokio::test]
async fn a_mock_is_controlled_over_http() {
    let server = MockServer::harness().unwrap();
    assert_eq!(http(&server, "GET", "/health", "").await, (200, json!("ok")));
    let (status, loaded) = http(&server, "PUT", "/control/queues/a%20b", r#"[{"text": "one"}, {"text": "two"}]"#).await;
    assert_eq!((status, &loaded["left"], &loaded["test_case_id"]), (200, &json!(2), &json!("a b")));
    let client = Client::url(server.url()).modern().connect().await.unwrap();
    let task = json!({"task_description": "[test_case_id=a b]"});
    assert_eq!(client.call_tool("get_data", task).await.unwrap().content(), "one");
    let (_, queue) = http(&server, "GET", "/control/queues/a%20b", "").await;
    assert_eq!((&queue["given"], &queue["responses"][0]["result"]["content"][0]["text"]), (&json!(1), &json!("two")));
    let (_, all) = http(&server, "GET", "/control/queues", "").await;
    assert_eq!(all["queues"].as_array().unwrap().len(), 1);
    let (_, journal) = http(&server, "GET", "/control/journal", "").await;
    let calls = journal["calls"].as_array().unwrap();
    let call = calls.iter().find(|call| call["method"] == "tools/call").unwrap();
    assert_eq!(call["arguments"]["task_description"], "[test_case_id=a b]");
    assert_eq!(call["provenance"], "harness: test case \"a b\", response 1");
    let number = call["number"].as_u64().unwrap();
    let (_, later) = http(&server, "GET", &format!("/control/journal?after={number}"), "").await;
    assert_eq!(later["calls"], json!([]));
    let (_, met) = http(&server, "POST", "/control/verify", r#"[{"tool": "get_data", "times": 1}]"#).await;
    assert_eq!(met, json!({"ok": true, "unmet": []}));
    let (_, unmet) = http(&server, "POST", "/control/verify", r#"[{"tool": "get_data", "times": 3}]"#).await;
    assert_eq!(unmet["unmet"][0], "expected tools/call get_data 3 times, and it came 1 times");
    assert_eq!(http(&server, "DELETE", "/control/queues/a%20b", "").await, (200, json!({"deleted": "a b"})));
    assert_eq!(http(&server, "POST", "/control/reset", "").await.0, 200);
    assert_eq!(http(&server, "GET", "/control/journal", "").await.1, json!({"count": 0, "calls": []}));
}

#[tokio::test]
async fn invalid_control_requests_are_refused_with_a_reason() {
    let server = MockServer::harness().unwrap();
    let table = [
        ("GET", "/control/queues/x", "", 404, "no test case \"x\""),
        ("DELETE", "/control/queues/x", "", 404, "no test case \"x\""),
        ("PUT", "/control/queues/x", "nonsense", 400, "are not JSON"),
        ("PUT", "/control/queues/x", r#"[{"txt": 1}]"#, 400, "did you mean `text`?"),
        ("PUT", "/control/queues/%zz", "[]", 400, "percent-encoded"),
        ("POST", "/control/queues/x", "[]", 405, "GET, PUT, DELETE"),
        ("POST", "/control/queues", "[]", 405, "GET"),
        ("GET", "/control/reset", "", 405, "POST"),
        ("GET", "/control/journal?since=1", "", 400, "?after=N"),
        ("GET", "/control/journal?after=x", "", 400, "`after` is the number of a call"),
        ("POST", "/control/verify", "{}", 400, "expected a list"),
        ("POST", "/control/verify", r#"[{"toll": "x"}]"#, 400, "expectation 1: unknown key `toll`"),
        ("GET", "/control/nothing", "", 404, "under /control there are"),
    ];
    for (method, path, body, status, expected) in table {
        let (answered, response) = http(&server, method, path, body).await;
        assert_eq!(answered, status, "{method} {path}: {response}");
        assert!(response["error"].as_str().unwrap().contains(expected), "{method} {path}: {response}");
    }
    let plain = MockServer::from_text("tools: [{ name: a, answers: [{ text: x }] }]").unwrap();
    let (status, response) = http(&plain, "GET", "/control/queues", "").await;
    assert_eq!(
        (status, response["error"].as_str().unwrap()),
        (404, "this mock has no queues; start it with --harness")
    );
}

#[tokio::test]
async fn faults_are_in_the_request_log() {
    let text = "tools: [{ name: a, answers: [{ text: x }], faults: [{ fault: wrong_id, call: 2 }] }]";
    let server = MockServer::from_text(text).unwrap();
    let client = Client::url(server.url()).modern().connect().await.unwrap();
    client.call_tool("a", json!({})).await.unwrap();
    let _ = client.call("a").timeout(std::time::Duration::from_millis(200)).await;
    let faults: Vec<_> =
        server.calls().iter().filter(|call| call.name().is_some()).map(|call| call.fault.clone()).collect();
    assert_eq!(faults, [None, Some(rehearsal::core::script::mock::FaultKind::WrongId)]);
}
