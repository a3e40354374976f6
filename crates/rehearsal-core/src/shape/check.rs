//! Checks a value against a shape.

use serde_json::{Map, Value};

use super::table::{FieldShape, NamedShape, ObjectShape, Shape, ShapeTable, TABLE, same_word};
use crate::json::{DEFAULT_EXCERPT, JsonType, Path, excerpt};
use crate::matcher::Mismatch;
use crate::protocol::Revision;
use crate::report::Severity;
use crate::suggest::closest;

/// One place where a value does not have its shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShapeMismatch {
    pub(super) severity: Severity,
    pub(super) mismatch: Mismatch,
    pub(super) hint: Option<String>,
}

/// Walks through a value and collects what is wrong.
#[derive(Debug)]
pub(super) struct ShapeCheck {
    pub(super) table: &'static ShapeTable,
    pub(super) revision: Revision,
    pub(super) path: Path,
    pub(super) found: Vec<ShapeMismatch>,
}

/// Checks a value at `path`, and returns everything that is wrong with it.
pub(super) fn check(
    shape: &'static Shape,
    value: Option<&Value>,
    revision: Revision,
    path: Path,
) -> Vec<ShapeMismatch> {
    let mut check = ShapeCheck { table: &TABLE, revision, path, found: Vec::new() };
    match value {
        Some(value) => check.value(shape, value),
        // A value without required fields may be absent.
        None => check.absent(shape),
    }
    check.found
}

