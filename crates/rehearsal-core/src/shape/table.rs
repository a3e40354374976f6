//! The table of shapes in memory, and descriptions of shapes as text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use super::parse;
use crate::exchange::Side;
use crate::json::JsonType;
use crate::protocol::Revision;

/// The shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Any,
    Kind(JsonType),
    /// An integer from 0.
    Count,
    /// A number from 0 to 1.
    UnitInterval,
    Uri,
    Base64,
    /// An object with the keys of `_meta`.
    Meta,
    /// Exactly this string.
    Word(&'static str),
    List {
        each: Box<Shape>,
        at_most: Option<usize>,
    },
    /// An object with any keys.
    Map(Box<Shape>),
    OneOf(Vec<Shape>),
    AllOf(Vec<Shape>),
    /// A type or an alias of the table.
    Named(&'static str),
}

/// A field of an object.
#[derive(Clone, Debug)]
pub(super) struct FieldShape {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) versions: Versions,
    pub(super) shape: Shape,
}

/// An object.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectShape {
    pub(super) fields: Vec<FieldShape>,
    /// Groups of fields of which one must be there.
    pub(super) needs: Vec<Vec<&'static str>>,
    /// Other types whose fields it has, until they are copied here.
    pub(super) includes: Vec<&'static str>,
    /// Whether its keys follow the rules of `_meta`.
    pub(super) is_meta: bool,
}

/// The declaration of a name.
#[derive(Clone, Debug)]
pub(super) enum NamedShape {
    Type { versions: Versions, body: ObjectShape },
    Alias(Shape),
}

/// Whether a message is a request, which requires a response, or a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    Answer,
    Nothing,
}

/// A method and the side that may use it.
#[derive(Clone, Debug)]
pub(super) struct MethodShape {
    pub(super) name: &'static str,
    pub(super) wants: Expects,
    /// The side that may use it; `None` for both.
    pub(super) from: Option<Side>,
    pub(super) versions: Versions,
    pub(super) params: Shape,
    pub(super) result: Shape,
}

/// An error code with a meaning.
#[derive(Clone, Debug)]
pub(super) struct ErrorCode {
    pub(super) code: i64,
    pub(super) versions: Versions,
    pub(super) data: Shape,
}

/// Everything in `table.txt`.
#[derive(Debug, Default)]
pub(super) struct ShapeTable {
    pub(super) named: BTreeMap<&'static str, NamedShape>,
    pub(super) methods: Vec<MethodShape>,
    pub(super) codes: Vec<ErrorCode>,
    /// Lines that could not be parsed; a test ensures that there are none.
    pub(super) problems: Vec<String>,
}

/// The table, parsed once.
pub(super) static TABLE: LazyLock<ShapeTable> = LazyLock::new(|| parse::table(include_str!("table.txt")));

impl ShapeTable {
    /// The fields of a type that a version defines.
    pub(super) fn known(body: &ObjectShape, revision: Revision) -> impl Iterator<Item = &FieldShape> {
        body.fields.iter().filter(move |field| field.versions.contain(revision))
    }

    /// The type of a shape, with the versions that define it.
    pub(super) fn object(&self, shape: &Shape) -> Option<(&ObjectShape, Versions)> {
        let Shape::Named(name) = shape else { return None };
        match self.named.get(name)? {
            NamedShape::Type { versions, body } => Some((body, *versions)),
            NamedShape::Alias(shape) => self.object(shape),
        }
    }

    /// Whether a version defines a shape.
    pub(super) fn knows(&self, shape: &Shape, revision: Revision) -> bool {
        self.object(shape).is_none_or(|(_, versions)| versions.contain(revision))
    }

    /// The alternatives of a shape, with aliases resolved; the shape itself if it has no alternatives.
    pub(super) fn alternatives<'t>(&'t self, shape: &'t Shape) -> Vec<&'t Shape> {
        match shape {
            Shape::OneOf(all) => all.iter().flat_map(|one| self.alternatives(one)).collect(),
            Shape::Named(name) => match self.named.get(name) {
                Some(NamedShape::Alias(shape)) => self.alternatives(shape),
                Some(NamedShape::Type { .. }) | None => vec![shape],
            },
            _ => vec![shape],
        }
    }

    /// All methods of this name, of either side and any version.
    pub(super) fn methods<'t, 'n>(&'t self, name: &'n str) -> impl Iterator<Item = &'t MethodShape> + use<'t, 'n> {
        self.methods.iter().filter(move |method| method.name == name)
    }
}

/// A range of versions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The first version.
    pub since: Revision,
    /// The last version.
    pub until: Revision,
}

impl Versions {
    /// All versions.
    pub const ALL: Versions = Versions { since: Revision::ALL[0], until: Revision::ALL[Revision::ALL.len() - 1] };

    /// Whether the range contains a version.
    pub fn contain(self, revision: Revision) -> bool {
        (self.since..=self.until).contains(&revision)
    }

    /// Parses `2025-06..`, `..2025-11`, `2025-03..2025-06` or `2025-11`; a version may be abbreviated if that is
    /// unambiguous.
    pub(super) fn parse(text: &str) -> Option<Versions> {
        let revision = |text: &str, otherwise: Revision| match text {
            "" => Some(otherwise),
            text => {
                let mut found = Revision::ALL.into_iter().filter(|revision| revision.as_str().starts_with(text));
                found.next().filter(|_| found.next().is_none())
            }
        };
        let (since, until) = text.split_once("..").unwrap_or((text, text));
        let until = revision(until, Versions::ALL.until)?;
        Some(Versions { since: revision(since, Versions::ALL.since)?, until })
    }
}

