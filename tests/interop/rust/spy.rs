//! A mock in front of a server of another project: the mock file answers one tool, the server the others.

use std::path::{Path, PathBuf};

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::installation::{TIMEOUT, folder, listening, node, npm_server, python};
use crate::mocked::rehearse;
use crate::replayed::{answers, call_with_progress};

/// A scripted tool in place of one of the server's, and one that the server does not have.
fn spy_file(tool: &str) -> String {
    format!(
        "tools:\n  - {{ name: {tool}, answers: [{{ text: scripted }}] }}\n  - {{ name: invented, answers: [{{ text: invented }}] }}\n"
    )
}

async fn connect(builder: ClientBuilder, revision: Revision) -> Client {
    let builder = builder.timeout(TIMEOUT).handlers(answers());
    let builder = if revision.has_handshake() { builder.legacy(revision) } else { builder.modern() };
    builder.connect().await.unwrap()
}

/// The tools that a client sees, by their names.
async fn tools(client: &Client) -> Vec<(String, Value)> {
    let mut tools: Vec<_> = client.list_tools().await.unwrap().into_iter().map(|tool| (tool.name, tool.raw)).collect();
    tools.sort_by(|(one, _), (other, _)| one.cmp(other));
    tools
}

/// Compares a spy on a server with the server, over stdio and HTTP: the scripted tool, the lists, and live calls.
async fn compare(server: &[PathBuf], scripted: &str, calls: &[(&str, Value)], newest: Revision) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("spy.mock.yaml");
    std::fs::write(&file, spy_file(scripted)).unwrap();
    let mut listener = Command::new(rehearse());
    listener.arg("mock").arg(&file).args(["--listen", "0", "--upstream", "--"]).args(server);
    let served = listening(&mut listener).await;
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let direct = connect(Client::command(&server[0]).args(&server[1..]), revision.min(newest)).await;
        let mut expected = tools(&direct).await;
        expected.push(("invented".to_owned(), json!({"name": "invented", "inputSchema": {"type": "object"}})));
        expected.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut words: Vec<PathBuf> = vec!["mock".into(), file.clone(), "--upstream".into(), "--".into()];
        words.extend(server.iter().cloned());
        let stdio = connect(Client::command(rehearse()).args(&words), revision).await;
        let http = connect(Client::url(&served.url), revision).await;
        for (client, transport) in [(&stdio, "stdio"), (&http, "http")] {
            let mut tools = tools(client).await;
            if revision > newest {
                // A newer version has no `execution`.
                let strip =
                    |(_, tool): &mut (String, Value)| drop(tool.as_object_mut().unwrap().shift_remove("execution"));
                tools.iter_mut().chain(&mut expected).for_each(strip);
            }
            assert_eq!(tools, expected, "{revision}, {transport}");
            for (tool, text) in [(scripted, "scripted"), ("invented", "invented")] {
                assert_eq!(client.call_tool(tool, json!({})).await.unwrap().content(), text, "{revision}, {transport}");
            }
            for (tool, arguments) in calls {
                let live = call_with_progress(&direct, tool, arguments.clone()).await;
                assert_eq!(
                    call_with_progress(client, tool, arguments.clone()).await,
                    live,
                    "{revision}, {transport}, {tool}"
                );
            }
            let resources = |client: Client| async move {
                client.list_resources().await.unwrap().into_iter().map(|it| it.uri).collect::<Vec<_>>()
            };
            assert_eq!(resources(client.clone()).await, resources(direct.clone()).await, "{revision}, {transport}");
        }
        stdio.close().await;
        http.close().await;
        direct.close().await;
    }
}

#[tokio::test]
async fn a_spy_on_the_reference_server_overrides_one_tool() {
    let server = [node(), npm_server("server-everything"), Path::new("stdio").to_owned()];
    let calls = [
        ("get-sum", json!({"a": 1, "b": 2})),
        ("trigger-long-running-operation", json!({"duration": 0.2, "steps": 2})),
    ];
    compare(&server, "echo", &calls, Revision::V2025_11_25).await;
}

#[tokio::test]
async fn a_spy_on_a_server_of_both_eras_overrides_one_tool() {
    let server = [python("python"), folder().join("servers/fastmcp_server.py"), "stdio".into()];
    let direct = connect(Client::command(&server[0]).args(&server[1..]), Revision::V2026_07_28).await;
    let scripted = tools(&direct).await.swap_remove(0).0;
    direct.close().await;
    compare(&server, &scripted, &[], Revision::V2026_07_28).await;
}
