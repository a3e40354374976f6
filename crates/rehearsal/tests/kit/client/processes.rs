//! Servers that are real processes, of a few lines of shell.

use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientError};
use rehearsal::core::protocol::Revision;
use serde_json::json;

/// A server that answers the handshake and then runs `then`.
fn server(then: &str) -> ClientBuilder {
    let answer =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}"#;
    let script = format!("read initialize; echo '{answer}'; read initialized; {then}");
    Client::command("sh").args(["-c", &script]).legacy(Revision::V2025_11_25)
}

#[tokio::test]
async fn a_server_gets_the_test_variable_and_the_callers_environment() {
    let then =
        r#"read call; echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"mode\":\"$REHEARSAL_TEST_MODE $MINE\"}}"; cat"#;
    let client = server(then).env("MINE", "mine").connect().await.unwrap();
    assert_eq!(client.ping().await.unwrap().result()["mode"], "1 mine");
}

#[tokio::test]
async fn a_server_that_reads_nothing_runs_into_the_timeout() {
    let client = server("exec sleep 1000").timeout(Duration::from_millis(300)).connect().await.unwrap();
    let large = json!({"text": "x".repeat(1_000_000)});
    let error = client.call_tool("echo", large.clone()).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    let error = client.notify("notifications/large", large.clone()).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    let error = client.call("echo").arguments(large).start().await.err().unwrap();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn a_partial_response_is_shown_after_the_timeout() {
    let then = r#"read call; printf '{"jsonrpc": "2.0", "'; exec sleep 1000"#;
    let client = server(then).timeout(Duration::from_millis(500)).connect().await.unwrap();
    let error = client.ping().await.unwrap_err();
    let text = "no answer to ping within 0.5 s\n  at that moment: a line on its stdout was incomplete after 20 \
                bytes: {\"jsonrpc\": \"2.0\", \"";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_server_that_exits_before_it_reads_is_reported_with_its_status() {
    let error = Client::command("sh").args(["-c", "echo 'no config' >&2; exit 78"]).connect().await.unwrap_err();
    let text = "the server exited with status 78 before it answered initialize\n  \
                the server's process ended: exit status: 78\n  last lines of its stderr:\n    no config";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_before_it_is_sent() {
    let client = server("cat").connect().await.unwrap();
    let error = client.call_tool("echo", json!({"text": "x".repeat(17 * 1024 * 1024)})).await.unwrap_err();
    assert!(error.to_string().contains("more than the limit of 16777216"), "{error}");
}

#[tokio::test]
async fn a_server_from_a_config_file_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".mcp.json");
    let script = "read probe; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{},\"serverInfo\":{\"name\":\"'$NAME'\"}}}'; cat";
    let config =
        json!({"mcpServers": {"mine": {"command": "sh", "args": ["-c", script], "env": {"NAME": "configured"}}}});
    std::fs::write(&file, config.to_string()).unwrap();
    let client = Client::config(&file, "mine").unwrap().connect().await.unwrap();
    assert_eq!(client.server_info()["name"], "configured");
    let error = Client::config(&file, "mien").err().unwrap();
    assert!(error.to_string().ends_with("did you mean \"mine\"?"), "{error}");
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(std::path::Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_flood_of_noise_delays_neither_timeouts_nor_other_clients() {
    let started = std::time::Instant::now();
    let builder = Client::command("yes").legacy(Revision::V2025_11_25).timeout(Duration::from_millis(200));
    let error = builder.connect().await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20), "it took {:?}", started.elapsed());
}

#[test]
fn a_dropped_client_ends_its_server_even_without_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(server("echo $$ >&2; exec sleep 1000").connect()).unwrap();
    let pid = runtime.block_on(async {
        loop {
            if let Some(pid) = client.evidence().last_stderr.first() {
                return pid.clone();
            }
            tokio::task::yield_now().await;
        }
    });
    assert!(is_alive(&pid));
    drop(client);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while is_alive(&pid) && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn a_server_that_floods_its_client_with_requests_ends_with_it() {
    let request = r#"{"jsonrpc":"2.0","id":'$i',"method":"roots/list"}"#;
    let flood = format!("echo $$ >&2; i=0; while :; do i=$((i+1)); echo '{request}'; done");
    let answers = rehearsal::client::ClientHandlers::new().roots([("file:///x".repeat(1000), "x")]);
    let client = server(&flood).handlers(answers).timeout(Duration::from_millis(300)).connect().await.unwrap();
    assert!(client.ping().await.is_err());
    let pid = client.evidence().last_stderr[0].clone();
    assert!(is_alive(&pid));
    drop(client);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while is_alive(&pid) && std::time::Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn a_server_that_closed_its_stdin_is_reported() {
    let client = server("exec <&-; exec sleep 1000").connect().await.unwrap();
    let error = client.call_tool("echo", json!({"text": "x".repeat(1_000_000)})).await.unwrap_err();
    assert!(matches!(error, ClientError::NotSent { .. }), "{error}");
}

#[tokio::test]
async fn an_onlooker_that_panics_does_not_stop_the_server() {
    let builder =
        server("yes line | head -200 >&2; read call; echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}'; cat");
    let client = builder.on_stderr(|_| panic!("on purpose")).connect().await.unwrap();
    assert!(client.ping().await.unwrap().success());
    assert_eq!(client.evidence().last_stderr.len(), 100);
}

#[tokio::test]
async fn connect_refuses_a_builder_call_that_does_not_apply() {
    let memory = || Client::connection(rehearsal::transport::memory_pair().0);
    let url = || Client::url("http://127.0.0.1:1/mcp");
    let cases = [
        (url().args(["-v"]), "`args` does not apply to a URL; it needs a server that the client starts"),
        (
            memory().arg("-v").env("A", "b"),
            "`arg` does not apply to a connection; it needs a server that the client starts",
        ),
        (url().envs([("A", "b")]), "`envs` does not apply to a URL; it needs a server that the client starts"),
        (
            url().current_dir("/"),
            "`current_dir` does not apply to a URL; it needs a server that the client starts on this machine",
        ),
        (
            Client::command("cat").header("X-A", "b"),
            "`header` does not apply to a command; it needs a server that is reached over HTTP",
        ),
        (url().path("/sse"), "`path` does not apply to a URL; it needs a server of `Client::listening`"),
    ];
    for (builder, expected) in cases {
        assert_eq!(builder.connect().await.unwrap_err().to_string(), expected);
    }
}
