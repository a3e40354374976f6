//! A JSON Schema as a TypeScript type.
//!
//! What TypeScript cannot express, such as ranges, patterns, `not` and `if`, is left out, so that the type accepts every valid
//! value. Members that an object schema does not name are the exception: a type accepts them only if the schema allows them
//! explicitly.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::name::{pascal_case, quoted};
use super::schema_types::{SchemaTypes, TypeUse};
use super::type_expression::{TypeDocumentation, TypeExpression, TypeMember};
use crate::json::{JsonType, excerpt};
use crate::schema::generator::Presence;
use crate::schema::shape::KEYWORDS_OF_TYPES;
use crate::schema::subschema::{Document, Subschema};

/// Maximum depth of schemas inside each other, references included. What is deeper is any value.
const MAX_DEPTH: usize = 100;
/// Maximum number of schemas of one document that are converted. What comes later is any value.
const MAX_STEPS: usize = 50_000;
/// Maximum length of a default value in a comment, in bytes.
const MAX_DEFAULT: usize = 80;
/// Keywords that add members to an object under a condition.
const CONDITIONAL: [&str; 5] = ["if", "then", "else", "dependentSchemas", "dependencies"];
/// Keywords that combine a schema with others for the same value.
const COMBINING: [&str; 6] = ["allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "$recursiveRef"];

/// Whether an object schema is the whole type, or adds members to another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ObjectRole {
    /// The schema names all members, or accepts any.
    Whole,
    /// Other schemas for the same value name members as well.
    Part,
}

/// What a referenced schema became.
enum Target {
    /// A named type, by its index in the definitions.
    Named(usize),
    /// A type that is written in place of the reference.
    Inline(TypeExpression),
}

/// The conversion of one document.
pub(super) struct Conversion<'s, 't> {
    document: &'s Document<'s>,
    types: &'t mut SchemaTypes,
    usage: TypeUse,
    prefix: &'t str,
    targets: HashMap<*const Value, Target>,
    /// The definition whose type is converted, if no object or array of it is between: an alias must not be its own part.
    owner: Option<usize>,
    /// For each definition, those that are its parts without an object or array between.
    parts: HashMap<usize, Vec<usize>>,
    /// The definitions that a type refers to.
    referenced: HashSet<usize>,
    depth: usize,
    steps: usize,
}

impl<'s, 't> Conversion<'s, 't> {
    pub(super) fn new(
        document: &'s Document<'s>,
        types: &'t mut SchemaTypes,
        usage: TypeUse,
        prefix: &'t str,
    ) -> Conversion<'s, 't> {
        let (targets, parts, referenced) = Default::default();
        let (owner, depth, steps) = (None, 0, MAX_STEPS);
        Conversion { document, types, usage, prefix, targets, owner, parts, referenced, depth, steps }
    }

    /// The type of the whole document.
    pub(super) fn root(mut self) -> TypeExpression {
        self.convert(&self.document.root(), ObjectRole::Whole)
    }

    fn convert(&mut self, schema: &Subschema<'s>, role: ObjectRole) -> TypeExpression {
        let Some(keywords) = schema.keywords() else {
            return if *schema.value == Value::Bool(false) { TypeExpression::NEVER } else { TypeExpression::Unknown };
        };
        if self.depth == MAX_DEPTH || self.steps == 0 {
            return TypeExpression::Unknown;
        }
        self.depth += 1;
        self.steps -= 1;
        let converted = self.combined(schema, keywords, role);
        self.depth -= 1;
        converted
    }

    /// The type of a member or an element: it may refer to the type that it is in.
    fn convert_inside(&mut self, schema: &Subschema<'s>) -> TypeExpression {
        let owner = self.owner.take();
        let converted = self.convert(schema, ObjectRole::Whole);
        self.owner = owner;
        converted
    }

