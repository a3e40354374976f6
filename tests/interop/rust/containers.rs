//! A real container engine, an image on nothing at all, and every usage example of the mock-client specification in it.
//!
//! `.ci/run containers` starts the engine and runs these.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use instruction_server::{InstructionClient, LEARNING_LOOP_MATCHER};
use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientError};
use rehearsal::core::protocol::Revision;
use rehearsal::testing::{assert_contains, assert_failure, assert_success, assert_tool_exists};
use rehearsal::wire::container::{Container, Detached, Engine, build};
use serde_json::json;

use crate::installed::{TIMEOUT, folder};

/// The engine of CI has no network to give.
const OPTIONS: [&str; 2] = ["--network", "none"];

/// The folder with the Dockerfile and the static binary.
fn image_context() -> PathBuf {
    let output = Command::new(folder().join("image")).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "tests/interop/image failed");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().lines().last().unwrap())
}

fn in_new_container(tag: &str) -> ClientBuilder {
    let container = Container { options: OPTIONS.map(Into::into).to_vec(), ..Container::image(tag) };
    Client::container(container).timeout(TIMEOUT)
}

/// The containers that carry our label.
fn left(engine: &Engine) -> String {
    engine.tell(["ps", "--all", "--quiet", "--filter", "label=rehearsal"]).unwrap()
}

async fn usage_examples(client: &Client) {
    let tools = client.list_tools().await.unwrap();
    for tool in ["route_instructions", "get_instructions", "search_instructions", "switch_engine"] {
        assert_tool_exists(&tools, tool);
    }
    let routed = client.route_instructions("how do I conduct a retrospective?").await.unwrap();
    assert_success(&routed);
    assert!(routed.content().to_lowercase().contains("retrospective"));
    client.route_instructions("I just finished implementing the new feature").await.unwrap();
    LEARNING_LOOP_MATCHER.assert_matches(&client.route_instructions("I'm done with this task").await.unwrap());
    let retrospective = client.route_instructions("/pongogo-retro").await.unwrap();
    assert!(retrospective.content().to_lowercase().contains("what went well"));
    assert!(retrospective.content().to_lowercase().contains("what could improve"));
    assert_failure(&client.call_tool("nonexistent_tool", json!({"arg": "value"})).await.unwrap());
    assert_failure(&client.call_tool("route_instructions", json!({"invalid_param": 123})).await.unwrap());
    assert_contains(&client.get_instructions().topic("retrospective").await.unwrap(), "etrospective");
}

// One test, because what is left behind can only be counted when nobody else has containers.
#[tokio::test]
#[ignore = "needs a container engine: .ci/run containers"]
async fn servers_in_containers_do_everything_and_leave_nothing_behind() {
    let engine = Engine::find(None).unwrap();
    let dockerfile = image_context().join("Dockerfile");
    let tag = build(&engine, &dockerfile, None).unwrap();
    assert_eq!(build(&engine, &dockerfile, None).unwrap(), tag, "once per test run");

    // A container for one server, in both eras.
    for builder in [in_new_container(&tag).legacy(Revision::V2024_11_05), in_new_container(&tag).modern()] {
        let client = builder.connect().await.unwrap();
        usage_examples(&client).await;
        assert!(!left(&engine).is_empty());
        client.close().await;
        assert_eq!(left(&engine), "", "closed");
    }

    // One container for many servers.
    let shared = Detached::start(&engine, &tag, &OPTIONS.map(Into::into), &[]).unwrap();
    let clients = (0..3).map(|_| {
        let container = shared.exec(["/instruction-server"]);
        tokio::spawn(async move {
            let client = Client::container(container).timeout(TIMEOUT).connect().await.unwrap();
            usage_examples(&client).await;
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert_eq!(left(&engine).lines().count(), 1);
    drop(shared);
    assert_eq!(left(&engine), "", "dropped");

    // A test that panics.
    let builder = in_new_container(&tag);
    let test = tokio::spawn(async move {
        let client = builder.connect().await.unwrap();
        assert_success(&client.search_instructions("commit").await.unwrap());
        panic!("on purpose");
    });
    assert!(test.await.unwrap_err().is_panic());
    assert_eq!(left(&engine), "", "panicked");

    // A variable of the caller's, and the one that says that this is a test.
    let client = in_new_container(&tag).env("INSTRUCTIONS_PATH", "/nowhere").connect().await.unwrap_err();
    assert!(client.to_string().contains("/nowhere"), "{client}");

    // An image that is not there.
    let container = Container { options: vec!["--pull".into(), "never".into()], ..Container::image("no-such-image") };
    let error = Client::container(container).timeout(Duration::from_secs(20)).connect().await.unwrap_err();
    let ClientError::ServerGone { evidence, .. } = &error else { panic!("{error}") };
    assert_eq!(evidence.exit_status.unwrap().code(), Some(125), "{error}");
    assert!(error.to_string().contains("no-such-image"), "{error}");
}
