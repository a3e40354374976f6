//! The answer rules of a mock: the first rule that matches is used.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::time::Duration;

use super::{ContentBlock, ContentsEntry, FaultKind, PromptMessage, Step, TaskAnswer};
use crate::matcher::Matcher;
use crate::script::{Located, Parsed, When};

/// One answer and when it is given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRule {
    /// What to call it in reports; made up from `when` unless given.
    pub name: Option<Located<String>>,
    /// A matcher for the arguments; without one, whatever is asked fits.
    pub when: Option<Located<Parsed<When>>>,
    /// Matchers for everything but the arguments.
    pub given: Option<Conditions>,
    /// How often it is given before the next rule has its turn; for ever unless said.
    pub times: Option<Located<u64>>,
    /// How long to wait before anything is sent.
    pub delay: Option<Delay>,
    /// What happens before the answer, in order.
    #[serde(default)]
    pub steps: Vec<Located<Step>>,
    /// Whether a client that is asked since 2026-07-28 is given `requestState` to bring back; it is unless said. Without, who
    /// comes back is known by the request, which is the same again, and by bringing answers.
    pub request_state: Option<Located<bool>>,
    /// A text block, for short; a template.
    pub text: Option<Located<String>>,
    /// The content blocks of a tool's result.
    pub content: Option<Located<Vec<ContentBlock>>>,
    /// The structured content of a tool's result; strings in it are templates.
    pub structured_content: Option<Located<Value>>,
    /// The tool failed, and the content says how.
    pub is_error: Option<bool>,
    /// The messages of a prompt.
    pub messages: Option<Located<Vec<PromptMessage>>>,
    /// The contents of a resource.
    pub contents: Option<Located<Vec<ContentsEntry>>>,
    /// The whole result exactly as it goes on the wire, in every version; strings in it are templates.
    pub result: Option<Located<Map<String, Value>>>,
    /// A JSON-RPC error instead of a result.
    pub error: Option<Located<ErrorAnswer>>,
    /// `_meta` of the result, as it goes on the wire.
    pub meta: Option<Map<String, Value>>,
    /// The answer depends on what the client said: the first of these that fits. Their `when` is a matcher for the
    /// client's answers, by the names of the questions.
    #[serde(default)]
    pub choose: Vec<AnswerRule>,
    /// Instead of an answer: several, one after the other. Each is given once, or as often as its `times` says, and the last
    /// for ever.
    #[serde(default)]
    pub in_turn: Vec<AnswerRule>,
    /// The answer comes from a task.
    pub task: Option<TaskAnswer>,
    /// What goes wrong with this answer.
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

/// Matchers for everything but the arguments.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// HTTP headers, by their names in any case; none over stdio.
    pub headers: Option<Located<Parsed<Matcher>>>,
    /// `name` and `version` of the client.
    pub client: Option<Located<Parsed<Matcher>>>,
    /// What the client declared, as it stands on the wire.
    pub capabilities: Option<Located<Parsed<Matcher>>>,
    /// `_meta` of the request.
    pub meta: Option<Located<Parsed<Matcher>>>,
    /// How often this tool, prompt or resource has been asked for, from 1.
    pub call: Option<Located<Parsed<Matcher>>>,
    /// The protocol version.
    pub version: Option<Located<Parsed<Matcher>>>,
    /// The state.
    pub state: Option<Located<Parsed<Matcher>>>,
}

/// A JSON-RPC error.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorAnswer {
    /// What kind of failure, for programs.
    pub code: i64,
    /// What happened, for people; a template.
    pub message: Located<String>,
    /// Whatever else there is to say; strings in it are templates.
    #[serde(default, deserialize_with = "present_value")]
    pub data: Option<Located<Value>>,
}

/// A value that is `null` differs from an absent value.
fn present_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Located<Value>>, D::Error> {
    Located::deserialize(deserializer).map(Some)
}

/// How long to wait: `50ms`, or somewhere in `{ from: 10ms, to: 50ms }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// At least.
    pub from: Duration,
    /// At most.
    pub to: Duration,
}

impl JsonSchema for Delay {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Delay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let time = json_schema!({"type": "string", "pattern": r"^[0-9.]+ ?(ms|s|m|h)?$", "examples": ["50ms", "2s"]});
        json_schema!({
            "description": "A time such as 50ms or 2s, or somewhere between two of them",
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
                    return Err(serde::de::Error::custom("`from` is later than `to`"));
                }
                Ok(Delay { from, to })
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
