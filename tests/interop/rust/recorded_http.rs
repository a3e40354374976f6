//! Real servers and clients with a recorder between them: both see no difference, and everything is in the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, HttpTransport};
use rehearsal::core::exchange::Side;
use rehearsal::core::message::{Body, Message};
use rehearsal::core::protocol::Revision;
use rehearsal::core::trace::{EntryBody, Part, RecordedCall, SessionEnd, SessionStart, TraceReader};
use rehearsal::record::{HttpRecording, Recorder};
use rehearsal_wire::http::proxy::HttpProxyOptions;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::clients::{ERAS, Era, everything, run_script};
use crate::cut_streams::Scissors;
use crate::installation::{TIMEOUT, listening, node, python, sdk_server};
use crate::servers::{in_both_eras, sdk_tour};
use crate::{mocked, rmcp_client, server_everything};

/// A recorder in front of a server.
struct Recorded {
    recording: HttpRecording,
    recorder: Recorder,
    directory: tempfile::TempDir,
    /// The messages, in the order in which the client saw them.
    seen: SeenMessages,
}

type SeenMessages = Arc<Mutex<Vec<(Side, String)>>>;

/// A session of the trace.
pub(crate) struct RecordedSession {
    start: SessionStart,
    pub(crate) calls: Vec<RecordedCall>,
    entries: Vec<EntryBody>,
    end: Option<SessionEnd>,
}

impl Recorded {
    async fn before(url: &str) -> Recorded {
        let directory = tempfile::tempdir().unwrap();
        let recorder = Recorder::builder().trace(directory.path().join("trace.jsonl")).build();
        let options = HttpProxyOptions::new("127.0.0.1:0".parse().unwrap(), url).unwrap();
        let recording = HttpRecording::start(&recorder, options).await.unwrap();
        Recorded { recording, recorder, directory, seen: SeenMessages::default() }
    }

    fn url(&self) -> String {
        self.recording.url()
    }

    /// A client whose messages are all kept.
    fn watched(&self, builder: ClientBuilder) -> ClientBuilder {
        let seen = self.seen.clone();
        builder.on_message(move |side, message| seen.lock().unwrap().push((side, message.text().into_owned())))
    }

