//! Alternatives of a schema: which keywords hold together, for each choice of `anyOf`, `oneOf`, `if` and dependencies.

use serde_json::Value;

use super::subschema::Subschema;
use crate::json::JsonType;

/// Maximum number of alternatives of one schema.
const MAX_SHAPES: usize = 64;
/// Maximum depth of references and combinations inside one schema.
const MAX_DEPTH: usize = 32;

/// The keywords that apply to values of one type only.
pub(super) const KEYWORDS_OF_TYPES: [(&str, &[&str]); 4] = [
    (
        "object",
        &[
            "properties",
            "required",
            "additionalProperties",
            "minProperties",
            "patternProperties",
            "propertyNames",
            "dependentRequired",
            "unevaluatedProperties",
            "maxProperties",
        ],
    ),
    (
        "array",
        &[
            "items",
            "prefixItems",
            "minItems",
            "contains",
            "uniqueItems",
            "maxItems",
            "unevaluatedItems",
            "additionalItems",
        ],
    ),
    ("string", &["pattern", "format", "minLength", "maxLength"]),
    ("number", &["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"]),
];

/// One alternative of a schema: all `parts` hold, none of `nots` holds.
#[derive(Clone, Default)]
pub(super) struct SchemaShape<'s> {
    /// The schemas whose keywords hold; their `$ref`, `allOf` and choices are parts of their own.
    pub(super) parts: Vec<Subschema<'s>>,
    /// The schemas that must reject the value.
    pub(super) nots: Vec<Subschema<'s>>,
    /// The keys that the value must not have.
    pub(super) absent: Vec<&'s str>,
}

/// Returns the alternatives of several schemas that hold together, the likeliest first.
///
/// `step` counts the work and returns false if there was too much.
pub(super) fn shapes<'s>(schemas: &[Subschema<'s>], step: &dyn Fn() -> bool) -> Vec<SchemaShape<'s>> {
    schemas.iter().fold(vec![SchemaShape::default()], |all, schema| product(all, expand(schema, 0, step)))
}

fn expand<'s>(schema: &Subschema<'s>, depth: usize, step: &dyn Fn() -> bool) -> Vec<SchemaShape<'s>> {
    let Some(keywords) = schema.keywords() else {
        return if *schema.value == Value::Bool(false) { Vec::new() } else { vec![SchemaShape::default()] };
    };
    if depth > MAX_DEPTH || !step() {
        return Vec::new();
    }
    let expand = |schema: &Subschema<'s>| expand(schema, depth + 1, step);
    if schema.is_only_reference() {
        return schema.referenced().first().map_or_else(|| vec![SchemaShape::default()], expand);
    }
    let mut all = vec![SchemaShape { parts: vec![schema.clone()], ..SchemaShape::default() }];
    let mut conjuncts = schema.referenced();
    conjuncts.extend(schema.children_at("allOf"));
    let negated = schema.child_at("not");
    conjuncts.extend(negated.as_ref().and_then(|negated| negated.child_at("not")));
    for conjunct in &conjuncts {
        all = product(all, expand(conjunct));
    }
    all.iter_mut().for_each(|shape| shape.nots.extend(negated.clone()));
    for (keyword, excludes) in [("oneOf", true), ("anyOf", false)] {
        let choices = schema.children_at(keyword);
        if choices.is_empty() {
            continue;
        }
        let choose = |(index, choice): (usize, &Subschema<'s>)| {
            let others = choices.iter().enumerate().filter(|(other, _)| excludes && *other != index);
            let nots: Vec<_> = others.map(|(_, other)| other.clone()).collect();
            product(expand(choice), vec![SchemaShape { nots, ..SchemaShape::default() }])
        };
        all = product(all, choices.iter().enumerate().flat_map(choose).collect());
    }
    if let Some(condition) = schema.child_at("if") {
        let branch =
            |keyword| schema.child_at(keyword).map_or_else(|| vec![SchemaShape::default()], |branch| expand(&branch));
        let mut branches = product(expand(&condition), branch("then"));
        let fails = vec![SchemaShape { nots: vec![condition], ..SchemaShape::default() }];
        branches.extend(product(fails, branch("else")));
        all = product(all, branches);
    }
    for keyword in ["dependentSchemas", "dependencies"] {
        let dependencies = keywords.get(keyword).and_then(Value::as_object).into_iter().flatten();
        for (key, dependent) in dependencies.filter(|(_, dependent)| dependent.is_object() || dependent.is_boolean()) {
            let mut branches = expand(&schema.child(dependent));
            branches.push(SchemaShape { absent: vec![key], ..SchemaShape::default() });
            all = product(all, branches);
        }
    }
    all
}

