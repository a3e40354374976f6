//! The answer rules of a mock: the first rule that matches is used.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::time::Duration;

use super::{ContentBlock, ContentsEntry, FaultKind, PromptMessage, Step, TaskAnswer};
use crate::matcher::Matcher;
use crate::script::{Located, Parsed, When};

/// One answer, and the conditions under which it is used.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRule {
    /// The name of the answer in reports. The default describes its conditions.
    pub name: Option<Located<String>>,
    /// The conditions on the arguments, by the names of the arguments. Without this key, any arguments match.
    pub when: Option<Located<Parsed<When>>>,
    /// The conditions on everything except the arguments.
    pub given: Option<Conditions>,
    /// How often the answer is used before the next matching one replaces it. The default is no limit.
    pub times: Option<Located<u64>>,
    /// How long to wait before the first step.
    pub delay: Option<Delay>,
    /// What the server does before it sends the answer, in order.
    #[serde(default)]
    pub steps: Vec<Located<Step>>,
    /// Whether an `input_required` result (2026-07-28) has a `requestState`. The default is true. If it has none, a
    /// repeated request is recognized by its arguments and its `inputResponses`.
    pub request_state: Option<Located<bool>>,
    /// A text, short for one text block, one message of the user or one contents item; a template.
    pub text: Option<Located<String>>,
    /// The content blocks of a tool result.
    pub content: Option<Located<Vec<ContentBlock>>>,
    /// The structured content of a tool result; strings in it are templates.
    pub structured_content: Option<Located<Value>>,
    /// Whether the tool failed (`isError`).
    pub is_error: Option<bool>,
    /// The messages of a prompt.
    pub messages: Option<Located<Vec<PromptMessage>>>,
    /// The contents of a resource.
    pub contents: Option<Located<Vec<ContentsEntry>>>,
    /// The whole result in its wire form, sent unchanged in every protocol version; strings in it are templates.
    pub result: Option<Located<Map<String, Value>>>,
    /// A JSON-RPC error in place of a result.
    pub error: Option<Located<ErrorAnswer>>,
    /// The `_meta` of the result.
    pub meta: Option<Map<String, Value>>,
    /// Answers that depend on the input responses of the client: the first that matches is used. Their `when` has
    /// conditions on the input responses, by the names of the input requests.
    #[serde(default)]
    pub choose: Vec<AnswerRule>,
    /// Several answers in place of one, used one after the other. Each is used once, or `times` times. The last one is
    /// repeated without a limit, unless it has `times`.
    #[serde(default)]
    pub in_turn: Vec<AnswerRule>,
    /// Makes the answer the result of a task.
    pub task: Option<TaskAnswer>,
    /// The fault that the answer is sent with.
    pub fault: Option<Located<FaultKind>>,
}

impl AnswerRule {
    /// The answers of `in_turn`, or the rule itself.
    pub(crate) fn answers_in_turn(&self) -> impl Iterator<Item = &AnswerRule> {
        let alone = self.in_turn.is_empty().then_some(self);
        self.in_turn.iter().chain(alone)
    }

    /// How often the rule can be used; `None` if there is no limit.
    pub(crate) fn times(&self) -> Option<u64> {
        let own = |answer: &AnswerRule| answer.times.as_ref().map(|times| times.value);
        own(self.in_turn.last().unwrap_or(self))?;
        Some(self.answers_in_turn().fold(0, |sum, answer| sum.saturating_add(own(answer).unwrap_or(1))))
    }
}

/// The conditions on everything except the arguments.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// The HTTP headers; their names are case-insensitive. Over stdio there are none.
    pub headers: Option<Located<Parsed<Matcher>>>,
    /// The `name` and `version` of the client.
    pub client: Option<Located<Parsed<Matcher>>>,
    /// The client's capabilities in their wire form.
    pub capabilities: Option<Located<Parsed<Matcher>>>,
    /// The `_meta` of the request.
    pub meta: Option<Located<Parsed<Matcher>>>,
    /// The number of the request among those for this tool, prompt or resource, from 1.
    pub call: Option<Located<Parsed<Matcher>>>,
    /// The protocol version.
    pub version: Option<Located<Parsed<Matcher>>>,
    /// The state of the mock.
    pub state: Option<Located<Parsed<Matcher>>>,
}

/// A JSON-RPC error.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorAnswer {
    /// The error code.
    pub code: i64,
    /// The error message; a template.
    pub message: Located<String>,
    /// The `data` of the error; strings in it are templates.
    #[serde(default, deserialize_with = "present_value")]
    pub data: Option<Located<Value>>,
}

/// A value that is `null` differs from an absent value.
fn present_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Located<Value>>, D::Error> {
    Located::deserialize(deserializer).map(Some)
}

/// How long to wait: `50ms`, or a random time in `{ from: 10ms, to: 50ms }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The minimum.
    pub from: Duration,
    /// The maximum.
    pub to: Duration,
}

impl JsonSchema for Delay {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Delay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let time = json_schema!({"type": "string", "pattern": r"^[0-9.]+ ?(ms|s|m|h)?$", "examples": ["50ms", "2s"]});
        json_schema!({
            "description": "A time such as 50ms or 2s, or a random time between two of them",
            "anyOf": [
                time,
                {"type": "number"},
                {
                    "type": "object",
                    "properties": {"from": time, "to": time},
                    "required": ["from", "to"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Delay, D::Error> {
        struct Visitor;

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Between {
            from: Delay,
            to: Delay,
        }

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Delay;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time such as 50ms or 2s, or { from: 10ms, to: 50ms }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Delay, E> {
                let time = crate::duration::read(text).map_err(E::custom)?;
                Ok(Delay { from: time, to: time })
            }

            fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Delay, E> {
                self.visit_str(&seconds.to_string())
            }

            fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Delay, E> {
                self.visit_str(&seconds.to_string())
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Delay, A::Error> {
                let between = Between::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                let (from, to) = (between.from.from, between.to.to);
                if from > to {
                    return Err(serde::de::Error::custom("`from` is longer than `to`"));
                }
                Ok(Delay { from, to })
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
