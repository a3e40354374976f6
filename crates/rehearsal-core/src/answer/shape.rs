//! What a version of the protocol knows, and what its results carry.
//!
//! Everything is compiled in the shape of the newest version; older ones get it without what they do not know.

use serde_json::{Map, Value, json};

use super::listing::List;
use super::scene::{Kind, Wording};
use crate::protocol::{Era, Revision, meta};
use crate::shape::forget_unknown;

/// An element of a list without the keys that a version does not know.
pub(super) fn listed(kind: List, mut element: Value, revision: Revision) -> Value {
    let type_name = match kind {
        List::Tools => "Tool",
        List::Resources => "Resource",
        List::ResourceTemplates => "ResourceTemplate",
        List::Prompts => "Prompt",
    };
    forget_unknown(type_name, &mut element, revision);
    element
}

/// Who the server is, as far as a version wants to know.
pub(super) fn implementation(mut info: Value, revision: Revision) -> Value {
    forget_unknown("Implementation", &mut info, revision);
    info
}

/// What the server can do, as far as a version knows it.
pub(super) fn capabilities(all: &Map<String, Value>, revision: Revision) -> Value {
    let mut known = Value::Object(all.clone());
    forget_unknown("ServerCapabilities", &mut known, revision);
    // Servers declare extensions to clients of older versions too, but for the one that replaced the older tasks.
    if let Some(Value::Object(extensions)) = all.get("extensions").filter(|_| known.get("extensions").is_none()) {
        let mut extensions = extensions.clone();
        extensions.shift_remove(meta::TASKS_EXTENSION);
        if !extensions.is_empty() {
            known["extensions"] = extensions.into();
        }
    }
    known
}

/// What is answered, as a version has it. What is written as it goes on the wire is only without what results do not carry
/// before 2026-07-28.
pub(super) fn answered(kind: Kind, wording: Wording, result: &mut Value, revision: Revision) {
    match (wording, kind) {
        (Wording::AsWritten, _) if revision.era() == Era::Legacy => unwrapped(result),
        (Wording::AsWritten, _) => {}
        (Wording::OfItsVersion, Kind::Tool) => called(result, revision),
        (Wording::OfItsVersion, Kind::Prompt) => phrased(result, revision),
        (Wording::OfItsVersion, Kind::Resource) => read(result, revision),
        (Wording::OfItsVersion, Kind::Request) => {}
    }
}

/// The result of a tool: blocks and keys that a version does not know become something that it does.
pub(super) fn called(result: &mut Value, revision: Revision) {
    let Some(object) = result.as_object_mut() else { return };
    let says_nothing = match object.get("content") {
        None => true,
        Some(content) => revision < Revision::V2025_06_18 && content.as_array().is_some_and(Vec::is_empty),
    };
    if let Some(structured) = object.get("structuredContent").filter(|_| says_nothing) {
        // Clients that know nothing of structured content read it as text.
        let text = json!([{"type": "text", "text": structured.to_string()}]);
        object.insert("content".to_owned(), text);
    }
    if let Some(Value::Array(blocks)) = object.get_mut("content") {
        blocks.iter_mut().for_each(|found| *found = block(found.take(), revision));
    }
    forget_unknown("CallResult", result, revision);
}

/// The result of a prompt.
pub(super) fn phrased(result: &mut Value, revision: Revision) {
    if let Some(Value::Array(messages)) = result.get_mut("messages") {
        for content in messages.iter_mut().filter_map(|message| message.get_mut("content")) {
            *content = block(content.take(), revision);
        }
    }
    forget_unknown("PromptResult", result, revision);
}

/// The result of reading a resource.
fn read(result: &mut Value, revision: Revision) {
    forget_unknown("ReadResult", result, revision);
}

/// A block of a kind that a version does not know becomes one that it does.
fn block(mut block: Value, revision: Revision) -> Value {
    match block["type"].as_str() {
        // Bytes that an old client may know what to do with.
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

/// What kind of result it is, since 2026-07-28.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultType {
    Complete,
    InputRequired,
    Task,
}

impl ResultType {
    fn as_str(self) -> &'static str {
        match self {
            ResultType::Complete => "complete",
            ResultType::InputRequired => "input_required",
            ResultType::Task => "task",
        }
    }
}

/// Since 2026-07-28 a result says what kind it is, how long it may be kept, and who gave it. What the script says counts.
pub(super) fn envelope(result: &mut Value, kind: ResultType, method: &str, revision: Revision, info: &Value) {
    let Some(object) = result.as_object_mut() else { return };
    if revision.era() == Era::Legacy {
        return;
    }
    object.entry("resultType").or_insert_with(|| kind.as_str().into());
    if cacheable(method) && kind == ResultType::Complete {
        object.entry("ttlMs").or_insert_with(|| 0.into());
        object.entry("cacheScope").or_insert_with(|| "private".into());
    }
    let meta = object.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.entry(meta::SERVER_INFO).or_insert_with(|| implementation(info.clone(), revision));
    }
}

/// Takes out what results carry since 2026-07-28.
pub(super) fn unwrapped(result: &mut Value) {
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

fn cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_version_sees_only_what_it_knows() {
        let newest = json!({
            "name": "echo", "title": "Echo", "description": "d", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}, "icons": [], "_meta": {}, "execution": {"taskSupport": "optional"},
        });
        let keys = |revision| {
            let known = listed(List::Tools, newest.clone(), revision);
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
    fn blocks_that_a_version_does_not_know_become_some_that_it_does() {
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
            called(&mut result, revision);
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
    fn structured_content_alone_is_told_as_text_too() {
        let mut result = json!({"structuredContent": {"sum": 42}});
        called(&mut result, Revision::V2025_03_26);
        assert_eq!(result, json!({"content": [{"type": "text", "text": "{\"sum\":42}"}]}));
        let empty = json!({"content": [], "structuredContent": {"sum": 42}});
        for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
            let mut seen = empty.clone();
            called(&mut seen, revision);
            assert_eq!(seen, result, "{revision}");
        }
        let mut known = empty.clone();
        called(&mut known, Revision::V2025_06_18);
        assert_eq!(known, empty);
    }
}
