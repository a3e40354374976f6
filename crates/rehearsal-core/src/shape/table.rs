//! The table of shapes, in memory.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::parse;
use super::versions::Versions;
use crate::exchange::Side;
use crate::json::Kind;
use crate::protocol::Revision;

/// What a value looks like.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Any,
    Kind(Kind),
    /// An integer from 0.
    Count,
    /// A number from 0 to 1.
    Share,
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
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) versions: Versions,
    pub(super) shape: Shape,
}

/// An object.
#[derive(Clone, Debug, Default)]
pub(super) struct Type {
    pub(super) fields: Vec<Field>,
    /// Groups of fields of which one must be there.
    pub(super) needs: Vec<Vec<&'static str>>,
    /// Other types whose fields it has, until they are copied here.
    pub(super) includes: Vec<&'static str>,
    /// Whether its keys follow the rules of `_meta`.
    pub(super) is_meta: bool,
}

/// What stands behind a name.
#[derive(Clone, Debug)]
pub(super) enum Named {
    Type { versions: Versions, body: Type },
    Alias(Shape),
}

/// Whether something wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Answer,
    Nothing,
}

/// A method that somebody may use.
#[derive(Clone, Debug)]
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) wants: Wants,
    /// Who may use it; `None` is both.
    pub(super) from: Option<Side>,
    pub(super) versions: Versions,
    pub(super) params: Shape,
    pub(super) result: Shape,
}

/// An error code with a meaning.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) code: i64,
    pub(super) versions: Versions,
    pub(super) data: Shape,
}

/// Everything in `table.txt`.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) named: BTreeMap<&'static str, Named>,
    pub(super) methods: Vec<Method>,
    pub(super) codes: Vec<Code>,
    /// Lines that could not be read; a test holds that there are none.
    pub(super) problems: Vec<String>,
}

/// The table, read once.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| parse::table(include_str!("table.txt")));

impl Table {
    /// The fields of a type that a version knows.
    pub(super) fn known(body: &Type, revision: Revision) -> impl Iterator<Item = &Field> {
        body.fields.iter().filter(move |field| field.versions.contain(revision))
    }

    /// The type behind a shape, with the versions that know it.
    pub(super) fn object(&self, shape: &Shape) -> Option<(&Type, Versions)> {
        let Shape::Named(name) = shape else { return None };
        match self.named.get(name)? {
            Named::Type { versions, body } => Some((body, *versions)),
            Named::Alias(shape) => self.object(shape),
        }
    }

    /// Whether a version knows a shape.
    pub(super) fn knows(&self, shape: &Shape, revision: Revision) -> bool {
        self.object(shape).is_none_or(|(_, versions)| versions.contain(revision))
    }

    /// The alternatives of a shape, aliases followed; one where there is no choice.
    pub(super) fn alternatives<'t>(&'t self, shape: &'t Shape) -> Vec<&'t Shape> {
        match shape {
            Shape::OneOf(all) => all.iter().flat_map(|one| self.alternatives(one)).collect(),
            Shape::Named(name) => match self.named.get(name) {
                Some(Named::Alias(shape)) => self.alternatives(shape),
                Some(Named::Type { .. }) | None => vec![shape],
            },
            _ => vec![shape],
        }
    }

    /// What may be meant by a method, whoever says it, in any version.
    pub(super) fn methods<'t, 'n>(&'t self, name: &'n str) -> impl Iterator<Item = &'t Method> + use<'t, 'n> {
        self.methods.iter().filter(move |method| method.name == name)
    }
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
    fn no_version_has_two_meanings_for_one_thing() {
        for revision in Revision::ALL {
            for side in [Side::Client, Side::Server] {
                for name in Name::KNOWN {
                    let of = |method: &&Method| {
                        method.versions.contain(revision) && method.from.is_none_or(|from| from == side)
                    };
                    assert!(TABLE.methods(name).filter(of).count() <= 1, "{name} in {revision} from {side:?}");
                }
            }
            for (name, named) in &TABLE.named {
                let Named::Type { body, .. } = named else { continue };
                let mut fields: Vec<_> = Table::known(body, revision).map(|field| field.name).collect();
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
            let has = |method: &&Method| {
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
                count(revision, Side::Client, Wants::Answer),
                count(revision, Side::Server, Wants::Answer),
                count(revision, Side::Client, Wants::Nothing),
                count(revision, Side::Server, Wants::Nothing),
            ];
            assert_eq!(found, expected, "{revision}");
        }
    }
}
