//! What a request was answered with.

use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::{Map, Value};

use crate::json::RawJson;

/// A result or an error, never both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The request succeeded, as far as JSON-RPC is concerned: a tool's own failure is in here too.
    Result(RawJson),
    /// The request was refused.
    Error(ErrorReply),
}

impl Reply {
    /// Whether the client is sent away until it has answered something (2026-07-28).
    pub fn is_input_required(&self) -> bool {
        // Every call of the stateless era asks this, so it must not cost reading the whole result.
        let Reply::Result(result) = self else { return false };
        static WORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("input_required"));
        // With escapes it could be written in many ways.
        if WORD.find(result.bytes()).is_none() && memchr::memchr(b'\\', result.bytes()).is_none() {
            return false;
        }
        result.field("resultType").and_then(|kind| kind.text()).is_some_and(|kind| kind == "input_required")
    }
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// What kind of failure, for programs.
    pub code: i64,
    /// What happened, for people.
    pub message: String,
    /// Whatever else the sender wanted to say.
    pub data: Option<RawJson>,
    /// What stands beside that. Boxed, because hardly anybody says more.
    pub more: Option<Box<Others>>,
}

/// Members of an error object that JSON-RPC does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Others(Vec<(String, RawJson)>);

impl Others {
    /// These; `None` where there are none.
    pub fn of(members: Vec<(String, RawJson)>) -> Option<Box<Others>> {
        if members.is_empty() { None } else { Some(Box::new(Others(members))) }
    }
}

impl ErrorReply {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> ErrorReply {
        ErrorReply { code, message: message.into(), data: None, more: None }
    }

    /// The same error with data.
    pub fn with_data(self, data: &serde_json::Value) -> ErrorReply {
        ErrorReply { data: Some(RawJson::from_value(data)), ..self }
    }

    /// The members that JSON-RPC does not know.
    pub fn others(&self) -> impl Iterator<Item = &(String, RawJson)> {
        self.more.iter().flat_map(|more| &more.0)
    }

    /// As the object that it is, with every digit.
    pub fn object(&self) -> Map<String, Value> {
        let exact = |json: &RawJson| json.value().unwrap_or_else(|_| json.as_str().into());
        let mut object = Map::new();
        object.insert("code".to_owned(), self.code.into());
        object.insert("message".to_owned(), self.message.as_str().into());
        object.extend(self.data.iter().map(|data| ("data".to_owned(), exact(data))));
        object.extend(self.others().map(|(key, value)| (key.clone(), exact(value))));
        object
    }

    /// The error that an object is, with the code and the message of this one where it has none.
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
        ErrorReply { more: Others::of(more), ..error }
    }
}

impl fmt::Display for ErrorReply {
    /// `-32602: unknown tool`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
