//! Limits of what a mock computes and answers.

use std::fmt::Write;

use rehearsal::Client;
use rehearsal::mock::MockServer;
use serde_json::json;

/// Calls each tool of a mock, which must fail with this error, and then one that works.
async fn every_tool_fails_with(mock: &str, names: &[&str], expected: &str) {
    let mock = format!("{mock}\n  - name: works\n    answers: [{{ text: fine }}]\n");
    let server = MockServer::from_text(&mock).unwrap();
    let client = Client::connection(server.connection()).connect().await.unwrap();
    for name in names {
        let response = client.call_tool(name, json!({})).await.unwrap();
        let error = response.error().unwrap();
        assert!(error.message.contains(expected) && error.message.contains(name), "{name}: {error}");
        assert_eq!(error.code, -32603);
    }
    assert_eq!(client.call_tool("works", json!({})).await.unwrap().content(), "fine");
    client.close().await;
}

#[tokio::test]
async fn a_template_above_a_limit_is_an_internal_error() {
    let doubling = "{% set x = x ~ x %}".repeat(34);
    let mock = format!(
        "tools:
  - name: doubles
    answers: [{{ text: \"{{% set x = 'a' %}}{doubling}{{{{ x | length }}}}\" }}]
  - name: replaces
    answers: [{{ text: \"{{{{ ('a' * 9999999) | replace('a', 'b' * 999) | length }}}}\" }}]"
    );
    every_tool_fails_with(&mock, &["doubles", "replaces"], "the template makes values of more than 64 MiB").await;
    let mock = "tools:
  - name: writes
    answers: [{ text: \"{{ 'a' * 16777217 }}\" }]";
    every_tool_fails_with(mock, &["writes"], "the templates of the answer write more than 16 MiB").await;
}

#[tokio::test]
async fn an_answer_above_the_message_limit_is_an_internal_error() {
    let mut mock = "tools:".to_owned();
    let long = |megabytes: usize| "x".repeat(megabytes << 20);
    let answers = [
        ("fixed", format!("{{ text: {} }}", long(17))),
        ("mixed", format!("{{ content: [{}, '{{{{ \"a\" * 9999999 }}}}'] }}", long(9))),
        // The text of the result repeats the structured content.
        ("structured", format!("{{ structured_content: {{ a: {} }} }}", long(9))),
        // A control character has six bytes in JSON.
        ("escaped", r#"{ text: "{{ '\x01' * 4000000 }}" }"#.to_owned()),
        ("refuses", r#"{ error: { code: -32603, message: refuses, data: "{{ '\x01' * 4000000 }}" } }"#.to_owned()),
    ];
    for (name, answer) in &answers {
        write!(mock, "\n  - name: {name}\n    answers: [{answer}]").unwrap();
    }
    let names = answers.each_ref().map(|(name, _)| *name);
    every_tool_fails_with(&mock, &names, "more than the limit of 16777216").await;
}
