//! How a recorded session began, so that it can begin like that again.

use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Revision, meta};
use rehearsal_core::trace::Call;
use serde_json::{Map, Value, json};

use super::plan::{input_requests, reply};
use crate::client::Protocol;

/// How a session began, as far as that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening {
    /// What the client had declared.
    declared: Option<Value>,
    /// What it must have declared, as it was asked for that.
    needed: Map<String, Value>,
    /// The version that a handshake agreed on.
    agreed: Option<Revision>,
    /// The version that the requests of a session without a handshake claim.
    claimed: Option<Revision>,
    /// Whether the server answered `server/discover`.
    discovered: bool,
}

impl Opening {
    /// Takes in what was recorded next; what is known already changes nothing.
    pub(super) fn take(&mut self, call: &Call) {
        let Some(method) = call.request.message.method() else { return };
        let params_of = call.request.message.params();
        let about = params_of.and_then(|params| params.field("_meta"));
        let said = reply(call);
        if let Some(revision) = said.as_ref().filter(|_| *method == Method::INITIALIZE).and_then(agreed) {
            if self.agreed.is_none() {
                self.agreed = Some(revision);
                let declared = params_of.and_then(|params| params.field("capabilities"));
                self.declared = declared.and_then(|declared| declared.value().ok()).or(self.declared.take());
            }
            return;
        }
        let discovered = said.as_ref().filter(|_| *method == Method::DISCOVER).and_then(discovered);
        if let Some(claimed) = claim(call).or(discovered) {
            self.claimed = self.claimed.or(Some(claimed));
            if self.declared.is_none() {
                let declared = about.and_then(|about| about.field(meta::CLIENT_CAPABILITIES));
                self.declared = declared.and_then(|declared| declared.value().ok());
            }
        }
        self.discovered |= discovered.is_some();
        for question in said.as_ref().and_then(input_requests).unwrap_or_default().values() {
            need(&mut self.needed, question);
        }
    }

    /// What a client declares that is to be treated like the recorded one.
    pub(super) fn capabilities(&self) -> Value {
        self.declared.clone().unwrap_or_else(|| self.needed.clone().into())
    }

    /// The version that was spoken, if that is known.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.agreed.or(self.claimed)
    }

    /// How a client of this session begins, if `wanted` leaves that open: with the handshake that the server answered, or, if
    /// no handshake was recorded, without one in the version of the requests.
    pub(super) fn beginning(&self, wanted: Protocol) -> (Protocol, Option<Revision>) {
        match (wanted, self.agreed) {
            (Protocol::Auto, Some(agreed)) => (Protocol::Legacy(agreed), None),
            (Protocol::Auto, None) if self.discovered => (Protocol::Modern, None),
            (Protocol::Auto, None) => (Protocol::Auto, self.claimed),
            (given, _) => (given, None),
        }
    }
}

/// The version that a request claims by itself, as those of the stateless era do.
fn claim(call: &Call) -> Option<Revision> {
    let about = call.request.message.params()?.field("_meta")?;
    about.field(meta::PROTOCOL_VERSION)?.text()?.parse().ok()
}

/// The version that the answer to a handshake agrees on.
fn agreed(reply: &Reply) -> Option<Revision> {
    let Reply::Result(result) = reply else { return None };
    let version: Revision = result.field("protocolVersion")?.text()?.parse().ok()?;
    version.has_handshake().then_some(version)
}

/// The version of 2026-07-28 or later that a server speaks, by what it says about itself.
fn discovered(reply: &Reply) -> Option<Revision> {
    let Reply::Result(result) = reply else { return None };
    let versions = result.field("supportedVersions")?.value().ok()?;
    let versions = versions.as_array()?.iter().filter_map(|version| version.as_str()?.parse::<Revision>().ok());
    versions.filter(|version| !version.has_handshake()).max()
}

/// Notes what a client can do that is asked this.
fn need(capabilities: &mut Map<String, Value>, question: &Value) {
    let (method, params) = (question["method"].as_str(), &question["params"]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::exchange::Side;
    use rehearsal_core::message::Message;
    use rehearsal_core::trace::Placed;
    use std::time::Duration;

    fn call(seq: u64, request: &str, reply: &str) -> Call {
        let placed = |seq, text: String| Placed::new(seq, Duration::ZERO, Message::parse(text));
        let request = placed(seq, format!(r#"{{"jsonrpc":"2.0","id":{seq},{request}}}"#));
        let response = placed(seq + 1, format!(r#"{{"jsonrpc":"2.0","id":{seq},{reply}}}"#));
        Call { asker: Side::Client, request, response: Some(response) }
    }

    const DISCOVER: &str =
        r#""method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    const INITIALIZE: &str =
        r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}"#;
    const REFUSED: &str = r#""error":{"code":-32601,"message":"no"}"#;

    fn began(calls: &[Call], wanted: Protocol) -> (Protocol, Option<Revision>) {
        let mut opening = Opening::default();
        calls.iter().chain(calls).for_each(|call| opening.take(call));
        opening.beginning(wanted)
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
    fn a_client_declares_what_it_was_asked_for() {
        let asks = r#""result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url"}},"b":{"method":"roots/list"}}}"#;
        let mut opening = Opening::default();
        opening.take(&call(2, r#""method":"tools/call","params":{"name":"a"}"#, asks));
        assert_eq!(opening.capabilities(), json!({"elicitation": {"url": {}}, "roots": {}}));
    }
}
