//! What a schema states about one place of a value.

use rehearsal_core::schema::example;
use serde_json::{Map, Value, json};

use super::number::Bounds;

/// Maximum number of schemas that are looked at for one place.
const MAX_PARTS: usize = 64;
/// The keywords whose values are schemas that hold together with their owner, or in its place.
const COMBINING: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// The keywords under which schemas are kept for references.
const DEFINITIONS: [&str; 3] = ["$defs", "definitions", "$schema"];

/// The schemas of one place, with those that they combine and refer to.
///
/// Alternatives are not distinguished, so these are hints: the whole schema decides whether a value is valid.
pub(super) struct Constraints<'s> {
    root: &'s Value,
    /// The schemas that stand at this place.
    own: Vec<&'s Value>,
    /// The schemas of `own`, and all that they combine or refer to.
    parts: Vec<&'s Value>,
}

/// What the schemas of a place state about changes of its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Whether there are schemas at all.
    pub(super) has_schema: bool,
    /// Whether there are values of `enum` or `const`.
    pub(super) has_choices: bool,
    /// Whether only those values are allowed.
    pub(super) is_closed: bool,
    pub(super) has_pattern: bool,
    pub(super) has_format: bool,
    pub(super) is_nullable: bool,
    /// Whether numbers have no fraction.
    pub(super) is_integer: bool,
    pub(super) max_length: usize,
    pub(super) min_items: usize,
    pub(super) max_items: usize,
    /// The number of elements at the start of an array that have schemas of their own.
    pub(super) tuple_length: usize,
    pub(super) bounds: Bounds,
}

impl Default for Facts {
    fn default() -> Facts {
        Facts {
            has_schema: false,
            has_choices: false,
            is_closed: false,
            has_pattern: false,
            has_format: false,
            is_nullable: false,
            is_integer: false,
            max_length: usize::MAX,
            min_items: 0,
            max_items: usize::MAX,
            tuple_length: 0,
            bounds: Bounds::default(),
        }
    }
}

