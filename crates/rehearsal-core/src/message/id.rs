//! The id of a request.

use std::fmt;

use serde::{Serialize, Serializer};

/// An id exactly as its sender wrote it: `1` and `"1"` are different requests.
///
/// JSON-RPC also knows `null` and fractions; MCP forbids both, so a message that has one is
/// [`Garbled`](super::Garbled).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// An integer.
    Number(i64),
    /// A string.
    Text(String),
}

impl fmt::Display for RequestId {
    /// As JSON: `1` or `"1"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Number(number) => write!(f, "{number}"),
            RequestId::Text(text) => f.write_str(&serde_json::Value::from(text.as_str()).to_string()),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RequestId::Number(number) => serializer.serialize_i64(*number),
            RequestId::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> RequestId {
        RequestId::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> RequestId {
        RequestId::Text(text.to_owned())
    }
}
