//! Checks the messages of other projects' servers against the shapes of their version. A finding is a defect of the server
//! or of the shapes.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, HttpTransport};
use rehearsal::core::exchange::{Channel, Side};
use rehearsal::core::message::Message;
use rehearsal::core::protocol::{Era, Revision};
use rehearsal::core::report::Severity;
use rehearsal::core::shape::{LocatedFinding, SessionCheck};
use rehearsal::core::trace::{Entry, EntryBody, JournalFold, SessionStart, Timeline, TimelineItem};
use rehearsal::record::{HttpRecording, Recorder};
use rehearsal::store::{BadLines, Input, Recording};
use rehearsal_wire::http::proxy::HttpProxyOptions;
use serde_json::{Map, json};
use tokio::process::Command;

use crate::installation::{TIMEOUT, listening, node, npm_server, python, sdk_server};
use crate::server_everything;
use crate::servers::{in_both_eras, sdk_tour};

/// The errors and warnings in a session, each with its sender.
fn findings(items: impl Iterator<Item = TimelineItem>) -> Vec<String> {
    let mut session = SessionCheck::default();
    let mut found: Vec<String> = Vec::new();
    for item in items {
        let located = session.check(&item).into_iter();
        for LocatedFinding { from, finding, .. } in located.filter(|it| it.finding.severity > Severity::Note) {
            let what = rehearsal::core::report::Finding { place: None, hint: None, ..finding };
            let line = format!("{from}: {what}").replace("\n ", "");
            if !found.contains(&line) {
                found.push(line);
            }
        }
    }
    assert!(session.messages() > 4, "too few messages");
    found
}

/// The messages between a client and a server on pipes.
#[derive(Clone, Default)]
struct ObservedMessages(Arc<Mutex<Vec<(Side, Message)>>>);

impl ObservedMessages {
    fn observe(&self, builder: ClientBuilder) -> ClientBuilder {
        let messages = self.0.clone();
        builder.timeout(TIMEOUT).on_message(move |side, message| messages.lock().unwrap().push((side, message.clone())))
    }

    fn findings(&self) -> Vec<String> {
        let start =
            SessionStart { session_id: "a".into(), server_info: Map::new(), started_at: None, metadata: Map::new() };
        let (mut fold, mut parts) = (JournalFold::new(start), Vec::new());
        for (seq, (from, message)) in (0..).zip(self.0.lock().unwrap().iter().cloned()) {
            let what = EntryBody::Message { from, channel: Channel::MAIN, message, event_id: None };
            fold.entry(Entry::new(seq, Duration::from_millis(seq), what), &mut parts);
        }
        fold.finish(None, &mut parts);
        let parts_again = || parts.iter().cloned().map(Ok);
        findings(Timeline::new(parts_again(), parts_again()).map(Result::unwrap))
    }
}

/// A true defect of `server-everything`: it answers with links to resources in every version, but only 2025-06-18 and later
/// have them.
#[track_caller]
fn assert_only_links(found: Vec<String>, revision: Revision) {
    let is_link = |line: &String| line.contains("got \"resource_link\"");
    let (links, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_link);
    assert_eq!(!links.is_empty(), revision < Revision::V2025_06_18, "{revision}: {links:?}");
    assert_eq!(others, [""; 0], "{revision}");
}

