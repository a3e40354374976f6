//! Other values in place of invented ones: what differs between two runs depends on them.
//!
//! ```text
//! value, schema ──► a change for each leaf, list and optional member ──► all at once, else those that fit ──► a valid value
//! ```

mod hints;
mod leaf;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use rehearsal_core::matcher::Schema;
use serde_json::{Map, Value, json};

use self::hints::Hints;
use self::leaf::{other_number, other_text};

/// How many groups of changes are validated at least, if the schema rejects all changes together.
const MIN_VALIDATIONS: usize = 4;
/// Further groups are validated as long as the values have fewer bytes than this in all.
const VALIDATED_BYTES: usize = 1 << 17;
/// Maximum number of places of a value for which an example is generated.
const MAX_EXAMPLES: usize = 16;
/// Minimum number of elements of a longer array.
const LONGER_ARRAY: usize = 3;

/// A way in which invented values are replaced in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Alternate {
    /// Other strings and numbers. Lengths of arrays, booleans and members of enums stay, so that the calls stay comparable.
    Near,
    /// Longer arrays, large numbers, the other boolean, the next member of an enum, longer strings, optional members
    /// present. The elements that make an array longer are near copies of the others.
    More,
    /// Empty arrays, `""` and 0, `false`, the previous member of an enum, no optional members, `null` where it is allowed.
    Less,
    /// Strings and numbers that the plan compares with: the value at this index first, the next for the next leaf. A number
    /// is followed by its neighbours.
    Compared(usize),
}

/// The number of indexes after which [`Alternate::Compared`] gives every leaf each value that fits it.
pub(super) fn compared_rounds(compared: &[Value]) -> usize {
    texts_of(compared).len().max(numbers_of(compared).len())
}

/// Another value in place of an invented one, valid against the same schema if there is one. The same arguments give the
/// same value; if nothing can change, it is `value`.
///
/// `schema` is the schema as the server listed it, and compiled. Without one only the types of JSON are kept. `salt` differs
/// for each call, so that a string of [`Alternate::Near`] is found in no other call.
pub(super) fn alternate(
    value: &Value,
    schema: Option<(&Value, &Schema)>,
    alternate: Alternate,
    compared: &[Value],
    salt: u64,
) -> Value {
    if value.is_null() && schema.is_none() {
        return for_unknown(alternate, compared, salt);
    }
    let mut collector = Collector {
        alternate,
        compared_texts: texts_of(compared),
        compared_numbers: numbers_of(compared),
        compared_leaves: 0,
        salt,
        pointer: String::new(),
        changes: Vec::new(),
        used_numbers: HashSet::new(),
        examples: HashMap::new(),
    };
    collector.visit(value, &schema.map(|(schema, _)| Hints::new(schema, vec![schema])).unwrap_or_default());
    // If the value itself violates its schema, no part of it has to stay valid.
    let compiled = schema.map(|(_, compiled)| compiled).filter(|compiled| compiled.is_valid(value));
    let is_valid = |candidate: &Value| compiled.is_none_or(|compiled| compiled.is_valid(candidate));
    let changed = with_changes(value, &collector.changes, 0);
    if is_valid(&changed) { changed } else { with_valid_changes(value, collector.changes, &is_valid) }
}

/// Another value in place of a result of which the plan shows no type.
fn for_unknown(kind: Alternate, compared: &[Value], salt: u64) -> Value {
    match kind {
        Alternate::Near | Alternate::More => alternate(&Value::from("text"), None, kind, &[], salt),
        Alternate::Less => Value::Null,
        Alternate::Compared(index) => compared.get(index % compared.len().max(1)).cloned().unwrap_or(Value::Null),
    }
}

/// The strings that a plan compares with.
fn texts_of(compared: &[Value]) -> Vec<Value> {
    compared.iter().filter(|value| value.is_string()).cloned().collect()
}

/// The numbers that a plan compares with, then those next to them: `>` and `<` have both results, too.
fn numbers_of(compared: &[Value]) -> Vec<Value> {
    let neighbour = |value: &Value, distance: i64| match value.as_i64() {
        Some(whole) => whole.checked_add(distance).map(Value::from),
        None => value.as_f64().map(|fraction| Value::from(fraction + distance as f64)),
    };
    let neighbours = |distance| compared.iter().filter_map(move |value| neighbour(value, distance));
    [0, 1, -1].into_iter().flat_map(neighbours).collect()
}

