//! Which recorded answers may still be used.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::entry::{CachedAnswer, ToolSchemaHash};

/// What the recorded answers of one server must meet.
#[derive(Clone, Debug, Default)]
pub struct AnswerFreshness {
    /// The time as of which they expire, in milliseconds since 1970.
    pub now_ms: u64,
    /// How long the answers of a tool may be used. It replaces `ttlMs` of the server.
    pub time_to_live: BTreeMap<String, Duration>,
    /// The present schemas of the tools.
    pub schemas: HashMap<String, ToolSchemaHash>,
}

/// Why a recorded answer is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleAnswer {
    /// The time to live that the operator has set is over.
    ExpiredForOperator {
        /// When it was recorded, in milliseconds since 1970.
        at_ms: u64,
        /// The time to live.
        time_to_live: Duration,
    },
    /// The time to live that the server has sent with the answer, `ttlMs`, is over.
    ExpiredForServer {
        /// When it was recorded, in milliseconds since 1970.
        at_ms: u64,
        /// The time to live.
        time_to_live: Duration,
    },
    /// The input or output schema of the tool is another one now.
    OtherSchema {
        /// When it was recorded, in milliseconds since 1970.
        at_ms: u64,
    },
}

impl AnswerFreshness {
    /// Checks an answer. One that was recorded without known schemas passes the check of the schemas.
    pub fn check(&self, answer: &CachedAnswer) -> Result<(), StaleAnswer> {
        let (tool, at_ms) = (&answer.entry.tool, answer.entry.at_ms);
        let present = self.schemas.get(tool);
        if present.zip(answer.schema.as_ref()).is_some_and(|(present, recorded)| present != recorded) {
            return Err(StaleAnswer::OtherSchema { at_ms });
        }
        let is_over = |time: Duration| {
            let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            self.now_ms >= at_ms.saturating_add(time)
        };
        if let Some(time_to_live) = self.time_to_live.get(tool).copied() {
            return match is_over(time_to_live) {
                true => Err(StaleAnswer::ExpiredForOperator { at_ms, time_to_live }),
                false => Ok(()),
            };
        }
        match answer.entry.ttl_ms().map(Duration::from_millis) {
            Some(time_to_live) if is_over(time_to_live) => Err(StaleAnswer::ExpiredForServer { at_ms, time_to_live }),
            Some(_) | None => Ok(()),
        }
    }
}

impl StaleAnswer {
    /// What the user can do, for a tool named as `server:tool`.
    pub fn hint(&self, tool: &str) -> String {
        let record = "record the tool again and import the recording";
        match self {
            StaleAnswer::ExpiredForOperator { .. } => format!("{record}, or set a longer time: --ttl {tool}=TIME"),
            StaleAnswer::ExpiredForServer { .. } => format!("{record}, or set a time to live: --ttl {tool}=TIME"),
            StaleAnswer::OtherSchema { .. } => record.to_owned(),
        }
    }
}

impl fmt::Display for StaleAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ms: u64| Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(0)).unwrap_or_default();
        match self {
            StaleAnswer::ExpiredForOperator { at_ms, time_to_live } => {
                let (time, ttl) = (time(*at_ms), duration_text(*time_to_live));
                write!(f, "the recorded answer of {time} has expired: --ttl is {ttl}")
            }
            StaleAnswer::ExpiredForServer { at_ms, time_to_live } => {
                let (time, ttl) = (time(*at_ms), duration_text(*time_to_live));
                write!(f, "the recorded answer of {time} has expired: ttlMs of its server is {ttl}")
            }
            StaleAnswer::OtherSchema { at_ms } => {
                write!(f, "the tool's schema has changed since its answer of {} was recorded", time(*at_ms))
            }
        }
    }
}

/// A duration in its largest whole unit: `7d`, `90m`, `1.5s`.
fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, 'd'), (3600, 'h'), (60, 'm')];
    let whole =
        units.into_iter().find(|(unit, _)| time.subsec_nanos() == 0 && seconds > 0 && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{time:?}"), |(unit, letter)| format!("{}{letter}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use rehearsal_core::json::RawJson;
    use rehearsal_core::message::Reply;
    use serde_json::{Value, json};

    use super::*;
    use crate::cache::{AnswerSharing, CacheEntry};

    fn answer(result: Value, schema: Option<Value>) -> CachedAnswer {
        let entry = CacheEntry {
            server: "fs".to_owned(),
            tool: "list".to_owned(),
            arguments: json!({}),
            reply: Reply::Result(RawJson::from_value(&result)),
            run: "run".to_owned(),
            sequence: 0,
            at_ms: 10_000,
            latency_ms: None,
        };
        let schema = schema.map(|schema| ToolSchemaHash::of_tool(&schema));
        CachedAnswer { entry, principal: "local".to_owned(), sharing: AnswerSharing::Private, schema }
    }

    #[test]
    fn an_answer_expires_by_the_operator_s_time_else_by_that_of_the_server() {
        let recorded = |result: Value| answer(result, None);
        let at = |now_ms, seconds: Option<u64>| {
            let time = seconds.map(|seconds| ("list".to_owned(), Duration::from_secs(seconds)));
            AnswerFreshness { now_ms, time_to_live: time.into_iter().collect(), ..AnswerFreshness::default() }
        };
        let (forever, second) = (recorded(json!({})), recorded(json!({"ttlMs": 1000})));
        assert_eq!(at(u64::MAX, None).check(&forever), Ok(()));
        assert_eq!(at(10_999, None).check(&second), Ok(()));
        let stale = at(11_000, None).check(&second).unwrap_err();
        assert!(stale.to_string().ends_with("has expired: ttlMs of its server is 1s"), "{stale}");
        assert_eq!(at(11_000, Some(2)).check(&second), Ok(()));
        let stale = at(12_000, Some(2)).check(&forever).unwrap_err();
        assert_eq!(stale.to_string(), "the recorded answer of 1970-01-01T00:00:10Z has expired: --ttl is 2s");
        assert!(at(0, None).check(&recorded(json!({"ttlMs": 0}))).is_ok(), "an answer of the future has not expired");
    }

    #[test]
    fn an_answer_of_another_schema_is_stale_if_both_are_known() {
        let schema = |text: &str| json!({"inputSchema": {"required": [text]}});
        let known = HashMap::from([("list".to_owned(), ToolSchemaHash::of_tool(&schema("a")))]);
        let freshness = AnswerFreshness { schemas: known, ..AnswerFreshness::default() };
        assert_eq!(freshness.check(&answer(json!({}), Some(schema("a")))), Ok(()));
        assert_eq!(freshness.check(&answer(json!({}), None)), Ok(()));
        let other = answer(json!({}), Some(schema("b")));
        assert_eq!(freshness.check(&other), Err(StaleAnswer::OtherSchema { at_ms: 10_000 }));
        assert_eq!(AnswerFreshness::default().check(&other), Ok(()));
    }
}