#[tokio::test]
async fn servers_of_the_reference_on_pipes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "a note").unwrap();
    let path = folder.path().as_os_str().to_owned();
    for revision in Revision::ALL.into_iter().filter(|revision| revision.has_handshake()) {
        let observed = ObservedMessages::default();
        let arguments = [npm_server("server-everything").into_os_string(), "stdio".into()];
        let builder = Client::command(node()).args(arguments).legacy(revision).handlers(server_everything::answers());
        let client = observed.observe(builder).connect().await.unwrap();
        client.list_tools().await.unwrap();
        client.list_resources().await.unwrap();
        client.list_prompts().await.unwrap();
        client.call_tool("get-tiny-image", json!({})).await.unwrap();
        client.call_tool("get-annotated-message", json!({"messageType": "error", "includeImage": true})).await.unwrap();
        client.call_tool("get-structured-content", json!({"location": "New York"})).await.unwrap();
        client.call_tool("get-resource-links", json!({"count": 2})).await.unwrap();
        client.call_tool("no-such-tool", json!({})).await.unwrap();
        client.close().await;
        assert_only_links(observed.findings(), revision);
    }
    let servers = [
        (
            node(),
            vec![npm_server("server-filesystem").into_os_string(), path.clone()],
            "list_directory",
            json!({"path": folder.path()}),
        ),
        (node(), vec![npm_server("server-memory").into_os_string()], "read_graph", json!({})),
        (python("mcp-server-time"), vec![], "get_current_time", json!({"timezone": "UTC"})),
        (python("mcp-server-git"), vec![], "git_status", json!({"repo_path": folder.path()})),
    ];
    for (program, arguments, tool, given) in servers {
        for (builder, era) in in_both_eras(|| Client::command(&program).args(arguments.clone())) {
            let observed = ObservedMessages::default();
            let client = observed.observe(builder).connect().await.unwrap();
            client.list_tools().await.unwrap();
            client.call_tool(tool, given.clone()).await.unwrap();
            client.close().await;
            assert_eq!(observed.findings(), [""; 0], "{program:?} {arguments:?} {era:?}");
        }
    }
}

/// The findings in a session that was recorded over HTTP.
async fn recorded<T>(url: &str, tour: impl AsyncFnOnce(String) -> T) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.jsonl");
    let recorder = Recorder::builder().trace(&trace).build();
    let options = HttpProxyOptions::new("127.0.0.1:0".parse().unwrap(), url).unwrap();
    let recording = HttpRecording::start(&recorder, options).await.unwrap();
    tour(recording.url()).await;
    recording.stop().await;
    findings_in(&trace)
}

fn findings_in(trace: &Path) -> Vec<String> {
    let recording = Recording::open(&Input::File(trace.to_owned())).unwrap();
    findings(recording.timeline(BadLines::Refuse).map(Result::unwrap))
}

#[tokio::test]
async fn servers_on_every_sdk_over_http() {
    let fastmcp = sdk_server(&python("python"), "fastmcp_server.py", "http").await;
    let typescript = sdk_server(&node(), "typescript_server.mjs", "http").await;
    let rmcp = listening(Command::new(env!("CARGO_BIN_EXE_tiny")).arg("--http")).await;
    for (name, server, unknown) in
        [("fastmcp", &fastmcp, "isError"), ("typescript", &typescript, "-32602"), ("rmcp", &rmcp, "-32602")]
    {
        for era in [Era::Modern, Era::Legacy] {
            let found = recorded(&server.url, async |url| {
                let builder = Client::url(url);
                let builder = match era {
                    Era::Modern => builder.modern(),
                    Era::Legacy => builder.legacy(Revision::LATEST_LEGACY),
                };
                sdk_tour(builder, era, unknown).await;
            })
            .await;
            assert_eq!(found, [""; 0], "{name} {era:?}");
        }
    }
}

#[tokio::test]
async fn server_everything_over_both_kinds_of_http() {
    for (transport, revision) in [("streamableHttp", Revision::V2025_11_25), ("sse", Revision::V2024_11_05)] {
        let server = server_everything::http(transport).await;
        let found = recorded(&server.url, async |url| {
            let builder = Client::url(url).legacy(revision).timeout(TIMEOUT).handlers(server_everything::answers());
            let builder = if transport == "sse" { builder.transport(HttpTransport::Sse) } else { builder };
            let client = builder.connect().await.unwrap();
            server_everything::whole_tour(&client).await;
            client.close().await;
        })
        .await;
        assert_only_links(found, revision);
    }
}
