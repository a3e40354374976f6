//! The HTTP headers of 2026-07-28 that repeat values of the body.
//!
//! `Mcp-Method` and `Mcp-Name` let a proxy route without parsing the body; `Mcp-Param-*` does the same for arguments
//! whose schema has `x-mcp-header`. A server refuses a request whose headers and body disagree.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::json::RawJson;
use crate::message::{Method, Request};

/// The version of a request.
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// The HTTP session of the legacy era.
pub const SESSION_ID: &str = "Mcp-Session-Id";
/// The last event that a client received before its stream broke.
pub const LAST_EVENT_ID: &str = "Last-Event-ID";
/// The method of the request in the body.
pub const METHOD: &str = "Mcp-Method";
/// The tool, prompt, resource or task that the request names.
pub const NAME: &str = "Mcp-Name";
/// The prefix of the headers of arguments.
pub const PARAM_PREFIX: &str = "Mcp-Param-";

const BASE64_PREFIX: &str = "=?base64?";
const BASE64_SUFFIX: &str = "?=";

/// Encodes a value for a header: unchanged if that is safe, otherwise `=?base64?…?=`.
pub fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
        && value.trim_matches([' ', '\t']).len() == value.len()
        && !(value.starts_with(BASE64_PREFIX) && value.ends_with(BASE64_SUFFIX));
    if plain {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{BASE64_PREFIX}{}{BASE64_SUFFIX}", STANDARD.encode(value)))
    }
}

/// Decodes the value of a header; `None` if its base64 is invalid or not UTF-8.
pub fn decode(header: &str) -> Option<Cow<'_, str>> {
    let header = header.trim_matches([' ', '\t']);
    match header.strip_prefix(BASE64_PREFIX).and_then(|rest| rest.strip_suffix(BASE64_SUFFIX)) {
        None => Some(Cow::Borrowed(header)),
        Some(data) => String::from_utf8(STANDARD.decode(data).ok()?).ok().map(Cow::Owned),
    }
}

/// The field of the params that `Mcp-Name` repeats.
fn name_field(method: &Method) -> Option<&'static str> {
    match method.as_str() {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// The headers that a request must have; `schema` is the input schema of the called tool, if known.
pub fn for_request(request: &Request, schema: Option<&Value>) -> Vec<(String, String)> {
    let mut headers = vec![(METHOD.to_owned(), encode(request.method.as_str()).into_owned())];
    let name = name_field(&request.method).and_then(|field| request.param(&[field])?.text());
    headers.extend(name.map(|name| (NAME.to_owned(), encode(&name).into_owned())));
    let annotated = schema.and_then(|schema| annotations(schema).ok()).unwrap_or_default();
    if !annotated.is_empty() {
        let arguments = request.param(&["arguments"]);
        for annotation in annotated {
            let value = arguments.as_ref().and_then(|arguments| annotation.value(arguments));
            headers.extend(value.map(|value| (annotation.header(), encode(&value).into_owned())));
        }
    }
    headers
}

/// One disagreement between the headers of a request and its body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderMismatch {
    /// The header is required and absent.
    #[error("header {header} is missing; the body has {body:?}")]
    Missing {
        /// The header.
        header: String,
        /// The value in the body.
        body: String,
    },
    /// The header occurs more than once.
    #[error("header {header} appears {times} times")]
    Repeated {
        /// The header.
        header: String,
        /// How often.
        times: usize,
    },
    /// The header's base64 is invalid.
    #[error("header {header} cannot be decoded: {found:?}")]
    Malformed {
        /// The header.
        header: String,
        /// The value of the header.
        found: String,
    },
    /// The header has another value than the body.
    #[error("header {header} is {found:?}, the body has {}", body.as_ref().map_or("nothing".to_owned(), |body| format!("{body:?}")))]
    Different {
        /// The header.
        header: String,
        /// The value of the header.
        found: String,
        /// The value in the body, if there is one.
        body: Option<String>,
    },
}

/// Compares a request with its headers. `lookup` returns all values of a header by its name, case-insensitive; `schema`
/// is the input schema of the called tool, if known.
pub fn check(
    request: &Request,
    schema: Option<&Value>,
    lookup: impl Fn(&str) -> Vec<String>,
) -> Result<(), HeaderMismatch> {
    agree(METHOD, Some(request.method.as_str()), &lookup(METHOD), |a, b| a == b)?;
    if let Some(field) = name_field(&request.method) {
        let name = request.param(&[field]).and_then(|name| name.text());
        agree(NAME, name.as_deref(), &lookup(NAME), |a, b| a == b)?;
    }
    let arguments = request.param(&["arguments"]);
    for annotation in schema.and_then(|schema| annotations(schema).ok()).unwrap_or_default() {
        let value = arguments.as_ref().and_then(|arguments| annotation.value(arguments));
        let header = annotation.header();
        let same = |a: &str, b: &str| match annotation.kind {
            ParamType::Integer => a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b),
            ParamType::Text | ParamType::Boolean => a == b,
        };
        agree(&header, value.as_deref(), &lookup(&header), same)?;
    }
    Ok(())
}

