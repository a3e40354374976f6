//! Servers that are started and reached over HTTP. One that works is in `examples/instruction-server/tests/mock_client`.

use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientError};

fn script(script: &str) -> ClientBuilder {
    Client::listening("sh").args(["-c", script]).timeout(Duration::from_millis(300))
}

#[tokio::test]
async fn a_server_that_exits_before_it_listens_is_reported_with_its_stderr() {
    let builder = script("echo starting; echo 'port 80 is taken' >&2; exit 98").timeout(Duration::from_secs(30));
    let error = builder.connect().await.unwrap_err();
    let text = "the server exited with status 98 before it could be reached\n  \
                the server's process ended: exit status: 98\n  last lines of its stderr:\n    port 80 is taken\n  \
                on its stdout, but not a message:\n    starting";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_server_that_prints_no_address_runs_into_the_timeout() {
    let error = script("echo hello; exec sleep 1000").connect().await.unwrap_err();
    let text = "the server printed no address within 0.3 s\n  on its stdout, but not a message:\n    hello";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_server_that_does_not_listen_at_its_printed_address_is_reported() {
    // A port that was free just before, without a listener.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = script(&format!("echo listening on port {port} >&2; exec sleep 1000")).connect().await.unwrap_err();
    let text = format!("the server printed http://127.0.0.1:{port}/mcp, but does not accept connections there");
    assert!(error.to_string().starts_with(&text), "{error}");
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let error = Client::listening("no-such-server").connect().await.unwrap_err();
    assert!(matches!(error, ClientError::Start(_)), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_the_handshake_gets_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let noted = folder.path().join("noted");
    // Accepts connections, since it listens, and answers nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let wait = "while :; do sleep 0.1; done";
    let trap = format!("trap 'echo SIGTERM > {}; exit' TERM", noted.display());
    let error = script(&format!("{trap}; echo listening on port {port}; {wait}")).connect().await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(noted).unwrap(), "SIGTERM\n");
}
