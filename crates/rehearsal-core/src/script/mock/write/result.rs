//! Converts recorded results to mock-file syntax.

use serde_json::{Map, Value, json};

use super::draft::OfferKind;
use super::items::annotations;
use crate::protocol::meta;

/// The keys of an answer for a result: `text`, `content`, `contents`, `messages` and similar, or `result` if those
/// would change its wire form. Its texts are templates.
pub(super) fn result(result: &Value, kind: OfferKind, listed: &Value) -> Map<String, Value> {
    let bare = without_envelope(result);
    let keys = match kind {
        OfferKind::Tool => tool_result(&bare),
        OfferKind::Prompt => prompt_result(&bare, listed),
        OfferKind::Resource => read_result(&bare, listed, listed.get("uri")),
        OfferKind::ResourceTemplate => read_result(&bare, listed, Some(&json!("{{ uri }}"))),
        OfferKind::Request => None,
    };
    keys.unwrap_or_else(|| {
        let whole = if bare.is_object() { bare } else { json!({}) };
        Map::from_iter([("result".to_owned(), whole)])
    })
}

/// A result without the members that a mock adds to every result since 2026-07-28.
fn without_envelope(result: &Value) -> Value {
    let mut result = result.clone();
    if let Some(object) = result.as_object_mut() {
        let usual = [("resultType", json!("complete")), ("ttlMs", json!(0)), ("cacheScope", json!("private"))];
        for (key, usual) in usual {
            if object.get(key) == Some(&usual) {
                object.shift_remove(key);
            }
        }
        if let Some(Value::Object(meta)) = object.get_mut("_meta") {
            meta.shift_remove(meta::SERVER_INFO);
            if meta.is_empty() {
                object.shift_remove("_meta");
            }
        }
    }
    result
}

fn tool_result(result: &Value) -> Option<Map<String, Value>> {
    let mut keys = Map::new();
    let structured = result.get("structuredContent");
    // A mock adds the text of structured content itself.
    result.get("content")?;
    for (key, value) in result.as_object()? {
        match key.as_str() {
            "content" => {
                let as_text = structured.map(|it| json!([{"type": "text", "text": it.to_string()}]));
                if as_text.as_ref() == Some(value) {
                    continue;
                }
                let blocks: Vec<_> = value.as_array()?.iter().map(block).collect::<Option<_>>()?;
                match &blocks[..] {
                    [only] if only.get("type") == Some(&json!("text")) && only.as_object()?.len() == 2 => {
                        keys.insert("text".to_owned(), only["text"].clone());
                    }
                    _ => drop(keys.insert("content".to_owned(), blocks.into())),
                }
            }
            // In a mock file, null means an absent value.
            "structuredContent" if value.is_null() => return None,
            "structuredContent" => drop(keys.insert("structured_content".to_owned(), value.clone())),
            "isError" => drop(value.is_boolean().then(|| keys.insert("is_error".to_owned(), value.clone()))?),
            "_meta" => drop(value.is_object().then(|| keys.insert("meta".to_owned(), value.clone()))?),
            _ => return None,
        }
    }
    let has_content = ["text", "content", "structured_content"].iter().any(|key| keys.contains_key(*key));
    has_content.then_some(keys)
}

fn prompt_result(result: &Value, listed: &Value) -> Option<Map<String, Value>> {
    let object = result.as_object()?;
    if object.keys().any(|key| key != "messages" && key != "description")
        || object.get("description") != listed.get("description")
    {
        return None;
    }
    let message = |message: &Value| {
        let object = message.as_object().filter(|object| object.len() == 2)?;
        let role = object.get("role").filter(|role| matches!(role.as_str(), Some("user" | "assistant")))?;
        Some(json!({"role": role, "content": block(object.get("content")?)?}))
    };
    let messages: Vec<Value> = object.get("messages")?.as_array()?.iter().map(message).collect::<Option<_>>()?;
    Some(Map::from_iter([("messages".to_owned(), messages.into())]))
}