/// A change at one place of a value.
struct Change {
    /// The place, as a JSON pointer.
    pointer: String,
    /// The ways to change it, the best first. The first that the schema allows is used.
    ways: Vec<Edit>,
}

enum Edit {
    Replace(Value),
    /// A member of an object is added, or removed.
    Member(String, Option<Value>),
    /// An array keeps this many elements, and gets others.
    Elements(usize, Vec<Value>),
}

impl Edit {
    fn apply(&self, place: &mut Value) {
        match (self, place) {
            (Edit::Replace(value), place) => place.clone_from(value),
            (Edit::Member(name, Some(value)), Value::Object(members)) => {
                members.insert(name.clone(), value.clone());
            }
            (Edit::Member(name, None), Value::Object(members)) => {
                members.shift_remove(name);
            }
            (Edit::Elements(kept, added), Value::Array(elements)) => {
                elements.truncate(*kept);
                elements.extend_from_slice(added);
            }
            // Another change replaced the object or the array.
            (Edit::Member(..) | Edit::Elements(..), _) => {}
        }
    }
}

/// A value with changes, each in the same way.
fn with_changes(value: &Value, changes: &[Change], way: usize) -> Value {
    let mut changed = value.clone();
    for change in changes {
        // The place is missing if another change removed it.
        if let (Some(edit), Some(place)) = (change.ways.get(way), changed.pointer_mut(&change.pointer)) {
            edit.apply(place);
        }
    }
    changed
}

/// The place of a pointer without indexes: one schema describes all elements of an array.
fn without_indexes(pointer: &str) -> String {
    pointer.replace(|character: char| character.is_ascii_digit(), "")
}

/// A value with those changes that are valid together. If the schema rejects a group of changes, each half is tried; before
/// that, the changes of one place are tried in their next way.
fn with_valid_changes(value: &Value, mut changes: Vec<Change>, is_valid: &dyn Fn(&Value) -> bool) -> Value {
    changes.sort_by_cached_key(|change| without_indexes(&change.pointer));
    let mut valid = value.clone();
    let mut groups = VecDeque::from([(&changes[..], 0)]);
    for _ in 0..MIN_VALIDATIONS + VALIDATED_BYTES / value.to_string().len() {
        let Some((group, way)) = groups.pop_front() else { break };
        let candidate = with_changes(&valid, group, way);
        let place = |change: Option<&Change>| change.map(|change| without_indexes(&change.pointer));
        let is_one_place = place(group.first()) == place(group.last());
        match group {
            _ if is_valid(&candidate) => valid = candidate,
            group if is_one_place && group.iter().any(|change| way + 1 < change.ways.len()) => {
                groups.push_back((group, way + 1));
            }
            [] | [_] => {}
            group => {
                let (first, second) = group.split_at(group.len() / 2);
                groups.extend([(first, 0), (second, 0)]);
            }
        }
    }
    valid
}

/// Collects the changes of all places of a value.
struct Collector {
    alternate: Alternate,
    compared_texts: Vec<Value>,
    compared_numbers: Vec<Value>,
    /// How many leaves got a compared value so far.
    compared_leaves: usize,
    salt: u64,
    /// The place that is visited, as a JSON pointer.
    pointer: String,
    changes: Vec<Change>,
    used_numbers: HashSet<u64>,
    /// The examples so far, by their places without indexes.
    examples: HashMap<String, Option<Value>>,
}

