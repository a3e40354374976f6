//! The requests that a mock received, and whether they meet a test's expectations.

use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::Provenance;
use crate::json::RawJson;
use crate::matcher::{Matcher, Mismatch, first_mismatches};
use crate::message::Method;
use crate::script::mock::FaultKind;

/// Maximum number of bytes of all stored params.
const PARAMS_LIMIT: usize = 64 * 1024 * 1024;

/// The latest requests, oldest first, up to a limit.
#[derive(Debug)]
pub struct RequestLog {
    ring: Mutex<Ring>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Ring {
    requests: VecDeque<LoggedRequest>,
    /// How many requests were received, stored or not.
    count: u64,
    /// The number of bytes of the stored params.
    bytes: usize,
}

/// One request and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// Its number, from 1, which the log assigns.
    pub number: u64,
    /// The method.
    pub method: Method,
    /// The params.
    pub params: Option<RawJson>,
    /// When it was received, since the start of the server.
    pub at: Duration,
    /// The time until the answer.
    pub took: Duration,
    /// The outcome.
    pub outcome: LoggedOutcome,
    /// The source that supplied the answer.
    pub provenance: Provenance,
    /// The fault of the answer.
    pub fault: Option<FaultKind>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedOutcome {
    /// A result, also that of a tool that failed.
    Result,
    /// A JSON-RPC error.
    Error {
        /// The code.
        code: i64,
    },
    /// No response, because the client cancelled the request.
    Nothing,
}

impl RequestLog {
    /// Creates a log of at most `limit` requests.
    pub fn new(limit: usize) -> RequestLog {
        RequestLog { ring: Mutex::default(), limit }
    }

    /// Adds a request and assigns its number.
    pub fn write(&self, mut call: LoggedRequest) {
        let mut ring = self.ring();
        ring.count += 1;
        call.number = ring.count;
        ring.bytes += call.length();
        ring.requests.push_back(call);
        while ring.requests.len() > self.limit || ring.bytes > PARAMS_LIMIT {
            let Some(oldest) = ring.requests.pop_front() else { break };
            ring.bytes -= oldest.length();
        }
    }

    /// How many requests were received, stored or not.
    pub fn count(&self) -> u64 {
        self.ring().count
    }

    /// The stored requests after this number; 0 for all.
    pub fn after(&self, number: u64) -> Vec<LoggedRequest> {
        self.ring().requests.iter().filter(|call| call.number > number).cloned().collect()
    }

    /// Removes all requests, and resets their number.
    pub fn clear(&self) {
        *self.ring() = Ring::default();
    }

