//! One server for every test of an agent, used by all of them at once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rehearsal::Client;
use rehearsal::client::{ClientBuilder, Protocol};
use rehearsal::core::protocol::Revision;
use rehearsal::mock::{ExpectedCall, MockServer};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// How many clients share the server; the test cases of one client run at the same time, too.
const CLIENTS: usize = 40;
const CASES: usize = 1_000;
const TURNS: usize = 3;

/// What a test case expects, turn by turn.
fn expected(case: usize, turn: usize) -> String {
    format!("turn {turn} of test case {case}")
}

fn responses(case: usize) -> Value {
    (1..=TURNS).map(|turn| json!({"content": [{"type": "text", "text": expected(case, turn)}]})).collect()
}

/// A client of each transport and era in turn.
fn client(server: &MockServer, number: usize) -> ClientBuilder {
    match number % 4 {
        0 => Client::url(server.url()).protocol(Protocol::Modern),
        1 => Client::url(server.url()).protocol(Protocol::Legacy(Revision::V2025_11_25)),
        2 => Client::url(server.url()).protocol(Protocol::Legacy(Revision::V2025_03_26)),
        _ => Client::url(server.sse_url()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_test_cases_at_once_on_one_server_never_see_each_others_responses() {
    let server = MockServer::harness().unwrap();
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(client(&server, number).connect().await.unwrap());
    }
    let mut cases = JoinSet::new();
    for case in 0..CASES {
        // Every other test case brings its responses in the text, the others are loaded before.
        let text = if case % 2 == 0 {
            let brought = BASE64.encode(responses(case).to_string());
            format!("Fetch it. [test_case_id=case {case}] [mcp_responses_json={brought}]")
        } else {
            server.load_queue(&format!("case {case}"), &responses(case)).unwrap();
            format!("Fetch it. [test_case_id=case {case}]")
        };
        let client = clients[case % CLIENTS].clone();
        cases.spawn(async move {
            for turn in 1..=TURNS {
                let said = client.call_tool("get_data", json!({"task_description": text})).await.unwrap();
                assert_eq!(said.content(), expected(case, turn), "turn {turn}");
            }
            let said = client.call_tool("get_data", json!({"task_description": text})).await.unwrap();
            let empty = format!("no response is left for test case \"case {case}\": all {TURNS} were given");
            assert!(said.is_error() && said.content().contains(&empty), "{}", said.content());
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
