//! Converts listed items to mock-file syntax.

use serde_json::{Map, Value, json};

use super::draft::Kind;
use crate::matcher::Schema;
use crate::script::mock::names::{has_scheme, is_tool_name};

/// The type of a key's value, and how it is written.
#[derive(Clone, Copy)]
enum Takes {
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
fn keys(kind: Kind) -> &'static [(&'static str, &'static str, Takes)] {
    match kind {
        Kind::Request => &[],
        Kind::Tool => &[
            ("name", "name", Takes::Text),
            ("title", "title", Takes::Text),
            ("description", "description", Takes::Text),
            ("inputSchema", "input_schema", Takes::Object),
            ("outputSchema", "output_schema", Takes::Object),
            ("annotations", "annotations", Takes::ToolAnnotations),
            ("icons", "icons", Takes::Icons),
            ("_meta", "meta", Takes::Object),
            ("execution", "task_support", Takes::TaskSupport),
        ],
        Kind::Resource => &[
            ("uri", "uri", Takes::Text),
            ("name", "name", Takes::Text),
            ("title", "title", Takes::Text),
            ("description", "description", Takes::Text),
            ("mimeType", "mime_type", Takes::Text),
            ("annotations", "annotations", Takes::Annotations),
            ("size", "size", Takes::Size),
            ("icons", "icons", Takes::Icons),
            ("_meta", "meta", Takes::Object),
        ],
        Kind::ResourceTemplate => &[
            ("uriTemplate", "uri_template", Takes::Text),
            ("name", "name", Takes::Text),
            ("title", "title", Takes::Text),
            ("description", "description", Takes::Text),
            ("mimeType", "mime_type", Takes::Text),
            ("annotations", "annotations", Takes::Annotations),
            ("icons", "icons", Takes::Icons),
            ("_meta", "meta", Takes::Object),
        ],
        Kind::Prompt => &[
            ("name", "name", Takes::Text),
            ("title", "title", Takes::Text),
            ("description", "description", Takes::Text),
            ("arguments", "arguments", Takes::Arguments),
            ("icons", "icons", Takes::Icons),
            ("_meta", "meta", Takes::Object),
        ],
    }
}

/// The keys of an argument of a prompt.
const ARGUMENT: [(&str, &str, Takes); 4] = [
    ("name", "name", Takes::Text),
    ("title", "title", Takes::Text),
    ("description", "description", Takes::Text),
    ("required", "required", Takes::Flag),
];

/// The keys of the annotations of a tool.
const TOOL_ANNOTATIONS: [(&str, &str, Takes); 5] = [
    ("title", "title", Takes::Text),
    ("readOnlyHint", "read_only_hint", Takes::Flag),
    ("destructiveHint", "destructive_hint", Takes::Flag),
    ("idempotentHint", "idempotent_hint", Takes::Flag),
    ("openWorldHint", "open_world_hint", Takes::Flag),
];

/// The keys of the annotations of a resource or of content.
const ANNOTATIONS: [(&str, &str, Takes); 3] = [
    ("audience", "audience", Takes::Audience),
    ("priority", "priority", Takes::Priority),
    ("lastModified", "last_modified", Takes::Text),
];

/// The keys of an icon.
const ICON: [(&str, &str, Takes); 4] = [
    ("src", "src", Takes::Text),
    ("mimeType", "mime_type", Takes::Text),
    ("sizes", "sizes", Takes::Texts),
    ("theme", "theme", Takes::Text),
];

/// The keys of the server info.
const IMPLEMENTATION: [(&str, &str, Takes); 6] = [
    ("name", "name", Takes::Text),
    ("version", "version", Takes::Text),
    ("title", "title", Takes::Text),
    ("description", "description", Takes::Text),
    ("websiteUrl", "website_url", Takes::Text),
    ("icons", "icons", Takes::Icons),
];

/// The server info in mock-file syntax, without members that a file cannot have.
pub(super) fn implementation(info: &Value) -> Value {
    let mut said = Map::new();
    for (key, value) in info.as_object().into_iter().flatten() {
        if let Some((name, value)) = renamed(key, value, &IMPLEMENTATION) {
            said.insert(name.to_owned(), value);
        }
    }
    if !said.contains_key("name") {
        said.insert("name".to_owned(), "mock".into());
    }
    said.into()
}

/// An item in mock-file syntax; `None` if the file would not be exact.
pub(super) fn in_words(element: &Value, kind: Kind) -> Option<Map<String, Value>> {
    let said = fields(element, keys(kind))?;
    let fits = match kind {
        Kind::Tool => {
            let input = said.get("input_schema")?;
            let takes_object = input.get("type").is_none_or(|kind| kind == "object");
            let schemas = [Some(input), said.get("output_schema")];
            let usable = schemas.into_iter().flatten().all(|schema| Schema::compile(schema).is_ok());
            is_tool_name(said.get("name")?.as_str()?) && takes_object && usable
        }
        Kind::Resource => said.contains_key("name") && has_scheme(said.get("uri")?.as_str()?),
        Kind::ResourceTemplate => said.contains_key("name"),
        Kind::Prompt => true,
        // Requests are never listed.
        Kind::Request => false,
    };
    (fits && said.contains_key(kind.name_in_file())).then_some(said)
}