    /// The schema's own keywords, and those that it combines with them.
    fn combined(
        &mut self,
        schema: &Subschema<'s>,
        keywords: &'s Map<String, Value>,
        role: ObjectRole,
    ) -> TypeExpression {
        let references = schema.referenced();
        if schema.is_only_reference() {
            return references.first().map_or(TypeExpression::Unknown, |target| self.reference(target));
        }
        let is_combined = COMBINING.iter().any(|keyword| keywords.contains_key(*keyword));
        if !is_combined {
            return self.own(schema, keywords, role);
        }
        let mut types = vec![self.own(schema, keywords, ObjectRole::Part)];
        for target in &references {
            types.push(self.reference(target));
        }
        for part in schema.children_at("allOf") {
            types.push(self.convert(&part, ObjectRole::Part));
        }
        let choice_role = if keywords.contains_key("properties") { ObjectRole::Part } else { role };
        for keyword in ["anyOf", "oneOf"] {
            let choices = schema.children_at(keyword);
            if !choices.is_empty() {
                let choices: Vec<_> = choices.iter().map(|choice| self.convert(choice, choice_role)).collect();
                types.push(TypeExpression::union(choices));
            }
        }
        match TypeExpression::intersection(types) {
            // The others name no members either.
            TypeExpression::Object { members, index: None } if members.is_empty() && role == ObjectRole::Whole => {
                TypeExpression::Object { members, index: Some(Box::new(TypeExpression::Unknown)) }
            }
            combined => combined,
        }
    }

