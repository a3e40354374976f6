//! Searches values for a schema: alternatives, types and candidates in turn, until one is accepted.

use std::cell::{Cell, RefCell};

use serde_json::{Value, json};

use super::number_example::numbers;
use super::shape::{SchemaShape, shapes};
use super::string_example::{MAX_LENGTH, strings};
use super::subschema::{Document, Subschema};

/// Maximum depth of a value.
const MAX_DEPTH: usize = 24;
/// Maximum depth of properties and elements that the schema does not require.
const MAX_OPTIONAL_DEPTH: usize = 12;
/// Maximum number of generated elements and keys: a schema that requires more has no example.
pub(super) const MAX_VALUES: usize = 1000;

/// An optional value may use the remaining steps divided by this number.
const OPTIONAL_SHARE: usize = 8;

/// How a value becomes a candidate of its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// The first value of each part is used; only the whole value is checked.
    Quick,
    /// Each part of the value is checked against its subschemas.
    Checked,
}

/// Accepts or rejects a candidate.
pub(super) type Accept<'a> = &'a mut dyn FnMut(&Value) -> bool;

/// One search for a value.
pub(super) struct ExampleGenerator<'s> {
    pub(super) document: &'s Document<'s>,
    pub(super) effort: Effort,
    steps: Cell<usize>,
    is_too_deep: Cell<bool>,
    is_too_large: Cell<bool>,
    /// The schemas whose values are being built, outermost first.
    stack: RefCell<Vec<*const Value>>,
}

impl<'s> ExampleGenerator<'s> {
    pub(super) fn new(document: &'s Document<'s>, effort: Effort, max_steps: usize) -> ExampleGenerator<'s> {
        ExampleGenerator {
            document,
            effort,
            steps: Cell::new(max_steps),
            is_too_deep: Cell::new(false),
            is_too_large: Cell::new(false),
            stack: RefCell::default(),
        }
    }

    /// Returns a value for the whole document that `accept` accepts.
    pub(super) fn find(&self, accept: Accept<'_>) -> Option<Value> {
        self.value(&[self.document.root()], None, Presence::Required, 0, accept)
    }

    /// Whether the search reached the maximum number of steps.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.get() == 0
    }

    /// Whether the search reached the maximum depth.
    pub(super) fn is_too_deep(&self) -> bool {
        self.is_too_deep.get()
    }

    /// Whether a schema requires more elements, keys or characters than the maximum.
    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large.get()
    }

    /// Whether the minimum in a keyword is within the limit.
    fn is_small(&self, shape: &SchemaShape<'s>, keyword: &'static str, most: usize) -> bool {
        let is_small = shape.at_least(keyword) <= most;
        self.is_too_large.set(self.is_too_large.get() || !is_small);
        is_small
    }

    /// Runs a part of the search with a share of the steps, so that an optional value leaves some for the others.
    pub(super) fn limited<T>(&self, search: impl FnOnce() -> T) -> T {
        let left = self.steps.get();
        let share = left / OPTIONAL_SHARE;
        self.steps.set(share);
        let found = search();
        self.steps.set(left - (share - self.steps.get()));
        found
    }

    fn step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    /// Returns a value for schemas that hold together; for an optional value, `None` if it would be recursive.
    pub(super) fn value(
        &self,
        schemas: &[Subschema<'s>],
        name: Option<&str>,
        presence: Presence,
        depth: usize,
        accept: Accept<'_>,
    ) -> Option<Value> {
        if depth > MAX_DEPTH {
            self.is_too_deep.set(true);
            return None;
        }
        let mut shapes = shapes(schemas, &|| self.step());
        let is_recursive = |shape: &SchemaShape<'s>| {
            let stack = self.stack.borrow();
            shape.parts.iter().any(|part| stack.contains(&std::ptr::from_ref(part.value)))
        };
        // An alternative that ends the recursion comes first.
        shapes.sort_by_key(is_recursive);
        let is_optional = presence == Presence::Optional;
        if is_optional && (depth > MAX_OPTIONAL_DEPTH || shapes.first().is_some_and(is_recursive)) {
            return None;
        }
        for shape in &shapes {
            let height = self.stack.borrow().len();
            self.stack.borrow_mut().extend(shape.parts.iter().map(|part| std::ptr::from_ref(part.value)));
            let found = self.search(shape, name, depth, &mut |candidate| {
                let is_accepted = |schema: &Subschema<'s>| self.document.accepts(schema, candidate);
                let is_checked = self.effort == Effort::Quick || depth == 0 || schemas.iter().all(is_accepted);
                self.step() && is_checked && accept(candidate)
            });
            self.stack.borrow_mut().truncate(height);
            if found.is_some() || self.is_exhausted() {
                return found;
            }
        }
        None
    }

    /// Returns the first accepted candidate of one alternative.
    fn search(&self, shape: &SchemaShape<'s>, name: Option<&str>, depth: usize, accept: Accept<'_>) -> Option<Value> {
        let (suggestions, is_closed) = shape.suggestions();
        if let Some(found) = suggestions.into_iter().find(|value| shape.admits(value) && accept(value)) {
            return Some(found.clone());
        }
        if is_closed {
            return None;
        }
        let mut first = |mut candidates: &mut dyn Iterator<Item = Value>| {
            Iterator::find(&mut candidates, |candidate| accept(candidate))
        };
        for kind in shape.types() {
            let found = match kind {
                "object" if !self.is_small(shape, "minProperties", MAX_VALUES) => None,
                "array" if !self.is_small(shape, "minItems", MAX_VALUES) => None,
                "string" if !self.is_small(shape, "minLength", MAX_LENGTH) => None,
                "object" => self.object(shape, depth, &mut first),
                "array" => self.array(shape, depth, &mut first),
                "string" => first(&mut strings(shape, name, &|pattern, text| self.document.is_match(pattern, text))),
                "integer" | "number" => first(&mut numbers(shape, kind == "integer")),
                "boolean" => first(&mut [json!(true), json!(false)].into_iter()),
                "null" => first(&mut std::iter::once(Value::Null)),
                _ => None,
            };
            if found.is_some() || self.is_exhausted() {
                return found;
            }
        }
        None
    }
}

/// Returns the first accepted value of an iterator.
pub(super) type First<'a> = &'a mut dyn FnMut(&mut dyn Iterator<Item = Value>) -> Option<Value>;

/// Whether a schema requires a value to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Presence {
    /// The value must be there.
    Required,
    /// The value can be left out.
    Optional,
}
