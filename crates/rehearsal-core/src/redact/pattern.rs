//! A set of places in messages: a path with wildcards.

use std::str::FromStr;

use crate::json::Segment;

/// A path in which `*` is any key or index and `..` any number of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacePattern(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    One(Segment),
    Any,
    Deep,
}

/// A text that is not such a path; `position` counts bytes from the beginning of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it means")]
pub enum PlaceError {
    #[error("expected `.` or `[` at byte {position}")]
    NoStep { position: usize },
    #[error("expected a key at byte {position}")]
    NoKey { position: usize },
    #[error("expected an index, `*` or a quoted key at byte {position}")]
    NoIndex { position: usize },
    #[error("expected `]` at byte {position}")]
    NotClosed { position: usize },
}

impl PlacePattern {
    /// Whether this place, given by its steps from the root, is one of them.
    pub(super) fn matches(&self, place: &[Segment]) -> bool {
        matches(&self.0, place)
    }

    /// Whether this names a whole message or what holds one together.
    pub(super) fn is_protocol(&self) -> bool {
        match self.0.as_slice() {
            [] => true,
            [Step::One(Segment::Key(key))] => matches!(key.as_str(), "jsonrpc" | "id" | "method"),
            [Step::Any] => true,
            _ => false,
        }
    }
}

fn matches(steps: &[Step], place: &[Segment]) -> bool {
    match (steps.split_first(), place.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((Step::Deep, rest)), None) => matches(rest, place),
        (Some(_), None) => false,
        (Some((Step::Deep, rest)), Some((_, below))) => matches(rest, place) || matches(steps, below),
        (Some((Step::Any, rest)), Some((_, below))) => matches(rest, below),
        (Some((Step::One(segment), rest)), Some((here, below))) => segment == here && matches(rest, below),
    }
}

impl FromStr for PlacePattern {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<PlacePattern, PlaceError> {
        let mut steps = Vec::new();
        let mut rest = text.strip_prefix('$').ok_or(PlaceError::NoStep { position: 0 })?;
        while !rest.is_empty() {
            let position = text.len() - rest.len();
            if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Deep);
                rest = if after.starts_with('[') { after } else { key(after, &mut steps, position + 2)? };
            } else if let Some(after) = rest.strip_prefix('.') {
                rest = key(after, &mut steps, position + 1)?;
            } else if let Some(after) = rest.strip_prefix('[') {
                let after = index(after, &mut steps).ok_or(PlaceError::NoIndex { position: position + 1 })?;
                let position = text.len() - after.len();
                rest = after.strip_prefix(']').ok_or(PlaceError::NotClosed { position })?;
            } else {
                return Err(PlaceError::NoStep { position });
            }
        }
        Ok(PlacePattern(steps))
    }
}

/// A word or `*` after a dot. Unlike in JSONPath a `-` needs no quotes: headers and tools' arguments are full of them.
fn key<'t>(rest: &'t str, steps: &mut Vec<Step>, position: usize) -> Result<&'t str, PlaceError> {
    if let Some(after) = rest.strip_prefix('*') {
        steps.push(Step::Any);
        return Ok(after);
    }
    let end = rest.find(|character: char| !(character.is_alphanumeric() || "_-/".contains(character)));
    let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
    if word.is_empty() {
        return Err(PlaceError::NoKey { position });
    }
    steps.push(Step::One(Segment::Key(word.to_owned())));
    Ok(after)
}

fn index<'t>(rest: &'t str, steps: &mut Vec<Step>) -> Option<&'t str> {
    if let Some(after) = rest.strip_prefix('*') {
        steps.push(Step::Any);
        return Some(after);
    }
    let single = rest.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
    let (segment, after) = if let Some((key, after)) = single {
        (Segment::Key(key.to_owned()), after)
    } else if rest.starts_with('"') {
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let key = strings.next()?.ok()?;
        (Segment::Key(key), &rest[strings.byte_offset()..])
    } else {
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        (Segment::Index(rest[..end].parse().ok()?), &rest[end..])
    };
    steps.push(Step::One(segment));
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Path;

    #[test]
    fn wildcards_stand_for_what_they_should() {
        for (pattern, place, expected) in [
            ("$.a.b", "$.a.b", true),
            ("$.a.b", "$.a.b.c", false),
            ("$.a[*].b", "$.a[3].b", true),
            ("$.a.*.b", "$.a.x.b", true),
            ("$.a[*].b", "$.a.b", false),
            ("$..b", "$.b", true),
            ("$..b", "$.x[1].y.b", true),
            ("$..b", "$.x.b.y", false),
            ("$..[0]", "$.x[0]", true),
            ("$['odd key'].x", r#"$["odd key"].x"#, true),
            ("$.x-y", r#"$["x-y"]"#, true),
            ("$..a..b", "$.z.a.q.b", true),
        ] {
            let place: Path = place.parse().unwrap();
            assert_eq!(
                pattern.parse::<PlacePattern>().unwrap().matches(place.segments()),
                expected,
                "{pattern} {place}"
            );
        }
    }
}
