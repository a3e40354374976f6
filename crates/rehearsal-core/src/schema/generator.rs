//! Searches values for a schema: alternatives, types and candidates in turn, until one is accepted.

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value, json};

use super::number_example::numbers;
use super::pattern_example::PatternSampler;
use super::shape::{Shape, shapes};
use super::string_example::{MAX_LENGTH, strings};
use super::subschema::{Document, Subschema};

/// Maximum depth of a value.
const MAX_DEPTH: usize = 24;
/// Maximum depth of properties and elements that the schema does not require.
const MAX_OPTIONAL_DEPTH: usize = 12;
/// Maximum number of generated elements and keys: a schema that requires more has no example.
pub(super) const MAX_VALUES: usize = 1000;
/// Maximum number of names that are tried for keys without a declared property.
const MAX_NAMES: usize = 64;

/// Maximum number of keys whose values are replaced in a rejected object.
const MAX_CHANGED: usize = 8;

/// How a value becomes a candidate of its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// The first value of each part is used; only the whole value is checked.
    Quick,
    /// Each part of the value is checked against its subschemas.
    Checked,
}

/// Accepts or rejects a candidate.
type Accept<'a> = &'a mut dyn FnMut(&Value) -> bool;

/// One search for a value.
pub(super) struct ExampleGenerator<'s> {
    document: &'s Document<'s>,
    effort: Effort,
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
    fn is_small(&self, shape: &Shape<'s>, keyword: &'static str, most: usize) -> bool {
        let is_small = shape.at_least(keyword) <= most;
        self.is_too_large.set(self.is_too_large.get() || !is_small);
        is_small
    }

    fn step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    /// Returns a value for schemas that hold together; for an optional value, `None` if it would be recursive.
    fn value(
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
        let is_recursive = |shape: &Shape<'s>| {
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
    fn search(&self, shape: &Shape<'s>, name: Option<&str>, depth: usize, accept: Accept<'_>) -> Option<Value> {
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

    fn object(&self, shape: &Shape<'s>, depth: usize, first: First<'_>) -> Option<Value> {
        let declared = |keyword: &'static str| shape.all(keyword).filter_map(Value::as_object).flat_map(Map::keys);
        let required = shape.texts("required");
        let properties: Vec<&str> = declared("properties").map(String::as_str).collect();
        let with = |keys: &[&'s str]| [keys, &required].concat();
        // All properties first, because a reader of an example expects to see them.
        let mut plans = vec![with(&properties), required.clone()];
        if self.effort == Effort::Checked {
            let negated =
                shape.nots.iter().filter_map(|schema| schema.get("properties")?.as_object()).flat_map(Map::keys);
            let single = negated.map(String::as_str).chain(["key1"]).chain(properties.iter().copied());
            let dependent = ["dependentRequired", "dependentSchemas", "dependencies"].into_iter().flat_map(declared);
            let single: Vec<&str> = single.chain(dependent.map(String::as_str)).take(MAX_NAMES).collect();
            plans.extend(single.into_iter().map(|key| with(&[key])));
        }
        let mut base = None;
        let mut built = plans.iter().filter_map(|plan| {
            let object = self.object_with(shape, plan, &required, depth)?;
            base.get_or_insert_with(|| object.clone());
            Some(Value::Object(object))
        });
        let found = first(&mut built);
        drop(built);
        found.or_else(|| self.changed_object(shape, &base?, &required, depth, first))
    }

    /// Replaces one value of a rejected object after the other, as needed for unique elements.
    fn changed_object(
        &self,
        shape: &Shape<'s>,
        base: &Map<String, Value>,
        required: &[&str],
        depth: usize,
        first: First<'_>,
    ) -> Option<Value> {
        let mut found = None;
        for key in base.keys().take(MAX_CHANGED) {
            let mut is_better = |value: &Value| {
                let mut object = base.clone();
                object.insert(key.clone(), value.clone());
                found = first(&mut std::iter::once(Value::Object(object)));
                found.is_some()
            };
            self.property(shape, key, required.contains(&key.as_str()), depth, &mut is_better);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Builds an object with the planned keys, as far as the schema allows them.
    fn object_with(
        &self,
        shape: &Shape<'s>,
        plan: &[&'s str],
        required: &[&str],
        depth: usize,
    ) -> Option<Map<String, Value>> {
        let most = shape.at_most("maxProperties");
        let mut object = Map::new();
        let mut plan: std::collections::VecDeque<(&str, bool)> =
            plan.iter().map(|key| (*key, required.contains(key))).collect();
        while let Some((key, is_required)) = plan.pop_front() {
            if object.contains_key(key) {
                continue;
            }
            if object.len() >= MAX_VALUES || self.is_exhausted() {
                return None;
            }
            let missing = required.iter().filter(|key| !object.contains_key(**key)).count();
            if !is_required && object.len() + missing >= most {
                continue;
            }
            let value = if shape.absent.contains(&key) {
                None
            } else {
                self.property(shape, key, is_required, depth, &mut |_| true)
            };
            match value {
                Some(value) => {
                    object.insert(key.to_owned(), value);
                    for rule in ["dependentRequired", "dependencies"] {
                        let dependent = shape.all(rule).filter_map(|rule| rule.get(key)?.as_array()).flatten();
                        plan.extend(dependent.filter_map(Value::as_str).map(|key| (key, true)));
                    }
                }
                None if is_required => return None,
                None => {}
            }
        }
        self.fill(shape, &mut object, depth);
        Some(object)
    }

    /// Adds keys until the object has `minProperties`.
    fn fill(&self, shape: &Shape<'s>, object: &mut Map<String, Value>, depth: usize) {
        let least = shape.at_least("minProperties");
        let names: Vec<_> = shape.parts.iter().filter_map(|part| part.child_at("propertyNames")).collect();
        let patterns = shape.all("patternProperties").filter_map(Value::as_object).flat_map(Map::keys);
        let samplers = patterns.filter_map(|pattern| PatternSampler::new(pattern)).collect::<Vec<_>>();
        let variants = (0..MAX_NAMES).flat_map(|variant| samplers.iter().map(move |sampler| (variant, sampler)));
        let sampled = variants.filter_map(|(variant, sampler)| Some((variant, sampler.sample(variant, 0)?)));
        // A pattern without an end also accepts longer names.
        let mut samples =
            sampled.flat_map(|(variant, sample)| [format!("{sample}{variant}"), sample].into_iter().rev());
        let mut tried: Vec<String> = Vec::new();
        let mut number = 0;
        while object.len() < least && tried.len() < least + MAX_NAMES && !self.is_exhausted() {
            let named = |tried: &[String]| {
                let mut is_new = |name: &Value| name.as_str().is_some_and(|name| !tried.iter().any(|it| it == name));
                let name = self.value(&names, None, Presence::Required, depth + 1, &mut is_new)?;
                name.as_str().map(str::to_owned)
            };
            let counted = |number: &mut usize| {
                *number += 1;
                format!("key{number}")
            };
            let key = match samples.next() {
                Some(sample) => sample,
                None if names.is_empty() => counted(&mut number),
                None => match named(&tried) {
                    Some(name) => name,
                    None => return,
                },
            };
            tried.push(key.clone());
            if object.contains_key(&key) || shape.absent.contains(&key.as_str()) {
                continue;
            }
            if let Some(value) = self.property(shape, &key, true, depth, &mut |_| true) {
                object.insert(key, value);
            }
        }
    }

    /// Returns a value for one key of an object.
    fn property(
        &self,
        shape: &Shape<'s>,
        key: &str,
        is_required: bool,
        depth: usize,
        accept: Accept<'_>,
    ) -> Option<Value> {
        let mut schemas = Vec::new();
        for part in &shape.parts {
            let before = schemas.len();
            schemas.extend(part.get("properties").and_then(|it| it.get(key)).map(|schema| part.child(schema)));
            for (pattern, schema) in part.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
                if self.document.is_match(pattern, key) {
                    schemas.push(part.child(schema));
                }
            }
            if schemas.len() == before {
                schemas.extend(part.child_at("additionalProperties"));
            }
        }
        if schemas.is_empty() {
            schemas.extend(shape.parts.iter().filter_map(|part| part.child_at("unevaluatedProperties")));
        }
        let presence = if is_required { Presence::Required } else { Presence::Optional };
        if self.effort == Effort::Checked {
            let avoided = |schema: &Subschema<'s>| Some(schema.child(schema.get("properties")?.get(key)?));
            let avoided: Vec<_> = shape.nots.iter().filter_map(avoided).collect();
            if !avoided.is_empty() {
                let mut is_other =
                    |value: &Value| !avoided.iter().any(|schema| self.document.accepts(schema, value)) && accept(value);
                let found = self.value(&schemas, Some(key), presence, depth + 1, &mut is_other);
                if found.is_some() {
                    return found;
                }
            }
        }
        self.value(&schemas, Some(key), presence, depth + 1, accept)
    }

    fn array(&self, shape: &Shape<'s>, depth: usize, first: First<'_>) -> Option<Value> {
        let (least, most) = (shape.at_least("minItems"), shape.at_most("maxItems"));
        let contains: Vec<Contained<'s>> = shape.parts.iter().filter_map(Contained::from_part).collect();
        let tuple = shape.parts.iter().map(|part| tuple(part).len()).max().unwrap_or(0);
        let has_items = shape.parts.iter().any(|part| rest(part).is_some_and(|rest| rest.value != &Value::Bool(false)));
        let contained: usize = contains.iter().map(|contained| contained.least).sum();
        let usual = tuple.max(contained).max(usize::from(has_items));
        let mut lengths = Vec::new();
        for length in [usual, least, contained, tuple + contained, 0, 1, 2, 3] {
            let length = length.clamp(least, most.max(least)).min(MAX_VALUES);
            if !lengths.contains(&length) {
                lengths.push(length);
            }
        }
        let mut built = lengths.into_iter().filter_map(|length| self.array_of(shape, &contains, length, least, depth));
        first(&mut built)
    }

    /// Builds an array of a length, or a shorter one of at least `least` elements.
    fn array_of(
        &self,
        shape: &Shape<'s>,
        contains: &[Contained<'s>],
        length: usize,
        least: usize,
        depth: usize,
    ) -> Option<Value> {
        let is_unique = shape.all("uniqueItems").any(|unique| *unique == Value::Bool(true));
        let mut elements: Vec<Value> = Vec::new();
        let mut counts = vec![0; contains.len()];
        while elements.len() < length {
            if self.is_exhausted() {
                return None;
            }
            let schemas = element(shape, elements.len());
            let presence = if elements.len() < least { Presence::Required } else { Presence::Optional };
            let is_over = |value: &Value| {
                let is_full = |(contained, count): (&Contained<'s>, &usize)| {
                    *count >= contained.most && self.document.accepts(&contained.schema, value)
                };
                self.effort == Effort::Checked && contains.iter().zip(&counts).any(is_full)
            };
            let mut is_free = |value: &Value| !(is_unique && elements.contains(value)) && !is_over(value);
            let missing = contains.iter().zip(&counts).find(|(contained, count)| **count < contained.least);
            let wanted = missing.and_then(|(contained, _)| {
                let schemas = [schemas.as_slice(), std::slice::from_ref(&contained.schema)].concat();
                self.value(&schemas, None, Presence::Required, depth + 1, &mut is_free)
            });
            let added = wanted.or_else(|| self.value(&schemas, None, presence, depth + 1, &mut is_free));
            let Some(added) = added else { break };
            for (contained, count) in contains.iter().zip(&mut counts) {
                *count += usize::from(self.document.accepts(&contained.schema, &added));
            }
            elements.push(added);
        }
        (elements.len() >= least).then_some(Value::Array(elements))
    }
}

/// Returns the first accepted value of an iterator.
type First<'a> = &'a mut dyn FnMut(&mut dyn Iterator<Item = Value>) -> Option<Value>;

/// Whether a schema requires a value to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// `contains` with its bounds.
struct Contained<'s> {
    schema: Subschema<'s>,
    least: usize,
    most: usize,
}

impl<'s> Contained<'s> {
    fn from_part(part: &Subschema<'s>) -> Option<Contained<'s>> {
        let bound = |keyword| part.get(keyword).and_then(Value::as_f64).map(|bound| bound as usize);
        let least = bound("minContains").unwrap_or(1).min(MAX_VALUES);
        Some(Contained { schema: part.child_at("contains")?, least, most: bound("maxContains").unwrap_or(usize::MAX) })
    }
}

/// The schemas of the first elements: `prefixItems`, or an array in `items` until draft 2019-09.
fn tuple<'s>(part: &Subschema<'s>) -> Vec<Subschema<'s>> {
    let keyword = if part.get("prefixItems").is_some() { "prefixItems" } else { "items" };
    part.children_at(keyword)
}

/// The schema of the elements after the tuple.
fn rest<'s>(part: &Subschema<'s>) -> Option<Subschema<'s>> {
    let has_old_tuple = part.get("items").is_some_and(Value::is_array);
    part.child_at(if has_old_tuple { "additionalItems" } else { "items" })
}

/// The schemas of one element of an array.
fn element<'s>(shape: &Shape<'s>, index: usize) -> Vec<Subschema<'s>> {
    let of_part = |part: &Subschema<'s>| tuple(part).into_iter().nth(index).or_else(|| rest(part));
    let schemas: Vec<_> = shape.parts.iter().filter_map(of_part).collect();
    if schemas.is_empty() {
        return shape.parts.iter().filter_map(|part| part.child_at("unevaluatedItems")).collect();
    }
    schemas
}
