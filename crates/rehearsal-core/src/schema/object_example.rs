//! Objects for a schema.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::generator::{Accept, Effort, ExampleGenerator, First, MAX_VALUES, Presence};
use super::pattern_example::PatternSampler;
use super::shape::SchemaShape;
use super::subschema::Subschema;

/// Maximum number of names that are tried for keys without a declared property.
const MAX_NAMES: usize = 64;
/// Maximum number of keys whose values are replaced in a rejected object.
const MAX_CHANGED: usize = 8;
/// Maximum number of values that are tried for one key of the whole value.
const MAX_CHANGES: usize = 20;

impl<'s> ExampleGenerator<'s> {
    /// Returns the first accepted object of one alternative.
    pub(super) fn object(&self, shape: &SchemaShape<'s>, depth: usize, first: First<'_>) -> Option<Value> {
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
        shape: &SchemaShape<'s>,
        base: &Map<String, Value>,
        required: &[&str],
        depth: usize,
        first: First<'_>,
    ) -> Option<Value> {
        let mut found = None;
        // The whole value needs no distinct siblings, so its other alternatives come earlier.
        let most = if depth == 0 { MAX_CHANGES } else { usize::MAX };
        for key in base.keys().take(MAX_CHANGED) {
            let mut count = 0;
            let mut is_better = |value: &Value| {
                let mut object = base.clone();
                object.insert(key.clone(), value.clone());
                found = first(&mut std::iter::once(Value::Object(object)));
                count += 1;
                found.is_some() || count >= most
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
        shape: &SchemaShape<'s>,
        plan: &[&'s str],
        required: &[&str],
        depth: usize,
    ) -> Option<Map<String, Value>> {
        let most = shape.at_most("maxProperties");
        let mut object = Map::new();
        let mut plan: VecDeque<(&str, bool)> = plan.iter().map(|key| (*key, required.contains(key))).collect();
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
            let find = || self.property(shape, key, is_required, depth, &mut |_| true);
            let value = match is_required {
                _ if shape.absent.contains(&key) => None,
                true => find(),
                false => self.limited(find),
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
    fn fill(&self, shape: &SchemaShape<'s>, object: &mut Map<String, Value>, depth: usize) {
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
                let mut is_new =
                    |name: &Value| name.as_str().is_some_and(|name| !tried.iter().any(|other| other == name));
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
        shape: &SchemaShape<'s>,
        key: &str,
        is_required: bool,
        depth: usize,
        accept: Accept<'_>,
    ) -> Option<Value> {
        let mut schemas = Vec::new();
        for part in &shape.parts {
            let before = schemas.len();
            schemas.extend(
                part.get("properties").and_then(|properties| properties.get(key)).map(|schema| part.child(schema)),
            );
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
}
