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

/// The transport between the client and the mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Memory,
    Stdio,
    /// Streamable HTTP with sessions.
    Session,
    /// Streamable HTTP without sessions.
    Stateless,
    /// HTTP+SSE.
    TwoEndpoints,
}

const TRANSPORTS: [Transport; 5] =
    [Transport::Memory, Transport::Stdio, Transport::Session, Transport::Stateless, Transport::TwoEndpoints];

/// A fault, and whether the client gets an error or only a timeout.
const FAULTS: [(&str, Sign); 25] = [
    ("{ delay: 20ms }", Sign::Message),
    ("hang", Sign::Silence),
    ("disconnect_before", Sign::Message),
    ("disconnect_during", Sign::Message),
    ("disconnect_after", Sign::Message),
    ("half_line", Sign::Silence),
    ("malformed_json", Sign::Silence),
    ("invalid_utf8", Sign::Silence),
    ("invalid_base64", Sign::Message),
    ("wrong_id", Sign::Silence),
    ("duplicate_answer", Sign::Message),
    ("answer_after_cancel", Sign::Silence),
    ("{ noise_on_stdout: [Listening] }", Sign::Message),
    ("{ flood_of_stderr: 300000 }", Sign::Message),
    ("{ oversize: 17000000 }", Sign::Message),
    ("{ slow_drip: { bytes: 16, every: 1ms } }", Sign::Message),
    ("{ exit: 3 }", Sign::Message),
    ("{ http: { status: 401, www_authenticate: Bearer } }", Sign::Message),
    ("{ http: { status: 404 } }", Sign::Message),
    ("{ http: { status: 429, retry_after: 2 } }", Sign::Message),
    ("{ http: { status: 500 } }", Sign::Message),
    ("{ http: { status: 502, headers: { server: nginx } } }", Sign::Message),
    ("sse_cut", Sign::Message),
    ("{ content_type: text/html }", Sign::Silence),
    ("wrong_structured_content", Sign::Message),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Message,
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

struct Fixture {
    _server: Option<MockServer>,
    _folder: tempfile::TempDir,
    client: Client,
}

async fn fixture(fault: &str, transport: Transport) -> Fixture {
    observed_fixture(fault, transport, |_, _| {}).await
}

async fn observed_fixture(
    fault: &str,
    transport: Transport,
    observer: impl Fn(Side, &Message) + Send + Sync + 'static,
) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let text = mock(fault);
    let (server, builder): (Option<MockServer>, ClientBuilder) = match transport {
        Transport::Stdio => {
            let file = folder.path().join("t.mock.yaml");
            std::fs::write(&file, &text).unwrap();
            let builder = Client::command(env!("CARGO_BIN_EXE_rehearse")).args(["mock".into(), file.into_os_string()]);
            (None, builder)
        }
        Transport::Memory => {
            let server = MockServer::from_text(&text).unwrap();
            let builder = Client::connection(server.connection());
            (Some(server), builder)
        }
        Transport::Session | Transport::Stateless => {
            let server = MockServer::from_text(&text).unwrap();
            let builder = Client::url(server.url()).transport(HttpTransport::Streamable);
            (Some(server), builder)
        }
        Transport::TwoEndpoints => {
            let server = MockServer::from_text(&text).unwrap();
            let builder = Client::url(server.sse_url()).transport(HttpTransport::Sse);
            (Some(server), builder)
        }
    };
    let builder = match transport {
        Transport::Memory | Transport::Stdio | Transport::Session => builder.legacy(Revision::V2025_11_25),
        Transport::Stateless => builder.modern(),
        Transport::TwoEndpoints => builder.legacy(Revision::V2024_11_05),
    };
    let client = builder.on_message(observer).timeout(Duration::from_secs(20)).connect().await.unwrap();
    Fixture { _server: server, _folder: folder, client }
}

/// A short description of the outcome that a client gets.
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
                Some((text, _)) => format!("the server {text}"),
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

/// Waits for a response to no pending request. Over Streamable HTTP it may come after the response to the next call, which
/// has a stream of its own.
async fn stray(client: &Client) {
    let arrival = async {
        while client.evidence().strays.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    // Without one, the table shows its absence.
    let _ = tokio::time::timeout(Duration::from_secs(20), arrival).await;
}

/// The other evidence of the client.
fn evidence(client: &Client) -> String {
    let evidence = client.evidence();
    let kinds = [
        (!evidence.noise.is_empty(), " (and noise)"),
        (!evidence.strays.is_empty(), " (and a stray answer)"),
        (!evidence.last_stderr.is_empty(), " (and stderr)"),
    ];
    kinds.into_iter().filter(|(is_there, _)| *is_there).map(|(_, text)| text).collect()
}

/// A client cancels a request after its timeout, and is still answered. Not over Streamable HTTP: there the client closes the
/// stream after its cancellation, and may or may not receive the response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_after_cancel_comes_after_the_client_has_cancelled() {
    for transport in [Transport::Memory, Transport::Stdio, Transport::TwoEndpoints] {
        let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
        let observer = move |side: Side, message: &Message| drop(sender.send((side, message.clone())));
        let fixture = observed_fixture("answer_after_cancel", transport, observer).await;
        let called = fixture.client.call("t").timeout(Duration::from_millis(300)).await;
        assert!(matches!(called, Err(ClientError::TimedOut { .. })), "{transport:?}: {called:?}");
        let mut request_id = None;
        let mut cancelled = false;
        let late = async {
            while let Some((side, message)) = messages.recv().await {
                match message.body() {
                    Body::Request(request) if request.method == Method::TOOLS_CALL => {
                        request_id = Some(request.id.clone())
                    }
                    Body::Notification(notification)
                        if side == Side::Client && notification.method == Method::CANCELLED =>
                    {
                        cancelled = true;
                    }
                    Body::Response(response) if request_id.is_some() && response.id == request_id => return cancelled,
                    _ => {}
                }
            }
            panic!("{transport:?}: the answer never came");
        };
        let after_cancel = tokio::time::timeout(Duration::from_secs(20), late).await.expect("the answer never came");
        assert!(after_cancel, "{transport:?}: it was answered before it was cancelled");
        assert_eq!(seen(fixture.client.call("t").await), "the answer", "{transport:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_is_seen_on_every_transport() {
    let mut table = String::new();
    for (fault, sign) in FAULTS {
        let name = fault.trim();
        writeln!(table, "{name}").unwrap();
        for transport in TRANSPORTS {
            let fixture = fixture(fault, transport).await;
            let call = fixture.client.call("t");
            let call = if sign == Sign::Silence { call.timeout(Duration::from_secs(1)) } else { call };
            let first = seen(call.await);
            let then = seen(fixture.client.call("t").timeout(Duration::from_secs(2)).await);
            if matches!(name, "wrong_id" | "duplicate_answer") {
                stray(&fixture.client).await;
            }
            let also = evidence(&fixture.client);
            writeln!(table, "  {:<13} {first}; then {then}{also}", format!("{transport:?}")).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
