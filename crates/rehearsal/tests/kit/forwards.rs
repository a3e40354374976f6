//! Replays that forward unrecorded requests to an upstream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientHandlers, ListenFilter};
use rehearsal::core::message::Method;
use rehearsal::core::protocol::Revision;
use rehearsal::mock::MockServer;
use rehearsal::record::Recorder;
use rehearsal::replay::{Replay, ReplayOptions};
use rehearsal::serve::{Upstream, http_options, serve_http};
use rehearsal::store::Input;
use rehearsal::wire::http::server::HttpServer;
use rehearsal::wire::memory;
use serde_json::{Map, json};
use tokio::sync::Notify;

/// A mock with progress, change notices and input requests.
const MOCK: &str = "
server: { name: upstream, version: '1' }
tools:
  - { name: plain, answers: [{ text: here }] }
  - { name: go, answers: [{ steps: [{ progress: { progress: 1, total: 2 } }, { wait: 5ms }], text: gone }] }
  - { name: change, answers: [{ steps: [{ changed: tools }], text: changed }] }
  - name: hold
    answers: [{ steps: [{ progress: { progress: 1 } }, { wait: 5m }], text: held }]
  - name: ask
    answers:
      - steps:
          - ask: { first: { elicitation: { message: First?, requested_schema: { type: object, properties: {} } } } }
          - ask: { second: { elicitation: { message: Second?, requested_schema: { type: object, properties: {} } } } }
        text: asked
";

/// A recording of a discovery without calls.
const TRACE: &str = r#"{"format":1,"session_id":"a","calls":[{"request":{"seq":0,"at_ms":0,"id":1,"method":"server/discover","params":{}},"response":{"seq":1,"at_ms":1,"success":true,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"resultType":"complete"}}}]}
"#;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A replay of a recording, and the directory of the recording.
struct Forwarding {
    replay: Replay,
    directory: tempfile::TempDir,
}

fn forwarding(server: impl Fn() -> ClientBuilder + Send + Sync + 'static) -> Forwarding {
    forwarding_of(TRACE, server)
}

fn forwarding_of(recorded: &str, server: impl Fn() -> ClientBuilder + Send + Sync + 'static) -> Forwarding {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    std::fs::write(&trace, recorded).unwrap();
    let recorder = Recorder::builder().trace(directory.path().join("live.jsonl")).build();
    let upstream = Upstream::new(server).recorded(recorder, Map::new());
    let replay = Replay::open_with(&Input::File(trace), ReplayOptions::default(), Some(upstream)).unwrap();
    Forwarding { replay, directory }
}

/// A replay in front of a mock, which gets a client of the handshake era.
fn before_mock() -> Forwarding {
    before(Arc::new(MockServer::from_text(MOCK).unwrap()))
}

fn before(mock: Arc<MockServer>) -> Forwarding {
    forwarding(move || Client::connection(mock.connection()).legacy(Revision::V2025_11_25).timeout(TIMEOUT))
}

impl Forwarding {
    fn client(&self) -> ClientBuilder {
        let (ours, theirs) = memory::pair();
        let server = self.replay.server();
        tokio::spawn(async move { server.serve(theirs).await });
        Client::connection(ours).modern().timeout(TIMEOUT)
    }

    async fn over_http(&self) -> String {
        let server = self.replay.server();
        let listener = HttpServer::bind(http_options(&server)).await.unwrap();
        let url = listener.url();
        tokio::spawn(async move { serve_http(&server, listener, std::future::pending::<()>()).await });
        url
    }
}

#[tokio::test]
async fn abandoned_input_rounds_do_not_block_the_upstream() {
    let forwarding = before_mock();
    let client = forwarding.client().capabilities(json!({"elicitation": {}})).connect().await.unwrap();
    for _ in 0..300 {
        let response = client.call_tool("ask", json!({})).await.unwrap();
        assert!(response.is_input_required(), "{response:?}");
    }
    assert_eq!(client.call_tool("plain", json!({})).await.unwrap().content(), "here");
    forwarding.replay.close().await.unwrap();
}

#[tokio::test]
async fn progress_is_forwarded_verbatim() {
    let forwarding = before_mock();
    let updates = Arc::new(Mutex::new(Vec::new()));
    let observed = Arc::clone(&updates);
    let client = forwarding.client().on_message(move |_, message| {
        let progress = message.as_notification().filter(|notification| notification.method == Method::PROGRESS);
        observed.lock().unwrap().extend(progress.map(|notification| notification.params.clone().unwrap()));
    });
    let client = client.connect().await.unwrap();
    client.call("go").with_progress().await.unwrap();
    let updates = updates.lock().unwrap().clone();
    let [update] = &updates[..] else { panic!("{updates:?}") };
    assert_eq!((update.field("progress").unwrap().as_str(), update.field("total").unwrap().as_str()), ("1", "2"));
    forwarding.replay.close().await.unwrap();
}

