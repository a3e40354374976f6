//! Requests of any other method.

use schemars::JsonSchema;
use serde::Deserialize;

use super::AnswerRule;
use crate::script::Located;

/// How requests of a method are answered that are no calls of tools, prompts or resources.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Which, such as `completion/complete`, or one of the server's own.
    pub method: Located<String>,
    /// The answers, each a `result` or an `error`; their `when` is a matcher for the params without `_meta`. Where none fits,
    /// the server does what it would do without them.
    pub answers: Vec<AnswerRule>,
}

impl Request {
    /// Why a method cannot be answered by rules of its own.
    pub fn objection(method: &str) -> Option<&'static str> {
        Some(match method {
            "tools/call" => "tools have their own `answers`",
            "prompts/get" => "prompts have their own `answers`",
            "resources/read" => "resources have their own `answers`",
            "initialize" | "server/discover" => "a handshake follows from the rest of the file",
            "subscriptions/listen" => "who listens is told what `changed` says",
            _ if method.starts_with("tasks/") => "tasks follow from the answers of tools",
            _ => return None,
        })
    }
}
