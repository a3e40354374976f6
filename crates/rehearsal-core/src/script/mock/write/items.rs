//! Converts listed items to mock-file syntax.

use serde_json::{Map, Value, json};

use super::draft::OfferKind;
use crate::matcher::Schema;
use crate::script::mock::identifiers::{has_scheme, is_tool_name};

/// The type of a key's value, and how it is written.
#[derive(Clone, Copy)]
enum FieldType {
    Text,
    Flag,
    Object,
    Size,
    Texts,
    Audience,
    Priority,
    ToolAnnotations,
    Annotations,
    Icons,
    TaskSupport,
    Arguments,
}

/// The keys of an item: on the wire, in a file.
fn keys(kind: OfferKind) -> &'static [(&'static str, &'static str, FieldType)] {
    match kind {
        OfferKind::Request => &[],
        OfferKind::Tool => &[
            ("name", "name", FieldType::Text),
            ("title", "title", FieldType::Text),
            ("description", "description", FieldType::Text),
            ("inputSchema", "input_schema", FieldType::Object),
            ("outputSchema", "output_schema", FieldType::Object),
            ("annotations", "annotations", FieldType::ToolAnnotations),
            ("icons", "icons", FieldType::Icons),
            ("_meta", "meta", FieldType::Object),
            ("execution", "task_support", FieldType::TaskSupport),
        ],
        OfferKind::Resource => &[
            ("uri", "uri", FieldType::Text),
            ("name", "name", FieldType::Text),
            ("title", "title", FieldType::Text),
            ("description", "description", FieldType::Text),
            ("mimeType", "mime_type", FieldType::Text),
            ("annotations", "annotations", FieldType::Annotations),
            ("size", "size", FieldType::Size),
            ("icons", "icons", FieldType::Icons),
            ("_meta", "meta", FieldType::Object),
        ],
        OfferKind::ResourceTemplate => &[
            ("uriTemplate", "uri_template", FieldType::Text),
            ("name", "name", FieldType::Text),
            ("title", "title", FieldType::Text),
            ("description", "description", FieldType::Text),
            ("mimeType", "mime_type", FieldType::Text),
            ("annotations", "annotations", FieldType::Annotations),
            ("icons", "icons", FieldType::Icons),
            ("_meta", "meta", FieldType::Object),
        ],
        OfferKind::Prompt => &[
            ("name", "name", FieldType::Text),
            ("title", "title", FieldType::Text),
            ("description", "description", FieldType::Text),
            ("arguments", "arguments", FieldType::Arguments),
            ("icons", "icons", FieldType::Icons),
            ("_meta", "meta", FieldType::Object),
        ],
    }
}

/// The keys of an argument of a prompt.
const ARGUMENT: [(&str, &str, FieldType); 4] = [
    ("name", "name", FieldType::Text),
    ("title", "title", FieldType::Text),
    ("description", "description", FieldType::Text),
    ("required", "required", FieldType::Flag),
];

/// The keys of the annotations of a tool.
const TOOL_ANNOTATIONS: [(&str, &str, FieldType); 5] = [
    ("title", "title", FieldType::Text),
    ("readOnlyHint", "read_only_hint", FieldType::Flag),
    ("destructiveHint", "destructive_hint", FieldType::Flag),
    ("idempotentHint", "idempotent_hint", FieldType::Flag),
    ("openWorldHint", "open_world_hint", FieldType::Flag),
];

/// The keys of the annotations of a resource or of content.
const ANNOTATIONS: [(&str, &str, FieldType); 3] = [
    ("audience", "audience", FieldType::Audience),
    ("priority", "priority", FieldType::Priority),
    ("lastModified", "last_modified", FieldType::Text),
];

/// The keys of an icon.
const ICON: [(&str, &str, FieldType); 4] = [
    ("src", "src", FieldType::Text),
    ("mimeType", "mime_type", FieldType::Text),
    ("sizes", "sizes", FieldType::Texts),
    ("theme", "theme", FieldType::Text),
];

/// The keys of the server info.
const IMPLEMENTATION: [(&str, &str, FieldType); 6] = [
    ("name", "name", FieldType::Text),
    ("version", "version", FieldType::Text),
    ("title", "title", FieldType::Text),
    ("description", "description", FieldType::Text),
    ("websiteUrl", "website_url", FieldType::Text),
    ("icons", "icons", FieldType::Icons),
];

/// The server info in mock-file syntax, without members that a file cannot have.
pub(super) fn implementation(info: &Value) -> Value {
    let mut entry = Map::new();
    for (key, value) in info.as_object().into_iter().flatten() {
        if let Some((name, value)) = renamed(key, value, &IMPLEMENTATION) {
            entry.insert(name.to_owned(), value);
        }
    }
    if !entry.contains_key("name") {
        entry.insert("name".to_owned(), "mock".into());
    }
    entry.into()
}

