//! Where something is inside a JSON value.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A place inside a JSON value, printed the way JSONPath writes a single place.
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

/// One step down into a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A key of an object.
    Key(String),
    /// An index of an array, from 0.
    Index(usize),
}

impl Path {
    /// The whole value: `$`.
    pub const fn root() -> Path {
        Path { segments: Vec::new() }
    }

    /// The place that a JSON pointer (RFC 6901) names inside `within`.
    ///
    /// A pointer does not say whether `3` is a key or an index, so the value is asked; below a place that does not exist
    /// a number is taken for an index.
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

    /// Goes one step down.
    pub fn push(&mut self, segment: impl Into<Segment>) {
        self.segments.push(segment.into());
    }

    /// Goes one step up, and says which step that was.
    pub fn pop(&mut self) -> Option<Segment> {
        self.segments.pop()
    }

    /// The place one step below this one.
    #[must_use]
    pub fn join(&self, segment: impl Into<Segment>) -> Path {
        let mut path = self.clone();
        path.push(segment);
        path
    }

    /// The place that `inner` names, seen from here.
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

    /// Whether this is the whole value.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether this is `other` or a place below it.
    pub fn is_within(&self, other: &Path) -> bool {
        self.segments.starts_with(&other.segments)
    }

    /// What is at this place, if anything.
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

/// A text that is not a path to one place; `position` counts bytes from the beginning of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it means")]
pub enum PathError {
    #[error("a path begins with `$`")]
    NoRoot { position: usize },
    #[error("expected `.` or `[` at byte {position}")]
    NoStep { position: usize },
    #[error("expected a key at byte {position}; quote one that is not a word: [\"odd key\"]")]
    NoKey { position: usize },
    #[error("expected an index or a quoted key at byte {position}")]
    NoIndex { position: usize },
    #[error("expected `]` at byte {position}")]
    NotClosed { position: usize },
}

impl PathError {
    /// Where in the text it went wrong, in bytes from the beginning.
    pub fn position(&self) -> usize {
        match self {
            PathError::NoRoot { position }
            | PathError::NoStep { position }
            | PathError::NoKey { position }
            | PathError::NoIndex { position }
            | PathError::NotClosed { position } => *position,
        }
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        let mut rest = text.strip_prefix('$').ok_or(PathError::NoRoot { position: 0 })?;
        let mut path = Path::root();
        while !rest.is_empty() {
            let position = text.len() - rest.len();
            let (segment, after) = if let Some(rest) = rest.strip_prefix('.') {
                read_word(rest).ok_or(PathError::NoKey { position: position + 1 })?
            } else if let Some(rest) = rest.strip_prefix('[') {
                let (segment, after) = read_quoted(rest)
                    .or_else(|| read_index(rest))
                    .ok_or(PathError::NoIndex { position: position + 1 })?;
                let position = text.len() - after.len();
                let after = after.strip_prefix(']').ok_or(PathError::NotClosed { position })?;
                (segment, after)
            } else {
                return Err(PathError::NoStep { position });
            };
            path.push(segment);
            rest = after;
        }
        Ok(path)
    }
}

fn read_word(rest: &str) -> Option<(Segment, &str)> {
    let end = rest.find(|character| !is_word_character(character)).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    is_word(word).then(|| (Segment::from(word), after))
}

fn read_index(rest: &str) -> Option<(Segment, &str)> {
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    Some((Segment::Index(digits.parse().ok()?), after))
}

fn read_quoted(rest: &str) -> Option<(Segment, &str)> {
    let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let key = strings.next()?.ok()?;
    let after = &rest[strings.byte_offset()..];
    Some((Segment::Key(key), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
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
            assert_eq!(text.parse(), Ok(path));
        }
    }

    #[test]
    fn a_bad_path_says_where_it_went_wrong() {
        for (text, error) in [
            ("name", PathError::NoRoot { position: 0 }),
            ("$name", PathError::NoStep { position: 1 }),
            ("$.a..b", PathError::NoKey { position: 4 }),
            ("$.3", PathError::NoKey { position: 2 }),
            ("$.a[*]", PathError::NoIndex { position: 4 }),
            ("$.a[-1]", PathError::NoIndex { position: 4 }),
            ("$[1", PathError::NotClosed { position: 3 }),
            ("$[99999999999999999999]", PathError::NoIndex { position: 2 }),
            (r#"$["a"#, PathError::NoIndex { position: 2 }),
        ] {
            let got = text.parse::<Path>().unwrap_err();
            assert_eq!(got, error, "{text}");
            assert!(got.position() <= text.len());
        }
    }

    #[test]
    fn a_path_finds_what_is_there_and_nothing_else() {
        let value = json!({"items": [{"odd key": 1}], "0": 2});
        let found = |text: &str| text.parse::<Path>().unwrap().lookup(&value).cloned();
        assert_eq!(found(r#"$.items[0]["odd key"]"#), Some(json!(1)));
        assert_eq!(found(r#"$["0"]"#), Some(json!(2)));
        assert_eq!(found("$[0]"), None);
        assert_eq!(found("$.items[1]"), None);
    }

    #[test]
    fn a_pointer_becomes_keys_or_indexes_as_the_value_has_them() {
        let value = json!({"0": [{"a/b": {"": 1}}]});
        let path = Path::from_pointer("/0/0/a~1b/", &value);
        assert_eq!(path.to_string(), r#"$["0"][0]["a/b"][""]"#);
        assert_eq!(path.lookup(&value), Some(&json!(1)));
        assert_eq!(Path::from_pointer("", &value), Path::root());
    }

    fn segment() -> impl Strategy<Value = Segment> {
        prop_oneof![
            any::<String>().prop_map(Segment::Key),
            "[a-z_][a-z0-9_]{0,8}".prop_map(Segment::Key),
            any::<usize>().prop_map(Segment::Index),
        ]
    }

    proptest! {
        #[test]
        fn every_path_is_read_back_as_it_was_printed(segments in prop::collection::vec(segment(), 0..6)) {
            let path: Path = segments.into_iter().collect();
            prop_assert_eq!(path.to_string().parse(), Ok(path));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in r#"[$.\["\]a0å\\]{0,12}"#) {
            let _ = text.parse::<Path>();
        }
    }
}