    /// Every expectation that was not met.
    pub fn verify(&self, expected: &[ExpectedCall]) -> Vec<UnmetCall> {
        let calls = self.after(0);
        expected.iter().filter_map(|expected| expected.unmet(&calls)).collect()
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoggedRequest {
    /// The requested tool, prompt or resource URI.
    pub fn name(&self) -> Option<String> {
        let params = self.params.as_ref()?;
        params.field("name").or_else(|| params.field("uri")).and_then(|name| name.text())
    }

    /// The arguments; an empty object if there were none.
    pub fn arguments(&self) -> Value {
        let arguments = self.params.as_ref().and_then(|params| params.field("arguments"));
        arguments.and_then(|arguments| arguments.value().ok()).unwrap_or_else(|| json!({}))
    }

    /// The request as JSON, for users and programs.
    pub fn to_json(&self) -> Value {
        let outcome = match self.outcome {
            LoggedOutcome::Result => json!("result"),
            LoggedOutcome::Error { code } => json!({"error": code}),
            LoggedOutcome::Nothing => json!("nothing"),
        };
        json!({
            "number": self.number,
            "method": self.method.as_str(),
            "name": self.name(),
            "arguments": self.arguments(),
            "at_ms": milliseconds(self.at),
            "took_ms": milliseconds(self.took),
            "outcome": outcome,
            "provenance": self.provenance.to_string(),
            "fault": self.fault.as_ref().map(FaultKind::name),
        })
    }

    fn length(&self) -> usize {
        self.params.as_ref().map_or(0, |params| params.bytes().len())
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// A request that a test expects.
#[derive(Clone, Debug)]
pub struct ExpectedCall {
    method: Method,
    name: Option<String>,
    arguments: Option<Matcher>,
    times: RangeInclusive<u64>,
}

impl ExpectedCall {
    /// Expects any request of this method, at least once.
    pub fn method(method: Method) -> ExpectedCall {
        ExpectedCall { method, name: None, arguments: None, times: 1..=u64::MAX }
    }

    /// Expects a call of this tool, at least once.
    pub fn tool(name: impl Into<String>) -> ExpectedCall {
        ExpectedCall { name: Some(name.into()), ..ExpectedCall::method(Method::TOOLS_CALL) }
    }

    /// Restricts the expectation to this tool, prompt or URI.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> ExpectedCall {
        ExpectedCall { name: Some(name.into()), ..self }
    }

    /// Restricts the expectation to requests whose arguments match.
    #[must_use]
    pub fn arguments(self, arguments: Matcher) -> ExpectedCall {
        ExpectedCall { arguments: Some(arguments), ..self }
    }

    /// Expects exactly this number of requests.
    #[must_use]
    pub fn times(self, times: u64) -> ExpectedCall {
        self.between(times..=times)
    }

    /// Expects a number of requests in this range.
    #[must_use]
    pub fn between(self, times: RangeInclusive<u64>) -> ExpectedCall {
        ExpectedCall { times, ..self }
    }

    /// Expects no request.
    #[must_use]
    pub fn never(self) -> ExpectedCall {
        self.times(0)
    }

    /// Parses an expectation: `{"tool": "echo", "arguments": {…}, "times": 2}`.
    pub fn read(written: &Value) -> Result<ExpectedCall, String> {
        let Value::Object(fields) = written else {
            return Err("expected an object such as {\"tool\": \"echo\"}".into());
        };
        let known = ["tool", "method", "name", "arguments", "times"];
        if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("unknown key `{unknown}`; a key here is one of {}", known.join(", ")));
        }
        let text = |key: &str| match fields.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{key}` is not text")),
        };
        let mut expected = match (text("tool")?, text("method")?) {
            (Some(tool), None) => ExpectedCall::tool(tool),
            (None, Some(method)) => ExpectedCall::method(method.as_str().into()),
            (Some(_), Some(_)) => return Err("`tool` is short for `method` and `name`; write one of them".into()),
            (None, None) => return Err("`tool` or `method` is missing".into()),
        };
        if let Some(name) = text("name")? {
            expected = expected.named(name);
        }
        if let Some(arguments) = fields.get("arguments") {
            let matcher = match arguments {
                Value::Object(fields) => Matcher::parse_arguments(fields, |_| false),
                _ => Matcher::parse(arguments),
            };
            expected = expected.arguments(matcher.map_err(|error| format!("`arguments`: {error}"))?);
        }
        match fields.get("times") {
            None => Ok(expected),
            Some(times) => match times.as_u64() {
                Some(times) => Ok(expected.times(times)),
                None => Err("`times` is not a whole number".into()),
            },
        }
    }

    fn unmet(&self, calls: &[LoggedRequest]) -> Option<UnmetCall> {
        let of_name =
            |call: &&LoggedRequest| call.method == self.method && (self.name.is_none() || call.name() == self.name);
        let candidates: Vec<&LoggedRequest> = calls.iter().filter(of_name).collect();
        let count = candidates.iter().filter(|call| self.mismatches(call).is_empty()).count() as u64;
        if self.times.contains(&count) {
            return None;
        }
        let misses =
            candidates.iter().map(|call| (call.number, self.mismatches(call))).filter(|(_, it)| !it.is_empty());
        let closest = misses.min_by_key(|(_, mismatches)| mismatches.len());
        Some(UnmetCall { expected: self.clone(), count, closest })
    }

    fn mismatches(&self, call: &LoggedRequest) -> Vec<Mismatch> {
        self.arguments.as_ref().map_or_else(Vec::new, |matcher| matcher.check(&call.arguments()))
    }
}

impl fmt::Display for ExpectedCall {
    /// `tools/call echo twice`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.method.as_str())?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match (*self.times.start(), *self.times.end()) {
            (0, 0) => f.write_str(" never"),
            (1, 1) => f.write_str(" once"),
            (least, most) if least == most => write!(f, " {least} times"),
            (1, u64::MAX) => f.write_str(" at least once"),
            (least, u64::MAX) => write!(f, " at least {least} times"),
            (least, most) => write!(f, " {least} to {most} times"),
        }
    }
}

/// An expectation that was not met.
#[derive(Clone, Debug)]
pub struct UnmetCall {
    /// The expectation.
    pub expected: ExpectedCall,
    /// The number of requests that met it.
    pub count: u64,
    /// The number of the closest request, and why it does not match.
    pub closest: Option<(u64, Vec<Mismatch>)>,
}

impl fmt::Display for UnmetCall {
    /// ```text
    /// expected tools/call echo at least once, and it came 0 times
    ///   closest was call 3
    ///     $.text: expected "a", got "b"
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, and it came {} times", self.expected, self.count)?;
        if let Some((number, mismatches)) = &self.closest {
            write!(f, "\n  closest was call {number}")?;
            for line in first_mismatches(mismatches) {
                write!(f, "\n    {line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &Value) -> LoggedRequest {
        LoggedRequest {
            number: 0,
            method: Method::TOOLS_CALL,
            params: Some(RawJson::from_value(&json!({"name": name, "arguments": arguments}))),
            at: Duration::from_millis(1500),
            took: Duration::from_micros(250),
            outcome: LoggedOutcome::Result,
            provenance: Provenance::Script { target: "tool echo".into(), rule: "always".into() },
            fault: Some(FaultKind::WrongId),
        }
    }

    #[test]
    fn the_latest_calls_are_stored_and_all_are_counted() {
        let log = RequestLog::new(2);
        for text in ["a", "b", "c"] {
            log.write(call("echo", &json!({"text": text})));
        }
        let requests: Vec<_> = log.after(0).iter().map(|call| call.number).collect();
        assert_eq!((requests, log.count()), (vec![2, 3], 3));
        assert_eq!(log.after(2).len(), 1);
        log.clear();
        assert_eq!((log.after(0).len(), log.count()), (0, 0));
        let none = RequestLog::new(0);
        none.write(call("echo", &json!({})));
        assert_eq!((none.after(0).len(), none.count()), (0, 1));
    }

    #[test]
    fn long_arguments_remove_the_oldest_calls() {
        let log = RequestLog::new(1000);
        for _ in 0..5 {
            log.write(call("echo", &json!({"text": "x".repeat(20 * 1024 * 1024)})));
        }
        let requests: Vec<_> = log.after(0).iter().map(|call| call.number).collect();
        assert_eq!(requests, [3, 4, 5]);
    }

    #[test]
    fn a_call_as_json_has_every_member() {
        let log = RequestLog::new(2);
        log.write(call("echo", &json!({"a_b": 1})));
        let expected = json!({
            "number": 1, "method": "tools/call", "name": "echo", "arguments": {"a_b": 1}, "at_ms": 1500.0,
            "took_ms": 0.25, "outcome": "result", "provenance": "script: tool echo, always", "fault": "wrong_id",
        });
        assert_eq!(log.after(0)[0].to_json(), expected);
    }

    #[test]
    fn an_expectation_that_is_not_met_names_the_closest_call() {
        let log = RequestLog::new(10);
        log.write(call("echo", &json!({"text": "a", "loud": true})));
        log.write(call("echo", &json!({"text": "b", "loud": true})));
        let read = |value: Value| ExpectedCall::read(&value).unwrap();
        let met = [
            read(json!({"tool": "echo"})),
            read(json!({"tool": "echo", "times": 2})),
            read(json!({"method": "tools/call", "name": "echo", "arguments": {"text": "a"}, "times": 1})),
            ExpectedCall::tool("add").never(),
            ExpectedCall::method(Method::TOOLS_CALL).between(1..=5),
        ];
        assert!(log.verify(&met).is_empty());
        let unmet = log.verify(&[
            read(json!({"tool": "echo", "arguments": {"text": "c", "loud": true}})),
            ExpectedCall::tool("echo").times(1),
            ExpectedCall::method(Method::TOOLS_LIST),
        ]);
        let lines: Vec<_> = unmet.iter().map(ToString::to_string).collect();
        assert!(
            lines[0].starts_with("expected tools/call echo at least once, and it came 0 times\n  closest was call 1\n")
        );
        assert!(lines[0].contains("$.text: "), "{}", lines[0]);
        assert_eq!(lines[1], "expected tools/call echo once, and it came 2 times");
        assert_eq!(lines[2], "expected tools/list at least once, and it came 0 times");
    }

    #[test]
    fn an_invalid_expectation_is_an_error() {
        let table = [
            (json!(5), "expected an object"),
            (json!({}), "`tool` or `method` is missing"),
            (json!({"tool": "a", "method": "b"}), "write one of them"),
            (json!({"tool": "a", "time": 1}), "unknown key `time`"),
            (json!({"tool": "a", "times": -1}), "`times` is not a whole number"),
            (json!({"tool": "a", "arguments": {"x": {"matches": "("}}}), "`arguments`: "),
        ];
        for (written, expected) in table {
            let error = ExpectedCall::read(&written).unwrap_err();
            assert!(error.contains(expected), "{written}: {error}");
        }
    }
}
