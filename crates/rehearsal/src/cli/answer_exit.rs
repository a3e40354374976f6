//! The exit status of an answer, and the report of an answer that is not a success.

use rehearsal::client::ServerResponse;
use rehearsal::core::message::Method;

use super::exit::Exit;
use super::input_request::ShownInputRequest;
use crate::print::StderrPrinter;

/// Returns the exit status of an answer, and reports an answer that is not a success.
///
/// ```text
/// error: -32602: unknown tool
///   data: {"tool":"ecoh"}
/// ```
pub(super) fn exit_for(answer: &ServerResponse, stderr: &StderrPrinter) -> Exit {
    if let Some(error) = answer.error() {
        let data = error
            .data
            .as_ref()
            .filter(|data| !data.is_null())
            .map(|data| format!("\n  data: {}", data.as_str()))
            .unwrap_or_default();
        stderr.error(format_args!("{error}{data}"));
        ShownInputRequest::undeclared_requests(error).iter().for_each(|request| stderr.hint(request.how_to_answer()));
    } else if answer.is_tool_error() {
        stderr.error("the tool failed");
    } else if answer.is_input_required() {
        let requests = ShownInputRequest::all(answer);
        let lines: String = requests.iter().map(|request| format!("\n  {request}")).collect();
        stderr.error(format_args!("the server requires input that has no answer here{lines}"));
        requests.iter().for_each(|request| stderr.hint(request.how_to_answer()));
    } else if let Some(message) = answer.error_message() {
        stderr.error(message);
    } else if let Some(wrong) = invalid_result(answer) {
        stderr.error(wrong);
    } else {
        return Exit::Ok;
    }
    Exit::ChecksFailed
}

/// What is wrong with the result of a tool that has neither content, nor structured content, nor a task.
fn invalid_result(answer: &ServerResponse) -> Option<String> {
    let result = answer.result();
    let is_valid = answer.method() != Some(&Method::TOOLS_CALL)
        || result["content"].is_array()
        || ["structuredContent", "task"].iter().any(|key| result.get(*key).is_some());
    let found = match result.get("content") {
        Some(_) => "a `content` that is not a list",
        None => "no `content`",
    };
    (!is_valid).then(|| format!("the result of tools/call has {found}"))
}
