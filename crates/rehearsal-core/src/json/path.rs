//! Paths of values inside a JSON value.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A path inside a JSON value, printed in the syntax of JSONPath.
///
/// ```text
/// $                     the whole value
/// $.items[3].name       keys and indexes
/// $["odd key"].x        a key that is not a word is quoted like a JSON string
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Path {
    segments: Vec<Segment>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A key of an object.
    Key(String),
    /// An index of an array, from 0.
    Index(usize),
}

impl Path {
    /// The path of the whole value: `$`.
    pub const fn root() -> Path {
        Path { segments: Vec::new() }
    }

    /// The path of a JSON pointer (RFC 6901) inside `within`.
    ///
    /// A pointer does not distinguish the key `3` from the index 3, so the value decides; below a path that does not
    /// exist a number is an index.
    pub fn from_pointer(pointer: &str, within: &Value) -> Path {
        let mut path = Path::root();
        let mut here = Some(within);
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let segment = match (here, token.parse()) {
                (Some(Value::Object(_)), _) | (_, Err(_)) => Segment::Key(token),
                (_, Ok(index)) => Segment::Index(index),
            };
            here = here.and_then(|value| segment.step(value));
            path.push(segment);
        }
        path
    }

    /// Appends a step.
    pub fn push(&mut self, segment: impl Into<Segment>) {
        self.segments.push(segment.into());
    }

    /// Removes the last step, and returns it.
    pub fn pop(&mut self) -> Option<Segment> {
        self.segments.pop()
    }

    /// The path with one more step.
    #[must_use]
    pub fn join(&self, segment: impl Into<Segment>) -> Path {
        let mut path = self.clone();
        path.push(segment);
        path
    }

    /// The path of `inner`, relative to this one.
    #[must_use]
    pub fn concat(&self, inner: &Path) -> Path {
        let mut path = self.clone();
        path.segments.extend_from_slice(&inner.segments);
        path
    }

    /// The steps from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether this is `other` or a path below it.
    pub fn is_within(&self, other: &Path) -> bool {
        self.segments.starts_with(&other.segments)
    }

    /// A mutable reference to the value at this path, if there is one.
    pub fn lookup_mut<'value>(&self, value: &'value mut Value) -> Option<&'value mut Value> {
        self.segments.iter().try_fold(value, |value, segment| match segment {
            Segment::Key(key) => value.as_object_mut()?.get_mut(key),
            Segment::Index(index) => value.as_array_mut()?.get_mut(*index),
        })
    }

    /// The value at this path, if there is one.
    pub fn lookup<'value>(&self, value: &'value Value) -> Option<&'value Value> {
        self.segments.iter().try_fold(value, |value, segment| segment.step(value))
    }
}

impl Segment {
    fn step<'value>(&self, value: &'value Value) -> Option<&'value Value> {
        match self {
            Segment::Key(key) => value.as_object()?.get(key),
            Segment::Index(index) => value.as_array()?.get(*index),
        }
    }
}

impl From<&str> for Segment {
    fn from(key: &str) -> Segment {
        Segment::Key(key.to_owned())
    }
}

impl From<String> for Segment {
    fn from(key: String) -> Segment {
        Segment::Key(key)
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Segment {
        Segment::Index(index)
    }
}

impl FromIterator<Segment> for Path {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Path {
        Path { segments: segments.into_iter().collect() }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Key(key) if is_word(key) => write!(f, ".{key}"),
            Segment::Key(key) => write!(f, "[{}]", Value::from(key.as_str())),
            Segment::Index(index) => write!(f, "[{index}]"),
        })
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a key may follow a dot; RFC 9535 calls it a member name shorthand.
fn is_word(key: &str) -> bool {
    !key.starts_with(|first: char| first.is_ascii_digit()) && !key.is_empty() && key.chars().all(is_word_character)
}

fn is_word_character(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_prints_as_jsonpath_does() {
        for (segments, text) in [
            (vec![], "$"),
            (vec!["name".into()], "$.name"),
            (vec!["items".into(), 3.into()], "$.items[3]"),
            (vec!["odd key".into(), "x".into()], r#"$["odd key"].x"#),
            (vec!["a\"b".into()], r#"$["a\"b"]"#),
            (vec!["".into(), "3".into()], r#"$[""]["3"]"#),
            (vec!["$schema".into()], r#"$["$schema"]"#),
            (vec!["blåbær".into()], "$.blåbær"),
        ] {
            let path: Path = segments.into_iter().collect::<Vec<Segment>>().into_iter().collect();
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn a_pointer_becomes_keys_or_indexes_as_the_value_has_them() {
        let value = json!({"0": [{"a/b": {"": 1}}]});
        let path = Path::from_pointer("/0/0/a~1b/", &value);
        assert_eq!(path.to_string(), r#"$["0"][0]["a/b"][""]"#);
        assert_eq!(path.lookup(&value), Some(&json!(1)));
        assert_eq!(Path::from_pointer("", &value), Path::root());
    }
}