/// `uri` is the one that contents without a URI get.
fn read_result(result: &Value, listed: &Value, uri: Option<&Value>) -> Option<Map<String, Value>> {
    let object = result.as_object().filter(|object| object.len() == 1)?;
    let all = object.get("contents")?.as_array()?;
    let own = |one: &Value| {
        one.as_object()
            .is_some_and(|it| it.keys().all(|key| ["uri", "mimeType", "text", "blob"].contains(&key.as_str())))
            && one.get("uri") == uri
            && one.get("mimeType") == listed.get("mimeType")
    };
    if let [only] = &all[..]
        && own(only)
    {
        let keys = match (only.get("text"), only.get("blob")) {
            (Some(Value::String(text)), None) => ("text", text.clone()),
            // Valid base64 contains no braces.
            (None, Some(Value::String(blob))) if is_base64(blob) => ("blob", blob.clone()),
            _ => return None,
        };
        return Some(Map::from_iter([(keys.0.to_owned(), keys.1.into())]));
    }
    if all.is_empty() {
        return None;
    }
    let contents = |one: &Value| {
        let keys = contents(one)?;
        // Contents without a media type would get that of the resource.
        (keys.get("mime_type").is_some() || listed.get("mimeType").is_none()).then_some(keys)
    };
    let contents: Vec<_> = all.iter().map(contents).collect::<Option<_>>()?;
    Some(Map::from_iter([("contents".to_owned(), contents.into())]))
}

fn contents(one: &Value) -> Option<Value> {
    let mut keys = Map::new();
    for (key, value) in one.as_object()? {
        let (name, value) = match key.as_str() {
            "uri" => ("uri", value.as_str()?.into()),
            "mimeType" => ("mime_type", value.as_str()?.into()),
            "text" => ("text", value.as_str()?.into()),
            "blob" => ("blob", value.as_str().filter(|blob| is_base64(blob))?.into()),
            "_meta" => ("meta", value.is_object().then(|| value.clone())?),
            _ => return None,
        };
        keys.insert(name.to_owned(), value);
    }
    let one_of = keys.contains_key("text") != keys.contains_key("blob");
    (one_of && keys.contains_key("uri")).then(|| keys.into())
}

/// A content block in mock-file syntax.
fn block(block: &Value) -> Option<Value> {
    let object = block.as_object()?;
    let kind = object.get("type")?.as_str()?;
    let (needs, may): (&[&str], &[&str]) = match kind {
        "text" => (&["text"], &[]),
        "image" | "audio" => (&["data", "mimeType"], &[]),
        "resource" => (&["resource"], &[]),
        "resource_link" => (&["uri", "name"], &["title", "description", "mimeType", "size"]),
        _ => return None,
    };
    needs.iter().all(|key| object.contains_key(*key)).then_some(())?;
    let mut keys = Map::new();
    for (key, value) in object {
        let known = key == "type" || needs.contains(&key.as_str()) || may.contains(&key.as_str());
        let (name, value) = match key.as_str() {
            "annotations" => ("annotations", annotations(value)?),
            "_meta" => ("meta", value.is_object().then(|| value.clone())?),
            _ if !known => return None,
            "data" => ("data", value.as_str().filter(|data| is_base64(data))?.into()),
            "mimeType" => ("mime_type", value.as_str()?.into()),
            "resource" => ("resource", contents(value)?),
            "size" => ("size", value.is_u64().then(|| value.clone())?),
            "text" | "uri" | "name" => (key.as_str(), value.as_str()?.into()),
            // In a file this key is not a template, but in `result` it is.
            _ => (key.as_str(), value.as_str().filter(|text| !text.contains("{%") && !text.contains("{{"))?.into()),
        };
        keys.insert(name.to_owned(), value);
    }
    Some(keys.into())
}

