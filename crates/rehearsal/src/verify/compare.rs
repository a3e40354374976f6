//! Compares a live answer with the recorded one, in the fields that both versions have.

use rehearsal_core::answer::adapt_reply;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Message, Method, Reply};
use rehearsal_core::protocol::{Revision, code};
use rehearsal_core::report::{Finding, Location};
use rehearsal_core::shape::strip_unknown;
use rehearsal_core::trace::RecordedCall;
use rehearsal_core::trace::dialect::is_code_recorded;
use serde_json::{Value, json};

use super::difference_report::{ReportedDifference, findings_of};
use super::plan::reply;
use super::server_requests::RequestPlace;
use super::verification::Verification;
use crate::client::{Client, ClientError, Protocol};

/// The outcome of one comparison.
#[derive(Default)]
pub(super) struct CheckResult {
    pub(super) findings: Vec<Finding>,
    /// The replies that replace recorded answers.
    pub(super) replies: Vec<(RecordedCall, Reply)>,
    pub(super) server_requests: Vec<(RequestPlace, Value)>,
}

impl CheckResult {
    /// Builds the outcome of one comparison. Without findings, the recorded answer is kept.
    pub(super) fn from_findings(
        findings: Vec<Finding>,
        replies: impl FnOnce() -> Vec<(RecordedCall, Reply)>,
    ) -> CheckResult {
        let replies = if findings.is_empty() { Vec::new() } else { replies() };
        CheckResult { findings, replies, server_requests: Vec::new() }
    }
}

impl Verification {
    /// Compares a live answer with the recorded one.
    pub(super) fn check_reply(
        &self,
        sent: &RecordedCall,
        answered: &RecordedCall,
        live: &Reply,
        client: &Client,
    ) -> CheckResult {
        let versions = self.version_pair(client.revision());
        let Some(recorded) = reply(answered) else { return CheckResult::default() };
        let method = sent.request.message.method().cloned().unwrap_or_else(|| "request".into());
        let shaped = |reply: &Reply| versions.to_common_version(reply, &method);
        let findings = self.compared(sent, answered, &shaped(&recorded), &shaped(live));
        let recorded = Some(recorded);
        let live = versions.to_recorded_version(live, recorded.as_ref(), &method, client.server_info());
        let live = self.secrets.redact_live(recorded.as_ref(), live);
        CheckResult::from_findings(findings, || {
            vec![(answered.clone(), self.ignored_paths.keep_recorded(recorded.as_ref(), live))]
        })
    }

    /// The differences between two answers to the same request. `answered` is the call with the recorded answer.
    pub(super) fn compared(
        &self,
        sent: &RecordedCall,
        answered: &RecordedCall,
        before: &Reply,
        after: &Reply,
    ) -> Vec<Finding> {
        let has_code = !matches!(before, Reply::Error(_)) || is_code_recorded(answered);
        let has_data = matches!(before, Reply::Error(error) if error.data.is_some());
        // Only the answers are compared: the request is the one that we sent.
        let view = |reply: &Reply| {
            let mut view = self.stable.view(&self.secrets.redact_call(&with_reply(sent, reply)));
            view.as_object_mut().map(|view| view.shift_remove("params"));
            if let (false, Some(Value::Object(error))) = (has_code, view.get_mut("error")) {
                error.shift_remove("code");
                // A recorded error that is only text has no data either.
                if !has_data {
                    error.shift_remove("data");
                }
            }
            // A missing `isError` means `false`.
            if let Some(Value::Object(result)) = view.get_mut("result")
                && result.get("isError") == Some(&Value::Bool(false))
            {
                result.shift_remove("isError");
            }
            view
        };
        let (mut before, mut after) = (view(before), view(after));
        self.secrets.redact_both(&mut before, &mut after);
        let differences = self.ignored_paths.differences(&before, &after);
        findings_of(&ReportedDifference::from_differences(differences, &before, &after), None, Some(&place(sent)))
    }

    /// The recorded and the live version. With [`Protocol::Auto`] nothing is left out of the comparison: a version that
    /// the server no longer supports is a difference, and so is everything that is missing because of it.
    pub(super) fn version_pair(&self, live: Revision) -> VersionPair {
        match self.protocol {
            Protocol::Auto => VersionPair { recorded: self.start.revision().map(|_| live), live },
            Protocol::Legacy(_) | Protocol::Modern => VersionPair { recorded: self.start.revision(), live },
        }
    }
}

pub(super) fn place(call: &RecordedCall) -> Location {
    Location::Message { sequence: call.request.seq }
}

/// The call with this reply.
pub(super) fn with_reply(call: &RecordedCall, reply: &Reply) -> RecordedCall {
    let mut call = call.clone();
    let id = call.request.message.as_request().map(|request| request.id.clone());
    if let (Some(response), Some(id)) = (&mut call.response, id) {
        response.message = Message::reply(id, reply);
    }
    call
}

pub(super) fn reply_of(response: &crate::client::ServerResponse) -> Result<Reply, ClientError> {
    match Message::parse(response.bytes().clone()).as_response() {
        Some(response) => Ok(response.reply.clone()),
        None => Err(ClientError::BadResult {
            method: response.method().cloned().unwrap_or_else(|| "request".into()),
            what: "no response".to_owned(),
        }),
    }
}

/// The version of the recording, if it is known, and the live version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VersionPair {
    pub(super) recorded: Option<Revision>,
    pub(super) live: Revision,
}

