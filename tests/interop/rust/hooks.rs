//! The hooks of a recorder see every request and every answer, on every transport, and may panic.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, HttpTransport};
use rehearsal::core::message::Reply;
use rehearsal::core::protocol::Revision;
use rehearsal::record::{HttpRecording, Notice, Recorder, StdioRecording, intercept};
use rehearsal_wire::http::proxy::HttpProxyOptions;
use rehearsal_wire::stdio::{ClientStreams, ServerCommand};
use rmcp::transport::TokioChildProcess;
use tokio::net::unix::pipe;

use crate::clients::{Era, everything};
use crate::installation::TIMEOUT;
use crate::recorded_http::read;
use crate::{mocked, rmcp_client, server_everything};

/// A recorder with hooks, and the calls of the hooks.
struct Hooked {
    folder: tempfile::TempDir,
    recorder: Recorder,
    /// `request tools/call`, `result of tools/call`, `error of tools/call`
    seen: Arc<Mutex<Vec<String>>>,
    panicked: Arc<Mutex<Vec<String>>>,
}

impl Hooked {
    fn new() -> Hooked {
        let folder = tempfile::tempdir().unwrap();
        let (seen, panicked) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (requests, responses, panics) = (seen.clone(), seen.clone(), panicked.clone());
        let recorder = Recorder::builder()
            .trace(folder.path().join("trace.jsonl"))
            .on_request(|_, _| panic!("a request hook that panics"))
            .on_request(move |method, _| requests.lock().unwrap().push(format!("request {method}")))
            .on_response(|_, _| panic!("a response hook that panics"))
            .on_response(move |method, reply| {
                let kind = match reply {
                    Reply::Result(_) => "result",
                    Reply::Error(_) => "error",
                };
                responses.lock().unwrap().push(format!("{kind} of {method}"));
            })
            .on_notice(move |notice| match notice {
                Notice::HookPanicked { hook, method } => panics.lock().unwrap().push(format!("{hook} {method}")),
                other => panic!("{other}"),
            })
            .build();
        Hooked { folder, recorder, seen, panicked }
    }

    async fn before(&self, url: &str) -> HttpRecording {
        let options = HttpProxyOptions::new("127.0.0.1:0".parse().unwrap(), url).unwrap();
        HttpRecording::start(&self.recorder, options).await.unwrap()
    }

    /// Asserts that the hooks were called exactly for the calls in the trace. Returns the number of server requests.
    fn assert_saw_all(self, what: &str) -> usize {
        let mut expected = Vec::new();
        let mut server_requests = 0;
        for session in read(&self.folder.path().join("trace.jsonl")) {
            for call in session.calls {
                let method = call.request.message.method().unwrap();
                expected.push(format!("request {method}"));
                let response = call.response.unwrap_or_else(|| panic!("{what}: {method} has no answer"));
                let kind = match response.message.as_response().unwrap().reply {
                    Reply::Result(_) => "result",
                    Reply::Error(_) => "error",
                };
                expected.push(format!("{kind} of {method}"));
                server_requests += usize::from(call.asker == rehearsal::core::exchange::Side::Server);
            }
        }
        let mut seen = self.seen.lock().unwrap().clone();
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected, "{what}");
        assert_eq!(self.panicked.lock().unwrap().len(), seen.len(), "{what}: the others panicked each time");
        server_requests
    }
}

#[tokio::test]
async fn over_streamable_http_in_both_eras() {
    let server = mocked::over_http().await;
    for (era, server_requests) in [(Era::Legacy, 3), (Era::Modern, 0)] {
        let hooked = Hooked::new();
        let recording = hooked.before(&server.url).await;
        let client = rmcp_client::over_http(&recording.url(), era, None).await;
        assert_eq!(rmcp_client::tour(client).await, everything(era.version()));
        recording.stop().await;
        assert_eq!(hooked.assert_saw_all(&format!("{era:?}")), server_requests);
    }
}

#[tokio::test]
async fn over_both_http_transports_of_server_everything() {
    for (transport, revision) in [("streamableHttp", Revision::V2025_11_25), ("sse", Revision::V2024_11_05)] {
        let server = server_everything::http(transport).await;
        let hooked = Hooked::new();
        let recording = hooked.before(&server.url).await;
        let change = |builder: ClientBuilder| match transport {
            "sse" => builder.transport(HttpTransport::Sse),
            _ => builder,
        };
        let builder = change(Client::url(recording.url()).legacy(revision).timeout(TIMEOUT));
        let client = builder.handlers(server_everything::answers()).connect().await.unwrap();
        server_everything::whole_tour(&client).await;
        client.close().await;
        recording.stop().await;
        assert!(hooked.assert_saw_all(transport) >= 2, "{transport}: the server sends requests too");
    }
}

#[tokio::test]
async fn over_stdio_and_in_a_transport_of_the_rust_sdk() {
    for (era, server_requests) in [(Era::Legacy, 3), (Era::Modern, 0)] {
        let hooked = Hooked::new();
        let ((input, to_server), (from_server, output)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let error = std::fs::File::create(hooked.folder.path().join("stderr")).unwrap();
        let streams = ClientStreams { input: input.into(), output: output.into(), error: error.into() };
        let [program, arguments @ ..] = mocked::words();
        let server = ServerCommand { arguments: arguments.map(Into::into).into(), ..ServerCommand::new(program) };
        let recording = StdioRecording::start(&hooked.recorder, &server, streams).await.unwrap();
        let transport = (
            pipe::Receiver::from_owned_fd(from_server.into()).unwrap(),
            pipe::Sender::from_owned_fd(to_server.into()).unwrap(),
        );
        let client =
            rmcp_client::over(rmcp::transport::async_rw::AsyncRwTransport::new_client(transport.0, transport.1), era)
                .await;
        assert_eq!(rmcp_client::tour(client).await, everything(era.version()));
        recording.ended().await;
        assert_eq!(hooked.assert_saw_all(&format!("stdio, {era:?}")), server_requests);

        let hooked = Hooked::new();
        let mut command = mocked::mock();
        command.stderr(Stdio::null());
        let transport = intercept(TokioChildProcess::new(command).unwrap(), &hooked.recorder);
        let client = rmcp_client::over(transport, era).await;
        assert_eq!(rmcp_client::tour(client).await, everything(era.version()));
        assert_eq!(hooked.assert_saw_all(&format!("rmcp, {era:?}")), server_requests);
    }
}
