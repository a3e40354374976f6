//! What a schema states about one place of a value.

use rehearsal_core::schema::example;
use serde_json::{Map, Value, json};

/// Maximum number of schemas that are looked at for one place.
const MAX_PARTS: usize = 64;

/// The schemas of one place, with those that they combine and refer to. Alternatives are not distinguished, so these are hints:
/// the whole schema decides whether a value is valid.
#[derive(Default)]
pub(super) struct Hints<'s> {
    root: Option<&'s Value>,
    /// The schemas of the place itself come first.
    parts: Vec<&'s Value>,
    /// The number of schemas of the place itself.
    own: usize,
}

impl<'s> Hints<'s> {
    /// The hints of a place with these schemas of its own, which are parts of `root`.
    pub(super) fn new(root: &'s Value, own: Vec<&'s Value>) -> Hints<'s> {
        let mut hints = Hints { root: Some(root), own: own.len(), parts: own };
        let mut at = 0;
        while let Some(part) = hints.parts.get(at).filter(|_| at < MAX_PARTS) {
            let combined = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| part.get(keyword)?.as_array());
            let referenced = part.get("$ref").and_then(Value::as_str).and_then(|pointer| pointer.strip_prefix('#'));
            let inner = combined.flatten().chain(referenced.and_then(|pointer| root.pointer(pointer)));
            let is_new = |inner: &&Value| !hints.parts.iter().any(|known| std::ptr::eq(*known, *inner));
            let inner: Vec<&'s Value> = inner.filter(is_new).collect();
            hints.parts.extend(inner);
            at += 1;
        }
        hints
    }

    fn below(&self, schemas: impl Fn(&'s Value) -> Option<&'s Value>) -> Hints<'s> {
        let own = self.parts.iter().filter_map(|part| schemas(part)).collect();
        self.root.map_or_else(Hints::default, |root| Hints::new(root, own))
    }

    pub(super) fn member(&self, name: &str) -> Hints<'s> {
        self.below(|part| {
            let declared = part.get("properties").and_then(|properties| properties.get(name));
            declared.or_else(|| part.get("additionalProperties"))
        })
    }

    pub(super) fn elements(&self) -> Hints<'s> {
        self.below(|part| part.get("items"))
    }

    /// The names of the declared members.
    pub(super) fn member_names(&self) -> impl Iterator<Item = &'s str> {
        let declared = self.parts.iter().filter_map(|part| part.get("properties")?.as_object());
        declared.flat_map(Map::keys).map(String::as_str)
    }

    pub(super) fn is_optional(&self, name: &str) -> bool {
        let mut required = self.parts.iter().filter_map(|part| part.get("required")?.as_array()).flatten();
        !self.parts.is_empty() && !required.any(|required| required == name)
    }

    /// The values of `enum` and `const`.
    pub(super) fn choices(&self) -> Vec<&'s Value> {
        let listed = self.parts.iter().filter_map(|part| part.get("enum")?.as_array()).flatten();
        listed.chain(self.parts.iter().filter_map(|part| part.get("const"))).collect()
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        self.parts.iter().any(|part| part.get(keyword).is_some())
    }

    pub(super) fn has_type(&self, name: &str) -> bool {
        self.parts.iter().filter_map(|part| part.get("type")).any(|kind| match kind {
            Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
            kind => kind == name,
        })
    }

    /// The largest number of a keyword that states a minimum.
    pub(super) fn at_least(&self, keyword: &str) -> f64 {
        self.numbers(keyword).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The smallest number of a keyword that states a maximum.
    pub(super) fn at_most(&self, keyword: &str) -> f64 {
        self.numbers(keyword).fold(f64::INFINITY, f64::min)
    }

    fn numbers(&self, keyword: &str) -> impl Iterator<Item = f64> {
        self.parts.iter().filter_map(move |part| part.get(keyword)?.as_f64())
    }

    /// An example of this place that the schema `not` rejects.
    pub(super) fn example(&self, not: &Value) -> Option<Value> {
        let (root, own) = (self.root?, &self.parts[..self.own]);
        if own.is_empty() {
            return None;
        }
        let mut schema = json!({ "allOf": own, "not": not });
        for keyword in ["$defs", "definitions", "$schema"] {
            if let Some(definitions) = root.get(keyword) {
                schema[keyword] = definitions.clone();
            }
        }
        example(&schema)
    }
}
