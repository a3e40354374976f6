//! Assertions pass or fail as documented, and explain their failures.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rehearsal::client::ServerResponse;
use rehearsal::core::matcher::Matcher;
use rehearsal::testing::{
    ContentMatcher, assert_contains, assert_error_code, assert_failure, assert_failure_contains, assert_matches,
    assert_success, assert_tool_exists,
};
use serde_json::json;

use crate::mock_client;

const GREETING: ContentMatcher = ContentMatcher::all(&["HELLO", "world"]);

/// The message of a failing assertion, without the response at its end.
fn failure(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).expect_err("the assertion should have failed");
    let text = panic.downcast_ref::<String>().unwrap().clone();
    text.split("\nresponse: ").next().unwrap().to_owned()
}

async fn echo(text: &str) -> ServerResponse {
    let client = mock_client().connect().await.unwrap();
    client.call_tool("echo", json!({"message": text})).await.unwrap()
}

#[tokio::test]
async fn a_success_passes_and_its_content_is_checked() {
    let response = echo("hello world").await;
    assert_success(&response);
    assert_contains(&response, "hello");
    GREETING.assert_matches(&response);
    assert!(GREETING.matches(&response));
    assert_matches(
        &response,
        &Matcher::parse(&json!({"content": [{"type": "text", "text": {"contains": "wor"}}]})).unwrap(),
    );
}

#[tokio::test]
async fn a_failed_assertion_shows_expected_got_and_the_response() {
    let response = echo("good night").await;
    assert_eq!(
        failure(|| assert_contains(&response, "hello")),
        "expected: a success whose text contains \"hello\"\n     got: the text \"good night\""
    );
    assert_eq!(failure(|| assert_failure(&response)), "expected: a failure\n     got: a success");
    assert_eq!(
        failure(|| assert_failure_contains(&response, "bye")),
        "expected: a failure with the text \"bye\"\n     got: a success"
    );
    assert_eq!(
        failure(|| assert_error_code(&response, -32602)),
        "expected: the protocol error -32602\n     got: a success"
    );
    let matched = failure(|| GREETING.assert_matches(&response));
    assert!(matched.starts_with("expected: text that is "), "{matched}");
    assert!(matched.contains("HELLO") && matched.contains("good night"), "{matched}");
    let matcher = Matcher::parse(&json!({"content": [{"text": "hello"}]})).unwrap();
    let matched = failure(|| assert_matches(&response, &matcher));
    assert!(matched.ends_with("$.content[0].text: expected \"hello\", got \"good night\""), "{matched}");
}

#[tokio::test]
async fn tool_errors_and_protocol_errors_are_distinguished() {
    let client = mock_client().connect().await.unwrap();
    let failed = client.call_tool("fail", json!({"message": "no"})).await.unwrap();
    assert_failure(&failed);
    assert_failure_contains(&failed, "no");
    assert_eq!(
        failure(|| assert_failure_contains(&failed, "yes")),
        "expected: a failure with the text \"yes\"\n     got: a tool that failed: no"
    );
    assert_eq!(failure(|| assert_success(&failed)), "expected: a success\n     got: a tool that failed: no");
    let unknown = client.call_tool("no_such_tool", json!({})).await.unwrap();
    assert_error_code(&unknown, -32602);
    assert_failure_contains(&unknown, "no_such_tool");
    let failure_text = failure(|| assert_success(&unknown));
    assert!(failure_text.starts_with("expected: a success\n     got: the protocol error -32602: "), "{failure_text}");
    assert!(!GREETING.matches(&unknown));
}

#[tokio::test]
async fn a_missing_tool_is_named_with_a_suggestion() {
    let client = mock_client().connect().await.unwrap();
    let tools = client.list_tools().await.unwrap();
    assert_tool_exists(&tools, "echo");
    let failure_text = failure(|| assert_tool_exists(&tools, "ecoh"));
    assert!(failure_text.starts_with("expected: a tool named \"ecoh\"\n     got: echo, add, "), "{failure_text}");
    assert!(failure_text.ends_with("hint: did you mean \"echo\"?"), "{failure_text}");
}
