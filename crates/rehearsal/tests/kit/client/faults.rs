//! Every fault of a mock, seen by our client on every transport.

use std::fmt::Write;
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientError, HttpTransport, ServerResponse};
use rehearsal::core::exchange::Side;
use rehearsal::core::message::{Body, Message, Method};
use rehearsal::core::protocol::Revision;
use rehearsal::mock::MockServer;
use serde_json::json;

/// How a client reaches the mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Memory,
    Stdio,
    /// Streamable HTTP with sessions.
    Session,
    /// Streamable HTTP without.
    Stateless,
    /// HTTP+SSE.
    TwoEndpoints,
}

const WAYS: [Way; 5] = [Way::Memory, Way::Stdio, Way::Session, Way::Stateless, Way::TwoEndpoints];

/// A fault, and whether the only sign of it is silence.
const FAULTS: [(&str, Sign); 25] = [
    ("{ delay: 20ms }", Sign::Word),
    ("hang", Sign::Silence),
    ("disconnect_before", Sign::Word),
    ("disconnect_during", Sign::Word),
    ("disconnect_after", Sign::Word),
    ("half_line", Sign::Silence),
    ("malformed_json", Sign::Silence),
    ("invalid_utf8", Sign::Silence),
    ("invalid_base64", Sign::Word),
    ("wrong_id", Sign::Silence),
    ("duplicate_answer", Sign::Word),
    ("answer_after_cancel", Sign::Silence),
    ("{ noise_on_stdout: [Listening] }", Sign::Word),
    ("{ flood_of_stderr: 300000 }", Sign::Word),
    ("{ oversize: 17000000 }", Sign::Word),
    ("{ slow_drip: { bytes: 16, every: 1ms } }", Sign::Word),
    ("{ exit: 3 }", Sign::Word),
    ("{ http: { status: 401, www_authenticate: Bearer } }", Sign::Word),
    ("{ http: { status: 404 } }", Sign::Word),
    ("{ http: { status: 429, retry_after: 2 } }", Sign::Word),
    ("{ http: { status: 500 } }", Sign::Word),
    ("{ http: { status: 502, headers: { server: nginx } } }", Sign::Word),
    ("sse_cut", Sign::Word),
    ("{ content_type: text/html }", Sign::Silence),
    ("wrong_structured_content", Sign::Word),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Word,
    Silence,
}

fn mock(fault: &str) -> String {
    format!(
        "faults: [{{ fault: {fault}, method: tools/call, call: 1 }}]\n\
         tools:\n  - name: t\n    output_schema: {{ type: object, properties: {{ n: {{ type: integer }} }} }}\n    \
         answers:\n      - content: [{{ type: text, text: hello }}, {{ type: image, data: AAAA, mime_type: image/png }}]\n        \
         structured_content: {{ n: 1 }}\n"
    )
}

struct Stage {
    _server: Option<MockServer>,
    _folder: tempfile::TempDir,
    client: Client,
}

async fn stage(fault: &str, way: Way) -> Stage {
    tapped_stage(fault, way, |_, _| {}).await
}

async fn tapped_stage(fault: &str, way: Way, tap: impl Fn(Side, &Message) + Send + Sync + 'static) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let text = mock(fault);
    let (server, builder): (Option<MockServer>, ClientBuilder) = match way {
        Way::Stdio => {
            let file = folder.path().join("t.mock.yaml");
            std::fs::write(&file, &text).unwrap();
            let builder = Client::command(env!("CARGO_BIN_EXE_rehearse")).args(["mock".into(), file.into_os_string()]);
            (None, builder)
        }
        Way::Memory => {
            let server = MockServer::from_text(&text).unwrap();
            let builder = Client::connection(server.connection());
            (Some(server), builder)
        }
        Way::Session | Way::Stateless => {
            let server = MockServer::from_text(&text).unwrap();
            let builder = Client::url(server.url()).transport(HttpTransport::Streamable);
            (Some(server), builder)
        }
        Way::TwoEndpoints => {
            let server = MockServer::from_text(&text).unwrap();
            let builder = Client::url(server.sse_url()).transport(HttpTransport::Sse);
            (Some(server), builder)
        }
    };
    let builder = match way {
        Way::Memory | Way::Stdio | Way::Session => builder.legacy(Revision::V2025_11_25),
        Way::Stateless => builder.modern(),
        Way::TwoEndpoints => builder.legacy(Revision::V2024_11_05),
    };
    let client = builder.on_message(tap).timeout(Duration::from_secs(20)).connect().await.unwrap();
    Stage { _server: server, _folder: folder, client }
}

