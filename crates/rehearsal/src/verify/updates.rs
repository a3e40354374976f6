//! Replaces recorded answers by the live ones, and recorded server requests by those that changed.

use std::collections::HashMap;

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Message, Reply};
use rehearsal_core::redact::Redaction;
use rehearsal_core::trace::{Part, RecordedCall};
use serde_json::Value;

use super::server_requests::RequestPlace;

/// Live answers and server requests, by session and place.
#[derive(Clone, Debug, Default)]
pub struct Updates {
    answers: HashMap<Request, Reply>,
    /// The params of server requests; an input request of an `input_required` result has a name.
    server_requests: HashMap<Request, Vec<(Option<String>, Value)>>,
}

/// The number of a session, and the place of a request in it.
type Request = (usize, u64, Option<u32>);

impl Updates {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.server_requests.is_empty()
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    pub(super) fn put(&mut self, session: usize, call: &RecordedCall, reply: Reply) {
        self.answers.insert((session, call.request.seq, call.request.item), reply);
    }

    /// Stores the live params of a server request.
    pub(super) fn put_server_request(&mut self, session: usize, place: RequestPlace, params: Value) {
        let RequestPlace { seq, item, name } = place;
        self.server_requests.entry((session, seq, item)).or_default().push((name, params));
    }

    /// Puts the live answer or the live server request into a part of a session, redacted; sessions count from 1.
    pub fn apply(&self, session: usize, part: Part, redaction: &Redaction) -> Part {
        let Part::Call(mut call) = part else { return part };
        let place = (session, call.request.seq, call.request.item);
        if !self.answers.contains_key(&place) && !self.server_requests.contains_key(&place) {
            return Part::Call(call);
        }
        self.put_into(&mut call, place);
        redaction.part(Part::Call(call)).0
    }

    fn put_into(&self, call: &mut RecordedCall, place: Request) {
        let Some((id, method)) = call.request.message.as_request().map(|it| (it.id.clone(), it.method.clone())) else {
            return;
        };
        if let (Some(reply), Some(response)) = (self.answers.get(&place), &mut call.response) {
            response.message = Message::reply(id.clone(), reply);
        }
        for (name, live) in self.server_requests.get(&place).into_iter().flatten() {
            match name {
                None => {
                    let recorded = call.request.message.params().and_then(|params| params.value().ok());
                    let params = keep_volatile(live, recorded.as_ref());
                    if let Ok(message) = Message::request(id.clone(), method.clone(), Some(&params)) {
                        call.request.message = message;
                    }
                }
                Some(name) => {
                    let Some(response) = &mut call.response else { continue };
                    if let Some(reply) = input_required_with(&response.message, name, live) {
                        response.message = Message::reply(id.clone(), &reply);
                    }
                }
            }
        }
    }
}

/// The live params, with the recorded values of the members that differ every time.
fn keep_volatile(live: &Value, recorded: Option<&Value>) -> Value {
    let mut params = live.clone();
    for key in ["_meta", "elicitationId", "task"] {
        if let (Some(value), Some(params)) = (recorded.and_then(|it| it.get(key)), params.as_object_mut()) {
            params.insert(key.to_owned(), value.clone());
        }
    }
    params
}

/// An `input_required` result with these params in the input request of this name.
fn input_required_with(message: &Message, name: &str, live: &Value) -> Option<Reply> {
    let Reply::Result(result) = &message.as_response()?.reply else { return None };
    let mut result = result.value().ok()?;
    let request = result.get_mut("inputRequests")?.get_mut(name)?;
    let params = keep_volatile(live, request.get("params"));
    request["params"] = params;
    Some(Reply::Result(RawJson::from_value(&result)))
}