    /// The type by `const`, `enum` and `type`.
    fn own(&mut self, schema: &Subschema<'s>, keywords: &'s Map<String, Value>, role: ObjectRole) -> TypeExpression {
        let declared: Option<Vec<&str>> = match keywords.get("type") {
            Some(Value::String(one)) => Some(vec![one]),
            Some(Value::Array(several)) => Some(several.iter().filter_map(Value::as_str).collect()),
            _ => None,
        };
        let own = if let Some(constant) = keywords.get("const") {
            literal(constant)
        } else if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
            let is_of_type = |value: &&Value| match &declared {
                Some(types) => types.iter().any(|kind| includes(kind, value)),
                None => true,
            };
            TypeExpression::union(values.iter().filter(is_of_type).map(literal))
        } else {
            let types = declared.unwrap_or_else(|| {
                let applies = |(kind, names): &(&'static str, &[&str])| {
                    names.iter().any(|name| keywords.contains_key(*name)).then_some(*kind)
                };
                KEYWORDS_OF_TYPES.iter().filter_map(applies).collect()
            });
            if types.is_empty() {
                return TypeExpression::Unknown;
            }
            let types: Vec<_> = types.into_iter().map(|kind| self.by_type(kind, schema, role)).collect();
            TypeExpression::union(types)
        };
        let is_nullable = keywords.get("nullable") == Some(&Value::Bool(true));
        if is_nullable { TypeExpression::union([own, TypeExpression::NULL]) } else { own }
    }

    fn by_type(&mut self, kind: &str, schema: &Subschema<'s>, role: ObjectRole) -> TypeExpression {
        match kind {
            "string" => TypeExpression::Keyword("string"),
            "integer" | "number" => TypeExpression::Keyword("number"),
            "boolean" => TypeExpression::Keyword("boolean"),
            "null" => TypeExpression::NULL,
            "array" => self.array(schema),
            "object" => self.object(schema, role),
            _ => TypeExpression::Unknown,
        }
    }

    fn array(&mut self, schema: &Subschema<'s>) -> TypeExpression {
        let mut elements = schema.children_at("prefixItems");
        let mut rest = schema.child_at("items");
        if elements.is_empty() {
            // Until 2019-09, an array in `items` has the first elements.
            elements = schema.children_at("items");
            rest = if elements.is_empty() { rest } else { schema.child_at("additionalItems") };
        }
        let is_evaluated_elsewhere = is_evaluated_elsewhere(schema) || schema.get("contains").is_some();
        let rest = rest.or_else(|| schema.child_at("unevaluatedItems").filter(|_| !is_evaluated_elsewhere));
        let rest = rest.map_or(TypeExpression::Unknown, |rest| self.convert_inside(&rest));
        let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_f64).map(|limit| limit as usize);
        if elements.is_empty() && rest != TypeExpression::NEVER {
            return TypeExpression::List(Box::new(rest));
        }
        let minimum = limit("minItems").unwrap_or(if self.usage == TypeUse::Results { elements.len() } else { 0 });
        let is_closed = rest == TypeExpression::NEVER || limit("maxItems").is_some_and(|most| most <= elements.len());
        let element = |(index, element): (usize, &Subschema<'s>)| {
            let presence = if index < minimum { Presence::Required } else { Presence::Optional };
            (self.convert_inside(element), presence)
        };
        let elements = elements.iter().enumerate().map(element).collect();
        TypeExpression::Tuple { elements, rest: (!is_closed).then(|| Box::new(rest)) }
    }

    fn object(&mut self, schema: &Subschema<'s>, role: ObjectRole) -> TypeExpression {
        let object = |keyword: &str| schema.get(keyword).and_then(Value::as_object);
        let texts = |value: Option<&'s Value>| -> Vec<&'s str> {
            value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let required = texts(schema.get("required"));
        let unevaluated = || schema.child_at("unevaluatedProperties").filter(|_| !is_evaluated_elsewhere(schema));
        let additional = schema.child_at("additionalProperties").or_else(unevaluated);
        let mut index = additional.as_ref().map(|additional| self.convert_inside(additional));
        let patterns = object("patternProperties").into_iter().flatten();
        let patterns: Vec<_> = patterns.map(|(_, value)| self.convert_inside(&schema.child(value))).collect();
        if !patterns.is_empty() {
            index = Some(TypeExpression::union(index.into_iter().chain(patterns)));
        }

        let presence = |name: &str| if required.contains(&name) { Presence::Required } else { Presence::Optional };
        let mut members: Vec<TypeMember> = Vec::new();
        for (name, value) in object("properties").into_iter().flatten() {
            let child = schema.child(value);
            let value = self.convert_inside(&child);
            members.push(TypeMember {
                name: name.clone(),
                presence: presence(name),
                value,
                documentation: documentation(&child),
            });
        }
        let names = schema.child_at("propertyNames").map(|names| texts(names.get("enum"))).unwrap_or_default();
        let is_map_of_names = !names.is_empty();
        for name in names.into_iter().chain(required.iter().copied()) {
            if members.iter().all(|member| member.name != name) {
                let value =
                    index.clone().filter(|index| *index != TypeExpression::NEVER).unwrap_or(TypeExpression::Unknown);
                let documentation = TypeDocumentation::default();
                members.push(TypeMember { name: name.to_owned(), presence: presence(name), value, documentation });
            }
        }

        let index = match index {
            _ if is_map_of_names => None,
            Some(TypeExpression::Keyword("never")) if members.is_empty() && self.usage == TypeUse::Arguments => {
                Some(TypeExpression::NEVER)
            }
            Some(index) if index == TypeExpression::NEVER => None,
            Some(index) => Some(with_members(index, &members)),
            None => self.index_if_not_declared(schema, &members, role),
        };
        TypeExpression::Object { members, index: index.map(Box::new) }
    }

    /// The type of members that an object schema neither names nor mentions.
    fn index_if_not_declared(
        &self,
        schema: &Subschema<'s>,
        members: &[TypeMember],
        role: ObjectRole,
    ) -> Option<TypeExpression> {
        let is_conditional = CONDITIONAL.iter().any(|keyword| schema.get(keyword).is_some());
        let is_named = schema.get("properties").is_some();
        let is_empty = members.is_empty();
        if is_conditional || (!is_named && role == ObjectRole::Whole) {
            Some(TypeExpression::Unknown)
        } else if is_empty && role == ObjectRole::Whole {
            // A tool without arguments has `properties: {}`.
            Some(if self.usage == TypeUse::Arguments { TypeExpression::NEVER } else { TypeExpression::Unknown })
        } else {
            None
        }
    }

    /// The type of a referenced schema: named, unless it is short.
    fn reference(&mut self, target: &Subschema<'s>) -> TypeExpression {
        let key: *const Value = target.value;
        if !self.targets.contains_key(&key) {
            self.define(target, key);
        }
        match &self.targets[&key] {
            Target::Inline(expression) => expression.clone(),
            Target::Named(index) => self.named(*index),
        }
    }

    fn define(&mut self, target: &Subschema<'s>, key: *const Value) {
        let pointer = self.document.pointer(key).unwrap_or_default();
        let last = pointer.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or("Whole");
        let index = self.types.reserve(format!("{}{}", self.prefix, pascal_case(last)), self.usage);
        self.targets.insert(key, Target::Named(index));
        let owner = self.owner.replace(index);
        let expression = self.convert(target, ObjectRole::Whole);
        self.owner = owner;
        if expression.is_scalar() && !self.referenced.contains(&index) {
            self.targets.insert(key, Target::Inline(expression));
        } else {
            self.types.definitions[index].documentation = documentation(target);
            self.types.definitions[index].expression = Some(expression);
        }
    }

    /// Refers to a definition, unless it would be a part of itself.
    fn named(&mut self, index: usize) -> TypeExpression {
        if let Some(owner) = self.owner {
            if self.has_part(index, owner) {
                return TypeExpression::Unknown;
            }
            self.parts.entry(owner).or_default().push(index);
        }
        self.referenced.insert(index);
        self.types.named(index)
    }

    fn has_part(&self, whole: usize, part: usize) -> bool {
        let (mut open, mut seen) = (vec![whole], Vec::new());
        while let Some(next) = open.pop() {
            if next == part {
                return true;
            }
            if !seen.contains(&next) {
                seen.push(next);
                open.extend(self.parts.get(&next).into_iter().flatten());
            }
        }
        false
    }
}

