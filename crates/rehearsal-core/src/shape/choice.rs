//! Checks a value that may have one of several shapes.
//!
//! The intended shape is found by the JSON type, then by tags such as `type` or `resultType`, then by the fewest
//! errors.

use serde_json::Value;

use super::check::{ShapeCheck, ShapeMismatch, hint};
use super::table::{ObjectShape, Shape, ShapeTable, join_or};
use crate::json::JsonType;
use crate::protocol::Revision;
use crate::report::Severity;
use crate::suggest::closest;

impl ShapeCheck {
    /// Checks a value against its intended alternative.
    pub(super) fn choice(&mut self, shape: &'static Shape, value: &Value) {
        let all = self.table.alternatives(shape);
        let known: Vec<&'static Shape> =
            all.iter().copied().filter(|one| self.table.knows(one, self.revision)).collect();
        let words: Option<Vec<&str>> = known.iter().map(|one| word(one)).collect();
        if let Some(words) = words {
            return self.one_of(&words, Some(value), shape);
        }
        let accepting: Vec<_> = known.iter().copied().filter(|one| self.accepts(one, value)).collect();
        match accepting[..] {
            [] => {
                let expected = self.table.words(shape, self.revision);
                self.report(expected, Some(value), hint(shape, value));
            }
            [one] => self.value(one, value),
            _ => self.among(&accepting, &all, value),
        }
    }

    /// Chooses among several shapes of the same JSON type.
    fn among(&mut self, accepting: &[&'static Shape], all: &[&'static Shape], value: &Value) {
        let tagged = |one: &&&'static Shape| {
            let body = self.table.object(one).map(|(body, _)| body);
            body.is_none_or(|body| has_tag_of(body, value, self.revision))
        };
        let meant: Vec<_> = accepting.iter().filter(tagged).copied().collect();
        match meant[..] {
            [] => self.wrong_tag(accepting, all, value),
            [one] => self.value(one, value),
            _ => {
                let best = meant.iter().min_by_key(|one| {
                    let found = self.tried(one, value);
                    let errors = found.iter().filter(|it| it.severity == Severity::Error).count();
                    // A value with the fields of a type is intended to be of that type, however wrong their values are.
                    (std::cmp::Reverse(self.fields_of(one, value)), errors)
                });
                if let Some(best) = best {
                    self.value(best, value);
                }
            }
        }
    }

    /// How many fields of a type an object has.
    fn fields_of(&self, shape: &Shape, value: &Value) -> usize {
        let Some((body, _)) = self.table.object(shape) else { return 0 };
        ShapeTable::known(body, self.revision).filter(|field| value.get(field.name).is_some()).count()
    }

    fn tried(&self, shape: &'static Shape, value: &Value) -> Vec<ShapeMismatch> {
        let mut check =
            ShapeCheck { table: self.table, revision: self.revision, path: self.path.clone(), found: Vec::new() };
        check.value(shape, value);
        check.found
    }

    /// Reports a tag that none of the alternatives has.
    fn wrong_tag(&mut self, accepting: &[&'static Shape], all: &[&'static Shape], value: &Value) {
        let of = |one: &&'static Shape| self.table.object(one);
        let bodies: Vec<_> = accepting.iter().filter_map(of).map(|(body, _)| body).collect();
        let wrong = bodies.iter().flat_map(|body| tags(body, self.revision)).find(|tag| !tag.fits(value));
        let Some(TagField { name, .. }) = wrong else { return };
        let with_name = |body: &&'static ObjectShape| {
            tags(body, self.revision).filter(|tag| tag.name == name).flat_map(|tag| tag.words).collect::<Vec<_>>()
        };
        let mut words: Vec<&str> = bodies.iter().flat_map(with_name).collect();
        words.dedup();
        let got = value.get(name);
        // The same tag in another version.
        let later = all.iter().filter_map(of).find(|(body, versions)| {
            let mut their = tags(body, versions.since).filter(|tag| tag.name == name);
            !versions.contain(self.revision) && their.any(|tag| got.is_some() && tag.fits(value))
        });
        let hint = match (later, got.and_then(Value::as_str)) {
            (Some((_, versions)), Some(word)) => Some(format!("{word:?} exists in {versions}")),
            (None, Some(word)) => closest(word, words.iter().copied()).map(|word| format!("did you mean {word:?}?")),
            (_, None) if got.is_none() => Some(format!("`{name}` names the kind of the object")),
            (_, None) => None,
        };
        let expected = quoted(&words);
        self.below(name, |check| check.report(expected, got, hint));
    }

    fn one_of(&mut self, words: &[&str], value: Option<&Value>, shape: &Shape) {
        let text = value.and_then(Value::as_str);
        if text.is_some_and(|text| words.contains(&text)) {
            return;
        }
        let suggestion = text.and_then(|text| closest(text, words.iter().copied()));
        let hint = match suggestion {
            Some(word) => Some(format!("did you mean {word:?}?")),
            None => value.and_then(|value| hint(shape, value)),
        };
        self.report(quoted(words), value, hint);
    }

    /// Whether a value has the JSON type of a shape.
    fn accepts(&self, shape: &Shape, value: &Value) -> bool {
        match shape {
            Shape::Any => true,
            Shape::Kind(kind) => kind.includes(value),
            Shape::Count => JsonType::Integer.includes(value),
            Shape::UnitInterval => JsonType::Number.includes(value),
            Shape::Uri | Shape::Base64 | Shape::Word(_) => value.is_string(),
            Shape::List { .. } => value.is_array(),
            Shape::Meta | Shape::Map(_) | Shape::Named(_) => value.is_object(),
            Shape::AllOf(all) => all.iter().all(|one| self.accepts(one, value)),
            Shape::OneOf(all) => all.iter().any(|one| self.accepts(one, value)),
        }
    }
}

/// A field whose value determines which of several types an object is.
struct TagField {
    name: &'static str,
    words: Vec<&'static str>,
    required: bool,
}

impl TagField {
    fn fits(&self, value: &Value) -> bool {
        match value.get(self.name) {
            Some(found) => found.as_str().is_some_and(|found| self.words.contains(&found)),
            None => !self.required,
        }
    }
}

/// Whether the tags of an object are those of this type.
pub(super) fn has_tag_of(body: &'static ObjectShape, value: &Value, revision: Revision) -> bool {
    tags(body, revision).all(|tag| tag.fits(value))
}

fn tags(body: &'static ObjectShape, revision: Revision) -> impl Iterator<Item = TagField> {
    ShapeTable::known(body, revision).filter_map(|field| {
        let (name, required) = (field.name, field.required);
        match &field.shape {
            Shape::Word(word) => Some(TagField { name, words: vec![word], required }),
            Shape::OneOf(all) if required => {
                let words: Option<Vec<_>> = all.iter().map(word).collect();
                words.map(|words| TagField { name, words, required })
            }
            _ => None,
        }
    })
}

fn word(shape: &Shape) -> Option<&'static str> {
    if let Shape::Word(word) = shape { Some(word) } else { None }
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    join_or(&words)
}