fn agree(
    header: &str,
    body: Option<&str>,
    found: &[String],
    same: impl Fn(&str, &str) -> bool,
) -> Result<(), HeaderMismatch> {
    let header = header.to_owned();
    match (body, found) {
        (None, []) => Ok(()),
        (Some(body), []) => Err(HeaderMismatch::Missing { header, body: body.to_owned() }),
        (body, [found]) => match (decode(found), body) {
            (None, _) => Err(HeaderMismatch::Malformed { header, found: found.clone() }),
            (Some(value), Some(body)) if same(&value, body) => Ok(()),
            (Some(value), body) => {
                Err(HeaderMismatch::Different { header, found: value.into_owned(), body: body.map(str::to_owned) })
            }
        },
        (_, several) => Err(HeaderMismatch::Repeated { header, times: several.len() }),
    }
}

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParam {
    /// The header's name after `Mcp-Param-`.
    pub name: String,
    /// The keys of the argument's path.
    pub keys: Vec<String>,
    kind: ParamType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParamType {
    Text,
    Integer,
    Boolean,
}

impl HeaderParam {
    fn header(&self) -> String {
        format!("{PARAM_PREFIX}{}", self.name)
    }

    /// The argument's value for a header; `None` if it is absent, `null`, or not of the declared type.
    fn value(&self, arguments: &RawJson) -> Option<String> {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let value = arguments.at(&keys)?;
        match (self.kind, value.value().ok()?) {
            (ParamType::Text, Value::String(text)) => Some(text),
            (ParamType::Boolean, Value::Bool(flag)) => Some(flag.to_string()),
            (ParamType::Integer, Value::Number(_)) => Some(value.as_str().to_owned()),
            _ => None,
        }
    }
}

/// Why a tool's `x-mcp-header` annotations are invalid; a client must then ignore the tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeaderParam {
    /// The name is not a token of HTTP.
    #[error("x-mcp-header {name} is not a header token")]
    NotAToken {
        /// The annotation, as JSON.
        name: String,
    },
    /// The argument is not a string, an integer or a boolean.
    #[error("x-mcp-header {name:?} on an argument that is not a string, integer or boolean")]
    WrongType {
        /// The annotation.
        name: String,
    },
    /// The annotation is below another key than `properties`: `items`, `anyOf`, `$defs` and so on.
    #[error("x-mcp-header {name:?} on something that is not a plain argument")]
    Unreachable {
        /// The annotation.
        name: String,
    },
    /// Two arguments have the same header.
    #[error("x-mcp-header {name:?} appears twice")]
    Repeated {
        /// The annotation.
        name: String,
    },
}

/// The arguments of a tool that are repeated in headers.
pub fn annotations(schema: &Value) -> Result<Vec<HeaderParam>, BadHeaderParam> {
    let mut found = Vec::new();
    collect(schema, Some(&mut Vec::new()), &mut found, 0)?;
    for (at, annotation) in found.iter().enumerate() {
        if found[..at].iter().any(|other| other.name.eq_ignore_ascii_case(&annotation.name)) {
            return Err(BadHeaderParam::Repeated { name: annotation.name.clone() });
        }
    }
    Ok(found)
}