/// The keys of a mock file in addition to an item in its wire form: whether it may be a task, and the completions for
/// the arguments of a prompt.
pub(super) fn beside(
    element: &Value,
    kind: Kind,
    complete: &[(String, Vec<String>)],
) -> impl Iterator<Item = (&'static str, Value)> {
    let tasks = element.get("execution").filter(|_| kind == Kind::Tool);
    let tasks =
        tasks.and_then(|execution| taken(execution, Takes::TaskSupport)).filter(|support| support != "forbidden");
    let tasks = tasks.map(|support| ("task_support", support));
    let suggested = (kind == Kind::Prompt && !complete.is_empty()).then(|| {
        let argument = |(name, all): &(String, Vec<String>)| json!({"name": name, "complete": all});
        ("arguments", complete.iter().map(argument).collect())
    });
    tasks.into_iter().chain(suggested)
}

/// The fields of an object in the order of a file, its name first; `None` if some are unknown.
fn fields(value: &Value, known: &[(&str, &str, Takes)]) -> Option<Map<String, Value>> {
    let object = value.as_object()?;
    let mut said = Map::new();
    for (wire, name, takes) in known {
        if let Some(value) = object.get(*wire) {
            said.insert((*name).to_owned(), taken(value, *takes)?);
        }
    }
    (said.len() == object.len()).then_some(said)
}

/// A member in mock-file syntax; `None` if its key or its value is unknown.
fn renamed<'n>(key: &str, value: &Value, known: &[(&str, &'n str, Takes)]) -> Option<(&'n str, Value)> {
    let (_, name, takes) = known.iter().find(|(wire, ..)| *wire == key)?;
    Some((name, taken(value, *takes)?))
}

/// An object in mock-file syntax, in its own order; `None` if a member is unknown.
fn in_its_order(value: &Value, known: &[(&str, &str, Takes)]) -> Option<Value> {
    let members = value.as_object()?.iter();
    members.map(|(key, value)| renamed(key, value, known).map(|(name, value)| (name.to_owned(), value))).collect()
}

fn taken(value: &Value, takes: Takes) -> Option<Value> {
    let all = |fits: &dyn Fn(&Value) -> bool| value.as_array().is_some_and(|all| all.iter().all(fits));
    match takes {
        Takes::Text => value.is_string().then(|| value.clone()),
        Takes::Flag => value.is_boolean().then(|| value.clone()),
        Takes::Object => value.is_object().then(|| value.clone()),
        Takes::Size => value.is_u64().then(|| value.clone()),
        Takes::Texts => all(&Value::is_string).then(|| value.clone()),
        Takes::Audience => all(&|role| matches!(role.as_str(), Some("user" | "assistant"))).then(|| value.clone()),
        Takes::Priority => value.as_f64().filter(|it| (0.0..=1.0).contains(it)).map(|_| value.clone()),
        Takes::ToolAnnotations => in_its_order(value, &TOOL_ANNOTATIONS),
        Takes::Annotations => annotations(value),
        Takes::Icons => {
            let icon = |icon: &Value| in_its_order(icon, &ICON).filter(|icon| icon.get("src").is_some());
            value.as_array().filter(|elements| !elements.is_empty())?.iter().map(icon).collect()
        }
        Takes::TaskSupport => {
            let known = ["forbidden", "optional", "required"];
            let support = value.get("taskSupport").and_then(Value::as_str).filter(|it| known.contains(it))?;
            (value == &json!({"taskSupport": support})).then(|| support.into())
        }
        Takes::Arguments => {
            let elements = value.as_array().filter(|elements| !elements.is_empty())?;
            let argument = |argument: &Value| {
                let said = fields(argument, &ARGUMENT);
                said.filter(|said| said.contains_key("name")).map(Value::Object)
            };
            elements.iter().map(argument).collect()
        }
    }
}

/// Annotations in mock-file syntax.
pub(super) fn annotations(value: &Value) -> Option<Value> {
    in_its_order(value, &ANNOTATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_first_whatever_came_first_on_the_wire() {
        let tool = json!({"inputSchema": {"type": "object"}, "description": "Says it again", "name": "echo"});
        let words = in_words(&tool, Kind::Tool).unwrap();
        assert_eq!(words.keys().collect::<Vec<_>>(), ["name", "description", "input_schema"]);
        let resource = json!({"mimeType": "text/plain", "name": "a", "uri": "note://a"});
        let words = in_words(&resource, Kind::Resource).unwrap();
        assert_eq!(words.keys().collect::<Vec<_>>(), ["uri", "name", "mime_type"]);
    }
}
