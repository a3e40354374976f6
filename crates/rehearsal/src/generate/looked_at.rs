//! What counts of a request for everything that is generated.

use rehearsal_core::message::Method;
use rehearsal_core::trace::Likeness;
use serde_json::{Map, Value, json};

/// What of a request is looked at: `method` and `params`. Requests that differ in nothing else are one, with all their answers.
/// `Err` says why nobody could be asked this.
pub(super) fn looked_at(method: &Method, params: &Value) -> Result<Value, &'static str> {
    if is_own(method) {
        return own(method, params);
    }
    let (subject, more): (_, &[&str]) = match method.as_str() {
        "tools/call" | "prompts/get" => ("name", &["arguments"]),
        "completion/complete" => ("ref", &["argument", "context"]),
        _ => ("uri", &[]),
    };
    let mut view = Likeness::default().view(method, Some(params));
    let Some(params) = view.get_mut("params").and_then(Value::as_object_mut) else {
        return Err("which does not say of what");
    };
    params.retain(|key, _| key == subject || more.contains(&key.as_str()));
    match params.get(subject) {
        Some(Value::Object(_)) if subject == "ref" => {}
        Some(Value::String(_)) if subject != "ref" => {}
        Some(_) | None => return Err("which does not say of what"),
    }
    if params.get("arguments").is_some_and(|arguments| !arguments.is_object()) {
        return Err("whose arguments are no object");
    }
    Ok(view)
}

/// Whether a method is none of the protocol's.
pub(super) fn is_own(method: &Method) -> bool {
    !Method::KNOWN.contains(&method.as_str())
}

/// Nobody but the server knows what counts of its own methods, so all of it does.
fn own(method: &Method, params: &Value) -> Result<Value, &'static str> {
    let mut params = match params {
        Value::Null => Map::new(),
        Value::Object(params) => params.clone(),
        _ => return Err("whose params are no object"),
    };
    params.shift_remove("_meta");
    Ok(json!({"method": method.as_str(), "params": params}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_rule_looks_at_does_not_count() {
        let of = |method: &str, params: Value| looked_at(&method.into(), &params);
        let plain = of("tools/call", json!({"name": "a", "arguments": {}})).unwrap();
        assert_eq!(plain, json!({"method": "tools/call", "params": {"name": "a"}}));
        assert_eq!(of("tools/call", json!({"name": "a", "task": {"ttl": 1}, "own": 1, "_meta": {}})), Ok(plain));
        let read = of("resources/read", json!({"uri": "a://b", "name": "c"})).unwrap();
        assert_eq!(read["params"], json!({"uri": "a://b"}));
        let argument = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
        assert_eq!(of("completion/complete", argument.clone()).unwrap()["params"], argument);
    }

    #[test]
    fn what_nobody_could_be_asked_is_told() {
        let of = |params: Value| looked_at(&Method::TOOLS_CALL, &params).unwrap_err();
        assert_eq!(of(json!({"name": "a", "arguments": []})), "whose arguments are no object");
        for unclear in [json!({}), json!({"name": null}), json!({"name": 5}), json!([1]), Value::Null] {
            assert_eq!(of(unclear), "which does not say of what");
        }
    }
}
