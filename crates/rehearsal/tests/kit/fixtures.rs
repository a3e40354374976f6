//! Servers in folders of their own, shared servers, and tests without `async`.

use std::path::{Path, PathBuf};

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::protocol::Revision;
use rehearsal::testing::{Project, SharedServer, assert_contains, assert_success};
use serde_json::json;

/// A few lines of shell that answer every request with a file's content, and write down that they run.
fn file_server(folder: &Path) -> ClientBuilder {
    let script = r#"
        pwd > started
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}'
        read -r line
        id=2
        while read -r line; do
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'"$(cat data/note.txt)"'"}]}}'
            id=$((id + 1))
        done
        echo gone > "$GONE"
    "#;
    Client::command("sh").args(["-c", script]).env("GONE", folder.join("gone")).legacy(Revision::V2025_11_25)
}

fn sample() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("deep")).unwrap();
    std::fs::write(folder.path().join("note.txt"), "a note").unwrap();
    std::fs::write(folder.path().join("deep/more.txt"), "more").unwrap();
    folder
}

#[tokio::test]
async fn a_fixture_removes_its_server_and_sample_data_when_it_ends() {
    let sample = sample();
    let project = Project::new().copy(sample.path(), "data").file("config/extra.txt", "extra");
    let path = project.path().to_owned();
    let server = project.start(file_server).await;
    assert_contains(&server.call_tool("read", json!({})).await.unwrap(), "a note");
    assert!(path.join("data/deep/more.txt").exists() && path.join("config/extra.txt").exists());
    let started = std::fs::read_to_string(path.join("started")).unwrap();
    assert_eq!(PathBuf::from(started.trim()).canonicalize().unwrap(), path.canonicalize().unwrap());
    drop(server);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_test_that_panics_leaves_nothing_behind() {
    let sample = sample();
    let project = Project::new().copy(sample.path(), "data");
    let path = project.path().to_owned();
    let test = tokio::spawn(async move {
        let server = project.start(file_server).await;
        assert_success(&server.call_tool("read", json!({})).await.unwrap());
        panic!("on purpose");
    });
    assert!(test.await.unwrap_err().is_panic());
    assert!(!path.exists());
}

#[test]
fn a_plain_test_needs_no_async() {
    let sample = sample();
    let server = Project::new().copy(sample.path(), "data").start_blocking(file_server);
    let response = server.call_tool("read", json!({})).unwrap();
    assert_contains(&response, "a note");
    let response = server.wait(server.call("read").arguments(json!({"x": 1}))).unwrap();
    assert_success(&response);
    server.close();
}

#[test]
#[should_panic(expected = "the server of this test cannot be used: the server could not be started")]
fn a_server_that_cannot_be_started_fails_the_test_with_the_reason() {
    Project::new().start_blocking(|_| Client::command("no-such-server"));
}

#[test]
#[should_panic(expected = "is not inside of the project")]
fn nothing_is_written_outside_of_the_project() {
    Project::new().file("../outside.txt", "");
}

/// Counts its calls, so that tests can see that they share it.
static SHARED: SharedServer = SharedServer::new(|| {
    let script = r#"
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"'$$'"}}}'
        cat > /dev/null
    "#;
    Client::command("sh").args(["-c", script]).legacy(Revision::V2025_11_25)
});

async fn shared_process() -> String {
    SHARED.client().await.server_info()["name"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn one_server_is_shared_by_this_test() {
    assert!(Path::new("/proc").join(shared_process().await).exists());
}

#[test]
fn one_server_is_shared_by_tests_with_other_runtimes() {
    let one = tokio::runtime::Runtime::new().unwrap().block_on(shared_process());
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(shared_process());
    assert_eq!(one, other);
    assert_eq!(SHARED.client_blocking().server_info()["name"], one.as_str());
    assert!(Path::new("/proc").join(one).exists());
}