impl ShapeCheck {
    pub(super) fn value(&mut self, shape: &'static Shape, value: &Value) {
        let fits = match shape {
            Shape::Any => true,
            Shape::Kind(kind) => kind.includes(value),
            Shape::Count => JsonType::Integer.includes(value) && value.as_f64().is_some_and(|number| number >= 0.0),
            Shape::UnitInterval => value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number)),
            Shape::Uri => value.as_str().is_some_and(is_uri),
            Shape::Base64 => value.as_str().is_some_and(is_base64),
            Shape::Word(word) => value.as_str() == Some(word),
            Shape::Meta => {
                if let Some(object) = value.as_object() {
                    self.meta_keys(object);
                }
                value.is_object()
            }
            Shape::List { each, at_most } => {
                if let Some(list) = value.as_array() {
                    self.list(each, *at_most, list);
                }
                value.is_array()
            }
            Shape::Map(each) => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    self.below(key.as_str(), |check| check.value(each, value));
                }
                value.is_object()
            }
            Shape::OneOf(_) => return self.choice(shape, value),
            Shape::AllOf(all) => return all.iter().for_each(|shape| self.value(shape, value)),
            Shape::Named(name) => match self.table.named.get(name) {
                Some(NamedShape::Alias(shape)) => return self.value(shape, value),
                Some(NamedShape::Type { body, .. }) => {
                    if let Some(object) = value.as_object() {
                        self.object(body, object);
                    }
                    value.is_object()
                }
                None => true,
            },
        };
        if !fits {
            let expected = self.table.words(shape, self.revision);
            self.report(expected, Some(value), hint(shape, value));
        }
    }

    fn list(&mut self, each: &'static Shape, at_most: Option<usize>, list: &[Value]) {
        if let Some(limit) = at_most.filter(|limit| list.len() > *limit) {
            let mismatch = Mismatch {
                path: self.path.clone(),
                expected: format!("at most {limit} elements"),
                got: Some(list.len().to_string()),
            };
            self.found.push(ShapeMismatch { severity: Severity::Error, mismatch, hint: None });
        }
        for (at, value) in list.iter().enumerate() {
            self.below(at, |check| check.value(each, value));
        }
    }

    fn object(&mut self, body: &'static ObjectShape, object: &Map<String, Value>) {
        for field in ShapeTable::known(body, self.revision) {
            match object.get(field.name) {
                Some(value) => self.below(field.name, |check| check.value(&field.shape, value)),
                None if field.required => self.missing(body, field, object),
                None => {}
            }
        }
        for names in &body.needs {
            if !names.iter().any(|name| object.contains_key(*name)) {
                let expected = format!("a key {}", names.join(" or "));
                self.report(expected, Some(&Value::Object(object.clone())), None);
            }
        }
        for (key, value) in object {
            self.extra(body, object, key, value);
        }
        if body.is_meta {
            self.meta_keys(object);
        }
    }

    /// Reports the params that are absent though required.
    fn absent(&mut self, shape: &'static Shape) {
        let alternatives = self.table.alternatives(shape);
        let optional = alternatives.iter().any(|one| match self.table.object(one) {
            Some((body, _)) => ShapeTable::known(body, self.revision).all(|field| !field.required),
            None => matches!(one, Shape::Any),
        });
        if !optional {
            let needed = alternatives.first().and_then(|one| self.table.object(one)).map(|(body, _)| {
                let required = ShapeTable::known(body, self.revision).filter(|field| field.required);
                required.map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ")
            });
            let hint = needed.map(|names| format!("it must have {names} in {}", self.revision));
            self.report("an object".to_owned(), None, hint);
        }
    }

    fn missing(&mut self, body: &ObjectShape, field: &FieldShape, object: &Map<String, Value>) {
        let others = object.keys().map(String::as_str);
        let unknown = others.filter(|key| ShapeTable::known(body, self.revision).all(|field| field.name != *key));
        let hint = match same_word(field.name, unknown) {
            Some(written) => Some(format!("`{written}` is written `{}`", field.name)),
            None if field.versions == super::Versions::ALL => None,
            None => Some(format!("`{}` is required in {}", field.name, field.versions)),
        };
        let expected = self.table.words(&field.shape, self.revision);
        self.below(field.name, |check| check.report(expected, None, hint));
    }

    /// Reports a key that the version does not define: it is allowed, but may be a mistake.
    fn extra(&mut self, body: &ObjectShape, object: &Map<String, Value>, key: &str, value: &Value) {
        let known = || ShapeTable::known(body, self.revision).map(|field| field.name);
        if known().any(|name| name == key) {
            return;
        }
        // A required field that is missing was reported already.
        let optional =
            || ShapeTable::known(body, self.revision).filter(|field| !field.required).map(|field| field.name);
        let elsewhere: Vec<_> = body.fields.iter().filter(|field| field.name == key).collect();
        let (severity, expected, hint) = if let Some(first) = elsewhere.first() {
            let hint = format!("`{key}` exists in {}", first.versions);
            (Severity::Note, format!("no such key in {}", self.revision), hint)
        } else if let Some(meant) = same_word(key, optional()).filter(|meant| !object.contains_key(*meant)) {
            (Severity::Warning, format!("`{meant}`"), format!("`{key}` is written `{meant}`"))
        } else {
            return;
        };
        let got = Some(excerpt(value, DEFAULT_EXCERPT));
        let mismatch = Mismatch { path: self.path.join(key), expected, got };
        self.found.push(ShapeMismatch { severity, mismatch, hint: Some(hint) });
    }

    fn meta_keys(&mut self, object: &Map<String, Value>) {
        // Older versions do not restrict keys.
        if self.revision < Revision::V2025_06_18 {
            return;
        }
        for key in object.keys().filter(|key| !is_meta_key(key)) {
            let mismatch = Mismatch {
                path: self.path.join(key.as_str()),
                expected: "a name, such as `com.example/name`".to_owned(),
                got: Some(excerpt(&Value::from(key.as_str()), DEFAULT_EXCERPT)),
            };
            let hint = "names of `_meta` begin and end with a letter or digit; between them may be -, _ and .";
            self.found.push(ShapeMismatch { severity: Severity::Warning, mismatch, hint: Some(hint.to_owned()) });
        }
    }

    pub(super) fn below<K: Into<crate::json::Segment>>(&mut self, key: K, inside: impl FnOnce(&mut ShapeCheck)) {
        self.path.push(key);
        inside(self);
        self.path.pop();
    }

    pub(super) fn report(&mut self, expected: String, got: Option<&Value>, hint: Option<String>) {
        let got = got.map(|value| excerpt(value, DEFAULT_EXCERPT));
        let mismatch = Mismatch { path: self.path.clone(), expected, got };
        self.found.push(ShapeMismatch { severity: Severity::Error, mismatch, hint });
    }
}