/// Each alternative of the left with each of the right, without contradictions in `type`, up to the limit.
fn product<'s>(left: Vec<SchemaShape<'s>>, right: Vec<SchemaShape<'s>>) -> Vec<SchemaShape<'s>> {
    let pairs = left.iter().flat_map(|left| right.iter().map(move |right| left.joined(right)));
    pairs.filter(|shape| shape.parts.len() < 2 || !shape.types().is_empty()).take(MAX_SHAPES).collect()
}

impl<'s> SchemaShape<'s> {
    fn joined(&self, other: &SchemaShape<'s>) -> SchemaShape<'s> {
        let mut joined = self.clone();
        joined.parts.extend(other.parts.iter().cloned());
        joined.nots.extend(other.nots.iter().cloned());
        joined.absent.extend(&other.absent);
        joined
    }

    /// All values of a keyword.
    pub(super) fn all(&self, keyword: &'s str) -> impl Iterator<Item = &'s Value> {
        self.parts.iter().filter_map(move |part| part.get(keyword))
    }

    /// The greatest value of a keyword that is a number.
    pub(super) fn greatest(&self, keyword: &'s str) -> Option<f64> {
        self.all(keyword).filter_map(Value::as_f64).reduce(f64::max)
    }

    /// The smallest value of a keyword that is a number.
    pub(super) fn smallest(&self, keyword: &'s str) -> Option<f64> {
        self.all(keyword).filter_map(Value::as_f64).reduce(f64::min)
    }

    /// A minimum of lengths, by the strictest part.
    pub(super) fn at_least(&self, keyword: &'s str) -> usize {
        self.greatest(keyword).map_or(0, |limit| limit as usize)
    }

    /// A maximum of lengths, by the strictest part.
    pub(super) fn at_most(&self, keyword: &'s str) -> usize {
        self.smallest(keyword).map_or(usize::MAX, |limit| limit as usize)
    }

    /// The texts in a keyword that is an array.
    pub(super) fn texts(&self, keyword: &'s str) -> Vec<&'s str> {
        let values = self.all(keyword).filter_map(Value::as_array).flatten();
        values.filter_map(Value::as_str).collect()
    }

    /// The values that the schema itself suggests; the flag is true if it accepts no other value.
    pub(super) fn suggestions(&self) -> (Vec<&'s Value>, bool) {
        let lists = |keyword| self.all(keyword).filter_map(Value::as_array).flatten();
        let constants =
            self.all("const").chain(self.all("default")).chain(lists("examples")).chain(self.all("example"));
        let is_closed = self.all("const").chain(self.all("enum")).next().is_some();
        (constants.chain(lists("enum")).collect(), is_closed)
    }

    /// Whether `type`, `const` and `enum` accept a value.
    pub(super) fn admits(&self, value: &Value) -> bool {
        let is_equal =
            |other: &Value| other == value || other.as_f64().is_some_and(|number| value.as_f64() == Some(number));
        let fits = |kind: &str| JsonType::named(kind).is_some_and(|kind| kind.includes(value));
        self.types().into_iter().any(fits)
            && self.all("const").all(is_equal)
            && self.all("enum").filter_map(Value::as_array).all(|values| values.iter().any(is_equal))
    }

    /// The types that all parts accept, the likeliest first.
    pub(super) fn types(&self) -> Vec<&'s str> {
        let mut types: Option<Vec<&str>> = None;
        for declared in self.all("type") {
            let declared: Vec<&str> = match declared {
                Value::String(one) => vec![one],
                Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            let has =
                |types: &[&str], kind: &str| types.contains(&kind) || (kind == "integer" && types.contains(&"number"));
            types = Some(match types {
                None => declared,
                Some(known) => {
                    let mut both: Vec<&str> = known.iter().copied().filter(|kind| has(&declared, kind)).collect();
                    both.extend(declared.iter().filter(|kind| has(&known, kind) && !known.contains(kind)));
                    both
                }
            });
        }
        types.unwrap_or_else(|| self.likely_types())
    }

    /// All types, those of the keywords first.
    fn likely_types(&self) -> Vec<&'s str> {
        let has = |keyword: &&'static str| self.all(keyword).next().is_some();
        let mut types: Vec<&str> = KEYWORDS_OF_TYPES
            .into_iter()
            .filter(|(_, keywords)| keywords.iter().any(has))
            .map(|(kind, _)| kind)
            .collect();
        for kind in ["string", "object", "array", "integer", "boolean", "null"] {
            if !types.contains(&kind) {
                types.push(kind);
            }
        }
        types
    }
}
