//! The members that a line of a journal, or a message in a trace, may have.

use std::time::Duration;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::json_writer::{message, milliseconds, whole};
use super::{Entry, EntryBody, HttpHead, SessionEnd, SessionStart};
use crate::exchange::{Channel, Side};

/// All known members, as written. Unknown members are ignored.
#[derive(Deserialize)]
pub(super) struct Fields<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<LineKind>,
    pub(super) format: Option<u64>,
    pub(super) session_id: Option<String>,
    pub(super) server_info: Option<Map<String, Value>>,
    pub(super) started_at: Option<String>,
    pub(super) metadata: Option<Map<String, Value>>,

    pub(super) seq: Option<u64>,
    pub(super) item: Option<u32>,
    #[serde(borrow)]
    pub(super) at_ms: Option<&'a RawValue>,
    pub(super) from: Option<FromField>,
    pub(super) channel: Option<u64>,
    pub(super) event_id: Option<String>,

    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) batch: Option<&'a RawValue>,
    pub(super) layout: Option<String>,
    pub(super) lf: Option<Vec<usize>>,
    pub(super) cr: Option<Vec<usize>>,
    pub(super) text: Option<String>,
    pub(super) base64: Option<String>,
    pub(super) half_line: Option<bool>,
    pub(super) limit: Option<usize>,
    pub(super) offset: Option<usize>,
    pub(super) bytes: Option<u64>,

    pub(super) http: Option<HttpFields>,
    pub(super) event: Option<EventFields>,
    pub(super) line: Option<String>,
    pub(super) why: Option<String>,
    pub(super) end: Option<EndFields>,
}

/// A value that is present, though it may be `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The type of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LineKind {
    Start,
    Lines,
    Request,
    Notification,
    Response,
    Batch,
    Garbled,
    Http,
    Event,
    ChannelEnded,
    Piece,
    Stderr,
    End,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromField {
    Client,
    Server,
}

#[derive(Deserialize)]
pub(super) struct HttpFields {
    method: Option<String>,
    target: Option<String>,
    status: Option<u16>,
    #[serde(default)]
    headers: Vec<(String, String)>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct EventFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default)]
    data: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<u64>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct EndFields {
    how: EndField,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum EndField {
    ClientClosed,
    ServerExited,
    Stopped,
    Failed,
    Recovered,
}

impl Fields<'_> {
    /// The entry of a journal's line that is not the start of a session. `Err` describes what was expected.
    pub(super) fn entry(self) -> Result<Entry, String> {
        let kind = self.kind.ok_or("`type`")?;
        let (seq, at) = (self.seq()?, self.at()?);
        let channel = self.channel();
        let what = match kind {
            LineKind::Start => return Err("an entry instead of another start".to_owned()),
            LineKind::Lines => return Err("an entry instead of lines of a journal".to_owned()),
            LineKind::Request | LineKind::Notification | LineKind::Response | LineKind::Batch | LineKind::Garbled => {
                EntryBody::Message {
                    from: self.from()?,
                    channel,
                    message: message(&self, None)?,
                    event_id: self.event_id,
                }
            }
            LineKind::Http => {
                let from = self.from()?;
                EntryBody::Http { from, channel, head: self.http.ok_or("`http`")?.into() }
            }
            LineKind::Event => {
                let EventFields { name, id, data, retry } = self.event.ok_or("`event`")?;
                EntryBody::Event { channel, name, id, data, retry }
            }
            LineKind::ChannelEnded => EntryBody::ChannelEnded { channel, why: self.why },
            LineKind::Piece => {
                let bytes = whole(&self)?.ok_or("`text` or `base64`")?.into();
                EntryBody::Piece { from: self.from()?, channel, offset: self.offset.ok_or("`offset`")?, bytes }
            }
            LineKind::Stderr => EntryBody::Stderr { line: self.line.ok_or("`line`")? },
            LineKind::End => EntryBody::Ended(self.end.ok_or("`end`")?.into()),
        };
        Ok(Entry { seq, item: self.item, at, what })
    }

    /// The start of a session from a line of a journal.
    pub(super) fn start(self) -> Result<SessionStart, String> {
        Ok(SessionStart {
            session_id: self.session_id.ok_or("`session_id`")?,
            server_info: self.server_info.unwrap_or_default(),
            started_at: self.started_at.map(|text| timestamp("started_at", &text)).transpose()?,
            metadata: self.metadata.unwrap_or_default(),
        })
    }

    pub(super) fn seq(&self) -> Result<u64, String> {
        self.seq.ok_or_else(|| "`seq`".to_owned())
    }

    pub(super) fn at(&self) -> Result<Duration, String> {
        let text = self.at_ms.ok_or("`at_ms`")?.get();
        milliseconds(text).ok_or_else(|| format!("milliseconds in `at_ms` instead of {text}"))
    }

    pub(super) fn channel(&self) -> Channel {
        self.channel.map_or(Channel::MAIN, Channel)
    }

    pub(super) fn from(&self) -> Result<Side, String> {
        Ok(self.from.ok_or("`from`")?.into())
    }
}

/// Parses a time in RFC 3339.
pub(super) fn timestamp(name: &str, text: &str) -> Result<jiff::Timestamp, String> {
    text.parse().map_err(|_| format!("a time such as 2026-07-28T12:00:00Z in `{name}` instead of {text:?}"))
}

impl std::convert::From<FromField> for Side {
    fn from(from: FromField) -> Side {
        match from {
            FromField::Client => Side::Client,
            FromField::Server => Side::Server,
        }
    }
}

impl std::convert::From<HttpFields> for HttpHead {
    fn from(HttpFields { method, target, status, headers }: HttpFields) -> HttpHead {
        HttpHead { method, target, status, headers: headers.into_iter().collect() }
    }
}

impl EventFields {
    pub(super) fn new(name: &Option<String>, id: &Option<String>, data: &str, retry: Option<u64>) -> EventFields {
        EventFields { name: name.clone(), id: id.clone(), data: data.to_owned(), retry }
    }
}

impl std::convert::From<EndFields> for SessionEnd {
    fn from(EndFields { how, status, signal, why }: EndFields) -> SessionEnd {
        match how {
            EndField::ClientClosed => SessionEnd::ClientClosed { status },
            EndField::ServerExited => SessionEnd::ServerExited { status, signal },
            EndField::Stopped => SessionEnd::Stopped,
            EndField::Failed => SessionEnd::Failed { why: why.unwrap_or_default() },
            EndField::Recovered => SessionEnd::Recovered,
        }
    }
}

impl std::convert::From<&SessionEnd> for EndFields {
    fn from(end: &SessionEnd) -> EndFields {
        let (how, status, signal, why) = match end {
            SessionEnd::ClientClosed { status } => (EndField::ClientClosed, *status, None, None),
            SessionEnd::ServerExited { status, signal } => (EndField::ServerExited, *status, *signal, None),
            SessionEnd::Stopped => (EndField::Stopped, None, None, None),
            SessionEnd::Failed { why } => (EndField::Failed, None, None, Some(why.clone())),
            SessionEnd::Recovered => (EndField::Recovered, None, None, None),
        };
        EndFields { how, status, signal, why }
    }
}
