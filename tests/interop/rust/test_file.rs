//! A test file as a tester writes it: ten cases, each with a project and a server of its own.
//!
//! The server is a FastMCP server with several faults, see `servers/fourteen_tools.py`. The file takes as
//! long as ten starts of that server: nothing waits for anything else.

use std::path::Path;

use rehearsal::Client;
use rehearsal::testing::{
    BlockingClient, ContentMatcher, Project, RunningServer, Snapshot, assert_contains, assert_failure_contains,
    assert_success, assert_tool_exists,
};
use rehearsal::wire::StopOutcome;
use serde_json::json;

use crate::installation::{TIMEOUT, folder, python};

const LEARNING_LOOP: ContentMatcher = ContentMatcher::all(&["learning loop", "retrospective"]);

/// A project with sample instructions in it.
fn project() -> Project {
    Project::new().copy(folder().join("../../examples/instruction-server/instructions"), ".pongogo/instructions")
}

fn server(folder: &Path) -> rehearsal::client::ClientBuilder {
    Client::command(python("python"))
        .args([crate::installation::folder().join("servers/fourteen_tools.py")])
        .env("KNOWLEDGE_PATH", folder.join(".pongogo/instructions"))
        .timeout(TIMEOUT)
}

async fn client() -> RunningServer {
    project().start(server).await
}

#[tokio::test]
async fn all_fourteen_tools_are_there() {
    let tools = client().await.list_tools().await.unwrap();
    assert_eq!(tools.len(), 14);
    for name in ["route_instructions", "get_instructions", "search_instructions", "switch_engine"] {
        assert_tool_exists(&tools, name);
    }
}

#[tokio::test]
async fn a_message_is_routed() {
    let arguments = json!({"message": "how do I conduct a retrospective?", "limit": 5});
    let response = client().await.call_tool("route_instructions", arguments).await.unwrap();
    assert_success(&response);
    assert!(response.content().to_lowercase().contains("retrospective"));
}

#[tokio::test]
async fn being_done_suggests_the_learning_loop() {
    let client = client().await;
    let finished = json!({"message": "I just finished implementing the new feature", "context": null});
    assert_success(&client.call_tool("route_instructions", finished).await.unwrap());
    let done = json!({"message": "I'm done with this task, what about the learning loop?"});
    LEARNING_LOOP.assert_matches(&client.call_tool("route_instructions", done).await.unwrap());
}

#[tokio::test]
async fn an_unknown_tool_is_a_failure_with_a_success_response() {
    let response = client().await.call_tool("nonexistent_tool", json!({"arg": "value"})).await.unwrap();
    assert!(response.is_tool_error() && response.error_code().is_none());
    assert_failure_contains(&response, "nonexistent_tool");
}

#[tokio::test]
async fn a_missing_argument_is_a_failure() {
    let response = client().await.call_tool("route_instructions", json!({"invalid_param": 123})).await.unwrap();
    assert_failure_contains(&response, "message");
}

#[tokio::test]
async fn topics_are_filtered() {
    let response = client().await.call_tool("get_instructions", json!({"topic": "work-log"})).await.unwrap();
    assert_contains(&response, "Work log");
    assert!((!ContentMatcher::text("# Retrospective")).matches(&response));
}

#[tokio::test]
async fn the_engine_is_switched_for_this_server_only() {
    let (one, other) = (client().await, client().await);
    assert_contains(
        &one.call_tool("switch_engine", json!({"engine_version": "durian-0.5"})).await.unwrap(),
        "durian-0.5",
    );
    assert_failure_contains(
        &one.call_tool("switch_engine", json!({"engine_version": "x"})).await.unwrap(),
        "durian-0.6",
    );
    assert_contains(&one.call_tool("get_engine", json!({})).await.unwrap(), "durian-0.5");
    assert_contains(&other.call_tool("get_engine", json!({})).await.unwrap(), "durian-0.6");
}

#[tokio::test]
async fn the_server_runs_in_its_project_with_the_test_variable() {
    let client = client().await;
    let response = client.call_tool("get_settings", json!({})).await.unwrap();
    let settings = response.structured_content().unwrap();
    let cwd = Path::new(settings["cwd"].as_str().unwrap());
    assert_eq!(cwd.canonicalize().unwrap(), client.project().path().canonicalize().unwrap());
    assert_eq!(settings["test_mode"], "1");
    let snapshot = Snapshot::from_response(&response).redact("$.structuredContent.cwd", "[cwd]");
    assert_eq!(snapshot.value()["structuredContent"]["cwd"], "[cwd]");
}

#[test]
fn a_plain_test_needs_no_async() {
    let client = project().start_blocking(server);
    let found: &BlockingClient = &client;
    assert_contains(&found.call_tool("search_instructions", json!({"query": "commit"})).unwrap(), "commit");
}

#[tokio::test]
async fn a_server_that_ignores_sigterm_exits_when_stdin_closes() {
    let client = client().await;
    assert_success(&client.call_tool("health_check", json!({})).await.unwrap());
    assert_eq!(client.close().await, StopOutcome::Exited);
}