fn is_base64(text: &str) -> bool {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

/// The beginnings of templates.
const TEMPLATE_MARKS: [&str; 3] = ["{{", "{%", "{#"];

/// A text of a mock file that renders to exactly this text.
pub fn escape_template(text: &str) -> String {
    if !TEMPLATE_MARKS.iter().any(|mark| text.contains(mark)) {
        return text.to_owned();
    }
    if !text.contains("endraw") {
        return format!("{{% raw %}}{text}{{% endraw %}}");
    }
    // Every brace that could begin a template is written as an expression.
    text.replace('{', "{{ '{' }}")
}

/// Makes all texts in a value literal; keys are never templates.
pub fn escape_value(value: &Value) -> Value {
    match value {
        Value::String(text) => escape_template(text).into(),
        Value::Array(elements) => elements.iter().map(escape_value).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), escape_value(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A literal text of a mock file with expressions in place of marks: `("MARK", "arguments.city")` puts `{{
/// arguments.city }}` in place of `MARK`.
pub fn with_expressions(text: &str, marks: &[(String, String)]) -> String {
    let found = marks.iter().filter_map(|(mark, expression)| Some((text.find(mark.as_str())?, mark, expression)));
    // Of two marks at one position the longer one is replaced.
    let first = found.min_by_key(|(at, mark, _)| (*at, std::cmp::Reverse(mark.len())));
    match first {
        None => escape_template(text),
        Some((at, mark, expression)) => {
            let rest = with_expressions(&text[at + mark.len()..], marks);
            format!("{}{{{{ {expression} }}}}{rest}", escape_template(&text[..at]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(kind: OfferKind, listed: Value, recorded: Value) -> Value {
        result(&recorded, kind, &listed).into()
    }

    #[test]
    fn a_result_is_written_in_its_shortest_form() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let table = [
            (json!({"content": text("hi")}), json!({"text": "hi"})),
            (json!({"content": text("hi"), "isError": true}), json!({"text": "hi", "is_error": true})),
            (
                json!({"content": text(r#"{"sum":42}"#), "structuredContent": {"sum": 42}}),
                json!({"structured_content": {"sum": 42}}),
            ),
            (
                json!({"content": text(r#"{"sum": 42}"#), "structuredContent": {"sum": 42}}),
                json!({"text": r#"{"sum": 42}"#, "structured_content": {"sum": 42}}),
            ),
            (
                json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
                json!({"content": [{"type": "image", "data": "AAAA", "mime_type": "image/png"}]}),
            ),
            // A step without a short form is written in its wire form.
            (
                json!({"content": text("null"), "structuredContent": null}),
                json!({"result": {"content": text("null"), "structuredContent": null}}),
            ),
            (json!({"content": [{"type": "hologram"}]}), json!({"result": {"content": [{"type": "hologram"}]}})),
            (json!({"content": text("hi"), "odd": 1}), json!({"result": {"content": text("hi"), "odd": 1}})),
        ];
        for (result, expected) in table {
            assert_eq!(keys_of(OfferKind::Tool, json!({}), result.clone()), expected, "{result}");
        }
    }

    #[test]
    fn a_prompt_result_with_another_description_is_written_whole() {
        let messages = json!([{"role": "user", "content": {"type": "text", "text": "Hello"}}]);
        let listed = json!({"name": "greet", "description": "Greets"});
        let same = json!({"description": "Greets", "messages": messages});
        assert_eq!(keys_of(OfferKind::Prompt, listed.clone(), same), json!({"messages": messages}));
        let other = json!({"description": "Greets Ada", "messages": messages});
        assert_eq!(keys_of(OfferKind::Prompt, listed, other.clone()), json!({"result": other}));
    }

    #[test]
    fn contents_of_another_type_have_their_media_type() {
        let listed = json!({"uri": "a://b", "name": "b", "mimeType": "text/plain"});
        let contents = |mime: &str| json!({"contents": [{"uri": "a://b", "mimeType": mime, "text": "x"}]});
        assert_eq!(keys_of(OfferKind::Resource, listed.clone(), contents("text/plain")), json!({"text": "x"}));
        let other = json!({"contents": [{"uri": "a://b", "mime_type": "text/html", "text": "x"}]});
        assert_eq!(keys_of(OfferKind::Resource, listed, contents("text/html")), other);
    }

    #[test]
    fn contents_with_the_requested_uri_are_written_as_text() {
        let listed = json!({"uriTemplate": "a://{b}", "name": "b", "mimeType": "text/plain"});
        let contents = |uri: &str| json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": "x"}]});
        let kind = OfferKind::ResourceTemplate;
        assert_eq!(keys_of(kind, listed.clone(), contents("{{ uri }}")), json!({"text": "x"}));
        let name_alone = json!({"uriTemplate": "a://{b}"});
        let whole = json!({"contents": [{"uri": "{{ uri }}", "mime_type": "text/plain", "text": "x"}]});
        assert_eq!(keys_of(kind, name_alone, contents("{{ uri }}")), whole);
    }

    #[test]
    fn only_text_that_looks_like_a_template_is_escaped() {
        assert_eq!(escape_template("plain { text }"), "plain { text }");
        assert_eq!(escape_template("use {{ x }}"), "{% raw %}use {{ x }}{% endraw %}");
        assert_eq!(escape_template("{% endraw %}"), "{{ '{' }}% endraw %}");
    }

    #[test]
    fn marks_become_expressions() {
        let marks = [("<a>".to_owned(), "arguments.a".to_owned()), ("<a>b".to_owned(), "arguments.b".to_owned())];
        assert_eq!(
            with_expressions("x <a> {{ <a>b", &marks),
            "x {{ arguments.a }}{% raw %} {{ {% endraw %}{{ arguments.b }}"
        );
    }
}
