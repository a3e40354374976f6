//! References to the results of earlier tasks.

use serde_json::{Map, Value};

use crate::json::{Path, PathQuery};

/// A value in the result of a task.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The index of the task.
    pub task: usize,
    path: PathQuery,
    text: String,
}

/// Why a reference has no value.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reference} has no value in the result of its task")]
pub struct ReferenceError {
    /// The reference as it is written.
    pub reference: String,
}

debug_as_display!(ReferenceError);

/// JSON with references.
#[derive(Clone, Debug)]
pub enum TaskValue {
    /// A value without references.
    Plain(Value),
    /// The value that a reference leads to.
    Reference(Reference),
    /// Text with references.
    Text(Vec<TextPart>),
    /// An array.
    Array(Vec<TaskValue>),
    /// An object.
    Object(Vec<(String, TaskValue)>),
}

/// A part of a text.
#[derive(Clone, Debug)]
pub enum TextPart {
    /// Text.
    Text(String),
    /// The value of a reference, as text.
    Reference(Reference),
}

/// A problem in a value, with the path of the value.
pub(super) struct ValueProblem {
    pub(super) path: Path,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Reference {
    /// Parses a JSONPath in the result of a task.
    pub(super) fn new(task: usize, path: &str, text: String) -> Result<Reference, String> {
        let path = PathQuery::parse(path).map_err(|error| format!("{path}: {}", error.reason))?;
        Ok(Reference { task, path, text })
    }

    /// The path, if it leads to one value.
    pub fn path(&self) -> Option<&Path> {
        self.path.single()
    }

    /// The value in a result. A path that can find several values gives an array.
    pub fn value(&self, result: &Value) -> Result<Value, ReferenceError> {
        let found = self.path.found(result);
        match (self.path.single(), &found[..]) {
            (Some(_), [value]) => Ok((*value).clone()),
            (Some(_), _) => Err(ReferenceError { reference: self.text.clone() }),
            (None, values) => Ok(values.iter().map(|value| (*value).clone()).collect()),
        }
    }
}

impl TaskValue {
    /// Parses a value; `task` returns the index of a task.
    pub(super) fn parse(
        value: &Value,
        task: &dyn Fn(&str) -> Option<usize>,
        path: &Path,
        problems: &mut Vec<ValueProblem>,
    ) -> TaskValue {
        let mut problem = |message: String, hint: Option<String>| {
            problems.push(ValueProblem { path: path.clone(), message, hint });
            TaskValue::Plain(Value::Null)
        };
        match value {
            Value::String(text) => match parse_text(text, task) {
                Ok(value) => value,
                Err(TextProblem { message, hint }) => problem(message, hint),
            },
            Value::Array(items) => {
                let items = items.iter().enumerate();
                TaskValue::Array(
                    items.map(|(index, item)| TaskValue::parse(item, task, &path.join(index), problems)).collect(),
                )
            }
            Value::Object(members) if members.contains_key("$from") => match parse_reference(members, task) {
                Ok(reference) => TaskValue::Reference(reference),
                Err(TextProblem { message, hint }) => problem(message, hint),
            },
            Value::Object(members) => {
                let members = members.iter();
                let parse = |(key, value): (&String, &Value)| {
                    (key.clone(), TaskValue::parse(value, task, &path.join(key.as_str()), problems))
                };
                TaskValue::Object(members.map(parse).collect())
            }
            plain => TaskValue::Plain(plain.clone()),
        }
    }

