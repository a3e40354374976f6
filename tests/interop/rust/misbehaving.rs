//! Servers that break the rules: each has an outcome, and none of them hangs.

use std::time::{Duration, Instant};

use rehearsal::client::ClientError;
use rehearsal::core::protocol::Revision;
use rehearsal::wire::Stopped;
use serde_json::json;

use crate::installed::script;

fn echo() -> serde_json::Value {
    json!({"message": "hello"})
}

#[tokio::test]
async fn one_that_dies_at_start_shows_its_traceback() {
    let error = script("dies_with_traceback.py").connect().await.unwrap_err();
    let ClientError::ServerGone { method, evidence, .. } = &error else { panic!("{error}") };
    assert_eq!(method.as_str(), "initialize");
    assert_eq!(evidence.exit_status.unwrap().code(), Some(1));
    assert!(evidence.last_stderr.iter().any(|line| line.starts_with("Traceback")), "{error}");
    assert!(error.to_string().starts_with("the server exited with status 1 before it answered initialize\n"));
}

#[tokio::test]
async fn one_that_floods_stderr_is_answered_all_the_same() {
    let client = script("floods_stderr.py").connect().await.unwrap();
    for _ in 0..50 {
        assert_eq!(client.call_tool("echo", echo()).await.unwrap().content(), "hello");
    }
    assert!(client.evidence().last_stderr.len() <= 100);
}

#[tokio::test]
async fn noise_on_stdout_is_kept_as_evidence_and_disturbs_nobody() {
    let client = script("noise_on_stdout.py").connect().await.unwrap();
    assert_eq!(client.list_tools().await.unwrap()[0].name, "echo");
    assert_eq!(client.call_tool("echo", echo()).await.unwrap().content(), "hello");
    assert!(!client.evidence().noise.is_empty());
}

#[tokio::test]
async fn one_that_ignores_sigterm_is_killed_with_its_child() {
    let client = script("ignores_sigterm.py").connect().await.unwrap();
    assert_eq!(client.close().await, Stopped::Killed);
}

#[tokio::test]
async fn one_that_never_answers_runs_into_the_time_out() {
    let started = Instant::now();
    let builder = script("never_answers.py").timeout(Duration::from_secs(1));
    let error = builder.legacy(Revision::V2025_06_18).connect().await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    assert!(error.to_string().starts_with("no answer to initialize within 1 s"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn silence_after_the_probe_is_taken_for_the_old_era() {
    let error = script("never_answers.py").timeout(Duration::from_secs(4)).connect().await.unwrap_err();
    assert!(error.to_string().starts_with("no answer to "), "{error}");
}

#[tokio::test]
async fn a_death_in_the_middle_of_a_call_names_the_call() {
    let client = script("dies_mid_call.py").connect().await.unwrap();
    assert_eq!(client.list_tools().await.unwrap().len(), 1);
    let error = client.call_tool("echo", echo()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("the server exited with status 3 before it answered tools/call"), "{text}");
    assert!(!error.evidence().unwrap().last_stderr.is_empty());
    let after = client.call_tool("echo", echo()).await.unwrap_err();
    assert!(matches!(after, ClientError::ServerGone { .. }), "{after}");
}

#[tokio::test]
async fn half_a_line_is_shown() {
    let client = script("half_line_then_exit.py").connect().await.unwrap();
    let error = client.call_tool("echo", echo()).await.unwrap_err();
    assert!(matches!(error, ClientError::ServerGone { .. }), "{error}");
    assert_eq!(error.evidence().unwrap().noise.len(), 1, "{error}");
}

#[tokio::test]
async fn an_answer_with_a_wrong_id_is_shown_beside_the_time_out() {
    let client = script("wrong_id.py").connect().await.unwrap();
    let error = client.call("echo").arguments(echo()).timeout(Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    assert_eq!(error.evidence().unwrap().strays.len(), 1, "{error}");
}

#[tokio::test]
async fn a_line_over_the_limit_is_told_and_the_server_stays_usable() {
    let client = script("huge_line.py").connect().await.unwrap();
    let error = client.call("echo").arguments(echo()).timeout(Duration::from_secs(5)).await.unwrap_err();
    assert!(error.to_string().contains("longer than the limit of 16777216 bytes"), "{error}");
    assert_eq!(client.list_tools().await.unwrap().len(), 1);
}