/// What a client sees, in a few words.
fn seen(result: Result<ServerResponse, ClientError>) -> String {
    match result {
        Ok(response) => match response.error() {
            Some(error) => format!("error {}: {}", error.code, error.message),
            None if response.raw().to_string().contains("*not base64*") => "an answer with broken base64".to_owned(),
            None if response.structured_content().is_some_and(|it| *it != json!({"n": 1})) => {
                "an answer with other structured content".to_owned()
            }
            None => "the answer".to_owned(),
        },
        Err(error) => match error {
            ClientError::ServerClosed { ending, .. } => match ending.to_string().split_once(':') {
                Some((words, _)) => format!("the server {words}"),
                None => format!("the server {ending}"),
            },
            ClientError::TimedOut { .. } => "silence".to_owned(),
            ClientError::Refused { status, .. } => format!("status {status}"),
            ClientError::Echoed { .. } => "the request came back".to_owned(),
            ClientError::StreamBroken { .. } => "the stream is lost".to_owned(),
            ClientError::Garbled { reason, .. } => {
                let reason = reason.to_string();
                format!("garbled: {}", reason.split([':', ' ']).take(2).collect::<Vec<_>>().join(" "))
            }
            ClientError::NotSent { .. } => "it cannot be sent".to_owned(),
            other => format!("something else: {other}"),
        },
    }
}

/// Waits for an answer to nobody: over Streamable HTTP it may come after the answer to the next call, which has a stream of
/// its own.
async fn stray(client: &Client) {
    let heard = async {
        while client.evidence().strays.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    // Where none comes, the table says so.
    let _ = tokio::time::timeout(Duration::from_secs(20), heard).await;
}

/// What else there was to see.
fn evidence(client: &Client) -> String {
    let evidence = client.evidence();
    let kinds = [
        (!evidence.noise.is_empty(), " (and noise)"),
        (!evidence.strays.is_empty(), " (and an answer to nobody)"),
        (!evidence.last_stderr.is_empty(), " (and stderr)"),
    ];
    kinds.into_iter().filter(|(is_there, _)| *is_there).map(|(_, words)| words).collect()
}

/// A client that gives up says so, and is answered all the same. Over Streamable HTTP it closes the stream behind its
/// cancellation, so there it is luck whether the answer is still heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_after_cancel_comes_after_the_client_has_cancelled() {
    for way in [Way::Memory, Way::Stdio, Way::TwoEndpoints] {
        let (heard, mut passes) = tokio::sync::mpsc::unbounded_channel();
        let tap = move |side: Side, message: &Message| drop(heard.send((side, message.clone())));
        let stage = tapped_stage("answer_after_cancel", way, tap).await;
        let called = stage.client.call("t").timeout(Duration::from_millis(300)).await;
        assert!(matches!(called, Err(ClientError::TimedOut { .. })), "{way:?}: {called:?}");
        let mut asked = None;
        let mut cancelled = false;
        let late = async {
            while let Some((side, message)) = passes.recv().await {
                match message.body() {
                    Body::Request(request) if request.method == Method::TOOLS_CALL => asked = Some(request.id.clone()),
                    Body::Notification(told) if side == Side::Client && told.method == Method::CANCELLED => {
                        cancelled = true;
                    }
                    Body::Response(response) if asked.is_some() && response.id == asked => return cancelled,
                    _ => {}
                }
            }
            panic!("{way:?}: the answer never came");
        };
        let after_cancel = tokio::time::timeout(Duration::from_secs(20), late).await.expect("the answer never came");
        assert!(after_cancel, "{way:?}: it was answered before it was cancelled");
        assert_eq!(seen(stage.client.call("t").await), "the answer", "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_is_seen_on_every_transport() {
    let mut table = String::new();
    for (fault, sign) in FAULTS {
        let name = fault.trim();
        writeln!(table, "{name}").unwrap();
        for way in WAYS {
            let stage = stage(fault, way).await;
            let call = stage.client.call("t");
            let call = if sign == Sign::Silence { call.timeout(Duration::from_secs(1)) } else { call };
            let first = seen(call.await);
            let then = seen(stage.client.call("t").timeout(Duration::from_secs(2)).await);
            if matches!(name, "wrong_id" | "duplicate_answer") {
                stray(&stage.client).await;
            }
            let also = evidence(&stage.client);
            writeln!(table, "  {:<13} {first}; then {then}{also}", format!("{way:?}")).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