#[tokio::test]
async fn an_upstream_that_exited_or_failed_to_start_is_restarted() {
    let mock = MockServer::from_text(MOCK).unwrap();
    let starts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&starts);
    let forwarding = forwarding(move || match count.fetch_add(1, Ordering::Relaxed) {
        0 => Client::command("no-such-server"),
        // Answers the handshake and exits at the next request.
        1 => Client::command("sh").args(["-c", EXITS]).legacy(Revision::V2025_11_25).timeout(TIMEOUT),
        _ => Client::connection(mock.connection()).timeout(TIMEOUT),
    });
    let client = forwarding.client().connect().await.unwrap();
    for expected in [1, 2] {
        let failed = client.call_tool("plain", json!({})).await.unwrap();
        assert!(failed.error().is_some(), "{failed:?}");
        assert_eq!(starts.load(Ordering::Relaxed), expected);
    }
    for _ in 0..2 {
        assert_eq!(client.call_tool("plain", json!({})).await.unwrap().content(), "here");
        assert_eq!(starts.load(Ordering::Relaxed), 3);
    }
    forwarding.replay.close().await.unwrap();
    let recorded = std::fs::read_to_string(forwarding.directory.path().join("live.jsonl")).unwrap();
    assert!(recorded.contains("here"), "{recorded}");
}

/// A server that exits when it receives the first request after the handshake.
const EXITS: &str = r#"
read -r initialize
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"exits","version":"1"}}}'
read -r initialized
read -r call
"#;

#[tokio::test]
async fn a_server_request_reaches_only_the_http_client_of_its_call() {
    let forwarding = before_mock();
    let url = forwarding.over_http().await;
    let (is_held, messages) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
    let client = |name: &'static str| {
        let (is_held, messages) = (Arc::clone(&is_held), Arc::clone(&messages));
        let answers = ClientHandlers::new().on_async(Method::ELICITATION, move |request| {
            messages.lock().unwrap().push(format!("{name}: {}", request.params["message"].as_str().unwrap()));
            let is_held = Arc::clone(&is_held);
            // Answers only when the call of the other client is active, too.
            let is_first = request.params["message"] == "First?";
            async move {
                if is_first {
                    is_held.notified().await;
                }
                Ok(json!({"action": "accept", "content": {}}))
            }
        });
        Client::url(url.as_str()).modern().timeout(TIMEOUT).handlers(answers)
    };
    let (asks, holds) = (client("asks").connect().await.unwrap(), client("holds").connect().await.unwrap());
    let call = tokio::spawn(async move { asks.call_tool("ask", json!({})).await.unwrap().content() });
    while messages.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let observed = Arc::clone(&is_held);
    let holding = holds.call("hold").on_progress(move |_| observed.notify_one()).start().await.unwrap();
    assert_eq!(call.await.unwrap(), "asked");
    assert_eq!(*messages.lock().unwrap(), ["asks: First?", "asks: Second?"]);
    holding.cancel("enough").await;
    forwarding.replay.close().await.unwrap();
}

#[tokio::test]
async fn change_notices_between_calls_reach_subscribed_modern_clients() {
    let mock = Arc::new(MockServer::from_text(MOCK).unwrap());
    let forwarding = before(Arc::clone(&mock));
    let client = forwarding.client().connect().await.unwrap();
    let _listening = client.listen(ListenFilter { tools: true, ..ListenFilter::default() }).await.unwrap();
    assert_eq!(client.call_tool("plain", json!({})).await.unwrap().content(), "here");
    let other = Client::connection(mock.connection()).timeout(TIMEOUT).connect().await.unwrap();
    assert_eq!(other.call_tool("change", json!({})).await.unwrap().content(), "changed");
    client.notification(Method::TOOLS_CHANGED).await.unwrap();
    forwarding.replay.close().await.unwrap();
}

#[tokio::test]
async fn a_recorded_request_without_a_response_is_forwarded_to_the_upstream() {
    let unanswered = r#"{"request":{"seq":2,"at_ms":2,"id":2,"method":"tools/call","params":{"name":"plain"}},"response":null,"duration_ms":null}]}"#;
    let trace = TRACE.trim_end().strip_suffix("]}").unwrap().to_owned() + "," + unanswered + "\n";
    let mock = MockServer::from_text(MOCK).unwrap();
    let forwarding = forwarding_of(&trace, move || Client::connection(mock.connection()).timeout(TIMEOUT));
    let client = forwarding.client().connect().await.unwrap();
    assert_eq!(client.call_tool("plain", json!({})).await.unwrap().content(), "here");
    forwarding.replay.close().await.unwrap();
}

#[tokio::test]
async fn the_upstream_gets_only_the_log_level_of_the_client() {
    let logging = "
server: { name: logging, version: '1' }
tools: [{ name: plain, answers: [{ steps: [{ log: { level: info, data: x } }], text: here }] }]
";
    for (revision, level) in [
        (Some(Revision::V2025_06_18), None),
        (Some(Revision::V2025_06_18), Some("warning")),
        (None, None),
        (None, Some("debug")),
    ] {
        let forwarding = before(Arc::new(MockServer::from_text(logging).unwrap()));
        let client = forwarding.client();
        let client = match revision {
            Some(revision) => client.legacy(revision),
            None => client,
        };
        let client = client.connect().await.unwrap();
        if let Some(level) = level {
            client.set_log_level(level).await.unwrap();
        }
        assert_eq!(client.call_tool("plain", json!({})).await.unwrap().content(), "here");
        client.close().await;
        forwarding.replay.close().await.unwrap();
        let recorded = std::fs::read_to_string(forwarding.directory.path().join("live.jsonl")).unwrap();
        let set: Vec<_> = recorded.matches("logging/setLevel").collect();
        assert_eq!(set.len(), usize::from(level.is_some()), "{revision:?} {level:?}: {recorded}");
        assert!(level.is_none_or(|level| recorded.contains(&format!(r#"{{"level":"{level}"}}"#))), "{recorded}");
    }
}
