//! Assertions whose failure shows the expectation, the actual value and the whole response.

use std::borrow::Borrow;
use std::fmt;

use rehearsal_core::json::excerpt;
use rehearsal_core::matcher::Matcher;
use rehearsal_core::protocol::Tool;
use rehearsal_core::suggest::closest;

use crate::client::ServerResponse;

/// Maximum number of characters of a response that a failure shows.
const RESPONSE_LIMIT: usize = 2000;

/// Fails unless the response is a success with content: text, structured content, or any other block.
#[track_caller]
pub fn assert_success(response: &ServerResponse) {
    if !response.success() {
        fail("a success", outcome(response), response);
    }
    let silent = response.content().is_empty()
        && response.structured_content().is_none()
        && response.blocks().is_empty()
        && response.resource_contents().is_empty();
    if silent && response.result().get("content").is_some() {
        fail("a success with content", "no content at all", response);
    }
}

/// Fails unless the response failed: with an error of the protocol, or with `isError` of a tool.
#[track_caller]
pub fn assert_failure(response: &ServerResponse) {
    if response.success() {
        fail("a failure", "a success", response);
    }
}

/// Fails unless the response failed with a message that contains exactly `text`.
#[track_caller]
pub fn assert_failure_contains(response: &ServerResponse, text: &str) {
    let expected = format!("a failure with the text {text:?}");
    if response.success() {
        fail(expected, "a success", response);
    }
    if !response.error_message().is_some_and(|message| message.contains(text)) {
        fail(expected, outcome(response), response);
    }
}

/// Fails unless the response is a success whose text contains exactly `text`.
#[track_caller]
pub fn assert_contains(response: &ServerResponse, text: &str) {
    let expected = format!("a success whose text contains {text:?}");
    if !response.success() {
        fail(expected, outcome(response), response);
    }
    let content = response.content();
    if !content.contains(text) {
        fail(expected, format!("the text {}", excerpt(&content.into(), RESPONSE_LIMIT)), response);
    }
}

/// Fails unless the response is an error of the protocol with this code.
#[track_caller]
pub fn assert_error_code(response: &ServerResponse, code: i64) {
    if response.error_code() != Some(code) {
        fail(format!("the protocol error {code}"), outcome(response), response);
    }
}

/// Fails unless a tool of this name is listed. Prints the listed ones, and the most similar name.
#[track_caller]
pub fn assert_tool_exists<T: Borrow<Tool>>(tools: impl IntoIterator<Item = T>, name: &str) {
    let names: Vec<String> = tools.into_iter().map(|tool| tool.borrow().name.clone()).collect();
    if names.iter().any(|other| other == name) {
        return;
    }
    let hint = closest(name, names.iter().map(String::as_str));
    let hint = hint.map(|close| format!("\n    hint: did you mean {close:?}?")).unwrap_or_default();
    let got = if names.is_empty() { "no tools at all".to_owned() } else { names.join(", ") };
    panic!("expected: a tool named {name:?}\n     got: {got}{hint}");
}

/// Fails unless the result of a successful response matches; every mismatch is shown with its place.
#[track_caller]
pub fn assert_matches(response: &ServerResponse, matcher: &Matcher) {
    if !response.success() {
        fail(format!("a success whose result is {matcher}"), outcome(response), response);
    }
    let mismatches = matcher.check(response.result());
    if !mismatches.is_empty() {
        let lines: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        fail(matcher, lines.join("\n          "), response);
    }
}

/// The outcome of a request, as text.
pub(super) fn outcome(response: &ServerResponse) -> String {
    match (response.error(), response.error_message()) {
        (Some(error), _) => format!("the protocol error {error}"),
        (None, Some(message)) if response.is_tool_error() => format!("a tool that failed: {message}"),
        (None, Some(message)) => message,
        (None, None) => "a success".to_owned(),
    }
}

/// ```text
/// expected: a success
///      got: the protocol error -32602: unknown tool
/// response: {"jsonrpc":"2.0",…}
/// ```
#[track_caller]
pub(super) fn fail(expected: impl fmt::Display, got: impl fmt::Display, response: &ServerResponse) -> ! {
    let text = String::from_utf8_lossy(response.bytes());
    let shown: String = text.chars().take(RESPONSE_LIMIT).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    panic!("expected: {expected}\n     got: {got}\nresponse: {shown}{more}");
}