impl Collector {
    /// A number that differs for each place of each call.
    fn seed(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.salt, &self.pointer).hash(&mut hasher);
        hasher.finish()
    }

    /// Adds a change of the place that is visited.
    fn change(&mut self, ways: impl IntoIterator<Item = Edit>) {
        let ways: Vec<Edit> = ways.into_iter().collect();
        if !ways.is_empty() {
            self.changes.push(Change { pointer: self.pointer.clone(), ways });
        }
    }

    fn visit(&mut self, value: &Value, hints: &Hints<'_>) {
        match value {
            Value::Array(elements) => return self.visit_elements(elements, hints),
            Value::Object(members) => self.visit_members(members, hints),
            leaf => {
                let ways = self.leaf_ways(leaf, hints);
                self.change(ways.into_iter().filter(|other| other != leaf).map(Edit::Replace));
            }
        }
        if self.alternate == Alternate::Less && !self.pointer.is_empty() && hints.has_type("null") {
            self.change([Edit::Replace(Value::Null)]);
        }
    }

    fn visit_below(&mut self, step: &str, value: &Value, hints: &Hints<'_>) {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        self.visit(value, hints);
        self.pointer.truncate(length);
    }

    fn visit_members(&mut self, members: &Map<String, Value>, hints: &Hints<'_>) {
        for (name, member) in members {
            self.visit_below(name, member, &hints.member(name));
            if self.alternate == Alternate::Less && hints.is_optional(name) {
                self.change([Edit::Member(name.clone(), None)]);
            }
        }
        if self.alternate == Alternate::More {
            for name in hints.member_names().filter(|name| !members.contains_key(*name)) {
                let example = self.example(name, &hints.member(name), &Value::Bool(false));
                self.change(example.map(|example| Edit::Member(name.to_owned(), Some(example))));
            }
        }
    }

    fn visit_elements(&mut self, elements: &[Value], hints: &Hints<'_>) {
        let element_hints = hints.elements();
        let mut kept = elements.len();
        if self.alternate == Alternate::Less {
            kept = kept.min(hints.at_least("minItems") as usize);
        }
        for (index, element) in elements.iter().enumerate().take(kept) {
            self.visit_below(&index.to_string(), element, &element_hints);
        }
        if self.alternate == Alternate::More {
            let example = if kept == 0 { self.example("0", &element_hints, &Value::Bool(false)) } else { None };
            let length = (2 * kept + 1).max(LONGER_ARRAY).min(hints.at_most("maxItems") as usize);
            let copied = elements.iter().chain(&example).cycle();
            let added: Vec<Value> = copied.take(length.saturating_sub(kept)).cloned().collect();
            self.change([Edit::Elements(kept, added.clone())]);
            // Near copies: a condition can hold for some elements and not for others.
            self.alternate = Alternate::Near;
            for (index, element) in added.iter().enumerate() {
                self.visit_below(&(kept + index).to_string(), element, &element_hints);
            }
            self.alternate = Alternate::More;
        } else if kept < elements.len() {
            self.change([Edit::Elements(kept, Vec::new())]);
        }
    }

    /// Values in place of a string, a number, a boolean or `null`, the best first.
    fn leaf_ways(&mut self, leaf: &Value, hints: &Hints<'_>) -> Vec<Value> {
        let choices = hints.choices();
        if let Alternate::Compared(index) = self.alternate {
            let values = match leaf {
                Value::String(_) => &self.compared_texts,
                Value::Number(_) => &self.compared_numbers,
                _ => return Vec::new(),
            };
            let start = (index + self.compared_leaves) % values.len().max(1);
            self.compared_leaves += 1;
            let rotated = values[start..].iter().chain(&values[..start]);
            return rotated.filter(|value| choices.is_empty() || choices.contains(value)).cloned().collect();
        }
        if let Some(at) = choices.iter().position(|choice| *choice == leaf) {
            let following = choices[at + 1..].iter().chain(&choices[..at]).map(|choice| (*choice).clone());
            return match self.alternate {
                Alternate::More => following.collect(),
                Alternate::Less => following.rev().collect(),
                Alternate::Near | Alternate::Compared(_) => Vec::new(),
            };
        }
        match (leaf, self.alternate) {
            (Value::String(text), _) => self.text_ways(text, hints),
            (Value::Number(number), _) => {
                let (seed, used) = (self.seed(), &mut self.used_numbers);
                other_number(number, self.alternate, hints, seed, used).map(Value::Number).into_iter().collect()
            }
            (Value::Bool(flag), Alternate::More) => vec![Value::Bool(!flag)],
            (Value::Bool(_), Alternate::Less) => vec![Value::Bool(false)],
            (Value::Null, Alternate::More) => self.example("", hints, &json!({ "type": "null" })).into_iter().collect(),
            (Value::Null | Value::Bool(_) | Value::Object(_) | Value::Array(_), _) => Vec::new(),
        }
    }

    fn text_ways(&mut self, text: &str, hints: &Hints<'_>) -> Vec<Value> {
        let has_form = hints.has("pattern") || hints.has("format");
        let max_length = if has_form { 0 } else { hints.at_most("maxLength") as usize };
        let other = match (self.alternate, self.other_json(text)) {
            // An empty string has no format, although a validator may accept it.
            (Alternate::Less, _) if hints.has("format") => text.to_owned(),
            (Alternate::Less, _) => String::new(),
            (_, Some(json)) => json,
            (kind, None) => other_text(text, kind, max_length, self.seed()),
        };
        let example = if hints.has("pattern") { self.example("", hints, &json!({ "const": text })) } else { None };
        [Value::from(other)].into_iter().chain(example).collect()
    }

    /// A string that contains JSON stays JSON: its leaves change.
    fn other_json(&self, text: &str) -> Option<String> {
        let parsed: Value = text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok())??;
        Some(alternate(&parsed, None, self.alternate, &[], self.seed()).to_string())
    }

    /// An example of the visited place, or of one below it, that the schema `not` rejects.
    fn example(&mut self, below: &str, hints: &Hints<'_>, not: &Value) -> Option<Value> {
        let place = format!("{}/{below}", without_indexes(&self.pointer));
        let is_full = self.examples.len() >= MAX_EXAMPLES;
        let generate = || if is_full { None } else { hints.example(not) };
        self.examples.entry(place).or_insert_with(generate).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rehearsal_core::schema::{example, infer};

    use super::*;

    fn with_schema(schema: &Value, value: &Value, kind: Alternate, compared: &[Value], salt: u64) -> Value {
        let compiled = Schema::compile(schema).unwrap();
        let changed = alternate(value, Some((schema, &compiled)), kind, compared, salt);
        assert!(compiled.is_valid(&changed), "{schema}: {kind:?} of {value}: {changed}");
        assert_eq!(changed, alternate(value, Some((schema, &compiled)), kind, compared, salt), "the same again");
        changed
    }

    fn issue_schema() -> Value {
        json!({
            "type": "object",
            "required": ["title", "state", "labels", "comments", "open"],
            "properties": {
                "title": {"type": "string"},
                "state": {"enum": ["open", "closed", "merged"]},
                "labels": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
                "assignee": {"type": ["string", "null"]},
                "comments": {"type": "integer", "minimum": 0},
                "open": {"type": "boolean"},
                "kind": {"const": "issue"},
            },
            "additionalProperties": false,
        })
    }

    fn issue() -> Value {
        json!({"title": "Crash", "state": "open", "labels": [{"name": "bug"}], "assignee": "ada", "comments": 3, "open": true, "kind": "issue"})
    }

    #[test]
    fn near_changes_strings_and_numbers_only() {
        let changed = with_schema(&issue_schema(), &issue(), Alternate::Near, &[], 1);
        for path in ["/title", "/labels/0/name", "/assignee", "/comments"] {
            assert_ne!(changed.pointer(path), issue().pointer(path), "{path}: {changed}");
        }
        for path in ["/state", "/open", "/kind", "/labels/1"] {
            assert_eq!(changed.pointer(path), issue().pointer(path), "{path}: {changed}");
        }
    }

    #[test]
    fn near_values_identify_their_call_and_path() {
        let schema = json!({"items": {"properties": {"path": {"type": "string"}, "size": {"type": "integer"}}}});
        let value: Value = (0..30).map(|_| json!({"path": "path", "size": 1})).collect();
        let mut texts = HashSet::new();
        for salt in 0..100 {
            let mut numbers = HashSet::new();
            for file in with_schema(&schema, &value, Alternate::Near, &[], salt).as_array().unwrap() {
                assert!(numbers.insert(file["size"].as_i64()), "{file}: the size is there twice");
                assert!(texts.insert(file["path"].to_string()), "{file}: the path is there twice");
            }
        }
    }

    #[test]
    fn more_is_longer_larger_and_complete() {
        let value = json!({"title": "Crash", "state": "merged", "labels": [], "comments": 3, "open": true});
        let changed = with_schema(&issue_schema(), &value, Alternate::More, &[], 1);
        assert!(
            changed["title"].as_str().unwrap().len() > 20 && changed["comments"].as_i64() > Some(1000),
            "{changed}"
        );
        assert_eq!((&changed["state"], &changed["open"]), (&json!("open"), &json!(false)));
        assert!(changed["labels"][2]["name"].is_string() && changed["assignee"].is_string(), "{changed}");
    }

    #[test]
    fn arrays_grow_by_near_copies() {
        for (schema, value, length) in [
            (json!({"uniqueItems": true}), json!(["a"]), 3),
            (json!({"uniqueItems": true}), json!(["a", "b", "c"]), 7),
            (json!({"maxItems": 4}), json!(["a", "b"]), 4),
        ] {
            let changed = with_schema(&schema, &value, Alternate::More, &[], 1);
            assert_eq!(changed.as_array().unwrap().len(), length, "{changed}");
        }
        let changed = alternate(&json!([{"size": 1, "hidden": true}]), None, Alternate::More, &[], 1);
        let is_large = |index: usize| changed[index]["size"].as_i64() > Some(100);
        assert_eq!((is_large(0), is_large(1), is_large(2)), (true, false, false), "{changed}");
        assert_eq!((&changed[0]["hidden"], &changed[1]["hidden"]), (&json!(false), &json!(true)));
    }

    #[test]
    fn less_is_empty_and_without_optional_members() {
        let changed = with_schema(&issue_schema(), &issue(), Alternate::Less, &[], 1);
        assert_eq!(changed, json!({"title": "", "state": "merged", "labels": [], "comments": 0, "open": false}));
        let required = json!({"required": ["a", "b"], "properties": {"a": {"type": ["string", "null"]}, "b": {"type": ["array", "null"]}}});
        let changed = with_schema(&required, &json!({"a": "x", "b": [1, 2]}), Alternate::Less, &[], 1);
        assert_eq!(changed, json!({"a": null, "b": []}));
    }

    #[test]
    fn compared_values_go_through_all_leaves() {
        let compared = [json!("stale"), json!(100), json!("closed"), json!("keep")];
        assert_eq!(compared_rounds(&compared), 3);
        let seen = |path: &str| -> HashSet<Value> {
            let round = |index| with_schema(&issue_schema(), &issue(), Alternate::Compared(index), &compared, 1);
            (0..3).map(|index| round(index).pointer(path).unwrap().clone()).collect()
        };
        assert_eq!(seen("/title"), [json!("stale"), json!("closed"), json!("keep")].into());
        assert_eq!(seen("/comments"), [json!(99), json!(100), json!(101)].into());
        // An enum takes only its own members, a boolean and a constant stay.
        assert_eq!(seen("/state"), [json!("closed")].into());
        assert_eq!((seen("/open"), seen("/kind")), ([json!(true)].into(), [json!("issue")].into()));
    }

    #[test]
    fn a_value_without_a_schema_keeps_its_types() {
        let value = json!({"user": {"login": "ada"}, "count": 1, "flag": true, "items": [{"id": "id"}], "none": null});
        let less = alternate(&value, None, Alternate::Less, &[], 1);
        assert_eq!(less, json!({"user": {"login": ""}, "count": 0, "flag": false, "items": [], "none": null}));
        // The plan shows no type of this result.
        assert!(alternate(&Value::Null, None, Alternate::Near, &[], 1).is_string());
        assert_eq!(alternate(&Value::Null, None, Alternate::Compared(1), &[json!("a"), json!(7)], 1), json!(7));
        assert_eq!(alternate(&Value::Null, None, Alternate::Less, &[], 1), Value::Null);
        let changed = alternate(&json!(r#"{"name":"config","on":true}"#), None, Alternate::Near, &[], 1);
        let parsed: Value = serde_json::from_str(changed.as_str().unwrap()).unwrap();
        assert!(parsed["name"] != "config" && parsed["on"] == true, "{parsed}");
    }

    #[test]
    fn one_leaf_that_cannot_change_does_not_keep_the_others() {
        let schema = json!({"items": {"oneOf": [
            {"properties": {"kind": {"const": "a"}, "value": {"type": "string"}}},
            {"properties": {"kind": {"const": "b"}, "value": {"pattern": "^fixed$"}}},
        ]}});
        let value = json!([{"kind": "a", "value": "x"}, {"kind": "b", "value": "fixed"}, {"kind": "a", "value": "y"}]);
        let changed = with_schema(&schema, &value, Alternate::Near, &[], 1);
        assert!(changed[0]["value"] != "x" && changed[1] == value[1] && changed[2]["value"] != "y", "{changed}");
        // If a pattern rejects other characters, an example replaces the strings of all elements.
        let user = json!({"type": "string", "pattern": "^usr_[a-c]\\d$"});
        let users: Value = (0..300).map(|_| json!({"id": "usr_a1", "name": "name"})).collect();
        let schema = json!({"items": {"properties": {"id": user}}});
        let changed = with_schema(&schema, &users, Alternate::Near, &[], 1);
        assert!(changed[299]["id"] != "usr_a1" && changed[299]["name"] != "name", "{changed}");
    }

    #[test]
    fn every_alternate_of_every_example_is_valid() {
        let schemas = [
            json!({"type": ["null", "string"]}),
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string", "pattern": "^[A-Z]{2}\\d+$"}),
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": true}),
            json!({"type": "array", "contains": {"const": 5}, "minContains": 2}),
            json!({"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}, {"required": ["b"], "properties": {"b": {"minimum": 4, "type": "integer"}}}]}),
            json!({"type": "object", "properties": {"a": {"const": 1}}, "dependentRequired": {"a": ["b"]}}),
            json!({"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}, "required": ["n"]}),
            json!({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}, "type": "object"}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "integer"}], "additionalItems": false, "minItems": 1}),
            json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "required": ["left", "right"], "properties": {
                "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                "right": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
            }}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}}, "type": "object", "required": ["p"],
                    "properties": {"p": {"items": [{"$ref": "#/definitions/n"}, {"type": "string"}], "additionalItems": {"type": "boolean"}, "minItems": 4}},
                    "dependencies": {"p": ["q"], "q": {"required": ["r"]}}}),
            json!({"type": "string", "pattern": "^(?=.*[A-Z])(?=.*\\d)(?=.*[a-z]).{8,}$"}),
            json!({"type": "number", "multipleOf": 0.01, "exclusiveMinimum": 0.1, "maximum": 0.13}),
            json!({"oneOf": [{"type": "number", "multipleOf": 5}, {"type": "number", "multipleOf": 3}], "minimum": 15}),
            json!({"items": {"type": "string", "pattern": "^[a-c]\\d?$"}, "type": "array", "minItems": 20, "uniqueItems": true}),
            json!({"type": "object", "minProperties": 3, "propertyNames": {"pattern": "^x-[a-z]+$"}, "additionalProperties": {"type": "integer"}}),
            json!({"type": "object", "properties": {"a": true}, "allOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}], "unevaluatedProperties": false}),
            json!({"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "not": {"properties": {"a": {"const": 1}}}}),
            json!({"type": "object", "properties": {"country": {"enum": ["CA", "US"]}, "zip": {"type": "string"}}, "required": ["country", "zip"],
                    "if": {"properties": {"country": {"const": "US"}}}, "then": {"properties": {"zip": {"pattern": "^\\d{5}$"}}}, "else": false}),
        ];
        let compared = [json!("a"), json!(5), json!(0.11), json!(true)];
        let kinds = [Alternate::Near, Alternate::More, Alternate::Less, Alternate::Compared(0), Alternate::Compared(5)];
        let mut changed = 0;
        for schema in &schemas {
            let value = example(schema).unwrap();
            for kind in kinds {
                changed += usize::from(with_schema(schema, &value, kind, &compared, 1) != value);
            }
        }
        assert!(changed > schemas.len() * kinds.len() / 2, "only {changed} alternates differ");
    }

    #[test]
    fn a_large_value_takes_little_time() {
        let file = |index: usize| json!({"path": format!("/srv/report-{index}.md"), "size": index, "hidden": false});
        let value = json!({"files": (0..15_000).map(file).collect::<Vec<_>>()});
        let schema = infer(std::slice::from_ref(&value));
        let compiled = Schema::compile(&schema).unwrap();
        for kind in [Alternate::Near, Alternate::More, Alternate::Less] {
            let begun = Instant::now();
            let changed = alternate(&value, Some((&schema, &compiled)), kind, &[], 1);
            let took = begun.elapsed();
            assert!(changed != value && took < Duration::from_secs(5), "{kind:?} took {took:?}");
        }
    }
}
