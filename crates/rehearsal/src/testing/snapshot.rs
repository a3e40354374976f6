//! Responses as snapshots.

use std::fmt;

use rehearsal_core::json::PathQuery;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::client::ServerResponse;

/// The stable part of a response: the result or the error, without ids, times and other values that change.
///
/// It serializes, so [`insta`](https://insta.rs) accepts it directly, redactions included; its `Display` is pretty
/// JSON.
///
/// ```ignore
/// let snapshot = Snapshot::from_response(&response).redact("$.structuredContent.id", "[id]").replace(r"\d\d:\d\d", "[time]");
/// insta::assert_json_snapshot!(snapshot);
/// insta::assert_snapshot!(snapshot, @r#"…"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    value: Value,
}

impl Snapshot {
    /// Takes a snapshot of a response. `_meta` is left out, because it describes the connection.
    pub fn from_response(response: &ServerResponse) -> Snapshot {
        let value = match response.error() {
            Some(error) => {
                let data = error.data.as_ref().and_then(|data| data.value().ok());
                let mut fields = Map::new();
                fields.insert("code".into(), error.code.into());
                fields.insert("message".into(), error.message.as_str().into());
                fields.extend(data.map(|data| ("data".to_owned(), data)));
                json!({"error": fields})
            }
            None => {
                let mut result = response.result().clone();
                if let Value::Object(fields) = &mut result {
                    fields.shift_remove("_meta");
                }
                result
            }
        };
        Snapshot { value }
    }

    /// Replaces the values at a JSONPath (RFC 9535) such as `$.structuredContent.items[*].id` with `instead`.
    ///
    /// # Panics
    ///
    /// If the path is no JSONPath, or matches nothing: a redaction without a match is a mistake in the test.
    #[track_caller]
    pub fn redact(mut self, path: &str, instead: impl Into<Value>) -> Snapshot {
        let query = PathQuery::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let places = query.find_all(&self.value);
        assert!(!places.is_empty(), "nothing to redact at {path}; the response is\n{self}");
        let instead = instead.into();
        for place in places {
            if let Some(value) = place.lookup_mut(&mut self.value) {
                *value = instead.clone();
            }
        }
        self
    }

    /// Replaces every match of a regular expression in any text with `instead`; `$1` is its first group.
    ///
    /// # Panics
    ///
    /// If the expression is invalid, with the place.
    #[track_caller]
    pub fn replace(mut self, expression: &str, instead: &str) -> Snapshot {
        let regex = regex::Regex::new(expression).unwrap_or_else(|error| panic!("{error}"));
        rewrite(&mut self.value, &|text| regex.replace_all(text, instead).into_owned());
        self
    }

    /// The snapshot as a value.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

fn rewrite(value: &mut Value, with: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = with(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, with)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rewrite(field, with)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.value)
    }
}
