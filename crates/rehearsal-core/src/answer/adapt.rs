//! Replies and notifications in the client's version.
//!
//! ```text
//! Answer, written for the newest version │ a recorded one ──► adapt_answer ──► the client's version
//! ```
//!
//! The table of shapes has the methods, error codes and fields of each version. Members that the client's version does
//! not have are removed or replaced.

use serde_json::{Map, Value, json};

use super::answer::{Answer, ResultKind, WrittenFor};
use super::protocol::ListKind;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code, meta};
use crate::shape::{has_code, server_may_send, strip_notification, strip_result, strip_unknown};

/// Converts an answer to the client's version. `info` is the server info in results of 2026-07-28.
pub(super) fn adapt_answer(answer: Answer, method: &Method, to: Revision, info: &Value) -> Answer {
    let reply = match answer.written_for {
        WrittenFor::Client => return answer,
        WrittenFor::Recorded(from) if from == Some(to) => answer.reply,
        WrittenFor::Recorded(from) => {
            adapt_reply(&answer.reply, method, from, to, answer.server.as_deref().unwrap_or(info))
        }
        WrittenFor::Newest | WrittenFor::Verbatim => match answer.reply {
            Reply::Error(error) => Reply::Error(error),
            Reply::Result(result) => {
                let write = |value: &mut Value| {
                    write_result(value, method, answer.written_for, to);
                    add_envelope(value, answer.kind, method.as_str(), to, info);
                };
                Reply::Result(result.edit(write).unwrap_or(result))
            }
        },
    };
    // A reply in another version has the meaning of the recorded message, and none of its flaws.
    let verbatim = answer.verbatim.filter(|_| answer.written_for == WrittenFor::Recorded(Some(to)));
    Answer { reply, written_for: WrittenFor::Client, verbatim, ..answer }
}

/// Converts a result that an author wrote to a version.
pub(super) fn write_result(result: &mut Value, method: &Method, form: WrittenFor, to: Revision) {
    match form {
        WrittenFor::Newest => downgrade(result, method.as_str(), to),
        WrittenFor::Verbatim if to.era() == Era::Legacy => remove_envelope(result),
        WrittenFor::Verbatim | WrittenFor::Client | WrittenFor::Recorded(_) => {}
    }
}

fn downgrade(result: &mut Value, method: &str, to: Revision) {
    match method {
        "tools/call" => downgrade_tool_result(result, to),
        "prompts/get" => downgrade_prompt_result(result, to),
        "resources/read" => strip_unknown("ReadResult", result, to),
        _ => {}
    }
}

/// Converts a recorded reply to another version; in its own version it is unchanged.
pub fn adapt_reply(reply: &Reply, method: &Method, from: Option<Revision>, to: Revision, info: &Value) -> Reply {
    if from == Some(to) {
        return reply.clone();
    }
    match reply {
        Reply::Error(error) => Reply::Error(adapt_error(error, method, from, to)),
        Reply::Result(raw) => {
            let result = raw.edit(|result| adapt_result(result, method.as_str(), from, to, info));
            Reply::Result(result.unwrap_or_else(|_| raw.clone()))
        }
    }
}

/// Converts a recorded notification to another version; `None` if that version does not have it.
pub fn adapt_notification(method: &Method, mut params: Value, from: Option<Revision>, to: Revision) -> Option<Value> {
    if from != Some(to) {
        if !server_may_send(method.as_str(), to) {
            return None;
        }
        strip_notification(method.as_str(), &mut params, to);
    }
    Some(params)
}

/// Converts an error to a version's code for it. A missing resource has another code since 2026-07-28. An error whose
/// code the version does not have becomes an internal error.
fn adapt_error(error: &ErrorReply, method: &Method, from: Option<Revision>, to: Revision) -> ErrorReply {
    let other_era = from.is_none_or(|from| from.era() != to.era());
    let names_uri = || error.data.as_ref().is_some_and(|data| data.field("uri").is_some());
    let is_about_one = || method.as_str().starts_with("resources/") && names_uri();
    let is_missing = error.code == code::RESOURCE_NOT_FOUND || error.code == code::INVALID_PARAMS && is_about_one();
    let code = match (is_missing && other_era, has_code(error.code, to)) {
        (true, _) => to.resource_not_found(),
        // The server refused the version of the recorded client.
        (false, true) if error.code == code::UNSUPPORTED_VERSION => code::INTERNAL_ERROR,
        (false, true) => error.code,
        (false, false) => code::INTERNAL_ERROR,
    };
    ErrorReply { code, ..error.clone() }
}