    /// Puts the values of the references in.
    pub fn resolve(&self, result_of: &dyn Fn(usize) -> Option<Value>) -> Result<Value, ReferenceError> {
        let value_of = |reference: &Reference| match result_of(reference.task) {
            Some(result) => reference.value(&result),
            None => Err(ReferenceError { reference: reference.text.clone() }),
        };
        match self {
            TaskValue::Plain(value) => Ok(value.clone()),
            TaskValue::Reference(reference) => value_of(reference),
            TaskValue::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Text(part) => text.push_str(part),
                        TextPart::Reference(reference) => match value_of(reference)? {
                            Value::String(value) => text.push_str(&value),
                            value => text.push_str(&value.to_string()),
                        },
                    }
                }
                Ok(Value::String(text))
            }
            TaskValue::Array(items) => items.iter().map(|item| item.resolve(result_of)).collect(),
            TaskValue::Object(members) => {
                let mut object = Map::new();
                for (key, value) in members {
                    object.insert(key.clone(), value.resolve(result_of)?);
                }
                Ok(Value::Object(object))
            }
        }
    }

    /// The value with `null` in place of each reference, and the paths of the references: for checks before a run.
    pub fn known_parts(&self) -> (Value, Vec<Path>) {
        (self.without_references(), self.paths_of(&|_| true))
    }

    /// The paths of the values that refer to some of these tasks.
    pub fn paths_of(&self, is_one: &dyn Fn(usize) -> bool) -> Vec<Path> {
        let mut found = Vec::new();
        self.add_paths(is_one, &Path::root(), &mut found);
        found
    }

    fn add_paths(&self, is_one: &dyn Fn(usize) -> bool, path: &Path, found: &mut Vec<Path>) {
        match self {
            TaskValue::Plain(_) => {}
            TaskValue::Reference(_) | TaskValue::Text(_) => {
                let mut references = Vec::new();
                self.references(&mut references);
                if references.into_iter().any(|reference| is_one(reference.task)) {
                    found.push(path.clone());
                }
            }
            TaskValue::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| item.add_paths(is_one, &path.join(index), found));
            }
            TaskValue::Object(members) => {
                members.iter().for_each(|(key, value)| value.add_paths(is_one, &path.join(key.as_str()), found));
            }
        }
    }

    fn without_references(&self) -> Value {
        match self {
            TaskValue::Plain(value) => value.clone(),
            TaskValue::Reference(_) | TaskValue::Text(_) => Value::Null,
            TaskValue::Array(items) => items.iter().map(TaskValue::without_references).collect(),
            TaskValue::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), value.without_references())).collect()
            }
        }
    }

    /// Adds the references in this value.
    pub(super) fn references<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            TaskValue::Plain(_) => {}
            TaskValue::Reference(reference) => found.push(reference),
            TaskValue::Text(parts) => found.extend(parts.iter().filter_map(|part| match part {
                TextPart::Text(_) => None,
                TextPart::Reference(reference) => Some(reference),
            })),
            TaskValue::Array(items) => items.iter().for_each(|item| item.references(found)),
            TaskValue::Object(members) => members.iter().for_each(|(_, value)| value.references(found)),
        }
    }
}

/// Why a text is no reference.
struct TextProblem {
    message: String,
    hint: Option<String>,
}

impl From<String> for TextProblem {
    fn from(message: String) -> TextProblem {
        TextProblem { message, hint: None }
    }
}

/// `{ $from: TASK, path: $.x }`
fn parse_reference(
    members: &Map<String, Value>,
    task: &dyn Fn(&str) -> Option<usize>,
) -> Result<Reference, TextProblem> {
    let Some(name) = members["$from"].as_str() else {
        return Err("`$from` must be the id of a task".to_owned().into());
    };
    if let Some(other) = members.keys().find(|key| !["$from", "path"].contains(&key.as_str())) {
        let hint = Some("a reference has `$from` and `path`".to_owned());
        return Err(TextProblem { message: format!("unknown key `{other}` in a reference"), hint });
    }
    let path = match members.get("path") {
        None => "$",
        Some(Value::String(path)) => path,
        Some(_) => return Err("`path` must be a JSONPath such as `$.x`".to_owned().into()),
    };
    let index = task(name).ok_or_else(|| unknown_task(name))?;
    Ok(Reference::new(index, path, format!("{{ $from: {name}, path: {path} }}"))?)
}

fn unknown_task(name: &str) -> TextProblem {
    TextProblem { message: format!("no task `{name}`"), hint: None }
}

/// Text with `${TASK.path}`; `$${` stands for `${`. A text that is one reference has the value itself, not its text.
fn parse_text(text: &str, task: &dyn Fn(&str) -> Option<usize>) -> Result<TaskValue, TextProblem> {
    let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(start) = rest.find("${") {
        let before = &rest[..start];
        if let Some(escaped) = before.strip_suffix('$') {
            plain.push_str(escaped);
            plain.push_str("${");
            rest = &rest[start + 2..];
            continue;
        }
        plain.push_str(before);
        let inner = &rest[start + 2..];
        let Some(end) = inner.find('}') else {
            let hint = Some("close it with `}`, or write `$${` for the text `${`".to_owned());
            return Err(TextProblem { message: "`${` without `}`".to_owned(), hint });
        };
        let written = inner[..end].trim();
        let name_end = written.find(['.', '[']).unwrap_or(written.len());
        let (name, path) = written.split_at(name_end);
        let index = task(name).ok_or_else(|| unknown_task(name))?;
        if !plain.is_empty() {
            parts.push(TextPart::Text(std::mem::take(&mut plain)));
        }
        parts.push(TextPart::Reference(Reference::new(index, &format!("${path}"), format!("${{{written}}}"))?));
        rest = &inner[end + 1..];
    }
    plain.push_str(rest);
    if parts.is_empty() {
        return Ok(TaskValue::Plain(Value::String(plain)));
    }
    if !plain.is_empty() {
        parts.push(TextPart::Text(plain));
    }
    Ok(match <[TextPart; 1]>::try_from(parts) {
        Ok([TextPart::Reference(reference)]) => TaskValue::Reference(reference),
        Ok([part]) => TaskValue::Text(vec![part]),
        Err(parts) => TaskValue::Text(parts),
    })
}