/// Whether other schemas for the same value may evaluate members and elements, which the schema's own `unevaluatedProperties`
/// and `unevaluatedItems` leave alone.
fn is_evaluated_elsewhere(schema: &Subschema<'_>) -> bool {
    COMBINING.iter().chain(&CONDITIONAL).any(|keyword| schema.get(keyword).is_some())
}

/// The type of other members, which in TypeScript is also that of the named ones.
fn with_members(index: TypeExpression, members: &[TypeMember]) -> TypeExpression {
    let is_optional = members.iter().any(|member| member.presence == Presence::Optional);
    let undefined = is_optional.then_some(TypeExpression::Keyword("undefined"));
    let values = members.iter().map(|member| member.value.clone());
    TypeExpression::union(std::iter::once(index).chain(values).chain(undefined))
}

/// The description of a schema, or of the one that it refers to, with its default.
fn documentation(schema: &Subschema<'_>) -> TypeDocumentation {
    // Titles are left out: generated schemas repeat the name of the member in them.
    let text = |schema: &Subschema<'_>| {
        let text = schema.get("description").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        text.map(str::to_owned)
    };
    let referenced = || schema.referenced().first().and_then(text);
    let mut tags = Vec::new();
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        tags.push(format!("@default {}", excerpt(default, MAX_DEFAULT)));
    }
    if schema.get("deprecated") == Some(&Value::Bool(true)) {
        tags.push("@deprecated".to_owned());
    }
    TypeDocumentation { text: text(schema).or_else(referenced).unwrap_or_default(), tags }
}

/// The type that only one value has.
fn literal(value: &Value) -> TypeExpression {
    match value {
        Value::Null => TypeExpression::NULL,
        Value::Bool(value) => TypeExpression::Literal { base: "boolean", text: value.to_string() },
        Value::Number(number) => TypeExpression::Literal { base: "number", text: number.to_string() },
        Value::String(text) => TypeExpression::Literal { base: "string", text: quoted(text) },
        Value::Array(elements) => {
            let elements = elements.iter().map(|element| (literal(element), Presence::Required)).collect();
            TypeExpression::Tuple { elements, rest: None }
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| TypeMember {
                name: name.clone(),
                presence: Presence::Required,
                value: literal(value),
                documentation: TypeDocumentation::default(),
            };
            TypeExpression::Object { members: members.iter().map(member).collect(), index: None }
        }
    }
}