fn adapt_result(result: &mut Value, method: &str, from: Option<Revision>, to: Revision, info: &Value) {
    if !result.is_object() {
        return;
    }
    let was_legacy = from.is_some_and(|from| from.era() == Era::Legacy);
    if to.era() == Era::Legacy && !was_legacy {
        remove_envelope(result);
    }
    match method {
        // The result that creates a task has neither member.
        "tools/call" if result.get("content").is_none() && result.get("structuredContent").is_none() => {}
        "tools/call" | "prompts/get" => downgrade(result, method, to),
        _ => {}
    }
    add_envelope(result, ResultKind::Complete, method, to, info);
    strip_result(method, result, to);
}

/// An element of a list without the keys that a version does not have.
pub(super) fn strip_item(kind: ListKind, mut element: Value, revision: Revision) -> Value {
    let type_name = match kind {
        ListKind::Tools => "Tool",
        ListKind::Resources => "Resource",
        ListKind::ResourceTemplates => "ResourceTemplate",
        ListKind::Prompts => "Prompt",
    };
    strip_unknown(type_name, &mut element, revision);
    element
}

/// A server's name and version without the keys that a version does not have.
pub(super) fn strip_implementation(mut info: Value, revision: Revision) -> Value {
    strip_unknown("Implementation", &mut info, revision);
    info
}

/// A server's capabilities without those that a version does not have.
pub(super) fn strip_capabilities(all: &Map<String, Value>, revision: Revision) -> Value {
    let mut known = Value::Object(all.clone());
    strip_unknown("ServerCapabilities", &mut known, revision);
    // Servers declare extensions to clients of older versions too, but not the one that replaced the older tasks.
    if let Some(Value::Object(extensions)) = all.get("extensions").filter(|_| known.get("extensions").is_none()) {
        let mut extensions = extensions.clone();
        extensions.shift_remove(meta::TASKS_EXTENSION);
        if !extensions.is_empty() {
            known["extensions"] = extensions.into();
        }
    }
    known
}

/// Converts the result of a tool: content blocks and keys that a version does not have are replaced by those it has.
fn downgrade_tool_result(result: &mut Value, revision: Revision) {
    let Some(object) = result.as_object_mut() else { return };
    let has_no_content = match object.get("content") {
        None => true,
        Some(content) => revision < Revision::V2025_06_18 && content.as_array().is_some_and(Vec::is_empty),
    };
    if let Some(structured) = object.get("structuredContent").filter(|_| has_no_content) {
        // Clients without support for structured content get it as text.
        let text = json!([{"type": "text", "text": structured.to_string()}]);
        object.insert("content".to_owned(), text);
    }
    if let Some(Value::Array(blocks)) = object.get_mut("content") {
        blocks.iter_mut().for_each(|block| *block = downgrade_block(block.take(), revision));
    }
    strip_unknown("CallResult", result, revision);
}

fn downgrade_prompt_result(result: &mut Value, revision: Revision) {
    if let Some(Value::Array(messages)) = result.get_mut("messages") {
        for content in messages.iter_mut().filter_map(|message| message.get_mut("content")) {
            *content = downgrade_block(content.take(), revision);
        }
    }
    strip_unknown("PromptResult", result, revision);
}

fn downgrade_block(mut block: Value, revision: Revision) -> Value {
    match block["type"].as_str() {
        // An old client may still use the bytes.
        Some("audio") if revision < Revision::V2025_03_26 => {
            let (blob, mime_type) = (block["data"].take(), block["mimeType"].take());
            json!({"type": "resource", "resource": {"uri": "mock:audio", "mimeType": mime_type, "blob": blob}})
        }
        Some("resource_link") if revision < Revision::V2025_06_18 => {
            json!({"type": "text", "text": block["uri"].as_str().unwrap_or_default()})
        }
        _ => block,
    }
}

