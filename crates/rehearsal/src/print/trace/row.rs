//! One row of a printed recording.

use std::time::Duration;

use rehearsal::client::{LogMessage, ProgressUpdate};
use rehearsal::core::exchange::{Channel, Side};
use rehearsal::core::json::RawJson;
use rehearsal::core::message::{Body, Message, Reply};
use rehearsal::core::trace::{CallStatus, Entry, EntryBody, RecordedCall, SessionEnd, subject};
use serde_json::{Map, Value, json};

use super::timeline::Detail;
use crate::print::{log_line, progress_line};

/// The content of one row, about a call or an entry, before its layout is decided.
#[derive(Debug)]
pub(crate) struct Row {
    /// `call`, or the type that the line of a journal has.
    pub(crate) kind: &'static str,
    /// The number of the message in its session.
    pub(crate) seq: u64,
    /// The number of the response to a call.
    pub(crate) response_seq: Option<u64>,
    /// The number of a call of the client in its session.
    pub(crate) number: Option<u64>,
    pub(crate) at: Duration,
    pub(crate) from: Option<Side>,
    channel: Channel,
    /// The id of a request or response, as JSON.
    id: Option<String>,
    /// The method of a message; `POST /mcp` and `200` of HTTP.
    pub(crate) method: Option<String>,
    /// The name of a tool or prompt, or the URI of a resource.
    pub(crate) subject: Option<String>,
    pub(crate) took: Option<Duration>,
    pub(crate) status: Option<CallStatus>,
    /// The text at the end of the row.
    pub(crate) text: Option<String>,
    /// The arguments of a call, or its params if it has no arguments.
    pub(crate) arguments: Option<(&'static str, RawJson)>,
    /// The params, and the reply.
    pub(crate) values: Vec<(&'static str, RawJson)>,
}

impl Row {
    /// Builds the row of a call; `number` is that of a call of the client in its session.
    pub(crate) fn call(call: &RecordedCall, number: Option<u64>) -> Row {
        let request = &call.request;
        let mut row = Row::message("call", request.seq, request.at, call.asker, call.channel(), &request.message);
        let status = CallStatus::from_call(call);
        row.took = call.took();
        row.text = negotiated_version(call).filter(|_| status == CallStatus::Ok);
        row.values.extend(call.response.iter().filter_map(|response| answer(&response.message)));
        let response_seq = call.response.as_ref().map(|response| response.seq);
        Row { status: Some(status), response_seq, number, arguments: arguments(&request.message), ..row }
    }

    /// Builds the row of an entry that is not a call.
    pub(crate) fn entry(entry: &Entry) -> Row {
        let Entry { seq, at, what, .. } = entry;
        let row = |kind, from, channel| Row {
            kind,
            seq: *seq,
            response_seq: None,
            number: None,
            at: *at,
            from,
            channel,
            id: None,
            method: None,
            subject: None,
            took: None,
            status: None,
            text: None,
            arguments: None,
            values: Vec::new(),
        };
        match what {
            EntryBody::Message { from, channel, message, .. } => {
                let (kind, text) = about(message);
                let row = Row::message(kind, *seq, *at, *from, *channel, message);
                Row { text, ..row }
            }
            EntryBody::Http { from, channel, head } => {
                let target = head.target.as_deref().unwrap_or_default();
                let first = head.method.as_ref().map(|method| format!("{method} {target}"));
                let status = head.status.map(|status| status.to_string());
                Row { method: first.or(status), ..row("http", Some(*from), *channel) }
            }
            EntryBody::Event { channel, name, id, data, retry } => {
                let mut parts = Vec::new();
                parts.extend(id.as_ref().map(|id| format!("id {id}")));
                parts.extend(retry.map(|retry| format!("retry {retry} ms")));
                parts.push(data.clone());
                parts.retain(|part| !part.is_empty());
                let text = (!parts.is_empty()).then(|| parts.join(", "));
                Row { subject: name.clone(), text, ..row("event", Some(Side::Server), *channel) }
            }
            EntryBody::ChannelEnded { channel, why } => {
                Row { text: why.clone(), ..row("channel_ended", None, *channel) }
            }
            EntryBody::Piece { from, channel, bytes, .. } => {
                let text = Some(String::from_utf8_lossy(bytes).into_owned());
                Row { text, ..row("piece", Some(*from), *channel) }
            }
            EntryBody::Stderr { line } => Row { text: Some(line.clone()), ..row("stderr", None, Channel::MAIN) },
            EntryBody::Ended(end) => Row { text: Some(end_text(end)), ..row("end", None, Channel::MAIN) },
        }
    }

    fn message(kind: &'static str, seq: u64, at: Duration, from: Side, channel: Channel, message: &Message) -> Row {
        let id = match message.body() {
            Body::Request(request) => Some(request.id.to_string()),
            Body::Response(response) => Some(response.id.as_ref().map_or("null".to_owned(), ToString::to_string)),
            Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => None,
        };
        let mut values = Vec::new();
        values.extend(message.params().map(|params| ("params", params.clone())));
        values.extend(answer(message));
        Row {
            kind,
            seq,
            response_seq: None,
            number: None,
            at,
            from: Some(from),
            channel,
            id,
            method: message.method().map(ToString::to_string),
            subject: subject(message),
            took: None,
            status: None,
            text: None,
            arguments: None,
            values,
        }
    }

    /// The row as a JSON object without absent members; `inside` is the number of the call that it belongs to.
    pub(crate) fn json(&self, session: u64, session_id: &str, inside: Option<u64>, detail: Detail) -> Value {
        let mut row = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                row.insert(key.to_owned(), value);
            }
        };
        put("type", Some(self.kind.into()));
        put("session", Some(session.into()));
        put("session_id", Some(session_id.into()));
        put("call", self.number.map(Value::from));
        put("seq", Some(self.seq.into()));
        put("response_seq", self.response_seq.map(Value::from));
        put("at_ms", Some(milliseconds(self.at)));
        put("inside", inside.map(Value::from));
        put("from", self.from.map(|from| from.to_string().into()));
        put("channel", (self.channel != Channel::MAIN).then(|| self.channel.0.into()));
        put("id", self.id.as_ref().and_then(|id| serde_json::from_str(id).ok()));
        put("method", self.method.as_deref().map(Value::from));
        put("subject", self.subject.as_deref().map(Value::from));
        put("duration_ms", self.took.map(milliseconds));
        put("status", self.status.as_ref().map(|status| status.word().into()));
        let failure = self.status.as_ref().filter(|status| **status != CallStatus::Ok).map(ToString::to_string);
        put("text", failure.or_else(|| self.text.clone()).map(Value::from));
        for (name, value) in self.json_values(detail) {
            // JSON that a `Value` cannot hold is printed as a string.
            put(name, Some(value.value().unwrap_or_else(|_| json!(value.as_str()))));
        }
        Value::Object(row)
    }
}

