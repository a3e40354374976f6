use std::collections::HashSet;
use std::time::{Duration, Instant};

use rehearsal_core::matcher::Schema;
use rehearsal_core::schema::{example, infer};
use serde_json::{Value, json};

use super::{Alternate, alternate, compared_rounds};

fn with_schema(schema: &Value, value: &Value, kind: Alternate, compared: &[Value], salt: u64) -> Value {
    let compiled = Schema::compile(schema).unwrap();
    let changed = alternate(value, Some((schema, &compiled)), kind, compared, salt);
    assert!(compiled.is_valid(&changed), "{schema}: {kind:?} of {value}: {changed}");
    assert_eq!(changed, alternate(value, Some((schema, &compiled)), kind, compared, salt), "the same again");
    changed
}

fn of_example(schema: &Value, kind: Alternate) -> Value {
    with_schema(schema, &example(schema).unwrap(), kind, &[], 1)
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
            "milestone": {"type": "object", "properties": {"due": {"type": "string", "format": "date"}}},
            "comments": {"type": "integer", "minimum": 0},
            "open": {"type": "boolean"},
            "kind": {"const": "issue"},
        },
        "additionalProperties": false,
    })
}

fn issue() -> Value {
    json!({
        "title": "Crash", "state": "open", "labels": [{"name": "bug"}], "assignee": "ada",
        "milestone": {"due": "2026-05-06"}, "comments": 3, "open": true, "kind": "issue",
    })
}

#[test]
fn near_changes_strings_and_numbers_only() {
    let changed = with_schema(&issue_schema(), &issue(), Alternate::Near, &[], 1);
    for path in ["/title", "/labels/0/name", "/assignee", "/milestone/due", "/comments"] {
        assert_ne!(changed.pointer(path), issue().pointer(path), "{path}: {changed}");
    }
    for path in ["/state", "/open", "/kind"] {
        assert_eq!(changed.pointer(path), issue().pointer(path), "{path}: {changed}");
    }
    assert_eq!(changed["labels"].as_array().unwrap().len(), 1);
    assert!(changed["milestone"]["due"].as_str().unwrap().starts_with("2026-"));
}

#[test]
fn more_is_longer_larger_and_complete() {
    let value = json!({"title": "Crash", "state": "merged", "labels": [{"name": "bug"}], "comments": 3, "open": true});
    let changed = with_schema(&issue_schema(), &value, Alternate::More, &[], 1);
    assert!(changed["title"].as_str().unwrap().len() > 20, "{changed}");
    assert_eq!((&changed["state"], &changed["open"]), (&json!("open"), &json!(false)));
    assert!(changed["comments"].as_i64().unwrap() >= 1000, "{changed}");
    let names: HashSet<&str> =
        changed["labels"].as_array().unwrap().iter().map(|label| label["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "{changed}");
    assert!(changed["assignee"].is_string() && changed["milestone"]["due"].is_string(), "{changed}");
    assert_eq!(changed["kind"], "issue");
}

#[test]
fn less_is_empty_and_without_optional_members() {
    let changed = with_schema(&issue_schema(), &issue(), Alternate::Less, &[], 1);
    assert_eq!(changed, json!({"title": "", "state": "merged", "labels": [], "comments": 0, "open": false}));
    let required = json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": ["string", "null"]}, "b": {"type": ["array", "null"], "items": {"type": "integer"}},
    }});
    let changed = with_schema(&required, &json!({"a": "x", "b": [1, 2]}), Alternate::Less, &[], 1);
    assert_eq!(changed, json!({"a": null, "b": []}));
}

#[test]
fn compared_values_go_through_all_leaves() {
    let compared = [json!("stale"), json!(100), json!("closed"), json!("keep")];
    assert_eq!(compared_rounds(&compared), 3);
    let seen = |path: &str| -> HashSet<String> {
        let round = |index| with_schema(&issue_schema(), &issue(), Alternate::Compared(index), &compared, 1);
        (0..compared_rounds(&compared)).map(|index| round(index).pointer(path).unwrap().to_string()).collect()
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| json!(text).to_string()).collect::<HashSet<_>>();
    assert_eq!(seen("/title"), texts(&["stale", "closed", "keep"]));
    assert_eq!(seen("/labels/0/name"), texts(&["stale", "closed", "keep"]));
    assert_eq!(seen("/comments"), ["99", "100", "101"].map(str::to_owned).into());
    // An enum takes only its own members, a boolean and a constant stay.
    assert_eq!(seen("/state"), texts(&["closed"]));
    assert_eq!((seen("/open"), seen("/kind")), (["true".to_owned()].into(), texts(&["issue"])));
    // Without values to compare with, nothing changes.
    assert_eq!(with_schema(&issue_schema(), &issue(), Alternate::Compared(0), &[], 1), issue());
    let changed = alternate(&json!({"ratio": 1}), None, Alternate::Compared(0), &[json!(0.5)], 1);
    assert_eq!(changed, json!({"ratio": 0.5}));
}

