//! `rehearse init` of other people's servers: a mock that lists byte for byte what they list.

use std::path::Path;
use std::process::{Command, Output};

use rehearsal::Client;
use serde_json::{Value, json};

use crate::installation::{TIMEOUT, folder, node, npm_server, python, sdk_server};
use crate::mocked::rehearse;

fn run(words: &[&str]) -> Output {
    Command::new(rehearse()).args(words).output().unwrap()
}

/// What `rehearse` prints, where all goes well.
fn printed(words: &[&str]) -> String {
    let output = run(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a mock of a server, and compares what both list in every version that the server supports.
fn same_surface(name: &str, server: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.mock.yaml");
    let file = file.to_str().unwrap();
    let rehearse = rehearse().to_str().unwrap();
    for protocol in ["auto", "2025-11-25"] {
        // Some servers take long to start where everything is busy.
        let protocol = ["--timeout", "120", "--protocol", protocol];
        printed(&[&["init", "--force", "-o", file], &protocol[..], server].concat());
        printed(&["check", file]);
        let mock = ["--", rehearse, "mock", file];
        let listed = |server: &[&str]| printed(&[&["list", "--json"], &protocol[..], server].concat());
        assert_eq!(listed(&mock), listed(server), "{name}, {protocol:?}");
    }
    std::fs::read_to_string(file).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_mock_lists_byte_for_byte_what_the_server_lists() {
    let (node, folder) = (node(), folder());
    let everything = npm_server("server-everything");
    let filesystem = npm_server("server-filesystem");
    let (time, python) = (python("mcp-server-time"), python("python"));
    let servers = folder.join("servers");
    let (fastmcp, typescript) = (servers.join("fastmcp_server.py"), servers.join("typescript_server.mjs"));
    same_surface("everything", &["--", text(&node), text(&everything), "stdio"]);
    same_surface("filesystem", &["--", text(&node), text(&filesystem), text(folder)]);
    same_surface("time", &["--", text(&time), "--local-timezone", "UTC"]);
    same_surface("FastMCP", &["--", text(&python), text(&fastmcp), "stdio"]);
    same_surface("TypeScript", &["--", text(&node), text(&typescript), "stdio"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mock_of_an_http_server_has_its_name_and_contents() {
    for (transport, version) in [("http", "2026-07-28"), ("sse", "2025-11-25")] {
        let server = sdk_server(&python("python"), "fastmcp_server.py", transport).await;
        let url = ["--url", server.url.as_str()];
        let file = tempfile::NamedTempFile::with_suffix(".mock.yaml").unwrap();
        let path = file.path().to_str().unwrap();
        tokio::task::block_in_place(|| printed(&[&["init", "--force", "-o", path], &url[..]].concat()));
        let real = Client::url(&server.url).timeout(TIMEOUT).connect().await.unwrap();
        let mock = Client::command(rehearse()).args(["mock", path]).timeout(TIMEOUT).connect().await.unwrap();
        assert_eq!(real.revision().as_str(), version);
        assert_eq!(mock.revision(), real.revision());
        assert_eq!(mock.server_info().to_string(), real.server_info().to_string());
        assert_eq!(mock.server_capabilities().to_string(), real.server_capabilities().to_string());
        assert_eq!(mock.instructions(), real.instructions());
        let greeting = |client: Client| async move { client.read_resource("tiny://greeting").await.unwrap() };
        let contents = |value: &Value| value.pointer("/contents/0/text").cloned();
        assert_eq!(contents(greeting(mock.clone()).await.result()), contents(greeting(real.clone()).await.result()));
        let greet = |client: Client| async move { client.get_prompt("greet", json!({"who": "Ada"})).await.unwrap() };
        let message = |value: &Value| value.pointer("/messages/0/content/text").cloned();
        assert_eq!(message(greet(mock.clone()).await.result()), message(greet(real.clone()).await.result()));
        real.close().await;
        mock.close().await;
    }
}
