//! Every mock in `examples/` offers what it lists, in every version, and all its messages conform to that version.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientHandlers};
use rehearsal::core::exchange::{Channel, Side};
use rehearsal::core::message::{Message, Method};
use rehearsal::core::protocol::{Era, Revision};
use rehearsal::core::report::Severity;
use rehearsal::core::schema::example;
use rehearsal::core::shape::SessionCheck;
use rehearsal::core::trace::{Entry, EntryBody, JournalFold, SessionStart, Timeline};
use rehearsal::mock::MockServer;
use serde_json::{Map, Value, json};

/// The one that injects faults.
const FLAKY: &str = "flaky.mock.yaml";

/// Closes its stream on purpose and waits for the client to resume.
const SLOW: &str = "test_reconnection";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[tokio::test]
async fn every_example_offers_what_it_lists_and_its_messages_conform() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mocks: BTreeSet<_> = files.filter(|name| name.ends_with(".mock.yaml") && name != FLAKY).collect();
    assert!(mocks.len() > 5, "{mocks:?}");
    for mock in mocks {
        let server = MockServer::start(folder().join(&mock)).unwrap();
        for revision in Revision::ALL {
            tour(Client::connection(server.connection()), revision, &mock).await;
        }
        tour(Client::url(server.url()), Revision::LATEST_LEGACY, &mock).await;
        tour(Client::url(server.sse_url()), Revision::V2024_11_05, &mock).await;
    }
}

/// Uses everything that is listed.
async fn tour(builder: ClientBuilder, revision: Revision, mock: &str) {
    let what = format!("{mock} in {revision}");
    let entries = Arc::new(Mutex::new(Vec::new()));
    let kept = entries.clone();
    let keep = move |from: Side, message: &Message| {
        let mut entries = kept.lock().unwrap();
        let seq = entries.len() as u64;
        let body = EntryBody::Message { from, channel: Channel::MAIN, message: message.clone(), event_id: None };
        entries.push(Entry::new(seq, Duration::from_millis(seq), body));
    };
    let form = |request: &rehearsal::client::ServerRequest| {
        let form = example(&request.params["requestedSchema"]).unwrap_or_else(|| json!({}));
        Ok(json!({"action": "accept", "content": form}))
    };
    let answers =
        ClientHandlers::new().roots([("file:///stage", "stage")]).sampling_text("to be").on(Method::ELICITATION, form);
    let builder = match revision.era() {
        Era::Legacy => builder.legacy(revision),
        Era::Modern => builder.modern(),
    };
    let client = builder.handlers(answers).on_message(keep).connect().await.unwrap();
    let mut used = 0;
    for tool in client.list_tools().await.unwrap().into_iter().filter(|tool| tool.name != SLOW) {
        let arguments = example(&tool.input_schema).unwrap_or_else(|| json!({}));
        client.call(&tool.name).arguments(arguments).with_progress().await.unwrap_or_else(|e| panic!("{what}: {e}"));
        used += 1;
    }
    for resource in client.list_resources().await.unwrap() {
        client.read_resource(&resource.uri).await.unwrap();
        used += 1;
    }
    client.list_resource_templates().await.unwrap();
    for prompt in client.list_prompts().await.unwrap() {
        let arguments: Map<String, Value> =
            prompt.arguments.iter().map(|argument| (argument.name.clone(), json!("a:b"))).collect();
        client.get_prompt(&prompt.name, arguments).await.unwrap();
        used += 1;
    }
    assert!(used > 0, "{what} lists nothing");
    client.close().await;
    let entries = std::mem::take(&mut *entries.lock().unwrap());
    assert_eq!(findings(entries), [""; 0], "{what}");
}

/// What is wrong with the messages of the server.
fn findings(entries: Vec<Entry>) -> Vec<String> {
    let start =
        SessionStart { session_id: "a".into(), server_info: Map::new(), started_at: None, metadata: Map::new() };
    let (mut fold, mut parts) = (JournalFold::new(start), Vec::new());
    entries.into_iter().for_each(|entry| fold.entry(entry, &mut parts));
    fold.finish(None, &mut parts);
    let half = || parts.iter().cloned().map(Ok);
    let mut conversation = SessionCheck::default();
    let moments = Timeline::new(half(), half()).map(Result::unwrap);
    let located: Vec<_> = moments.flat_map(|moment| conversation.check(&moment)).collect();
    let of_server = located.iter().filter(|it| it.from == Side::Server && it.finding.severity >= Severity::Note);
    of_server.map(|it| it.finding.to_string()).collect()
}

#[tokio::test]
async fn the_flaky_mock_injects_its_faults_in_the_same_order_each_time() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mock = MockServer::start(folder().join(FLAKY)).unwrap();
        let client = Client::url(mock.url()).modern().connect().await.unwrap();
        let mut run = Vec::new();
        for _ in 0..12 {
            run.push(client.call_tool("sometimes", json!({})).await.is_ok());
        }
        assert_eq!(client.call_tool("slow", json!({})).await.unwrap().content(), "at last");
        let picture = client.call_tool("picture", json!({})).await.unwrap();
        let data = picture.result()["content"][0]["data"].as_str().unwrap().to_owned();
        assert!(STANDARD.decode(&data).is_err(), "{data}");
        client.close().await;
        runs.push(run);
    }
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].contains(&true) && runs[0].contains(&false), "{runs:?}");
}