#[test]
fn what_the_schema_fixes_stays() {
    use Alternate::{Less, More, Near};
    for (schema, kind, expected) in [
        (json!({"const": 7}), Near, json!(7)),
        (json!({"const": "a"}), Less, json!("a")),
        (json!({"enum": ["a", "b"]}), Near, json!("a")),
        (json!({"enum": ["a", "b"]}), More, json!("b")),
        (json!({"enum": ["a", "b", "c"]}), Less, json!("c")),
        (json!({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}), More, json!("b")),
        (json!({"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2}), More, json!([1, 1])),
        (json!({"type": "array", "items": {"const": 1}, "minItems": 2}), Less, json!([1, 1])),
        (json!({"type": "array", "items": {"const": 1}, "maxItems": 2}), More, json!([1, 1])),
        (json!({"type": "boolean"}), Near, json!(true)),
        (json!({"type": "boolean"}), Less, json!(false)),
        (json!({"type": "boolean", "const": true}), More, json!(true)),
        (json!({"type": "null"}), More, json!(null)),
        (json!({"type": "integer", "minimum": 5, "maximum": 5}), Near, json!(5)),
        (json!({"type": "integer", "minimum": 5}), Less, json!(5)),
        (json!({"type": "integer", "multipleOf": 7, "minimum": 15}), Less, json!(21)),
        (json!({"type": "string", "minLength": 1, "maxLength": 1, "enum": ["x"]}), More, json!("x")),
        (json!({"type": "string", "pattern": "^(on|off)$", "examples": ["on"]}), Near, json!("off")),
        (
            json!({"type": "object", "minProperties": 1, "properties": {"a": {"const": 1}, "b": {"const": 2}}}),
            Less,
            json!({"b": 2}),
        ),
        (
            json!({"type": "object", "dependentRequired": {"a": ["b"]}, "required": ["a"], "properties": {"a": {"const": 1}, "b": {"const": 2}}}),
            Less,
            json!({"a": 1, "b": 2}),
        ),
    ] {
        assert_eq!(of_example(&schema, kind), expected, "{schema} {kind:?}");
    }
}

#[test]
fn formats_patterns_and_lengths_are_kept_while_the_value_changes() {
    for (schema, fits) in [
        (json!({"type": "string", "format": "date-time"}), "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$"),
        (json!({"type": "string", "format": "uri"}), "^https://[a-z]+\\.[a-z]+/$"),
        (json!({"type": "string", "format": "email"}), "^[a-z]+@[a-z]+\\.com$"),
        (
            json!({"type": "string", "format": "uuid"}),
            "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$",
        ),
        (json!({"type": "string", "format": "ipv4"}), "^\\d+\\.\\d+\\.\\d+\\.\\d+$"),
        (json!({"type": "string", "pattern": "^[A-Z]{2}\\d+$"}), "^[A-Z]{2}\\d+$"),
        (json!({"type": "string", "pattern": "^[a-c]\\d?$"}), "^[a-c]\\d?$"),
        (json!({"type": "string", "minLength": 5, "maxLength": 7}), "^.{5,7}$"),
        (json!({"type": "string", "maxLength": 2}), "^.{0,2}$"),
    ] {
        let draft_7 = {
            let mut schema = schema.clone();
            schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
            schema
        };
        let fits = regex::Regex::new(fits).unwrap();
        // The validator checks formats in draft-07 only.
        for schema in [schema, draft_7] {
            let value = example(&schema).unwrap();
            for kind in [Alternate::Near, Alternate::More, Alternate::Less] {
                for salt in 0..20 {
                    let changed = with_schema(&schema, &value, kind, &[], salt);
                    let text = changed.as_str().unwrap();
                    assert!(changed != value, "{schema} {kind:?}: {changed}");
                    assert!(fits.is_match(text) || (text.is_empty() && kind == Alternate::Less), "{schema}: {changed}");
                }
            }
        }
    }
}

#[test]
fn one_leaf_that_cannot_change_does_not_keep_the_others() {
    let schema = json!({"type": "object", "properties": {
        "free": {"type": "string"},
        "tied": {"type": "string", "allOf": [{"type": "string"}, {"enum": ["tied"]}]},
        "list": {"type": "array", "items": {"type": "object", "oneOf": [
            {"properties": {"kind": {"const": "a"}, "value": {"type": "string"}}},
            {"properties": {"kind": {"const": "b"}, "value": {"type": "string", "pattern": "^fixed$"}}},
        ]}},
    }});
    let value = json!({"free": "x", "tied": "tied", "list": [
        {"kind": "a", "value": "one"}, {"kind": "b", "value": "fixed"}, {"kind": "a", "value": "two"},
    ]});
    let changed = with_schema(&schema, &value, Alternate::Near, &[], 1);
    assert_ne!(changed["free"], "x");
    assert_eq!((&changed["tied"], &changed["list"][1]["value"]), (&json!("tied"), &json!("fixed")));
    assert!(changed["list"][0]["value"] != "one" && changed["list"][2]["value"] != "two", "{changed}");
}

#[test]
fn arrays_grow_to_twice_their_length_with_other_elements() {
    let list = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true});
    for (value, length) in [(json!(["a"]), 3), (json!(["a", "b", "c"]), 7), (json!([]), 3)] {
        let changed = with_schema(&list, &value, Alternate::More, &[], 1);
        assert_eq!(changed.as_array().unwrap().len(), length, "{changed}");
    }
    let bounded = json!({"type": "array", "items": {"type": "string"}, "maxItems": 4});
    assert_eq!(with_schema(&bounded, &json!(["a", "b"]), Alternate::More, &[], 1).as_array().unwrap().len(), 4);
    let tuple = json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": false});
    let changed = with_schema(&tuple, &json!(["a", true]), Alternate::More, &[], 1);
    assert!(changed.as_array().unwrap().len() == 2 && changed[1] == json!(false), "{changed}");
    // The elements that are added are like the example, so that a condition can hold for some and not for others.
    let files = json!({"type": "array", "items": {"type": "object", "properties": {"size": {"type": "integer"}, "hidden": {"type": "boolean"}}}});
    let changed = with_schema(&files, &json!([{"size": 1, "hidden": true}]), Alternate::More, &[], 1);
    let sizes: Vec<bool> = (0..3).map(|index| changed[index]["size"].as_i64().unwrap() > 100).collect();
    let hidden: Vec<bool> = (0..3).map(|index| changed[index]["hidden"].as_bool().unwrap()).collect();
    assert_eq!((sizes, hidden), (vec![true, false, false], vec![false, true, true]));
    // Without a schema as well.
    let changed = alternate(&json!({"items": [{"id": "id"}]}), None, Alternate::More, &[], 1);
    assert_eq!(changed["items"].as_array().unwrap().len(), 3);
}

#[test]
fn near_values_identify_their_call_and_path() {
    let schema = json!({"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string"}, "size": {"type": "integer"}}}});
    let value: Value = (0..30).map(|_| json!({"path": "path", "size": 1})).collect();
    let mut texts = HashSet::new();
    for salt in 0..200 {
        let changed = with_schema(&schema, &value, Alternate::Near, &[], salt);
        let numbers: HashSet<i64> =
            changed.as_array().unwrap().iter().map(|file| file["size"].as_i64().unwrap()).collect();
        assert_eq!(numbers.len(), 30, "{changed}");
        for file in changed.as_array().unwrap() {
            assert!(texts.insert(file["path"].as_str().unwrap().to_owned()), "{file} is there twice");
        }
    }
    let joined = texts.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(texts.iter().all(|text| joined.matches(text.as_str()).count() == 1), "one text is a part of another");
}

