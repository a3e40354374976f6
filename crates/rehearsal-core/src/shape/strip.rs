//! Removes from a value of another version what a version does not define.

use serde_json::{Map, Value};

use super::check::check;
use super::choice::has_tag_of;
use super::table::{Expects, MethodShape, NamedShape, ObjectShape, Shape, ShapeTable, TABLE};
use crate::exchange::Side;
use crate::json::Path;
use crate::protocol::Revision;
use crate::report::Severity;

/// Removes from an object of a type of the table every field, at any depth, that a version does not define or defines
/// with another shape. Keys that no version defines stay.
pub fn strip_unknown(type_name: &str, value: &mut Value, revision: Revision) {
    match TABLE.named.get(type_name) {
        Some(NamedShape::Type { body, .. }) => object(body, value, revision),
        Some(NamedShape::Alias(shape)) => inside(shape, value, revision),
        None => {}
    }
}

/// Removes these fields from the result of a client request. A method that no version defines is left unchanged.
pub(crate) fn strip_result(method: &str, result: &mut Value, revision: Revision) {
    let mut request = TABLE.methods(method).filter(|it| it.wants == Expects::Answer);
    if let Some(request) = request.find(|it| may_send(it, Side::Client, revision)) {
        inside(&request.result, result, revision);
    }
}

/// Removes these fields from the params of a server notification. A method that no version defines is left unchanged.
pub(crate) fn strip_notification(method: &str, params: &mut Value, revision: Revision) {
    let mut notification = TABLE.methods(method).filter(|it| it.wants == Expects::Nothing);
    if let Some(notification) = notification.find(|it| may_send(it, Side::Server, revision)) {
        inside(&notification.params, params, revision);
    }
}

/// Whether a server of a version may send this method. Methods that no version defines are extensions, which are
/// allowed.
pub(crate) fn server_may_send(method: &str, revision: Revision) -> bool {
    let mut all = TABLE.methods(method).peekable();
    all.peek().is_none() || all.any(|it| may_send(it, Side::Server, revision))
}

/// Whether a client of a version may request this method. Methods that no version defines are extensions, which are
/// allowed.
pub fn client_may_request(method: &str, revision: Revision) -> bool {
    let mut all = TABLE.methods(method).filter(|it| it.wants == Expects::Answer).peekable();
    all.peek().is_none() || all.any(|it| may_send(it, Side::Client, revision))
}

/// Whether an error code has the protocol's meaning in a version. Codes that no version defines are extensions, which
/// are allowed.
pub(crate) fn has_code(code: i64, revision: Revision) -> bool {
    let mut all = TABLE.codes.iter().filter(|it| it.code == code).peekable();
    all.peek().is_none() || all.any(|it| it.versions.contain(revision))
}

fn may_send(method: &MethodShape, by: Side, revision: Revision) -> bool {
    method.from.is_none_or(|from| from == by) && method.versions.contain(revision)
}

fn object(body: &'static ObjectShape, value: &mut Value, revision: Revision) {
    let Some(map) = value.as_object_mut() else { return };
    map.retain(|key, _| {
        let mut named = body.fields.iter().filter(|field| field.name == key).peekable();
        named.peek().is_none() || named.any(|field| field.versions.contain(revision))
    });
    for field in ShapeTable::known(body, revision) {
        if has_other_shape(body, field.name, map, revision) {
            map.shift_remove(field.name);
        } else if let Some(value) = map.get_mut(field.name) {
            let was_empty = is_empty(value);
            inside(&field.shape, value, revision);
            // All of its fields belong to other versions.
            if field.name == "_meta" && is_empty(value) && !was_empty {
                map.shift_remove("_meta");
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// Whether the value of an optional field has a shape of another version instead of this version's.
fn has_other_shape(body: &'static ObjectShape, name: &str, map: &Map<String, Value>, revision: Revision) -> bool {
    let shapes = body.fields.iter().filter(|field| field.name == name).count();
    let now = ShapeTable::known(body, revision).find(|field| field.name == name);
    match (map.get(name), now) {
        (Some(value), Some(field)) if shapes > 1 && !field.required => {
            let found = check(&field.shape, Some(value), revision, Path::root());
            found.iter().any(|mismatch| mismatch.severity == Severity::Error)
        }
        _ => false,
    }
}

fn inside(shape: &'static Shape, value: &mut Value, revision: Revision) {
    match shape {
        Shape::List { each, .. } => {
            value.as_array_mut().into_iter().flatten().for_each(|value| inside(each, value, revision));
        }
        Shape::Map(each) => {
            let map = value.as_object_mut().into_iter();
            map.flat_map(Map::values_mut).for_each(|value| inside(each, value, revision));
        }
        Shape::AllOf(all) => all.iter().for_each(|shape| inside(shape, value, revision)),
        Shape::OneOf(_) => {
            let chosen = TABLE.alternatives(shape).into_iter().find(|one| {
                TABLE
                    .object(one)
                    .is_some_and(|(body, versions)| versions.contain(revision) && has_tag_of(body, value, revision))
            });
            if let Some(chosen) = chosen {
                inside(chosen, value, revision);
            }
        }
        Shape::Named(name) => strip_unknown(name, value, revision),
        Shape::Any
        | Shape::Kind(_)
        | Shape::Count
        | Shape::UnitInterval
        | Shape::Uri
        | Shape::Base64
        | Shape::Meta
        | Shape::Word(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_of_other_versions_are_removed_at_any_depth_and_extensions_stay() {
        let newest = json!({
            "content": [
                {"type": "text", "text": "t", "_meta": {"a/b": 1}, "annotations": {"priority": 1, "lastModified": "x"}},
                {"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": {}}},
            ],
            "structuredContent": [1],
            "vendor": true,
        });
        let seen = |revision| {
            let mut value = newest.clone();
            strip_unknown("CallResult", &mut value, revision);
            value
        };
        assert_eq!(seen(Revision::V2026_07_28), newest);
        assert_eq!(seen(Revision::V2025_11_25), json!({"content": newest["content"], "vendor": true}));
        let oldest = json!({
            "content": [
                {"type": "text", "text": "t", "annotations": {"priority": 1}},
                {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
            ],
            "vendor": true,
        });
        assert_eq!(seen(Revision::V2024_11_05), oldest);
    }

    #[test]
    fn a_stripped_value_is_valid_in_its_version() {
        let newest = json!({
            "name": "echo", "title": "Echo", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"},
            "annotations": {"readOnlyHint": true}, "icons": [{"src": "a:b"}], "_meta": {},
            "execution": {"taskSupport": "optional"},
        });
        for revision in Revision::ALL {
            let mut tool = newest.clone();
            strip_unknown("Tool", &mut tool, revision);
            let found = check(&Shape::Named("Tool"), Some(&tool), revision, Path::root());
            assert_eq!(found, [], "{revision}");
        }
    }
}
