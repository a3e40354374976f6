//! The handshake of a recorded session, so that it can be repeated, and the comparison with what the live server
//! declares.

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Era, Revision, meta};
use rehearsal_core::report::Finding;
use rehearsal_core::trace::RecordedCall;
use serde_json::{Map, Value, json};

use super::compare::{CheckResult, place};
use super::plan::{input_requests, reply};
use super::verification::Verification;
use crate::client::{Client, Protocol};

/// The recorded start of a session, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedStart {
    /// The capabilities that the client declared.
    declared: Option<Value>,
    /// The capabilities that the client must have had, because the server sent requests that need them.
    needed: Map<String, Value>,
    /// The version that a handshake agreed on.
    agreed: Option<Revision>,
    /// The version that the requests of a session without a handshake claim.
    claimed: Option<Revision>,
    /// Whether the server answered `server/discover`.
    discovered: bool,
}

impl RecordedStart {
    /// Adds the next call. It does not change what is known already.
    pub(super) fn add(&mut self, call: &RecordedCall) {
        let Some(method) = call.request.message.method() else { return };
        let params_of = call.request.message.params();
        let about = params_of.and_then(|params| params.field("_meta"));
        let reply = reply(call);
        if let Some(revision) = reply.as_ref().filter(|_| *method == Method::INITIALIZE).and_then(agreed) {
            if self.agreed.is_none() {
                self.agreed = Some(revision);
                let declared = params_of.and_then(|params| params.field("capabilities"));
                self.declared = declared.and_then(|declared| declared.value().ok()).or(self.declared.take());
            }
            return;
        }
        let discovered = reply.as_ref().filter(|_| *method == Method::DISCOVER).and_then(discovered);
        if let Some(claimed) = claim(call).or(discovered) {
            self.claimed = self.claimed.or(Some(claimed));
            if self.declared.is_none() {
                let declared = about.and_then(|about| about.field(meta::CLIENT_CAPABILITIES));
                self.declared = declared.and_then(|declared| declared.value().ok());
            }
        }
        self.discovered |= discovered.is_some();
        for request in reply.as_ref().and_then(input_requests).unwrap_or_default().values() {
            need(&mut self.needed, request);
        }
    }

    /// The capabilities that the verifying client declares, so that the server treats it like the recorded one.
    pub(super) fn capabilities(&self) -> Value {
        self.declared.clone().unwrap_or_else(|| self.needed.clone().into())
    }

    /// The version of the session, if it is known.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.agreed.or(self.claimed)
    }

    /// The handshake of a client of this session, if `wanted` does not decide it: the recorded one, or, without a
    /// recorded handshake, none and the version of the requests.
    pub(super) fn beginning(&self, wanted: Protocol) -> (Protocol, Option<Revision>) {
        match (wanted, self.agreed) {
            (Protocol::Auto, Some(agreed)) => (Protocol::Legacy(agreed), None),
            (Protocol::Auto, None) if self.discovered => (Protocol::Modern, None),
            (Protocol::Auto, None) => (Protocol::Auto, self.claimed),
            (given, _) => (given, None),
        }
    }
}

/// The version in the `_meta` of a request, which requests of the stateless era have.
fn claim(call: &RecordedCall) -> Option<Revision> {
    let about = call.request.message.params()?.field("_meta")?;
    about.field(meta::PROTOCOL_VERSION)?.text()?.parse().ok()
}

/// The version that the answer to a handshake agrees on.
fn agreed(reply: &Reply) -> Option<Revision> {
    let Reply::Result(result) = reply else { return None };
    let version: Revision = result.field("protocolVersion")?.text()?.parse().ok()?;
    version.has_handshake().then_some(version)
}

/// The newest version from 2026-07-28 on in the `supportedVersions` of a server.
fn discovered(reply: &Reply) -> Option<Revision> {
    let Reply::Result(result) = reply else { return None };
    let versions = result.field("supportedVersions")?.value().ok()?;
    let versions = versions.as_array()?.iter().filter_map(|version| version.as_str()?.parse::<Revision>().ok());
    versions.filter(|version| !version.has_handshake()).max()
}

