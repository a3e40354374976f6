//! A recorded exchange.

use std::sync::Arc;

use serde_json::Value;

use crate::answer::respond::InputRequest;
use crate::exchange::Side;
use crate::message::{Message, Method, Notification, Reply};
use crate::protocol::{Era, PerRevision, Revision, code, meta};
use crate::trace::{CallStatus, Entry, EntryBody, RecordedCall, RelatedEvent};

/// A recorded exchange.
#[derive(Clone, Debug)]
pub struct RecordedExchange {
    /// Its number among all recorded exchanges.
    pub number: u32,
    /// The number of its session.
    pub session: u32,
    /// Its place, for users: `session 3f9a…, call 12`.
    pub place: Arc<str>,
    /// The recorded call.
    pub call: RecordedCall,
    /// The related events, in order.
    pub events: Vec<ReplayEvent>,
    /// The version of the recording, if known.
    pub revision: Option<Revision>,
    /// The reply in other versions, for the clients that requested it.
    pub adapted: Arc<PerRevision<Reply>>,
}

/// A related event of an exchange.
#[derive(Clone, Debug)]
pub struct ReplayEvent {
    /// The event.
    pub event: RelatedEvent,
    /// Whether it happened before or after the response.
    pub phase: EventPhase,
}

/// When a related event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventPhase {
    /// Before the response.
    Before,
    /// After the response, and before the next request.
    After,
}

impl ReplayEvent {
    /// The notification, if the event is one of the server's.
    pub fn notification(&self) -> Option<&Notification> {
        match &self.event {
            RelatedEvent::Entry(Entry { what: EntryBody::Message { from: Side::Server, message, .. }, .. }) => {
                message.as_notification()
            }
            RelatedEvent::Entry(_) | RelatedEvent::Call(_) => None,
        }
    }
}

impl RecordedExchange {
    /// Whether the response is `input_required` (2026-07-28).
    pub fn is_round(&self) -> bool {
        CallStatus::from_call(&self.call) == CallStatus::InputRequired
    }

    /// The input requests of an `input_required` result; empty if it has only state.
    pub(super) fn input_requests(&self) -> Option<Vec<InputRequest>> {
        let Reply::Result(result) = self.reply().filter(|_| self.is_round())? else { return None };
        let requests = result.field("inputRequests").and_then(|requests| requests.value().ok());
        Some(InputRequest::from_entries(requests.as_ref()))
    }

    /// The recorded result, if it was recorded in this version.
    pub(super) fn result_in(&self, revision: Revision) -> Option<Value> {
        let Reply::Result(result) = self.reply().filter(|_| self.revision == Some(revision))? else { return None };
        result.value().ok().filter(Value::is_object)
    }

    /// The URLs that the client must open before it repeats the request, if the response is the error that requires
    /// them; since 2026-07-28 they are input requests.
    pub(super) fn url_elicitations(&self) -> Option<Vec<InputRequest>> {
        let Some(Reply::Error(error)) = self.reply() else { return None };
        if error.code != code::URL_ELICITATION_REQUIRED {
            return None;
        }
        let data = error.data.as_ref()?.value().ok()?;
        let visit = |(at, params): (usize, &Value)| {
            let name = params.get("elicitationId").and_then(Value::as_str);
            let name = name.map_or_else(|| format!("input-{}", at + 1), str::to_owned);
            InputRequest { name, method: Method::ELICITATION, params: params.clone() }
        };
        Some(data.get("elicitations")?.as_array()?.iter().enumerate().map(visit).collect())
    }

    /// Whether the response is the error that requires the client to open a URL first.
    pub fn requires_url(&self) -> bool {
        self.url_elicitations().is_some()
    }

    /// The progress token of the recorded request.
    pub(super) fn token(&self) -> Option<Value> {
        let params = self.call.request.message.params()?;
        params.at(&["_meta", meta::PROGRESS_TOKEN])?.value().ok()
    }

    /// The era of the task that the response creates, if it creates one.
    pub fn begins_task(&self) -> Option<Era> {
        let Some(Reply::Result(result)) = self.reply() else { return None };
        // Most results create no task and may be long, so the bytes are searched before the JSON is parsed.
        memchr::memmem::find(result.bytes(), b"\"taskId\"")?;
        let is_modern = || result.field("resultType").and_then(|kind| kind.text()).is_some_and(|kind| kind == "task");
        match result.field("task") {
            Some(task) => task.field("taskId").map(|_| Era::Legacy),
            None => is_modern().then_some(Era::Modern),
        }
    }

    /// Whether the recording has a response, which may be garbled.
    pub fn is_answered(&self) -> bool {
        self.call.response.is_some()
    }

    /// The reply, unless the response is garbled.
    pub fn reply(&self) -> Option<&Reply> {
        Some(&self.call.response.as_ref()?.message.as_response()?.reply)
    }

    /// A garbled response, with the reply that a lenient client reads from it.
    pub(super) fn lenient_reply(&self) -> Option<(&Message, Reply)> {
        let message = &self.call.response.as_ref()?.message;
        Some((message, message.read_leniently()?))
    }

    /// Whether the recording has a response that can be sent to clients.
    pub fn has_reply(&self) -> bool {
        self.reply().is_some() || self.lenient_reply().is_some()
    }

    /// Whether the exchange has a reply and no related events.
    pub(super) fn is_plain(&self) -> bool {
        self.events.is_empty() && self.reply().is_some()
    }
}