    /// Waits until the recorder has noticed by itself that so many sessions are over.
    async fn noticed(&self, sessions: usize) {
        let trace = self.directory.path().join("trace.jsonl");
        let over = async {
            while std::fs::read_to_string(&trace).unwrap().lines().count() < sessions {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(TIMEOUT, over).await.expect("a session that is over is in the trace");
    }

    /// Ends the recorder; its sessions.
    async fn sessions(self) -> Vec<RecordedSession> {
        let Recorded { recording, recorder, directory, seen } = self;
        recording.stop().await;
        assert!(!recorder.summary().failed);
        let sessions = read(&directory.path().join("trace.jsonl"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "a journal is left");
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        if !seen.is_empty() {
            let recorded = sessions.iter().flat_map(RecordedSession::messages);
            let recorded = recorded.map(|(side, message)| (side, message.text().into_owned()));
            assert_eq!(counted(recorded), counted(seen.into_iter()), "what was recorded is what the client saw");
        }
        sessions
    }
}

/// The number of occurrences of each message.
fn counted(messages: impl Iterator<Item = (Side, String)>) -> BTreeMap<(Side, String), usize> {
    let mut counts = BTreeMap::new();
    messages.for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

pub(crate) fn read(trace: &Path) -> Vec<RecordedSession> {
    let mut sessions: Vec<RecordedSession> = Vec::new();
    for part in TraceReader::new(BufReader::new(File::open(trace).unwrap())) {
        match part.unwrap() {
            Part::Start(start) => {
                sessions.push(RecordedSession { start, calls: Vec::new(), entries: Vec::new(), end: None });
            }
            Part::Call(call) => sessions.last_mut().unwrap().calls.push(*call),
            Part::Entry(entry) => sessions.last_mut().unwrap().entries.push(entry.what),
            Part::Finish { end, .. } => sessions.last_mut().unwrap().end = end,
        }
    }
    sessions
}

impl RecordedSession {
    /// All messages.
    fn messages(&self) -> Vec<(Side, &Message)> {
        let requests = self.calls.iter().map(|call| (call.asker, &call.request.message));
        let responses =
            self.calls.iter().filter_map(|call| Some((call.asker.other(), &call.response.as_ref()?.message)));
        let others = self.entries.iter().filter_map(|what| match what {
            EntryBody::Message { from, message, .. } => Some((*from, message)),
            _ => None,
        });
        requests.chain(responses).chain(others).collect()
    }

    fn transport(&self) -> &str {
        self.start.server_info["transport"].as_str().unwrap()
    }

    fn methods(&self, asker: Side) -> Vec<&str> {
        let calls = self.calls.iter().filter(|call| call.asker == asker);
        calls.filter_map(|call| call.request.message.method()).map(|method| method.as_str()).collect()
    }

    #[track_caller]
    fn assert_whole(&self) {
        for call in &self.calls {
            assert!(call.response.is_some(), "no answer to {:?}", call.request.message);
        }
        for (side, message) in self.messages() {
            assert!(!matches!(message.body(), Body::Garbled(_)), "{side} sent {message:?}");
        }
    }
}

#[tokio::test]
async fn server_everything_over_both_transports() {
    for (transport, name) in [("streamableHttp", "streamable-http"), ("sse", "http+sse")] {
        let server = server_everything::http(transport).await;
        let recorded = Recorded::before(&server.url).await;
        let builder = Client::url(recorded.url()).legacy(match transport {
            "sse" => Revision::V2024_11_05,
            _ => Revision::V2025_11_25,
        });
        let builder = match transport {
            "sse" => builder.transport(HttpTransport::Sse),
            _ => builder,
        };
        let builder = recorded.watched(builder.timeout(TIMEOUT).handlers(server_everything::answers()));
        let client = builder.connect().await.unwrap();
        server_everything::whole_tour(&client).await;
        client.close().await;
        recorded.noticed(1).await;
        let sessions = recorded.sessions().await;
        assert_eq!(sessions.len(), 1, "{transport}");
        let session = &sessions[0];
        session.assert_whole();
        assert_eq!(session.transport(), name);
        assert_eq!(session.start.server_info["name"], "mcp-servers/everything");
        assert_eq!(session.end, Some(SessionEnd::ClientClosed { status: None }), "{transport}");
        let expected: &[&str] = match transport {
            // The older transport is used with a version that has no elicitation.
            "sse" => &["sampling/createMessage", "roots/list"],
            _ => &["sampling/createMessage", "roots/list", "elicitation/create"],
        };
        for method in expected {
            assert!(session.methods(Side::Server).contains(method), "{transport}: {method} is missing");
        }
    }
}

/// Our client's tour of a server through a recorder, in an era.
async fn toured(
    url: &str,
    change: impl Fn(ClientBuilder) -> ClientBuilder,
    era: rehearsal::core::protocol::Era,
    unknown: &str,
) {
    let recorded = Recorded::before(url).await;
    let builder = recorded.watched(change(Client::url(recorded.url())));
    sdk_tour(builder, era, unknown).await;
    let sessions = recorded.sessions().await;
    sessions.iter().for_each(RecordedSession::assert_whole);
    let tour = sessions.iter().find(|session| session.methods(Side::Client).contains(&"tools/call")).unwrap();
    assert!(tour.methods(Side::Client).len() >= 12, "{:?}", tour.methods(Side::Client));
    let server_requests = tour.methods(Side::Server);
    match era {
        rehearsal::core::protocol::Era::Modern => assert!(server_requests.is_empty(), "{server_requests:?}"),
        rehearsal::core::protocol::Era::Legacy => assert_eq!(server_requests.len(), 3, "{server_requests:?}"),
    }
}

#[tokio::test]
async fn servers_on_every_sdk_in_both_eras() {
    let fastmcp = sdk_server(&python("python"), "fastmcp_server.py", "http").await;
    let typescript = sdk_server(&node(), "typescript_server.mjs", "http").await;
    let rmcp = listening(Command::new(env!("CARGO_BIN_EXE_tiny")).arg("--http")).await;
    for (server, unknown) in [(&fastmcp, "isError"), (&typescript, "-32602"), (&rmcp, "-32602")] {
        for (_, era) in in_both_eras(|| Client::url(&server.url)) {
            let change = |builder: ClientBuilder| match era {
                rehearsal::core::protocol::Era::Modern => builder,
                rehearsal::core::protocol::Era::Legacy => builder.legacy(Revision::LATEST_LEGACY),
            };
            toured(&server.url, change, era, unknown).await;
        }
    }
    let sse = sdk_server(&python("python"), "fastmcp_server.py", "sse").await;
    let change = |builder: ClientBuilder| builder.legacy(Revision::V2024_11_05).transport(HttpTransport::Sse);
    toured(&sse.url, change, rehearsal::core::protocol::Era::Legacy, "isError").await;
}

#[tokio::test]
async fn a_recorder_changes_nothing_for_clients_on_every_sdk() {
    let server = mocked::over_http().await;
    let recorded = Recorded::before(&server.url).await;
    let (url, sse) = (recorded.url(), recorded.url().replace("/mcp", "/sse"));
    let mut clients = 0;
    for (program, script) in [(python("python"), "python_client.py"), (node(), "typescript_client.mjs")] {
        for (era, version) in ERAS {
            let seen = run_script(&program, script, era, &["--url", &url]).await;
            assert_eq!(seen, everything(version), "{script}, era {era}");
            clients += usize::from(era == "legacy");
        }
        let seen = run_script(&program, script, "legacy", &["--transport", "sse", "--url", &sse]).await;
        assert_eq!(seen["echo"], "hello", "{script} over HTTP+SSE");
        clients += 1;
    }
    for era in Era::ALL {
        let client = rmcp_client::over_http(&url, era, None).await;
        assert_eq!(rmcp_client::tour(client).await, everything(era.version()), "rmcp, era {era:?}");
        clients += usize::from(matches!(era, Era::Legacy));
    }
    let sessions = recorded.sessions().await;
    sessions.iter().for_each(RecordedSession::assert_whole);
    let handshakes = sessions.iter().filter(|session| session.methods(Side::Client).contains(&"initialize")).count();
    assert_eq!(handshakes, clients, "a session for each client with a handshake");
    let stateless: Vec<_> =
        sessions.iter().filter(|session| session.methods(Side::Client).contains(&"server/discover")).collect();
    assert_eq!(stateless.len(), 1, "one for all without");
}

#[tokio::test]
async fn clients_at_the_same_time_are_not_mixed() {
    let server = mocked::over_http().await;
    let recorded = Recorded::before(&server.url).await;
    let tasks = (0..12).map(|number| {
        let url = recorded.url();
        tokio::spawn(async move {
            let builder = match number % 3 {
                0 => Client::url(url).legacy(Revision::LATEST_LEGACY),
                1 => {
                    Client::url(url.replace("/mcp", "/sse")).transport(HttpTransport::Sse).legacy(Revision::V2024_11_05)
                }
                _ => Client::url(url).modern(),
            };
            let client = builder.timeout(TIMEOUT).connect().await.unwrap();
            let mut calls = Vec::new();
            for call in 0..20 {
                let (client, message) = (client.clone(), format!("client {number} call {call}"));
                calls.push(tokio::spawn(async move {
                    let response = client.call_tool("echo", json!({"message": message})).await.unwrap();
                    assert_eq!(response.content(), message);
                }));
            }
            for call in calls {
                call.await.unwrap();
            }
            client.close().await;
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let sessions = recorded.sessions().await;
    assert_eq!(sessions.len(), 9, "four with a name, four with a stream, one for the rest");
    for session in &sessions {
        session.assert_whole();
        let calls = session.calls.iter().filter(|call| call.request.message.text().contains("client "));
        let mut whose: Vec<String> = Vec::new();
        for call in calls {
            let text = call.request.message.params().unwrap().at(&["arguments", "message"]).unwrap().text().unwrap();
            assert!(call.response.as_ref().unwrap().message.text().contains(&text), "{text} has another's answer");
            whose.push(text.split(" call").next().unwrap().to_owned());
        }
        whose.sort();
        whose.dedup();
        let is_stateless = session.methods(Side::Client).contains(&"server/discover");
        assert_eq!(whose.len(), if is_stateless { 4 } else { 1 }, "{whose:?}");
    }
}

#[tokio::test]
async fn a_stream_that_broke_and_was_resumed_is_one_call() {
    let server = mocked::over_http().await;
    let recorded = Recorded::before(&server.url).await;
    let scissors = Scissors::before(&recorded.url()).await;
    let client = Client::url(&scissors.url).legacy(Revision::LATEST_LEGACY).timeout(TIMEOUT).connect().await.unwrap();
    let slow = client.call("slow").arguments(json!({"steps": 3})).with_progress().await.unwrap();
    assert_eq!(slow.progress().len(), 3);
    client.close().await;
    scissors.assert_used();
    let sessions = recorded.sessions().await;
    assert_eq!(sessions.len(), 1);
    sessions[0].assert_whole();
    let resumed = sessions[0].entries.iter().any(|what| match what {
        EntryBody::Http { from: Side::Client, head, .. } => {
            head.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("last-event-id"))
        }
        _ => false,
    });
    assert!(resumed);
    let broken = sessions[0].entries.iter().any(|what| matches!(what, EntryBody::ChannelEnded { why: Some(_), .. }));
    assert!(broken, "the break is in the trace");
}

#[tokio::test]
async fn a_server_that_exits_is_reported_and_recorded() {
    let server = mocked::over_http().await;
    let recorded = Recorded::before(&server.url).await;
    let new_client = || Client::url(recorded.url()).legacy(Revision::LATEST_LEGACY).timeout(TIMEOUT).connect();
    let client = new_client().await.unwrap();
    let begun = Arc::new(Notify::new());
    let slow = {
        let (client, begun) = (client.clone(), begun.clone());
        let call = async move {
            let slow = client.call("slow").arguments(json!({"steps": 2, "delay_ms": 10_000}));
            slow.on_progress(move |_| begun.notify_one()).await
        };
        tokio::spawn(call)
    };
    // In the middle of its answer.
    timeout(TIMEOUT, begun.notified()).await.unwrap();
    server.stop().await;
    let lost = slow.await.unwrap().unwrap_err().to_string();
    assert!(lost.contains("the stream ended before the answer to"), "{lost}");
    // A new client has no socket from before, which would break first.
    let refused = new_client().await.unwrap_err().to_string();
    assert!(refused.contains("502 Bad Gateway: rehearse: cannot connect to 127.0.0.1:"), "{refused}");
    let sessions = recorded.sessions().await;
    let of = |method: &str| sessions.iter().find(|session| session.methods(Side::Client).contains(&method)).unwrap();
    let unanswered = |session: &RecordedSession| {
        let open = session.calls.iter().filter(|call| call.response.is_none());
        open.map(|call| call.request.message.method().unwrap().to_string()).collect::<Vec<_>>()
    };
    let why = |session: &RecordedSession| {
        let ended = session.entries.iter().filter_map(|what| match what {
            EntryBody::ChannelEnded { why, .. } => why.clone(),
            _ => None,
        });
        ended.collect::<BTreeSet<_>>()
    };
    assert_eq!(sessions.len(), 2);
    let first = of("tools/call");
    assert_eq!(unanswered(first), ["tools/call"]);
    assert!(why(first).contains("the server closed the connection before it had answered"), "{:?}", why(first));
    let second = sessions.iter().find(|session| !std::ptr::eq(*session, first)).unwrap();
    assert_eq!(unanswered(second), ["initialize"]);
    let why = Vec::from_iter(why(second));
    assert!(why.len() == 1 && why[0].starts_with("cannot connect to 127.0.0.1:"), "{why:?}");
}
