//! Responses as snapshots.

use rehearsal::testing::Snapshot;
use serde_json::json;

use crate::mock_client;

#[tokio::test]
async fn a_snapshot_shows_the_response_without_volatile_values() {
    let client = mock_client().connect().await.unwrap();
    let response = client.call_tool("add", json!({"a": 2, "b": 40})).await.unwrap();
    let snapshot =
        Snapshot::from_response(&response).redact("$.structuredContent.sum", "[sum]").replace(r"4(\d)", "[forty-$1]");
    insta::assert_snapshot!(snapshot, @r#"
    {
      "content": [
        {
          "type": "text",
          "text": "[forty-2]"
        }
      ],
      "structuredContent": {
        "sum": "[sum]"
      },
      "resultType": "complete"
    }
    "#);
}

#[tokio::test]
async fn an_error_is_a_snapshot_too() {
    let client = mock_client().connect().await.unwrap();
    let response = client.call_tool("no_such_tool", json!({})).await.unwrap();
    let snapshot = Snapshot::from_response(&response).redact("$.error.message", "[message]");
    assert_eq!(snapshot.value()["error"]["code"], -32602);
    assert_eq!(snapshot.value()["error"]["message"], "[message]");
}

#[tokio::test]
#[should_panic(expected = "nothing to redact at $.structuredContent.time")]
async fn a_redaction_that_matches_nothing_is_an_error() {
    let client = mock_client().connect().await.unwrap();
    let response = client.call_tool("add", json!({"a": 2, "b": 40})).await.unwrap();
    let _ = Snapshot::from_response(&response).redact("$.structuredContent.time", "[time]");
}
