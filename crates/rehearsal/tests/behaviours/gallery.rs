//! Everything that the mocks of the gallery list is asked for, in every version, and everything that they say is checked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rehearsal::Client;
use rehearsal::core::protocol::{Era, Revision};
use rehearsal::mock::MockServer;
use serde_json::{Value, json};

use crate::peer::{Peer, Transport, agreeable, example};

/// Mocks that do nothing wrong on purpose.
const GALLERY: [&str; 7] = [
    "conformance.mock.yaml",
    "jobs.mock.yaml",
    "notes.mock.yaml",
    "shop.mock.yaml",
    "start.mock.yaml",
    "trip.mock.yaml",
    "weather.mock.yaml",
];

/// The one that does.
const FLAKY: &str = "flaky.mock.yaml";

/// Closes the stream on purpose, and waits until somebody comes back.
const SLOW: [&str; 1] = ["test_reconnection"];

#[tokio::test]
async fn every_mock_of_the_gallery_says_what_its_version_has_over_stdio() {
    for mock in GALLERY {
        for revision in Revision::ALL {
            tour(Peer::ready(&example(mock), Transport::Stdio, revision).await, mock).await;
        }
    }
}

#[tokio::test]
async fn every_mock_of_the_gallery_says_what_its_version_has_over_http_sse() {
    for mock in GALLERY {
        for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
            tour(Peer::ready(&example(mock), Transport::Sse, revision).await, mock).await;
        }
    }
}

#[test]
fn every_mock_of_the_examples_is_started_here() {
    let folder = example("");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = files.filter(|name| name.ends_with(".mock.yaml")).collect();
    files.sort();
    let mut started = GALLERY.to_vec();
    started.push(FLAKY);
    started.sort_unstable();
    assert_eq!(files, started);
}

#[tokio::test]
async fn the_flaky_mock_goes_wrong_as_it_says() {
    let mock = MockServer::start(example(FLAKY)).unwrap();
    let client = Client::url(mock.url()).modern().connect().await.unwrap();
    let mut fine = Vec::new();
    for _ in 0..12 {
        fine.push(client.call_tool("sometimes", json!({})).await.is_ok());
    }
    let again = MockServer::start(example(FLAKY)).unwrap();
    let other = Client::url(again.url()).modern().connect().await.unwrap();
    for expected in &fine {
        assert_eq!(other.call_tool("sometimes", json!({})).await.is_ok(), *expected, "{fine:?}");
    }
    assert!(fine.contains(&true) && fine.contains(&false), "{fine:?}");
    assert_eq!(client.call_tool("slow", json!({})).await.unwrap().content(), "at last");
    let picture = client.call_tool("picture", json!({})).await.unwrap();
    let data = picture.result()["content"][0]["data"].as_str().unwrap().to_owned();
    assert!(STANDARD.decode(&data).is_err(), "{data}");
    client.close().await;
    other.close().await;
}

/// Asks for everything that is listed.
async fn tour(mut peer: Peer, mock: &str) {
    if peer.revision.era() == Era::Modern {
        peer.ask("server/discover", None).await;
    }
    let mut asked = 0;
    for tool in listed(&mut peer, "tools/list", "tools").await {
        let name = tool["name"].as_str().unwrap().to_owned();
        if SLOW.contains(&name.as_str()) {
            continue;
        }
        let arguments = rehearsal::core::schema::example(&tool["inputSchema"]).unwrap_or_else(|| json!({}));
        let meta = json!({"progressToken": format!("{name} in {mock}")});
        fulfilled(&mut peer, "tools/call", json!({"name": name, "arguments": arguments, "_meta": meta})).await;
        asked += 1;
    }
    for resource in listed(&mut peer, "resources/list", "resources").await {
        fulfilled(&mut peer, "resources/read", json!({"uri": resource["uri"]})).await;
        asked += 1;
    }
    listed(&mut peer, "resources/templates/list", "resourceTemplates").await;
    for prompt in listed(&mut peer, "prompts/list", "prompts").await {
        let names = prompt["arguments"].as_array().cloned().unwrap_or_default();
        let arguments: serde_json::Map<String, Value> =
            names.iter().map(|argument| (argument["name"].as_str().unwrap().to_owned(), json!("a:b"))).collect();
        fulfilled(&mut peer, "prompts/get", json!({"name": prompt["name"], "arguments": arguments})).await;
        asked += 1;
    }
    assert!(asked > 0, "{mock} lists nothing");
    peer.end().await;
}

/// Every page of a list; empty where the server has no such thing.
async fn listed(peer: &mut Peer, method: &str, key: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let params = cursor.map(|cursor: Value| json!({"cursor": cursor}));
        let id = peer.request(method, params).await;
        let answer = peer.answered(&id).await;
        all.extend(answer["result"][key].as_array().cloned().unwrap_or_default());
        cursor = answer["result"].get("nextCursor").cloned();
        if cursor.is_none() {
            return all;
        }
    }
}

/// Asks, and gives what the server wants for it, in requests of its own or in results.
async fn fulfilled(peer: &mut Peer, method: &str, mut params: Value) {
    for _ in 0..8 {
        let id = peer.request(method, Some(params.clone())).await;
        let answer = peer.answered(&id).await;
        let result = &answer["result"];
        if result["resultType"] == "task" || result.get("task").is_some() {
            let task = result.get("task").unwrap_or(result);
            peer.ask("tasks/get", Some(json!({"taskId": task["taskId"]}))).await;
        }
        let Some(requests) = result["inputRequests"].as_object() else { return };
        let responses: serde_json::Map<String, Value> = requests
            .iter()
            .map(|(key, request)| (key.clone(), agreeable(request["method"].as_str().unwrap(), &request["params"])))
            .collect();
        params["inputResponses"] = Value::Object(responses);
        params["requestState"] = result["requestState"].clone();
    }
}
