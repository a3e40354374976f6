//! The same text for values that are equal.

use std::collections::BTreeMap;

use serde_json::Value;

/// Appends the same text for values that are equal: keys in order, `1.0` as `1`.
///
/// It is stored in the keys of indexes, so another text for the same value is another version of those.
pub fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            out.push('{');
            for (key, value) in object.iter().collect::<BTreeMap<_, _>>() {
                quoted(key, out);
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // Exact: up to this size, `i128` holds every float without a fraction.
            Some(float) if float.fract() == 0.0 && float.abs() < 1e20 => out.push_str(&(float as i128).to_string()),
            Some(_) | None => out.push_str(&number.to_string()),
        },
        Value::String(text) => quoted(text, out),
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
    }
}

/// Quotes and backslashes are escaped, so that no text can look like the end of one.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    if text.contains(['"', '\\']) {
        out.push_str(&text.replace('\\', "\\\\").replace('"', "\\\""));
    } else {
        out.push_str(text);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(value: Value) -> String {
        let mut text = String::new();
        canonical(&value, &mut text);
        text
    }

    #[test]
    fn equal_values_have_one_text_and_others_another() {
        assert_eq!(text(json!({"b": 1.0, "a": [true, null, 1.5]})), r#"{"a":[true,null,1.5,],"b":1,}"#);
        assert_eq!(text(json!(-0.0)), "0");
        assert_eq!(text(json!(1e15)), "1000000000000000");
        assert_eq!(text(json!(1e18)), text(json!(1_000_000_000_000_000_000_u64)));
        assert_ne!(text(json!(18_446_744_073_709_551_616.0)), text(json!(u64::MAX)));
        assert_ne!(text(json!({"a": "b\":\"c"})), text(json!({"a": "b", "c": ""})));
        assert_ne!(text(json!("1")), text(json!(1)));
        assert_ne!(text(json!(["a", "b"])), text(json!([["a"], "b"])));
        assert_ne!(text(json!("\\")), text(json!("\\\\")));
    }
}
