//! What a version of the protocol knows, and what its results carry.
//!
//! Everything is compiled in the shape of the newest version; older ones get it without what they do not know.

use serde_json::{Map, Value, json};

use crate::protocol::{Era, Revision, meta};

/// An element of a list without the keys that a version does not know.
pub(super) fn listed(mut element: Value, revision: Revision) -> Value {
    if let Some(object) = element.as_object_mut() {
        object.retain(|key, _| knows(key, revision));
        if revision.era() == Era::Legacy && object.get("outputSchema").is_some_and(|it| it["type"] != "object") {
            // Only 2026-07-28 has output schemas of other things than objects.
            object.shift_remove("outputSchema");
        }
        if let Some(Value::Array(arguments)) = object.get_mut("arguments") {
            for argument in arguments.iter_mut().filter_map(Value::as_object_mut) {
                argument.retain(|key, _| knows(key, revision));
            }
        }
        if let Some(annotations) = object.get_mut("annotations") {
            *annotations = annotated(annotations.take(), revision);
        }
    }
    element
}

fn knows(key: &str, revision: Revision) -> bool {
    match key {
        // Of tools; resources had theirs from the beginning.
        "title" | "outputSchema" | "_meta" => revision >= Revision::V2025_06_18,
        "icons" | "websiteUrl" => revision >= Revision::V2025_11_25,
        "execution" => revision == Revision::V2025_11_25,
        _ => true,
    }
}

/// A tool without the keys that a version does not know.
pub(super) fn tool(element: Value, revision: Revision) -> Value {
    let mut element = listed(element, revision);
    if revision < Revision::V2025_03_26
        && let Some(object) = element.as_object_mut()
    {
        object.shift_remove("annotations");
    }
    element
}

/// Who the server is, as far as a version wants to know.
pub(super) fn implementation(mut info: Value, revision: Revision) -> Value {
    if let Some(object) = info.as_object_mut() {
        object.retain(|key, _| knows(key, revision) && (key != "description" || revision >= Revision::V2025_11_25));
    }
    info
}

/// What the server can do, as far as a version knows it.
pub(super) fn capabilities(all: &Map<String, Value>, revision: Revision) -> Value {
    let known = all.iter().filter(|(key, _)| match key.as_str() {
        "completions" => revision.has_completions_capability(),
        "tasks" => revision == Revision::V2025_11_25,
        "extensions" => revision.era() == Era::Modern,
        _ => true,
    });
    Value::Object(known.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn annotated(mut annotations: Value, revision: Revision) -> Value {
    if revision < Revision::V2025_06_18
        && let Some(object) = annotations.as_object_mut()
    {
        object.shift_remove("lastModified");
    }
    annotations
}

/// The result of a tool: blocks and keys that a version does not know become something that it does.
pub(super) fn called(result: &mut Value, revision: Revision) {
    let Some(object) = result.as_object_mut() else { return };
    if let Some(structured) = object.get("structuredContent")
        && !object.contains_key("content")
    {
        // Clients that know nothing of structured content read it as text.
        let text = json!([{"type": "text", "text": structured.to_string()}]);
        object.insert("content".to_owned(), text);
    }
    let fits = match (object.get("structuredContent"), revision.era()) {
        (Some(structured), Era::Legacy) => revision.has_structured_content() && structured.is_object(),
        (Some(_), Era::Modern) | (None, _) => true,
    };
    if !fits {
        object.shift_remove("structuredContent");
    }
    if let Some(Value::Array(blocks)) = object.get_mut("content") {
        blocks.iter_mut().for_each(|found| *found = block(found.take(), revision));
    }
}

/// The result of a prompt.
pub(super) fn phrased(result: &mut Value, revision: Revision) {
    if let Some(Value::Array(messages)) = result.get_mut("messages") {
        for content in messages.iter_mut().filter_map(|message| message.get_mut("content")) {
            *content = block(content.take(), revision);
        }
    }
}

/// The result of reading a resource.
pub(super) fn read(result: &mut Value, revision: Revision) {
    if let Some(Value::Array(all)) = result.get_mut("contents") {
        for contents in all.iter_mut().filter_map(Value::as_object_mut) {
            contents.retain(|key, _| knows(key, revision));
        }
    }
}

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
        _ => {
            if let Some(object) = block.as_object_mut()
                && revision < Revision::V2025_06_18
            {
                object.shift_remove("_meta");
                if let Some(Value::Object(resource)) = object.get_mut("resource") {
                    resource.shift_remove("_meta");
                }
                if let Some(annotations) = object.get_mut("annotations") {
                    *annotations = annotated(annotations.take(), revision);
                }
            }
            block
        }
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
            "name": "echo", "title": "Echo", "description": "d", "inputSchema": {}, "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}, "icons": [], "_meta": {}, "execution": {"taskSupport": "optional"},
        });
        let keys = |revision| {
            let known = tool(newest.clone(), revision);
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
    }
}