/// Adds the capability that a client needs for this server request.
fn need(capabilities: &mut Map<String, Value>, request: &Value) {
    let (method, params) = (request["method"].as_str(), &request["params"]);
    let (name, part) = match method.unwrap_or_default() {
        "elicitation/create" => ("elicitation", Some(params["mode"].as_str().unwrap_or("form"))),
        "sampling/createMessage" => ("sampling", params.get("tools").map(|_| "tools")),
        "roots/list" => ("roots", None),
        _ => return,
    };
    let known = capabilities.entry(name).or_insert_with(|| json!({}));
    if let Some(part) = part {
        known[part] = json!({});
    }
}

impl Verification {
    /// The live answer to a recorded `server/discover` or `initialize`; `None` if the session began with the other one.
    pub(super) fn introduction<'a>(&self, call: &RecordedCall, client: &'a Client) -> Option<&'a Reply> {
        let is_same = is_modern(call) == is_modern_client(client) || self.protocol != Protocol::Auto;
        client.handshake_reply().filter(|_| is_same)
    }

    /// Compares what the server declares in its handshake. Its own version may change, and so may that of the protocol
    /// if another one was requested.
    pub(super) fn compare_handshake(&self, call: &RecordedCall, live: &Reply, client: &Client) -> CheckResult {
        let (Some(Reply::Result(before)), Reply::Result(after)) = (reply(call), live) else {
            return self.check_reply(call, call, live, client);
        };
        let (before, after) = (before.value().unwrap_or_default(), after.value().unwrap_or_default());
        let (Value::Object(before), Value::Object(after)) = (before, after) else {
            return self.check_reply(call, call, live, client);
        };
        let versions = self.version_pair(client.revision());
        let after = if versions.is_same() { after } else { self.with_live_version(call, &before, client) };
        let view = |result: &Map<String, Value>| Reply::Result(RawJson::from_value(&self.view(call, result, client)));
        let updated = Reply::Result(RawJson::from_value(&Value::Object(after.clone())));
        let mut findings = self.compared(call, call, &view(&before), &view(&after));
        let version = |result: &Map<String, Value>| server_info(result).get("version").map(Value::to_string);
        let (was, is) = (version(&before), version(&after));
        if was != is {
            let (was, is) = (was.as_deref().unwrap_or("absent"), is.as_deref().unwrap_or("absent"));
            let note = Finding::note(self.secrets.text(&format!("the server's version was {was} and is {is}")));
            findings.push(note.at(place(call)));
        }
        let recorded = reply(call);
        let updated = self.secrets.redact_live(recorded.as_ref(), updated);
        CheckResult::from_findings(findings, || {
            vec![(call.clone(), self.ignored_paths.keep_recorded(recorded.as_ref(), updated))]
        })
    }

    /// The part of a handshake that is compared. `_meta` is not, so the server info becomes a separate member.
    fn view(&self, call: &RecordedCall, result: &Map<String, Value>, client: &Client) -> Value {
        let versions = self.version_pair(client.revision());
        let mut view = result.clone();
        let mut info = versions.known("Implementation", server_info(result).clone());
        if let Some(info) = info.as_object_mut() {
            info.shift_remove("version");
        }
        if !info.is_null() {
            view.insert("serverInfo".to_owned(), info);
        }
        if !versions.is_same() {
            view.retain(|key, _| ["serverInfo", "instructions", "capabilities"].contains(&key.as_str()));
            let can = view.shift_remove("capabilities").filter(|_| is_modern(call) == is_modern_client(client));
            view.extend(can.map(|can| ("capabilities".to_owned(), versions.known("ServerCapabilities", can))));
        }
        view.into()
    }

    /// The recorded handshake with what the server declares now, in the requested version.
    fn with_live_version(
        &self,
        call: &RecordedCall,
        before: &Map<String, Value>,
        client: &Client,
    ) -> Map<String, Value> {
        let mut result = before.clone();
        // The capabilities of the two eras differ.
        if is_modern(call) == is_modern_client(client) {
            result.insert("capabilities".to_owned(), client.server_capabilities().clone());
        }
        match client.instructions() {
            Some(instructions) => drop(result.insert("instructions".to_owned(), instructions.into())),
            None => drop(result.shift_remove("instructions")),
        }
        let info = client.server_info().clone();
        // Only before 2026-07-28 is the server info required.
        if is_modern(call) != is_modern_client(client) && (info.is_null() || server_info(before).is_null()) {
            return result;
        }
        if !is_modern(call) {
            result.insert("serverInfo".to_owned(), info);
        } else if let Value::Object(about) = result.entry("_meta").or_insert_with(|| json!({})) {
            about.insert(meta::SERVER_INFO.to_owned(), info);
        }
        result
    }
}