const ONE_SCHEMA: &[&str] = &[
    "items",
    "additionalItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const SCHEMA_LISTS: &[&str] = &["items", "prefixItems", "anyOf", "oneOf", "allOf"];
const SCHEMA_MAPS: &[&str] = &["$defs", "definitions", "patternProperties", "dependentSchemas"];

/// `keys` is the path to this schema through `properties` only; `None` if the path has another key.
fn collect(
    schema: &Value,
    mut keys: Option<&mut Vec<String>>,
    found: &mut Vec<HeaderParam>,
    depth: usize,
) -> Result<(), BadHeaderParam> {
    let Value::Object(schema) = schema else { return Ok(()) };
    if depth > 128 {
        return Ok(()); // deeper than any value that we can read
    }
    if let Some(name) = schema.get("x-mcp-header") {
        let token = name.as_str().filter(|name| is_token(name));
        let name = token.ok_or_else(|| BadHeaderParam::NotAToken { name: name.to_string() })?.to_owned();
        let keys = keys.as_deref().filter(|keys| !keys.is_empty());
        let keys = keys.ok_or_else(|| BadHeaderParam::Unreachable { name: name.clone() })?.clone();
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("string") => ParamType::Text,
            Some("integer") => ParamType::Integer,
            Some("boolean") => ParamType::Boolean,
            _ => return Err(BadHeaderParam::WrongType { name }),
        };
        found.push(HeaderParam { name, keys, kind });
    }
    for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        match keys.as_deref_mut() {
            Some(keys) => {
                keys.push(key.clone());
                collect(property, Some(keys), found, depth + 1)?;
                keys.pop();
            }
            None => collect(property, None, found, depth + 1)?,
        }
    }
    let singles = ONE_SCHEMA.iter().filter_map(|key| schema.get(*key));
    let lists = SCHEMA_LISTS.iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    let maps = SCHEMA_MAPS.iter().filter_map(|key| schema.get(*key)?.as_object()).flat_map(|map| map.values());
    singles.chain(lists).chain(maps).try_for_each(|schema| collect(schema, None, found, depth + 1))
}

fn is_token(name: &str) -> bool {
    let tokens = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(arguments: Value) -> Request {
        let params = json!({"name": "run", "arguments": arguments});
        Message::request(1.into(), Method::TOOLS_CALL, Some(&params)).unwrap().as_request().unwrap().clone()
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        }})
    }

    #[test]
    fn unsafe_values_are_encoded_and_safe_ones_are_not() {
        let table = [
            ("us-east 1", "us-east 1"),
            ("", ""),
            ("é", "=?base64?w6k=?="),
            (" edge", "=?base64?IGVkZ2U=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ];
        for (value, header) in table {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header).unwrap(), value);
        }
        assert_eq!(decode("=?base64?!!?="), None);
        assert_eq!(decode("=?base64?/w==?="), None, "not UTF-8");
    }

    #[test]
    fn a_call_carries_its_method_name_and_annotated_arguments() {
        let request = call(json!({"region": "ö", "deep": {"count": 7}, "other": 1}));
        let expected = [
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "run"),
            ("Mcp-Param-Region", "=?base64?w7Y=?="),
            ("Mcp-Param-Count", "7"),
        ];
        let headers = for_request(&request, Some(&schema()));
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let nothing = for_request(&call(json!({"region": null})), Some(&schema()));
        assert_eq!(nothing.len(), 2, "null and absent are left out");
    }

    #[test]
    fn headers_that_differ_from_the_body_are_reported() {
        let request = call(json!({"region": "x", "deep": {"count": 7}}));
        let good = [
            ("mcp-method", "tools/call"),
            ("mcp-name", " run "),
            ("mcp-param-region", "x"),
            ("mcp-param-count", "7.0"),
        ];
        let verdict = |headers: &[(&str, &str)]| {
            let lookup = |name: &str| {
                let same = headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
                same.map(|(_, value)| (*value).to_owned()).collect()
            };
            check(&request, Some(&schema()), lookup).map_err(|disagreement| disagreement.to_string())
        };
        assert_eq!(verdict(&good), Ok(()));
        let with = |at: usize, value| {
            let mut headers = good;
            headers[at].1 = value;
            verdict(&headers).unwrap_err()
        };
        assert_eq!(with(0, "TOOLS/CALL"), r#"header Mcp-Method is "TOOLS/CALL", the body has "tools/call""#);
        assert_eq!(with(2, "=?base64?!?="), r#"header Mcp-Param-Region cannot be decoded: "=?base64?!?=""#);
        assert_eq!(verdict(&good[..3]).unwrap_err(), r#"header Mcp-Param-Count is missing; the body has "7""#);
        let twice = [good[0], good[0]];
        assert_eq!(verdict(&twice).unwrap_err(), "header Mcp-Method appears 2 times");
    }

    #[test]
    fn a_bad_annotation_spoils_the_tool() {
        let table = [
            json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "A B"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": ""}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]}),
        ];
        for schema in table {
            assert!(annotations(&schema).is_err(), "{schema}");
        }
        assert_eq!(annotations(&json!({"properties": {"x-mcp-header": {"type": "string"}}})), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn every_value_survives_the_header(value: String) {
            let header = encode(&value).into_owned();
            prop_assert!(header.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)));
            let decoded = decode(&header);
            prop_assert_eq!(decoded.as_deref(), Some(value.as_str()));
        }
    }
}