/// A hint on how to correct a value that does not have a shape.
pub(super) fn hint(shape: &Shape, value: &Value) -> Option<String> {
    match (shape, value) {
        (_, Value::Null) => Some("leave the key out instead of writing null".to_owned()),
        (
            Shape::Kind(JsonType::Integer | JsonType::Number | JsonType::Boolean) | Shape::Count | Shape::UnitInterval,
            Value::String(text),
        ) if serde_json::from_str::<Value>(text).is_ok_and(|inner| inner.is_number() || inner.is_boolean()) => {
            Some("write it without quotes".to_owned())
        }
        (Shape::Uri, Value::String(_)) => Some("a URI begins with a scheme, such as file://".to_owned()),
        (Shape::Base64, Value::String(_)) => {
            Some("standard base64, with + and /, padded with = to a multiple of four characters".to_owned())
        }
        (Shape::Word(word), Value::String(text)) => {
            closest(text, [*word]).map(|word| format!("did you mean {word:?}?"))
        }
        _ => None,
    }
}

/// Whether this looks like a URI: a scheme, a colon, no blanks.
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && !text.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control())
}

/// Whether this is base64 with padding.
pub(super) fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - data.len() <= 2
        && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Whether this is a valid key of `_meta`: a name, optionally after a prefix such as `com.example/`.
pub(super) fn is_meta_key(key: &str) -> bool {
    let inner = |text: &str, also: &[char]| {
        let ends = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric());
        ends && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(&c))
    };
    let (prefix, name) = match key.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let label = |label: &str| inner(label, &['-']) && label.starts_with(|c: char| c.is_ascii_alphabetic());
    prefix.is_none_or(|prefix| prefix.split('.').all(label)) && (name.is_empty() || inner(name, &['-', '_', '.']))
}

/// The unknown keys in an object of a type of the table that are similar to a known key, each with that key. Other
/// unknown keys are allowed, and so is every key of an object that may have any keys.
pub(crate) fn misspelled_keys(type_name: &'static str, value: &Value) -> Vec<(Path, &'static str)> {
    let mut found = Vec::new();
    search(&Shape::Named(type_name), value, &Path::root(), &mut found);
    found
}

fn search(shape: &Shape, value: &Value, at: &Path, found: &mut Vec<(Path, &'static str)>) {
    let (Some((body, _)), Some(map)) = (TABLE.object(shape), value.as_object()) else { return };
    for (key, value) in map {
        let at = at.join(key.as_str());
        match body.fields.iter().find(|field| field.name == key) {
            Some(field) => search(&field.shape, value, &at, found),
            None => found.extend(closest(key, body.fields.iter().map(|field| field.name)).map(|meant| (at, meant))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_uri_has_a_scheme_and_no_blanks() {
        for text in ["file:///a", "test://static-text", "data:image/png;base64,AA==", "urn:a", "a+b.c-1:x"] {
            assert!(is_uri(text), "{text}");
        }
        for text in ["", "a", "/a/b", "1a:b", ":x", "file:///a b", "a_b:c"] {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn base64_has_its_padding() {
        for text in ["", "AAAA", "AA==", "AAA=", "+/09"] {
            assert!(is_base64(text), "{text}");
        }
        for text in ["A", "AA", "A===", "====", "A A=", "AAAA=", "AA-_"] {
            assert!(!is_base64(text), "{text}");
        }
    }

    #[test]
    fn a_key_of_meta_is_a_name_after_a_prefix() {
        for key in ["progressToken", "a", "com.example/a_b.c", "io.modelcontextprotocol/related-task", "a/", "x-1"] {
            assert!(is_meta_key(key), "{key}");
        }
        for key in ["a b", "/a", "com..example/a", "_a", "a-", "1.a/x", "a/b/c"] {
            assert!(!is_meta_key(key), "{key}");
        }
    }

    #[test]
    fn misspelled_keys_are_found_except_in_free_objects() {
        let value = json!({
            "tols": {},
            "tools": {"listChangd": true},
            "weather": {"tols": 1},
            "experimental": {"tols": {}, "x": {"listChangd": 1}},
            "extensions": {"a/tools": {"tols": 1}},
        });
        let found = misspelled_keys("ServerCapabilities", &value);
        let found: Vec<String> = found.iter().map(|(at, meant)| format!("{at} {meant}")).collect();
        assert_eq!(found, ["$.tols tools", "$.tools.listChangd listChanged"]);
    }
}