impl Row {
    /// The JSON values that are printed with the row.
    pub(crate) fn json_values(&self, detail: Detail) -> impl Iterator<Item = &(&'static str, RawJson)> {
        let arguments = self.arguments.iter().filter(move |_| detail.arguments && !detail.values);
        arguments.chain(self.values.iter().filter(move |_| detail.values))
    }
}

/// The `arguments` of a request, or its params if they have no arguments.
fn arguments(message: &Message) -> Option<(&'static str, RawJson)> {
    let params = message.params()?;
    Some(params.field("arguments").map_or_else(|| ("params", params.clone()), |arguments| ("arguments", arguments)))
}

/// Milliseconds, exact to the microsecond.
pub(crate) fn milliseconds(duration: Duration) -> Value {
    json!(duration.as_micros() as f64 / 1e3)
}

/// The protocol version in the result of `initialize`.
fn negotiated_version(call: &RecordedCall) -> Option<String> {
    let message = &call.response.as_ref()?.message;
    let Reply::Result(result) = &message.as_response()?.reply else { return None };
    let version = |key: &str| result.field(key)?.text();
    (call.request.message.method()?.as_str() == "initialize").then(|| version("protocolVersion"))?
}

fn answer(message: &Message) -> Option<(&'static str, RawJson)> {
    match &message.as_response()?.reply {
        Reply::Result(result) => Some(("result", result.clone())),
        Reply::Error(error) => {
            let value = json!({"code": error.code, "message": error.message});
            let whole = RawJson::parse(message.raw()).ok().and_then(|whole| whole.field("error"));
            Some(("error", whole.unwrap_or_else(|| RawJson::from_value(&value))))
        }
    }
}

