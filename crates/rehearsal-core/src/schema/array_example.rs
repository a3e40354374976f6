//! Arrays for a schema.

use serde_json::Value;

use super::generator::{Effort, ExampleGenerator, First, MAX_VALUES, Presence};
use super::shape::SchemaShape;
use super::subschema::Subschema;

impl<'s> ExampleGenerator<'s> {
    /// Returns the first accepted array of one alternative.
    pub(super) fn array(&self, shape: &SchemaShape<'s>, depth: usize, first: First<'_>) -> Option<Value> {
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
        shape: &SchemaShape<'s>,
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
            let mut is_free = |value: &Value| !((is_unique && elements.contains(value)) || is_over(value));
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
fn element<'s>(shape: &SchemaShape<'s>, index: usize) -> Vec<Subschema<'s>> {
    let of_part = |part: &Subschema<'s>| tuple(part).into_iter().nth(index).or_else(|| rest(part));
    let schemas: Vec<_> = shape.parts.iter().filter_map(of_part).collect();
    if schemas.is_empty() {
        return shape.parts.iter().filter_map(|part| part.child_at("unevaluatedItems")).collect();
    }
    schemas
}