fn includes(kind: &str, value: &Value) -> bool {
    JsonType::named(kind).is_none_or(|kind| kind.includes(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ARGUMENTS: TypeUse = TypeUse::Arguments;
    const RESULTS: TypeUse = TypeUse::Results;

    /// The type of a schema, and below it the named types that it refers to.
    fn convert(schema: &Value, usage: TypeUse) -> String {
        let mut types = SchemaTypes::new("N");
        let text = types.add(schema, usage, "Tool").unwrap().text(0);
        let named = types.declarations();
        if named.is_empty() { text } else { format!("{text}\n{named}") }
    }

    fn assert_table(usage: TypeUse, rows: impl IntoIterator<Item = (Value, &'static str)>) {
        let differences = rows.into_iter().filter_map(|(schema, expected)| {
            let text = convert(&schema, usage);
            (text != expected).then(|| format!("{schema}\n  is {text}\n not {expected}\n"))
        });
        let differences: String = differences.collect();
        assert!(differences.is_empty(), "{differences}");
    }

    #[test]
    fn every_keyword_of_a_basic_type_has_its_type() {
        assert_table(
            ARGUMENTS,
            [
                (json!({}), "unknown"),
                (json!(true), "unknown"),
                (json!(false), "never"),
                (json!({"not": {}}), "unknown"),
                (json!({"type": "string", "pattern": "^a"}), "string"),
                (json!({"type": "integer", "minimum": 1}), "number"),
                (json!({"type": "boolean"}), "boolean"),
                (json!({"type": "null"}), "null"),
                (json!({"type": ["string", "null"]}), "string | null"),
                (json!({"type": "string", "nullable": true}), "string | null"),
                (json!({"type": ["integer", "number"]}), "number"),
                (json!({"type": "date"}), "unknown"),
                (json!({"minLength": 1}), "string"),
                (json!({"minimum": 1, "maxLength": 3}), "string | number"),
                (json!({"title": "Anything"}), "unknown"),
            ],
        );
    }

    #[test]
    fn constants_and_enumerations_are_literals() {
        assert_table(
            ARGUMENTS,
            [
                (json!({"const": "a"}), r#""a""#),
                (json!({"enum": ["a", "b\"\n", 1, -1.5, true, null]}), r#""a" | "b\"\n" | 1 | -1.5 | true | null"#),
                (json!({"type": "string", "enum": ["a", 1, null]}), r#""a""#),
                (json!({"type": ["string", "null"], "enum": ["a", null]}), r#""a" | null"#),
                (json!({"enum": []}), "never"),
                (json!({"const": {"a": [1, "x"]}}), r#"{ a: readonly [1, "x"] }"#),
                (json!({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}), r#""a" | "b""#),
                (json!({"type": "string", "anyOf": [{"enum": ["a"]}, {"const": "b"}]}), r#""a" | "b""#),
                (json!({"anyOf": [{"enum": ["a"]}, {"type": "string"}]}), "string"),
            ],
        );
    }

    #[test]
    fn objects_have_required_and_optional_members_and_accept_others_only_if_declared() {
        let members = json!({"path": {"type": "string"}, "tail-lines": {"type": "integer"}});
        assert_table(
            ARGUMENTS,
            [
                (
                    json!({"type": "object", "properties": members, "required": ["path"]}),
                    r#"{ path: string; "tail-lines"?: number }"#,
                ),
                (json!({"properties": {"a": {}}}), "{ a?: unknown }"),
                (json!({"type": "object", "properties": {}}), "{ [name: string]: never }"),
                (json!({"type": "object", "additionalProperties": false}), "{ [name: string]: never }"),
                (json!({"type": "object"}), "{ [name: string]: unknown }"),
                (json!({"type": "object", "required": ["a"]}), "{ a: unknown; [name: string]: unknown }"),
                (
                    json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}),
                    "{ a?: string; [name: string]: unknown }",
                ),
                (json!({"type": "object", "additionalProperties": {"type": "number"}}), "{ [name: string]: number }"),
                (
                    json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}}),
                    "{ a?: string; [name: string]: number | string | undefined }",
                ),
                (
                    json!({"type": "object", "patternProperties": {"^x": {"type": "number"}}, "additionalProperties": false}),
                    "{ [name: string]: number }",
                ),
                (
                    json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"], "unevaluatedProperties": false}),
                    "{ a?: null; b: unknown }",
                ),
                (
                    json!({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "number"}, "required": ["a"]}),
                    "{ a: number; b?: number }",
                ),
                (json!({"type": "object", "properties": {"old": false, "a": true}}), "{ old?: never; a?: unknown }"),
                (
                    json!({"type": "object", "properties": {"a": {"type": "string"}}, "if": {"required": ["a"]}, "then": {"properties": {"b": {}}}}),
                    "{ a?: string; [name: string]: unknown }",
                ),
            ],
        );
        assert_table(
            RESULTS,
            [
                (json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}), "{ a: any }"),
                (json!({"type": "object", "properties": {}}), "{ [name: string]: any }"),
                (json!({"type": "object", "properties": {}, "additionalProperties": false}), "{}"),
                (json!({"type": "object"}), "{ [name: string]: any }"),
            ],
        );
    }

    #[test]
    fn arrays_are_lists_and_tuples() {
        let pair = json!([{"type": "number"}, {"type": ["string", "null"]}]);
        assert_table(
            ARGUMENTS,
            [
                (json!({"type": "array"}), "readonly unknown[]"),
                (json!({"items": {"type": "string"}}), "readonly string[]"),
                (json!({"type": "array", "items": {"type": ["string", "null"]}}), "readonly (string | null)[]"),
                (
                    json!({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
                    "readonly (readonly number[])[]",
                ),
                (json!({"type": "array", "items": false}), "readonly []"),
                (json!({"type": "array", "prefixItems": pair}), "readonly [number?, (string | null)?, ...unknown[]]"),
                (
                    json!({"type": "array", "prefixItems": pair, "minItems": 2, "maxItems": 2}),
                    "readonly [number, string | null]",
                ),
                (
                    json!({"type": "array", "prefixItems": pair, "minItems": 1, "items": {"type": "boolean"}}),
                    "readonly [number, (string | null)?, ...boolean[]]",
                ),
                (
                    json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": pair, "additionalItems": false, "minItems": 2}),
                    "readonly [number, string | null]",
                ),
            ],
        );
        assert_table(
            RESULTS,
            [
                (json!({"type": "array"}), "any[]"),
                (json!({"type": "array", "prefixItems": pair, "items": false}), "[number, string | null]"),
            ],
        );
    }

    #[test]
    fn combinations_are_unions_and_intersections() {
        let [a, b] = ["a", "b"]
            .map(|name| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}));
        let optional = json!({"a": {"type": "string"}, "b": {"type": "string"}});
        assert_table(
            ARGUMENTS,
            [
                (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "string | null"),
                (json!({"oneOf": [a, b]}), "{ a: string } | { b: string }"),
                (json!({"type": "object", "oneOf": [a, b]}), "{ a: string } | { b: string }"),
                (json!({"allOf": [a, b]}), "{ a: string; b: string }"),
                (json!({"allOf": [a], "properties": {"c": {"type": "number"}}}), "{ c?: number; a: string }"),
                (
                    json!({"type": "object", "properties": optional, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                    "{ a?: string; b?: string } & ({ a: unknown } | { b: unknown })",
                ),
                (
                    json!({"type": "array", "items": {"anyOf": [a, {"type": "string"}]}}),
                    "readonly ({ a: string } | string)[]",
                ),
                (json!({"anyOf": [{}, {"type": "string"}]}), "unknown"),
                (json!({"allOf": [{"type": "string"}, {"minLength": 1}]}), "string"),
                (json!({"allOf": [{"type": "string"}, false]}), "never"),
                (json!({"type": "object", "anyOf": [{}, {"minProperties": 1}]}), "{ [name: string]: unknown }"),
                (
                    json!({"allOf": [a, {"additionalProperties": true}], "unevaluatedProperties": false}),
                    "{ a: string } & { [name: string]: unknown }",
                ),
                (
                    json!({"prefixItems": [{"type": "string"}], "allOf": [{"prefixItems": [true, {"type": "number"}]}], "unevaluatedItems": false}),
                    "(readonly [string?, ...unknown[]]) & (readonly [unknown?, number?, ...unknown[]])",
                ),
            ],
        );
    }

    #[test]
    fn references_are_named_types_and_may_be_recursive() {
        let node = json!({"type": "object", "properties": {"name": {"$ref": "#/$defs/name"}, "in": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["name"]});
        let definitions = json!({"node": node, "name": {"type": "string"}});
        assert_table(
            ARGUMENTS,
            [
                (
                    json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": definitions}),
                    "{ root?: N.ToolNode }\ndeclare namespace N {\n  type ToolNode = { name: string; in?: readonly N.ToolNode[] };\n}\n",
                ),
                (json!({"$ref": "#/$defs/name", "$defs": definitions}), "string"),
                (
                    json!({"type": "object", "properties": {"in": {"$ref": "#"}}}),
                    "{ in?: N.ToolWhole }\ndeclare namespace N {\n  type ToolWhole = { in?: N.ToolWhole };\n}\n",
                ),
                (
                    json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a b", "definitions": {"a b": {"enum": ["x", "y"]}}}),
                    "N.ToolA20b\ndeclare namespace N {\n  type ToolA20b = \"x\" | \"y\";\n}\n",
                ),
                (json!({"allOf": [{"$ref": "#/$defs/name"}], "$defs": definitions}), "string"),
                (json!({"$ref": "#/$defs/missing"}), "unknown"),
            ],
        );
    }

    #[test]
    fn a_type_that_consists_of_itself_is_unknown() {
        assert_table(
            ARGUMENTS,
            [
                (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}), "unknown"),
                (
                    json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
                    "N.ToolA\ndeclare namespace N {\n  type ToolA = unknown;\n  type ToolB = N.ToolA;\n}\n",
                ),
                (
                    json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}}),
                    "unknown",
                ),
                (
                    json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"items": {"$ref": "#/$defs/a"}}, {"type": "null"}]}}}),
                    "N.ToolA\ndeclare namespace N {\n  type ToolA = readonly N.ToolA[] | null;\n}\n",
                ),
                (
                    // `b` is first converted inside a member of `a`, then it would be a part of it.
                    json!({"$ref": "#/$defs/a", "$defs": {
                        "a": {"anyOf": [{"properties": {"m": {"$ref": "#/$defs/b"}}}, {"$ref": "#/$defs/b"}]},
                        "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]},
                    }}),
                    "N.ToolA\ndeclare namespace N {\n  type ToolA = unknown;\n  type ToolB = N.ToolA | null;\n}\n",
                ),
            ],
        );
    }

    #[test]
    fn large_and_deep_schemas_end_in_any_value() {
        let deep = (0..90).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
        assert!(convert(&deep, RESULTS).starts_with("string[][]"));
        let chain: Map<String, Value> = (0..300)
            .map(|index| (format!("d{index}"), json!({"items": {"$ref": format!("#/$defs/d{}", index + 1)}})))
            .collect();
        assert!(convert(&json!({"$ref": "#/$defs/d0", "$defs": chain}), RESULTS).contains("any"));
        // Each of 60 definitions refers twice to the next: written in place, they would not fit in memory.
        let twice: Map<String, Value> = (0..60)
            .map(|index| {
                let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
                (format!("d{index}"), json!({"properties": {"a": next, "b": next}}))
            })
            .collect();
        assert!(convert(&json!({"$ref": "#/$defs/d0", "$defs": twice}), RESULTS).len() < 10_000);
    }

    #[test]
    fn descriptions_defaults_and_deprecations_are_comments_of_members() {
        let schema = json!({"type": "object", "properties": {
            "path": {"type": "string", "description": "The path, e.g. src/**/*.rs"},
            "depth": {"type": "integer", "default": 3},
            "old": {"type": "object", "deprecated": true, "properties": {"a": {"title": "A", "description": "B"}}},
            "ref": {"$ref": "#/$defs/r"},
        }, "$defs": {"r": {"type": "string", "description": "From the definition"}}});
        let expected = "{\n  /** The path, e.g. src/**\\/*.rs */\n  path?: string;\n  /** @default 3 */\n  depth?: number;\n  \
            /** @deprecated */\n  old?: {\n    /** B */\n    a?: unknown;\n  };\n  /** From the definition */\n  ref?: string;\n}";
        assert_eq!(convert(&schema, ARGUMENTS), expected);
    }

    #[test]
    fn a_schema_that_refers_to_another_document_is_an_error() {
        let schema = json!({"$ref": "https://example.com/schema.json"});
        assert!(SchemaTypes::new("N").add(&schema, ARGUMENTS, "Tool").is_err());
    }
}