impl<'s> Constraints<'s> {
    pub(super) fn of_root(root: &'s Value) -> Constraints<'s> {
        Constraints::new(root, vec![root])
    }

    fn new(root: &'s Value, own: Vec<&'s Value>) -> Constraints<'s> {
        let mut parts: Vec<&'s Value> = Vec::new();
        let mut pending = own.clone();
        while let Some(part) = pending.pop() {
            if parts.len() >= MAX_PARTS || parts.iter().any(|known| std::ptr::eq(*known, part)) {
                continue;
            }
            parts.push(part);
            let combined = COMBINING.iter().filter_map(|keyword| part.get(keyword)?.as_array()).flatten();
            let conditional = ["then", "else"].iter().filter_map(|keyword| part.get(keyword));
            let dependent = part.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values);
            let referenced = ["$ref", "$dynamicRef"].iter().filter_map(|keyword| {
                let pointer = part.get(keyword)?.as_str()?.strip_prefix('#')?;
                root.pointer(pointer)
            });
            pending.extend(combined.chain(conditional).chain(dependent).chain(referenced));
        }
        Constraints { root, own, parts }
    }

    /// The constraints of a member.
    pub(super) fn member(&self, name: &str) -> Constraints<'s> {
        let of_part = |part: &&'s Value| -> Vec<&'s Value> {
            if let Some(declared) = part.get("properties").and_then(|properties| properties.get(name)) {
                return vec![declared];
            }
            let by_pattern = part.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::values);
            let others = ["additionalProperties", "unevaluatedProperties"].into_iter().filter_map(|key| part.get(key));
            by_pattern.chain(others).collect()
        };
        Constraints::new(self.root, self.parts.iter().flat_map(of_part).collect())
    }

    /// The constraints of an element.
    pub(super) fn element(&self, index: usize) -> Constraints<'s> {
        let of_part = |part: &&'s Value| -> Option<&'s Value> {
            let in_tuple = tuple(part).and_then(|tuple| tuple.get(index));
            in_tuple.or_else(|| match part.get("items") {
                Some(Value::Array(_)) => part.get("additionalItems"),
                items => items.or_else(|| part.get("unevaluatedItems")),
            })
        };
        Constraints::new(self.root, self.parts.iter().filter_map(of_part).collect())
    }

    fn tuple_length(&self) -> usize {
        self.parts.iter().filter_map(|part| tuple(part)).map(Vec::len).max().unwrap_or(0)
    }

    /// The names of the declared members.
    pub(super) fn member_names(&self) -> impl Iterator<Item = &'s str> {
        let declared = self.parts.iter().filter_map(|part| part.get("properties")?.as_object());
        declared.flat_map(Map::keys).map(String::as_str)
    }

    /// Whether a schema or an alternative requires a member.
    pub(super) fn requires(&self, name: &str) -> bool {
        let mut required = self.parts.iter().filter_map(|part| part.get("required")?.as_array()).flatten();
        required.any(|required| required.as_str() == Some(name))
    }

    /// The values of `enum` and `const`.
    pub(super) fn choices(&self) -> impl Iterator<Item = &'s Value> {
        let of_part = |part: &&'s Value| {
            let listed = part.get("enum").and_then(Value::as_array).into_iter().flatten();
            listed.chain(part.get("const"))
        };
        self.parts.iter().flat_map(of_part)
    }

    /// Whether only the values of `enum` and `const` are allowed.
    fn is_closed(&self) -> bool {
        let is_open = |part: &&Value| {
            let keywords = ["enum", "const", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"];
            part.is_object() && !keywords.into_iter().any(|keyword| part.get(keyword).is_some())
        };
        self.choices().next().is_some() && !self.parts.iter().any(is_open)
    }

    /// What decides about changes of the values at this place.
    pub(super) fn facts(&self) -> Facts {
        let has = |keyword: &str| self.parts.iter().any(|part| part.get(keyword).is_some());
        let at_most = |keyword| self.numbers(keyword).reduce(f64::min).map_or(usize::MAX, |bound| bound as usize);
        let at_least = |keyword| self.numbers(keyword).reduce(f64::max).map_or(0, |bound| bound as usize);
        Facts {
            has_schema: true,
            has_choices: self.choices().next().is_some(),
            is_closed: self.is_closed(),
            has_pattern: has("pattern"),
            has_format: has("format"),
            is_nullable: self.has_type("null") || self.choices().any(Value::is_null),
            is_integer: self.has_type("integer") && !self.has_type("number"),
            max_length: at_most("maxLength"),
            min_items: at_least("minItems"),
            max_items: at_most("maxItems"),
            tuple_length: self.tuple_length(),
            bounds: self.bounds(),
        }
    }

    fn has_type(&self, name: &str) -> bool {
        self.parts.iter().filter_map(|part| part.get("type")).any(|kind| match kind {
            Value::Array(kinds) => kinds.iter().any(|kind| kind.as_str() == Some(name)),
            kind => kind.as_str() == Some(name),
        })
    }

    fn bounds(&self) -> Bounds {
        let step = self.numbers("multipleOf").filter(|step| *step > 0.0).reduce(f64::max);
        let distance = step.unwrap_or(if self.has_type("number") { 1e-3 } else { 1.0 });
        let above = self.numbers("exclusiveMinimum").map(|above| above + distance);
        let below = self.numbers("exclusiveMaximum").map(|below| below - distance);
        Bounds {
            low: self.numbers("minimum").chain(above).reduce(f64::max),
            high: self.numbers("maximum").chain(below).reduce(f64::min),
            step,
        }
    }

    fn numbers(&self, keyword: &str) -> impl Iterator<Item = f64> {
        self.parts.iter().filter_map(move |part| part.get(keyword)?.as_f64())
    }

    /// A value that the generator of examples finds for this place, and that the schema `not` rejects.
    pub(super) fn example(&self, not: Option<Value>) -> Option<Value> {
        let own = self.own.first()?;
        let mut schema = json!({ "allOf": [own] });
        if let Some(not) = not {
            schema["not"] = not;
        }
        for keyword in DEFINITIONS {
            if let Some(definitions) = self.root.get(keyword) {
                schema[keyword] = definitions.clone();
            }
        }
        example(&schema)
    }
}

/// The schemas of the first elements: `prefixItems`, or an array in `items` until draft 2019-09.
fn tuple(part: &Value) -> Option<&Vec<Value>> {
    part.get("prefixItems").or_else(|| part.get("items"))?.as_array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_alternatives_are_followed() {
        let root = json!({
            "$ref": "#/$defs/list",
            "$defs": {
                "list": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/item"}, {"type": "null"}]}},
                "item": {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["a", "b"]}, "next": {"$ref": "#/$defs/item"}}},
            },
        });
        let item = Constraints::of_root(&root).element(7);
        assert!(item.facts().is_nullable && item.requires("kind") && !item.requires("next"));
        assert_eq!(item.member_names().collect::<Vec<_>>(), ["kind", "next"]);
        let kind = item.member("next").member("next").member("kind");
        assert_eq!(kind.choices().collect::<Vec<_>>(), ["a", "b"]);
        assert!(kind.is_closed() && !item.is_closed());
        assert_eq!(kind.example(Some(json!({"const": "a"}))), Some(json!("b")));
        assert_eq!(item.example(Some(json!({"type": "object"}))), Some(json!(null)));
    }

    #[test]
    fn bounds_are_the_narrowest() {
        let root = json!({"type": "integer", "minimum": 1, "allOf": [{"exclusiveMinimum": 3}, {"maximum": 9, "multipleOf": 2}]});
        let Bounds { low, high, step } = Constraints::of_root(&root).facts().bounds;
        assert_eq!((low, high, step), (Some(5.0), Some(9.0), Some(2.0)));
    }
}