/// Adds the members that every result has since 2026-07-28: its type, its cache lifetime, and the server. Members that
/// are present stay.
pub(super) fn add_envelope(result: &mut Value, kind: ResultKind, method: &str, revision: Revision, info: &Value) {
    let Some(object) = result.as_object_mut() else { return };
    if revision.era() == Era::Legacy {
        return;
    }
    let result_type = match kind {
        ResultKind::Complete => "complete",
        ResultKind::InputRequired => "input_required",
        ResultKind::Task => "task",
    };
    object.entry("resultType").or_insert_with(|| result_type.into());
    if is_cacheable(method) && kind == ResultKind::Complete {
        object.entry("ttlMs").or_insert_with(|| 0.into());
        object.entry("cacheScope").or_insert_with(|| "private".into());
    }
    let meta = object.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.entry(meta::SERVER_INFO).or_insert_with(|| strip_implementation(info.clone(), revision));
    }
}

/// Removes what results have only since 2026-07-28.
fn remove_envelope(result: &mut Value) {
    let Some(object) = result.as_object_mut() else { return };
    for key in ["resultType", "ttlMs", "cacheScope"] {
        object.shift_remove(key);
    }
    if let Some(Value::Object(meta)) = object.get_mut("_meta")
        && meta.shift_remove(meta::SERVER_INFO).is_some()
        && meta.is_empty()
    {
        object.shift_remove("_meta");
    }
}

fn is_cacheable(method: &str) -> bool {
    let kinds = ListKind::ALL.map(ListKind::method);
    kinds.contains(&method) || method == "server/discover" || method == "resources/read"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_version_gets_only_its_own_keys() {
        let newest = json!({
            "name": "echo", "title": "Echo", "description": "d", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}, "icons": [], "_meta": {}, "execution": {"taskSupport": "optional"},
        });
        let keys = |revision| {
            let known = strip_item(ListKind::Tools, newest.clone(), revision);
            known.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(keys(Revision::V2024_11_05), "name description inputSchema");
        assert_eq!(keys(Revision::V2025_03_26), "name description inputSchema annotations");
        let middle = "name title description inputSchema outputSchema annotations _meta";
        assert_eq!(keys(Revision::V2025_06_18), middle);
        let tasks = "name title description inputSchema outputSchema annotations icons _meta execution";
        assert_eq!(keys(Revision::V2025_11_25), tasks);
        let newest = "name title description inputSchema outputSchema annotations icons _meta";
        assert_eq!(keys(Revision::V2026_07_28), newest);
    }

    #[test]
    fn content_blocks_are_downgraded_to_those_of_the_version() {
        let newest = json!({
            "content": [
                {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "a://b", "name": "b"},
                {"type": "text", "text": "t", "_meta": {"a/b": 1}, "annotations": {"priority": 1, "lastModified": "x"}},
            ],
            "structuredContent": [1],
        });
        let seen = |revision| {
            let mut result = newest.clone();
            downgrade_tool_result(&mut result, revision);
            result
        };
        assert_eq!(seen(Revision::V2026_07_28), newest);
        assert_eq!(seen(Revision::V2025_11_25), json!({"content": newest["content"]}));
        assert_eq!(
            seen(Revision::V2024_11_05),
            json!({"content": [
                {"type": "resource", "resource": {"uri": "mock:audio", "mimeType": "audio/wav", "blob": "AA=="}},
                {"type": "text", "text": "a://b"},
                {"type": "text", "text": "t", "annotations": {"priority": 1}},
            ]})
        );
    }

    #[test]
    fn structured_content_alone_is_sent_as_text_too() {
        let mut result = json!({"structuredContent": {"sum": 42}});
        downgrade_tool_result(&mut result, Revision::V2025_03_26);
        assert_eq!(result, json!({"content": [{"type": "text", "text": "{\"sum\":42}"}]}));
        let empty = json!({"content": [], "structuredContent": {"sum": 42}});
        for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
            let mut seen = empty.clone();
            downgrade_tool_result(&mut seen, revision);
            assert_eq!(seen, result, "{revision}");
        }
        let mut known = empty.clone();
        downgrade_tool_result(&mut known, Revision::V2025_06_18);
        assert_eq!(known, empty);
    }
}