/// The type of a message that is not a call, and its text.
fn about(message: &Message) -> (&'static str, Option<String>) {
    match message.body() {
        Body::Request(_) => ("request", None),
        Body::Notification(notification) => {
            let line = ProgressUpdate::read(message).map(|progress| progress_line(&progress));
            let line = line.or_else(|| LogMessage::read(message).map(|log| log_line(&log)));
            let reason = || notification.param(&["reason"]).and_then(|reason| reason.text());
            let request = || notification.param(&["requestId"]).map(|id| format!("request {id}"));
            let cancelled = notification.method.as_str() == "notifications/cancelled";
            let text = || request().into_iter().chain(reason()).collect::<Vec<_>>().join(": ");
            ("notification", line.or_else(|| cancelled.then(text)))
        }
        Body::Response(response) => {
            let outcome = match &response.reply {
                Reply::Result(_) => "ok".to_owned(),
                Reply::Error(error) => format!("error {error}"),
            };
            let id = response.id.as_ref().map_or("null".to_owned(), ToString::to_string);
            ("response", Some(format!("{outcome}; no pending request has the id {id}")))
        }
        Body::Batch(_) => ("batch", Some(message.text().into_owned())),
        Body::Garbled(garbled) => ("garbled", Some(format!("{garbled}: {}", message.text()))),
    }
}

/// The end of a session, as text.
pub(crate) fn end_text(end: &SessionEnd) -> String {
    match end {
        SessionEnd::ClientClosed { status: Some(status) } => {
            format!("the client closed it, and the server exited with {status}")
        }
        SessionEnd::ClientClosed { status: None } => "the client closed it".to_owned(),
        SessionEnd::ServerExited { signal: Some(signal), .. } => format!("the server was killed by signal {signal}"),
        SessionEnd::ServerExited { status: Some(status), signal: None } => format!("the server exited with {status}"),
        SessionEnd::ServerExited { status: None, signal: None } => "the server exited".to_owned(),
        SessionEnd::Stopped => "the recorder was stopped".to_owned(),
        SessionEnd::Failed { why } => why.clone(),
        SessionEnd::Recovered => "the recorder was killed; the session was recovered from its journal".to_owned(),
    }
}

/// A duration with about three digits: `842 µs`, `12.1 ms`, `1.28 s`, `2 min 5 s`.
pub(crate) fn took(duration: Duration) -> String {
    let micros = duration.as_micros();
    let seconds = duration.as_secs();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..999_950 => digits(duration.as_secs_f64() * 1e3, "ms"),
        999_950..59_999_500 => digits(duration.as_secs_f64(), "s"),
        _ if seconds < 3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn digits(number: f64, unit: &str) -> String {
    let decimals = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_the_unit_that_suits_it() {
        let table = [
            (0, "0 µs"),
            (842, "842 µs"),
            (1_000, "1.00 ms"),
            (12_120, "12.1 ms"),
            (345_600, "346 ms"),
            (999_949, "1000 ms"),
            (999_950, "1.00 s"),
            (1_280_000, "1.28 s"),
            (59_999_499, "60.0 s"),
            (125_000_000, "2 min 5 s"),
            (7_380_000_000, "2 h 3 min"),
        ];
        for (micros, expected) in table {
            assert_eq!(took(Duration::from_micros(micros)), expected);
        }
    }
}
