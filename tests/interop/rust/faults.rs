//! What clients that nobody here wrote make of a mock that goes wrong on purpose.

use std::time::Duration;

use rehearsal::mock::MockServer;
use serde_json::json;
use tokio::time::timeout;

use crate::clients::Era;
use crate::rmcp_client;

/// What the SDKs see of one fault: a word of what they say, or the answer.
struct Seen {
    fault: &'static str,
    /// `None` is silence until the client gives up.
    legacy: Option<&'static str>,
    modern: Option<&'static str>,
}

fn mock(fault: &str) -> String {
    format!(
        "faults: [{{ fault: {fault}, method: tools/call, call: 1 }}]\n\
         tools: [{{ name: t, answers: [{{ text: hello }}] }}]"
    )
}

const SEEN: [Seen; 9] = [
    Seen { fault: "{ delay: 20ms }", legacy: Some("hello"), modern: Some("hello") },
    Seen { fault: "duplicate_answer", legacy: Some("hello"), modern: Some("hello") },
    Seen { fault: "sse_cut", legacy: Some("hello"), modern: Some("error") },
    Seen { fault: "disconnect_before", legacy: Some("error"), modern: Some("error") },
    Seen { fault: "disconnect_during", legacy: Some("error"), modern: Some("error") },
    Seen { fault: "disconnect_after", legacy: Some("hello"), modern: Some("hello") },
    Seen { fault: "malformed_json", legacy: Some("error"), modern: Some("error") },
    Seen { fault: "{ http: { status: 500 } }", legacy: Some("error"), modern: Some("error") },
    Seen { fault: "hang", legacy: None, modern: None },
];

#[tokio::test]
async fn the_rust_sdk_over_http() {
    for Seen { fault, legacy, modern } in SEEN {
        for (era, expected) in [(Era::Legacy, legacy), (Era::Modern, modern)] {
            let server = MockServer::from_text(&mock(fault)).unwrap();
            let client = rmcp_client::over_http(&server.url(), era, None).await;
            let limit = if expected.is_some() { Duration::from_secs(20) } else { Duration::from_millis(500) };
            let answer = timeout(limit, client.call("t", json!({}))).await;
            let seen = match &answer {
                Ok(Ok(text)) => Some(text.as_str()),
                Ok(Err(_)) => Some("error"),
                Err(_) => None,
            };
            assert_eq!(seen, expected, "{fault}, era {era:?}: {answer:?}");
        }
    }
}
