//! A live answer held against the recorded one.

use rehearsal_core::message::{Message, Reply};
use rehearsal_core::protocol::Revision;
use rehearsal_core::report::{Finding, Place};
use rehearsal_core::trace::Call;
use rehearsal_core::trace::dialect::is_code_recorded;
use serde_json::Value;

use super::drift::{Told, told};
use super::plan::reply;
use super::questions;
use super::spoken::Spoken;
use super::verification::Verification;
use crate::client::{Client, ClientError, Protocol};

/// What was found out about one thing.
#[derive(Default)]
pub(super) struct Found {
    pub(super) findings: Vec<Finding>,
    /// What is to be written in place of recorded answers.
    pub(super) replies: Vec<(Call, Reply)>,
    pub(super) questions: Vec<(questions::Place, Value)>,
}

impl Found {
    /// What was found out about an answer. One about which there is nothing to tell stays as it was recorded.
    pub(super) fn of(findings: Vec<Finding>, replies: impl FnOnce() -> Vec<(Call, Reply)>) -> Found {
        let replies = if findings.is_empty() { Vec::new() } else { replies() };
        Found { findings, replies, questions: Vec::new() }
    }
}

impl Verification {
    /// Compares a live answer with the recorded one.
    pub(super) fn judged(&self, asked: &Call, answered: &Call, live: &Reply, client: &Client) -> Found {
        let spoken = self.spoken(client.revision());
        let Some(recorded) = reply(answered) else { return Found::default() };
        let method = asked.request.message.method().cloned().unwrap_or_else(|| "request".into());
        let shaped = |reply: &Reply| spoken.shaped(reply, &method);
        let findings = self.compared(asked, answered, &shaped(&recorded), &shaped(live));
        let recorded = Some(recorded);
        let live = spoken.as_recorded(live, recorded.as_ref(), &method, client.server_info());
        let live = self.secrets.kept_out(recorded.as_ref(), live);
        Found::of(findings, || vec![(answered.clone(), self.passed_over.kept(recorded.as_ref(), live))])
    }

    /// What differs between two answers to the same request, of which `answered` has the recorded one.
    pub(super) fn compared(&self, asked: &Call, answered: &Call, before: &Reply, after: &Reply) -> Vec<Finding> {
        let has_code = !matches!(before, Reply::Error(_)) || is_code_recorded(answered);
        let has_data = matches!(before, Reply::Error(error) if error.data.is_some());
        // Only the answers are compared: what was asked is what we have sent.
        let view = |reply: &Reply| {
            let mut view = self.stable.view(&self.secrets.clean(&with_reply(asked, reply)));
            view.as_object_mut().map(|view| view.shift_remove("params"));
            if let (false, Some(Value::Object(error))) = (has_code, view.get_mut("error")) {
                error.shift_remove("code");
                // Who gave only words gave no data either.
                if !has_data {
                    error.shift_remove("data");
                }
            }
            // What does not say that it failed did not.
            if let Some(Value::Object(result)) = view.get_mut("result")
                && result.get("isError") == Some(&Value::Bool(false))
            {
                result.shift_remove("isError");
            }
            view
        };
        let (mut before, mut after) = (view(before), view(after));
        self.secrets.take_out(&mut before, &mut after);
        let drifted = self.passed_over.drifted(&before, &after);
        told(&Told::of(drifted, &before, &after), None, Some(&place(asked)))
    }

    /// What was spoken when this was recorded, and what is spoken now. Where nobody asked for another version, one that the
    /// server no longer speaks is a difference like any other, and so is everything that it no longer says for that.
    pub(super) fn spoken(&self, live: Revision) -> Spoken {
        match self.protocol {
            Protocol::Auto => Spoken { recorded: self.opening.revision().map(|_| live), live },
            Protocol::Legacy(_) | Protocol::Modern => Spoken { recorded: self.opening.revision(), live },
        }
    }
}

pub(super) fn place(call: &Call) -> Place {
    Place::Message { sequence: call.request.seq }
}

/// The call, answered with this.
pub(super) fn with_reply(call: &Call, reply: &Reply) -> Call {
    let mut call = call.clone();
    let id = call.request.message.as_request().map(|request| request.id.clone());
    if let (Some(response), Some(id)) = (&mut call.response, id) {
        response.message = Message::reply(id, reply);
    }
    call
}

pub(super) fn reply_of(response: &crate::client::Response) -> Result<Reply, ClientError> {
    match Message::parse(response.bytes().clone()).as_response() {
        Some(response) => Ok(response.reply.clone()),
        None => Err(ClientError::BadResult {
            method: response.method().cloned().unwrap_or_else(|| "request".into()),
            what: "no response".to_owned(),
        }),
    }
}