#[test]
fn a_value_without_a_schema_keeps_its_types() {
    let value = json!({"user": {"login": "login"}, "count": 1, "flag": true, "items": [{"id": "id"}], "none": null});
    for kind in [Alternate::Near, Alternate::More, Alternate::Less, Alternate::Compared(0)] {
        let changed = alternate(&value, None, kind, &[json!("a")], 1);
        assert_ne!(changed, value, "{kind:?}");
        for (name, member) in value.as_object().unwrap() {
            assert_eq!(
                std::mem::discriminant(member),
                std::mem::discriminant(&changed[name]),
                "{kind:?}: {name} in {changed}"
            );
        }
    }
    let less = alternate(&value, None, Alternate::Less, &[], 1);
    assert_eq!(less, json!({"user": {"login": ""}, "count": 0, "flag": false, "items": [], "none": null}));
    // Nothing is known about a result of which the plan reads nothing.
    assert!(alternate(&Value::Null, None, Alternate::Near, &[], 1).is_string());
    assert_eq!(alternate(&Value::Null, None, Alternate::Compared(1), &[json!("a"), json!(7)], 1), json!(7));
    assert_eq!(alternate(&Value::Null, None, Alternate::Less, &[], 1), Value::Null);
}

#[test]
fn a_text_that_is_json_stays_json() {
    let text = r#"{"name":"config","size":1,"on":true}"#;
    let changed = alternate(&json!(text), None, Alternate::Near, &[], 1);
    let parsed: Value = serde_json::from_str(changed.as_str().unwrap()).unwrap();
    assert!(parsed["name"] != "config" && parsed["on"] == true, "{parsed}");
    assert_ne!(alternate(&json!("[draft] title"), None, Alternate::Near, &[], 1), json!("[draft] title"));
}