impl fmt::Display for Versions {
    /// `2025-11-25 only`, `2025-06-18 and later`, `versions up to 2025-11-25`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Versions { since, until } = *self;
        match (since == Versions::ALL.since, until == Versions::ALL.until) {
            (true, true) => f.write_str("all versions"),
            (false, true) if since == until => write!(f, "{since}"),
            (false, true) => write!(f, "{since} and later"),
            (true, false) => write!(f, "versions up to {until}"),
            (false, false) if since == until => write!(f, "{since} only"),
            (false, false) => write!(f, "{since} to {until}"),
        }
    }
}

impl ShapeTable {
    /// Describes a shape: `a string`, `"public" or "private"`, `an object`.
    pub(super) fn words(&self, shape: &Shape, revision: Revision) -> String {
        match shape {
            Shape::Any => "a value".to_owned(),
            Shape::Kind(kind) => kind.with_article().to_owned(),
            Shape::Count => "an integer from 0".to_owned(),
            Shape::UnitInterval => "a number from 0 to 1".to_owned(),
            Shape::Uri => "a URI".to_owned(),
            Shape::Base64 => "base64".to_owned(),
            Shape::Word(word) => format!("\"{word}\""),
            Shape::List { .. } => "an array".to_owned(),
            Shape::Meta | Shape::Map(_) | Shape::AllOf(_) => "an object".to_owned(),
            Shape::OneOf(_) => {
                let known = self.alternatives(shape).into_iter().filter(|one| self.knows(one, revision));
                let mut words: Vec<String> = Vec::new();
                for word in known.map(|one| self.words(one, revision)) {
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
                join_or(&words)
            }
            Shape::Named(name) => match self.named.get(name) {
                Some(NamedShape::Alias(shape)) => self.words(shape, revision),
                Some(NamedShape::Type { .. }) | None => "an object".to_owned(),
            },
        }
    }
}

/// `a`, `a or b`, `a, b or c`
pub(super) fn join_or(words: &[String]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The candidate that is the same name in another spelling: `mime_type`, `mimetype` and `MimeType` are `mimeType`.
pub(super) fn same_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
    let wanted = plain(word);
    candidates.into_iter().find(|candidate| *candidate != word && plain(candidate) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Method as Name;

    #[test]
    fn every_line_of_the_table_is_understood_and_every_name_is_defined() {
        assert_eq!(TABLE.problems, [""; 0]);
    }

    #[test]
    fn every_method_that_some_version_defines_has_a_shape() {
        for name in Name::KNOWN {
            assert!(TABLE.methods(name).next().is_some(), "{name}");
        }
        for method in &TABLE.methods {
            assert!(Name::KNOWN.contains(&method.name), "{}", method.name);
        }
    }

    #[test]
    fn no_version_defines_a_name_twice() {
        for revision in Revision::ALL {
            for side in [Side::Client, Side::Server] {
                for name in Name::KNOWN {
                    let of = |method: &&MethodShape| {
                        method.versions.contain(revision) && method.from.is_none_or(|from| from == side)
                    };
                    assert!(TABLE.methods(name).filter(of).count() <= 1, "{name} in {revision} from {side:?}");
                }
            }
            for (name, named) in &TABLE.named {
                let NamedShape::Type { body, .. } = named else { continue };
                let mut fields: Vec<_> = ShapeTable::known(body, revision).map(|field| field.name).collect();
                let count = fields.len();
                fields.sort_unstable();
                fields.dedup();
                assert_eq!(fields.len(), count, "{name} in {revision}");
            }
        }
    }

    #[test]
    fn each_version_has_the_methods_of_its_specification() {
        let count = |revision, side: Side, wants| {
            let has = |method: &&MethodShape| {
                let its = method.from.is_none_or(|from| from == side);
                its && method.versions.contain(revision) && method.wants == wants
            };
            TABLE.methods.iter().filter(has).count()
        };
        // version, requests of the client and of the server, notifications of the client and of the server
        for (revision, expected) in [
            (Revision::V2024_11_05, [13, 3, 4, 7]),
            (Revision::V2025_03_26, [13, 3, 4, 7]),
            (Revision::V2025_06_18, [13, 4, 4, 7]),
            (Revision::V2025_11_25, [17, 8, 5, 9]),
            (Revision::V2026_07_28, [13, 0, 1, 9]),
        ] {
            let found = [
                count(revision, Side::Client, Expects::Answer),
                count(revision, Side::Server, Expects::Answer),
                count(revision, Side::Client, Expects::Nothing),
                count(revision, Side::Server, Expects::Nothing),
            ];
            assert_eq!(found, expected, "{revision}");
        }
    }

    #[test]
    fn a_range_of_versions_is_displayed_in_prose() {
        for (text, expected) in [
            ("2025-06..", "2025-06-18 and later"),
            ("..2025-11", "versions up to 2025-11-25"),
            ("2025-11", "2025-11-25 only"),
            ("2026..", "2026-07-28"),
            ("2025-03..2025-06", "2025-03-26 to 2025-06-18"),
            ("..", "all versions"),
        ] {
            assert_eq!(Versions::parse(text).unwrap().to_string(), expected, "{text}");
        }
        assert_eq!(Versions::parse("2025.."), None, "three versions begin so");
        assert_eq!(Versions::parse("2027"), None);
    }
}