fn is_modern(call: &RecordedCall) -> bool {
    call.request.message.method() == Some(&Method::DISCOVER)
}

fn is_modern_client(client: &Client) -> bool {
    client.revision().era() == Era::Modern
}

/// The server info: in `_meta` since 2026-07-28, and in the body before.
fn server_info(result: &Map<String, Value>) -> &Value {
    let about = result.get("_meta").and_then(|about| about.get(meta::SERVER_INFO));
    about.or_else(|| result.get("serverInfo")).unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::exchange::Side;
    use rehearsal_core::message::Message;
    use rehearsal_core::trace::PlacedMessage;
    use std::time::Duration;

    fn call(seq: u64, request: &str, reply: &str) -> RecordedCall {
        let placed = |seq, text: String| PlacedMessage::new(seq, Duration::ZERO, Message::parse(text));
        let request = placed(seq, format!(r#"{{"jsonrpc":"2.0","id":{seq},{request}}}"#));
        let response = placed(seq + 1, format!(r#"{{"jsonrpc":"2.0","id":{seq},{reply}}}"#));
        RecordedCall { asker: Side::Client, request, response: Some(response) }
    }

    const DISCOVER: &str =
        r#""method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    const INITIALIZE: &str =
        r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}"#;
    const REFUSED: &str = r#""error":{"code":-32601,"message":"no"}"#;

    fn began(calls: &[RecordedCall], wanted: Protocol) -> (Protocol, Option<Revision>) {
        let mut start = RecordedStart::default();
        calls.iter().chain(calls).for_each(|call| start.add(call));
        start.beginning(wanted)
    }

    #[test]
    fn a_session_begins_with_the_handshake_that_the_server_answered() {
        let refused = call(0, DISCOVER, REFUSED);
        let discovered = call(0, DISCOVER, r#""result":{"supportedVersions":["2025-11-25","2026-07-28"]}"#);
        let agreed = call(2, INITIALIZE, r#""result":{"protocolVersion":"2025-06-18"}"#);
        let old = Protocol::Legacy(Revision::V2025_06_18);
        assert_eq!(began(&[refused.clone(), agreed.clone()], Protocol::Auto), (old, None));
        assert_eq!(began(&[discovered], Protocol::Auto), (Protocol::Modern, None));
        assert_eq!(began(&[call(0, INITIALIZE, REFUSED)], Protocol::Auto), (Protocol::Auto, None));
        assert_eq!(began(&[], Protocol::Auto), (Protocol::Auto, None));
        assert_eq!(began(&[refused.clone(), agreed], Protocol::Modern), (Protocol::Modern, None));
        // Its requests are in a version without a handshake.
        assert_eq!(began(&[refused], Protocol::Auto), (Protocol::Auto, Some(Revision::V2026_07_28)));
    }

    #[test]
    fn a_client_declares_the_capabilities_that_recorded_input_requests_need() {
        let asks = r#""result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url"}},"b":{"method":"roots/list"}}}"#;
        let mut start = RecordedStart::default();
        start.add(&call(2, r#""method":"tools/call","params":{"name":"a"}"#, asks));
        assert_eq!(start.capabilities(), json!({"elicitation": {"url": {}}, "roots": {}}));
    }
}