#[test]
fn a_schema_of_recorded_results_accepts_all_alternates() {
    let recorded = [
        json!({"files": [{"name": "a.rs", "size": 5321, "tags": []}, {"name": "b.rs", "size": 7.5}], "next": null}),
        json!({"files": [], "next": "cursor"}),
    ];
    let schema = infer(&recorded);
    for value in &recorded {
        for kind in [Alternate::Near, Alternate::More, Alternate::Less] {
            assert_ne!(&with_schema(&schema, value, kind, &[], 1), value, "{kind:?}");
        }
    }
}

#[test]
fn every_alternate_of_every_example_is_valid() {
    // The schemas of the tests of the generator.
    let schemas = [
        json!(true),
        json!({}),
        json!({"type": ["null", "string"]}),
        json!({"type": "string", "minLength": 5, "maxLength": 7}),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "string", "pattern": "^[A-Z]{2}\\d+$"}),
        json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.1}),
        json!({"type": "integer", "multipleOf": 7, "minimum": 15}),
        json!({"type": "integer", "maximum": -3}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": true}),
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": false}),
        json!({"type": "array", "contains": {"const": 5}, "minContains": 2}),
        json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "object", "required": ["c"], "properties": {"c": {"type": "number"}}}}}),
        json!({"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}, {"required": ["b"], "properties": {"b": {"minimum": 4, "type": "integer"}}}]}),
        json!({"oneOf": [{"type": "string", "maxLength": 0}, {"type": "integer"}]}),
        json!({"anyOf": [false, {"type": "object", "minProperties": 2}]}),
        json!({"type": "object", "properties": {"a": {"const": 1}}, "dependentRequired": {"a": ["b"]}}),
        json!({"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}, "required": ["n"]}),
        json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "patternProperties": {"^k": {"type": "boolean"}}, "minProperties": 1}),
        json!({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}, "type": "object"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "integer"}], "additionalItems": false, "minItems": 1}),
        // References: by `$id`, by anchor, recursive, in draft-07 and in the dynamic scope.
        json!({"$id": "https://example.com/root", "$ref": "a", "$defs": {
            "a": {"$id": "a", "type": "object", "properties": {"b": {"$ref": "b#x"}}, "required": ["b"]},
            "b": {"$id": "b", "$defs": {"x": {"$anchor": "x", "type": "string", "minLength": 3}}},
        }}),
        json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "required": ["left", "right"], "properties": {
            "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
            "right": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
        }}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}}, "type": "object", "required": ["p"],
                "properties": {"p": {"items": [{"$ref": "#/definitions/n"}, {"type": "string"}], "additionalItems": {"type": "boolean"}, "minItems": 4}},
                "dependencies": {"p": ["q"], "q": {"required": ["r"]}}}),
        json!({"$id": "https://example.com/list", "$ref": "#/$defs/list", "$defs": {
            "element": {"$dynamicAnchor": "element", "type": "integer"},
            "list": {"$id": "generic", "type": "array", "items": {"$dynamicRef": "#element"}, "minItems": 1,
                "$defs": {"element": {"$dynamicAnchor": "element"}}},
        }}),
        // Strings.
        json!({"type": "string", "pattern": "^(?=.*[A-Z])(?=.*\\d)(?=.*[a-z]).{8,}$"}),
        json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 12, "maxLength": 14}),
        json!({"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"}),
        // Numbers.
        json!({"type": "number", "multipleOf": 0.01, "exclusiveMinimum": 0.1, "maximum": 0.13}),
        json!({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}], "type": "integer", "minimum": 13}),
        json!({"oneOf": [{"type": "number", "multipleOf": 5}, {"type": "number", "multipleOf": 3}], "minimum": 15}),
        // Arrays.
        json!({"items": {"type": "string", "pattern": "^[a-c]\\d?$"}, "type": "array", "minItems": 20, "uniqueItems": true}),
        json!({"items": {"properties": {"id": {"type": "integer"}}, "required": ["id"], "type": "object"}, "type": "array", "minItems": 5, "uniqueItems": true}),
        json!({"type": "array", "contains": {"type": "integer", "minimum": 5}, "minContains": 2, "maxContains": 2, "prefixItems": [{"type": "string"}], "minItems": 5}),
        json!({"type": "array", "prefixItems": [{"const": 1}], "unevaluatedItems": {"type": "boolean"}, "minItems": 3}),
        // Objects.
        json!({"type": "object", "minProperties": 3, "propertyNames": {"pattern": "^x-[a-z]+$"}, "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "minProperties": 3, "patternProperties": {"^S_": {"type": "string"}}, "additionalProperties": false}),
        json!({"type": "object", "maxProperties": 1, "properties": {"a": {}, "b": {}}, "required": ["b"]}),
        json!({"type": "object", "properties": {"a": true}, "allOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}], "unevaluatedProperties": false}),
        json!({"type": "object", "properties": {"card": true, "address": false}, "dependentSchemas": {"card": {"required": ["address"]}}}),
        json!({"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "not": {"properties": {"a": {"const": 1}}}}),
        // Combinations.
        json!({"allOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}]}),
        json!({"type": "object", "properties": {"country": {"enum": ["CA", "US"]}, "zip": {"type": "string"}}, "required": ["country", "zip"],
                "if": {"properties": {"country": {"const": "US"}}}, "then": {"properties": {"zip": {"pattern": "^\\d{5}$"}}}, "else": false}),
        json!({"not": {"type": ["string", "object"]}}),
        json!({"not": {"not": {"type": "integer", "minimum": 7}}}),
    ];
    let compared = [json!("a"), json!(5), json!("S_x"), json!(0.11), json!(true)];
    let mut changed = 0;
    for schema in &schemas {
        let value = example(schema).unwrap();
        for salt in 0..3 {
            for kind in [
                Alternate::Near,
                Alternate::More,
                Alternate::Less,
                Alternate::Compared(0),
                Alternate::Compared(1),
                Alternate::Compared(5),
            ] {
                changed += usize::from(with_schema(schema, &value, kind, &compared, salt) != value);
            }
        }
    }
    assert!(changed > schemas.len() * 9, "only {changed} of {} alternates differ", schemas.len() * 18);
}

#[test]
fn a_large_value_takes_little_time() {
    let file = |index: usize| json!({"path": format!("/srv/files/report-{index}.md"), "size": index, "hidden": false});
    let value = json!({"files": (0..15_000).map(file).collect::<Vec<_>>()});
    assert!(value.to_string().len() > 900_000);
    let schema = infer(std::slice::from_ref(&value));
    let compiled = Schema::compile(&schema).unwrap();
    for kind in [Alternate::Near, Alternate::More, Alternate::Less] {
        let begun = Instant::now();
        let changed = alternate(&value, Some((&schema, &compiled)), kind, &[], 1);
        let took = begun.elapsed();
        assert!(changed != value && took < Duration::from_secs(5), "{kind:?} took {took:?}");
    }
}