impl VersionPair {
    /// The older version, if they differ. Fields that only the newer one has are not compared.
    fn older(self) -> Option<Revision> {
        self.recorded.filter(|recorded| *recorded != self.live).map(|recorded| recorded.min(self.live))
    }

    /// Whether all fields are compared.
    pub(super) fn is_same(self) -> bool {
        self.older().is_none()
    }

    /// An answer without the fields that only one of the two versions has. Servers send newer fields in older versions
    /// too, so both the recorded and the live answer are shaped.
    pub(super) fn to_common_version(self, reply: &Reply, method: &Method) -> Reply {
        let Some(older) = self.older() else {
            return if self.recorded.is_some() { reply.clone() } else { without_envelope(reply) };
        };
        match adapt_reply(reply, method, None, older, &json!({})) {
            // Each era has its own code for a missing resource, and not every such error contains the URI of the
            // resource.
            Reply::Error(error) if error.code == code::INVALID_PARAMS && *method == Method::RESOURCES_READ => {
                Reply::Error(ErrorReply { code: older.resource_not_found(), ..error })
            }
            shaped => shaped,
        }
    }

    /// The part of a value of this type that both versions have.
    pub(super) fn known(self, type_name: &str, mut value: Value) -> Value {
        if let Some(older) = self.older() {
            strip_unknown(type_name, &mut value, older);
        }
        value
    }

    /// A live answer in the shape of the recorded one that it replaces; `info` is the `serverInfo`.
    pub(super) fn to_recorded_version(self, live: &Reply, was: Option<&Reply>, method: &Method, info: &Value) -> Reply {
        let Some(recorded) = self.recorded else { return live.clone() };
        let adapted = adapt_reply(live, method, Some(self.live), recorded, info);
        match (&adapted, was) {
            // The other era has no caching fields, so the recorded ones are kept.
            (Reply::Result(result), Some(Reply::Result(was))) if recorded.era() != self.live.era() => {
                let Ok(Value::Object(mut fields)) = result.value() else { return adapted };
                for key in ["ttlMs", "cacheScope"] {
                    if let (Some(field), Some(was)) = (fields.get_mut(key), was.field(key)) {
                        *field = was.value().unwrap_or_default();
                    }
                }
                Reply::Result(RawJson::from_value(&Value::Object(fields)))
            }
            (Reply::Result(_) | Reply::Error(_), _) => adapted,
        }
    }
}

/// Returns a result without the fields that only 2026-07-28 has, because the recorded version is unknown.
fn without_envelope(reply: &Reply) -> Reply {
    let Reply::Result(result) = reply else { return reply.clone() };
    let Ok(Value::Object(mut fields)) = result.value() else { return reply.clone() };
    for key in ["resultType", "ttlMs", "cacheScope"] {
        fields.shift_remove(key);
    }
    Reply::Result(RawJson::from_value(&Value::Object(fields)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(tool: Value, more: Value) -> Reply {
        let mut result = json!({"tools": [tool]});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Reply::Result(RawJson::from_value(&result))
    }

    #[test]
    fn a_field_of_only_one_version_is_no_difference() {
        let old = json!({"name": "a", "inputSchema": {"type": "object"}});
        let new = json!({"name": "a", "title": "A", "inputSchema": {"type": "object"}, "icons": []});
        let modern = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
        let versions = VersionPair { recorded: Some(Revision::V2024_11_05), live: Revision::V2026_07_28 };
        let shaped = |reply: Reply| versions.to_common_version(&reply, &Method::TOOLS_LIST);
        assert_eq!(shaped(tools(old.clone(), json!({}))), shaped(tools(new.clone(), modern.clone())));
        // The server sends fields that its version does not have.
        assert_eq!(shaped(tools(new.clone(), json!({}))), shaped(tools(new.clone(), modern.clone())));
        assert_eq!(
            versions.to_recorded_version(&tools(new.clone(), modern), None, &Method::TOOLS_LIST, &Value::Null),
            tools(old, json!({}))
        );
        let missing = |code| Reply::Error(ErrorReply::new(code, "no such resource"));
        let read = |code| versions.to_common_version(&missing(code), &Method::RESOURCES_READ);
        assert_eq!(read(code::RESOURCE_NOT_FOUND), read(code::INVALID_PARAMS));
        let same = VersionPair { recorded: Some(Revision::V2024_11_05), live: Revision::V2024_11_05 };
        assert_eq!(
            same.to_common_version(&tools(new.clone(), json!({})), &Method::TOOLS_LIST),
            tools(new.clone(), json!({}))
        );
        let back = VersionPair { recorded: Some(Revision::V2026_07_28), live: Revision::V2025_11_25 };
        let kept = json!({"resultType": "complete", "ttlMs": 7, "cacheScope": "public"});
        let (was, live) = (tools(json!({"name": "b"}), kept.clone()), tools(new.clone(), json!({})));
        let written = back.to_recorded_version(&live, Some(&was), &Method::TOOLS_LIST, &Value::Null);
        let Reply::Result(written) = written else { panic!("{written:?}") };
        let written = written.value().unwrap();
        assert_eq!((&written["ttlMs"], &written["cacheScope"]), (&kept["ttlMs"], &kept["cacheScope"]));
        let unknown = VersionPair { recorded: None, live: Revision::V2026_07_28 };
        let modern = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
        assert_eq!(unknown.to_common_version(&tools(new.clone(), modern), &Method::TOOLS_LIST), tools(new, json!({})));
    }
}
