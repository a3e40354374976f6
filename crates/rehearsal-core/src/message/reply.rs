//! The reply in a response.

use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::{Map, Value};

use crate::json::RawJson;

/// A result or an error, never both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A result. A tool's own failure is a result, too.
    Result(RawJson),
    /// An error.
    Error(ErrorReply),
}

impl Reply {
    /// Whether this is an `input_required` result (2026-07-28).
    pub fn is_input_required(&self) -> bool {
        // This is called for every response since 2026-07-28, so it must not parse the whole result.
        let Reply::Result(result) = self else { return false };
        static WORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("input_required"));
        // With escapes the word can be written in many ways.
        if WORD.find(result.bytes()).is_none() && memchr::memchr(b'\\', result.bytes()).is_none() {
            return false;
        }
        result.field("resultType").and_then(|kind| kind.text()).is_some_and(|kind| kind == "input_required")
    }
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// The code of the failure.
    pub code: i64,
    /// The message, for users.
    pub message: String,
    /// Additional data of the sender.
    pub data: Option<RawJson>,
    /// Members that JSON-RPC does not define. Boxed, because few errors have any.
    pub more: Option<Box<ExtraMembers>>,
}

/// Members of an error object that JSON-RPC does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraMembers(Vec<(String, RawJson)>);

impl ExtraMembers {
    /// Wraps the members; `None` if there are none.
    pub fn from_members(members: Vec<(String, RawJson)>) -> Option<Box<ExtraMembers>> {
        if members.is_empty() { None } else { Some(Box::new(ExtraMembers(members))) }
    }
}

impl ErrorReply {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> ErrorReply {
        ErrorReply { code, message: message.into(), data: None, more: None }
    }

    /// Returns the error with data.
    pub fn with_data(self, data: &serde_json::Value) -> ErrorReply {
        ErrorReply { data: Some(RawJson::from_value(data)), ..self }
    }

    /// The members that JSON-RPC does not define.
    pub fn extra_members(&self) -> impl Iterator<Item = &(String, RawJson)> {
        self.more.iter().flat_map(|more| &more.0)
    }

    /// The error as a JSON object, with every digit of its numbers.
    pub fn object(&self) -> Map<String, Value> {
        let exact = |json: &RawJson| json.value().unwrap_or_else(|_| json.as_str().into());
        let mut object = Map::new();
        object.insert("code".to_owned(), self.code.into());
        object.insert("message".to_owned(), self.message.as_str().into());
        object.extend(self.data.iter().map(|data| ("data".to_owned(), exact(data))));
        object.extend(self.extra_members().map(|(key, value)| (key.clone(), exact(value))));
        object
    }

    /// The error in an object; this error's code and message are used if the object has none.
    pub fn with_object(self, object: Map<String, Value>) -> ErrorReply {
        let (mut error, mut more) = (ErrorReply { data: None, ..self }, Vec::new());
        for (key, value) in object {
            match key.as_str() {
                "code" => error.code = value.as_i64().unwrap_or(error.code),
                "message" => error.message = value.as_str().map_or(error.message, str::to_owned),
                "data" => error.data = Some(RawJson::from_value(&value)),
                _ => more.push((key, RawJson::from_value(&value))),
            }
        }
        ErrorReply { more: ExtraMembers::from_members(more), ..error }
    }
}

impl fmt::Display for ErrorReply {
    /// `-32602: unknown tool`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
