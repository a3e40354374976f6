//! Whether an answer is what was hoped for.

use rehearsal::client::Response;
use rehearsal::core::message::Method;

use super::exit::Exit;
use super::question::Question;
use crate::print::Talk;

/// Says what is wrong with an answer, if anything.
///
/// ```text
/// error: -32602: unknown tool
///   data: {"tool":"ecoh"}
/// ```
pub(super) fn judged(answer: &Response, talk: &Talk) -> Exit {
    if let Some(error) = answer.error() {
        let data = error
            .data
            .as_ref()
            .filter(|data| !data.is_null())
            .map(|data| format!("\n  data: {}", data.as_str()))
            .unwrap_or_default();
        talk.error(format_args!("{error}{data}"));
        Question::not_allowed(error).iter().for_each(|question| talk.hint(question.how_to_answer()));
    } else if answer.is_error() {
        talk.error("the tool says that it failed");
    } else if answer.is_input_required() {
        let questions = Question::all(answer);
        let asked: String = questions.iter().map(|question| format!("\n  {question}")).collect();
        talk.error(format_args!("the server wants input that nobody here can give{asked}"));
        questions.iter().for_each(|question| talk.hint(question.how_to_answer()));
    } else if let Some(message) = answer.error_message() {
        talk.error(message);
    } else if let Some(wrong) = misshapen(answer) {
        talk.error(wrong);
    } else {
        return Exit::Ok;
    }
    Exit::ChecksFailed
}

/// What is wrong with the result of a tool that can say nothing.
fn misshapen(answer: &Response) -> Option<String> {
    let result = answer.result();
    let may_be = answer.method() != Some(&Method::TOOLS_CALL)
        || result["content"].is_array()
        || ["structuredContent", "task"].iter().any(|key| result.get(*key).is_some());
    let found = match result.get("content") {
        Some(_) => "a `content` that is no list",
        None => "no `content`",
    };
    (!may_be).then(|| format!("the result of tools/call has {found}"))
}
