//! Numbers and strings that a `serde_json::Value` cannot hold, in a replay.

use rehearsal::Client;
use rehearsal::core::protocol::Revision;
use rehearsal::replay::{Replay, ReplayOptions};
use rehearsal::store::Input;
use rehearsal::wire::memory;

const ARGUMENTS: &str = r#"{"n": 1e400, "half": "\udfff"}"#;
const RESULT: &str = r#"{"zero": -0, "long": 12345678901234567890123, "huge": 1e400, "half": "\ud800", "é": "\u00e9"}"#;

async fn replayed(replay: &Replay, revision: Revision) -> String {
    let (ours, theirs) = memory::pair();
    let server = replay.server();
    tokio::spawn(async move { server.serve(theirs).await });
    let client = Client::connection(ours);
    let client = if revision == Revision::V2026_07_28 { client.modern() } else { client.legacy(revision) };
    let arguments = serde_json::value::RawValue::from_string(ARGUMENTS.to_owned()).unwrap();
    let response = client.connect().await.unwrap().call("odd").arguments(arguments).await.unwrap();
    String::from_utf8_lossy(response.bytes()).into_owned()
}

#[tokio::test]
async fn exact_numbers_are_replayed_verbatim_in_the_recorded_version() {
    let call = format!(
        r#"{{"request":{{"seq":2,"at_ms":0,"id":1,"method":"tools/call","params":{{"name":"odd","arguments":{ARGUMENTS}}}}},"response":{{"seq":3,"at_ms":0,"success":true,"result":{{"content":[],"structuredContent":{RESULT}}}}}}}"#
    );
    let opening = r#"{"request":{"seq":0,"at_ms":0,"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}},"response":{"seq":1,"at_ms":0,"success":true,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}}"#;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    std::fs::write(&path, format!(r#"{{"format":1,"session_id":"a","calls":[{opening},{call}]}}"#) + "\n").unwrap();
    let replay = Replay::open(&Input::File(path), ReplayOptions::default()).unwrap();
    let same = replayed(&replay, Revision::V2025_11_25).await;
    assert!(same.contains(&format!(r#""structuredContent":{RESULT}"#)), "{same}");
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let adapted = replayed(&replay, revision).await;
        let rounded = r#""long":1.2345678901234568e+22,"huge":1.7976931348623157e+308,"half":"�","é":"é"}"#;
        assert!(adapted.contains(rounded), "{revision:?}: {adapted}");
    }
}