/// An item in mock-file syntax; `None` if that would change its wire form.
pub(super) fn item_keys(element: &Value, kind: OfferKind) -> Option<Map<String, Value>> {
    let entry = fields(element, keys(kind))?;
    let fits = match kind {
        OfferKind::Tool => {
            let input = entry.get("input_schema")?;
            let accepts_object = input.get("type").is_none_or(|kind| kind == "object");
            let schemas = [Some(input), entry.get("output_schema")];
            let usable = schemas.into_iter().flatten().all(|schema| Schema::compile(schema).is_ok());
            is_tool_name(entry.get("name")?.as_str()?) && accepts_object && usable
        }
        OfferKind::Resource => entry.contains_key("name") && has_scheme(entry.get("uri")?.as_str()?),
        OfferKind::ResourceTemplate => entry.contains_key("name"),
        OfferKind::Prompt => true,
        // Requests are never listed.
        OfferKind::Request => false,
    };
    (fits && entry.contains_key(kind.file_name_key())).then_some(entry)
}

/// The keys of a mock file in addition to an item in its wire form: whether it may be a task, and the completions for
/// the arguments of a prompt.
pub(super) fn extra_keys(
    element: &Value,
    kind: OfferKind,
    complete: &[(String, Vec<String>)],
) -> impl Iterator<Item = (&'static str, Value)> {
    let tasks = element.get("execution").filter(|_| kind == OfferKind::Tool);
    let tasks =
        tasks.and_then(|execution| convert(execution, FieldType::TaskSupport)).filter(|support| support != "forbidden");
    let tasks = tasks.map(|support| ("task_support", support));
    let suggested = (kind == OfferKind::Prompt && !complete.is_empty()).then(|| {
        let argument = |(name, all): &(String, Vec<String>)| json!({"name": name, "complete": all});
        ("arguments", complete.iter().map(argument).collect())
    });
    tasks.into_iter().chain(suggested)
}

/// The fields of an object in the order of a file, its name first; `None` if some are unknown.
fn fields(value: &Value, known: &[(&str, &str, FieldType)]) -> Option<Map<String, Value>> {
    let object = value.as_object()?;
    let mut entry = Map::new();
    for (wire, name, field_type) in known {
        if let Some(value) = object.get(*wire) {
            entry.insert((*name).to_owned(), convert(value, *field_type)?);
        }
    }
    (entry.len() == object.len()).then_some(entry)
}

/// A member in mock-file syntax; `None` if its key or its value is unknown.
fn renamed<'n>(key: &str, value: &Value, known: &[(&str, &'n str, FieldType)]) -> Option<(&'n str, Value)> {
    let (_, name, field_type) = known.iter().find(|(wire, ..)| *wire == key)?;
    Some((name, convert(value, *field_type)?))
}

/// An object in mock-file syntax, in its own order; `None` if a member is unknown.
fn renamed_in_order(value: &Value, known: &[(&str, &str, FieldType)]) -> Option<Value> {
    let members = value.as_object()?.iter();
    members.map(|(key, value)| renamed(key, value, known).map(|(name, value)| (name.to_owned(), value))).collect()
}

fn convert(value: &Value, field_type: FieldType) -> Option<Value> {
    let all = |fits: &dyn Fn(&Value) -> bool| value.as_array().is_some_and(|all| all.iter().all(fits));
    match field_type {
        FieldType::Text => value.is_string().then(|| value.clone()),
        FieldType::Flag => value.is_boolean().then(|| value.clone()),
        FieldType::Object => value.is_object().then(|| value.clone()),
        FieldType::Size => value.is_u64().then(|| value.clone()),
        FieldType::Texts => all(&Value::is_string).then(|| value.clone()),
        FieldType::Audience => all(&|role| matches!(role.as_str(), Some("user" | "assistant"))).then(|| value.clone()),
        FieldType::Priority => value.as_f64().filter(|it| (0.0..=1.0).contains(it)).map(|_| value.clone()),
        FieldType::ToolAnnotations => renamed_in_order(value, &TOOL_ANNOTATIONS),
        FieldType::Annotations => annotations(value),
        FieldType::Icons => {
            let icon = |icon: &Value| renamed_in_order(icon, &ICON).filter(|icon| icon.get("src").is_some());
            value.as_array().filter(|elements| !elements.is_empty())?.iter().map(icon).collect()
        }
        FieldType::TaskSupport => {
            let known = ["forbidden", "optional", "required"];
            let support = value.get("taskSupport").and_then(Value::as_str).filter(|it| known.contains(it))?;
            (value == &json!({"taskSupport": support})).then(|| support.into())
        }
        FieldType::Arguments => {
            let elements = value.as_array().filter(|elements| !elements.is_empty())?;
            let argument = |argument: &Value| {
                let entry = fields(argument, &ARGUMENT);
                entry.filter(|entry| entry.contains_key("name")).map(Value::Object)
            };
            elements.iter().map(argument).collect()
        }
    }
}

/// Annotations in mock-file syntax.
pub(super) fn annotations(value: &Value) -> Option<Value> {
    renamed_in_order(value, &ANNOTATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_written_first() {
        let tool = json!({"inputSchema": {"type": "object"}, "description": "Repeats the text", "name": "echo"});
        let keys = item_keys(&tool, OfferKind::Tool).unwrap();
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["name", "description", "input_schema"]);
        let resource = json!({"mimeType": "text/plain", "name": "a", "uri": "note://a"});
        let keys = item_keys(&resource, OfferKind::Resource).unwrap();
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["uri", "name", "mime_type"]);
    }
}
