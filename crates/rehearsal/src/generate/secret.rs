//! Redacted secrets in requests: any value matches in their place.

use rehearsal_core::redact::{PseudonymMap, RedactedValue, pseudonym};
use serde_json::{Map, Value, json};

/// Whether a value contains a pseudonym.
pub(super) fn has_secret(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_secret),
        Value::Object(fields) => fields.values().any(has_secret),
        scalar => RedactedValue::from_recorded(scalar).is_some(),
    }
}

/// Replaces every pseudonym in a value by the same one.
pub(super) fn unify_secrets(value: &Value) -> Value {
    match value {
        Value::Array(elements) => elements.iter().map(unify_secrets).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), unify_secrets(value))).collect(),
        scalar => match RedactedValue::from_recorded(scalar) {
            Some(RedactedValue::Text(parts)) => parts.join(&pseudonym("")).into(),
            Some(RedactedValue::Number) => {
                let mut number = json!(0);
                PseudonymMap::redact_same_places(scalar, &mut number);
                number
            }
            None => scalar.clone(),
        },
    }
}

/// The matcher for these arguments and no others, and for any text or number in the place of a secret.
pub(super) fn matcher(arguments: &Map<String, Value>) -> Value {
    if !arguments.values().any(has_secret) {
        return json!({"exact": arguments});
    }
    let fields: Map<_, _> = arguments.iter().map(|(key, value)| (key.clone(), of_part(value))).collect();
    json!({"subset": fields, "length": arguments.len()})
}

fn of_part(value: &Value) -> Value {
    match value {
        Value::Array(elements) if has_secret(value) => elements.iter().map(of_part).collect(),
        Value::Object(fields) => matcher(fields),
        Value::Array(_) => json!({"exact": value}),
        scalar => match RedactedValue::from_recorded(scalar) {
            Some(RedactedValue::Text(parts)) if parts == [""; 2] => json!({"type": "string"}),
            Some(RedactedValue::Text(parts)) => {
                let parts: Vec<_> = parts.into_iter().map(regex::escape).collect();
                json!({"matches": format!("(?s)^{}$", parts.join(".*"))})
            }
            Some(RedactedValue::Number) => json!({"type": "number"}),
            None => scalar.clone(),
        },
    }
}

/// A pattern for the URIs that differ from this one only in their secrets. `None` without a pseudonym, or if no pattern
/// is possible.
///
/// ```text
/// feed://a?key=[redacted:3f9a2c1b]  ──►  feed://a?key={+secret}
/// ```
pub(super) fn uri_pattern(uri: &str) -> Option<String> {
    let value = Value::from(uri);
    let Some(RedactedValue::Text(parts)) = RedactedValue::from_recorded(&value) else { return None };
    let mut pattern = String::new();
    for (at, part) in parts.iter().enumerate() {
        match at {
            0 => {}
            1 => pattern.push_str("{+secret}"),
            number => pattern.push_str(&format!("{{+secret_{number}}}")),
        }
        pattern.push_str(part);
    }
    (!uri.contains(['{', '}'])).then_some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::matcher::Matcher;

    #[test]
    fn any_value_matches_in_place_of_a_secret() {
        let secret = pseudonym("hunter2");
        let recorded = json!({
            "user": "bob",
            "password": secret,
            "url": format!("https://a.b/?token={secret}&x=(1)"),
            "more": [{"pin": 999_000_123_456_789_u64, "length": 3}, [1]],
        });
        let matcher = Matcher::parse(&matcher(recorded.as_object().unwrap())).unwrap();
        let arguments = json!({
            "user": "bob",
            "password": "another",
            "url": "https://a.b/?token=\n&x=(1)",
            "more": [{"pin": 4711, "length": 3}, [1]],
        });
        assert_eq!(matcher.check(&arguments), []);
        assert_eq!(unify_secrets(&recorded)["user"], "bob");
        let wrong = [
            ("/user", json!("eve")),
            ("/password", json!(5)),
            ("/url", json!("https://a_b/?token=x&x=(1)")),
            ("/more/0/pin", json!("4711")),
            ("/more/0/length", json!(4)),
            ("/more/1", json!([1, 2])),
            ("", json!({"user": "bob"})),
        ];
        for (at, value) in wrong {
            let mut other = arguments.clone();
            *other.pointer_mut(at).unwrap() = value;
            assert_ne!(matcher.check(&other), [], "{other}");
        }
        let mut more = arguments;
        more["own"] = json!(1);
        assert_ne!(matcher.check(&more), []);
    }

    #[test]
    fn a_uri_with_secrets_is_a_pattern() {
        let uri = format!("a://{0}@b?c={0}", pseudonym("x"));
        assert_eq!(uri_pattern(&uri).as_deref(), Some("a://{+secret}@b?c={+secret_2}"));
        assert_eq!(uri_pattern("a://b"), None);
    }
}
