//! How a recorded session began, so that it can begin like that again.

use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Revision, meta};
use rehearsal_core::trace::Call;
use serde_json::{Map, Value, json};

use super::plan::{input_requests, params, reply};
use crate::client::{Opening as Repeated, Protocol};

/// How many requests that agreed on nothing are repeated.
const REPEATED: usize = 1000;

/// Where a request stands in a session: its sequence number, and which of a batch it is.
pub(super) type Spot = (u64, Option<u32>);

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
    /// What was asked about the version without a handshake coming of it: `server/discover`, and what was refused.
    first: Vec<(Spot, Method, Value)>,
    /// Which of them a server of 2026-07-28 answered with who it is.
    discovered: Vec<Spot>,
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
        let spot = spot(call);
        let asks = *method == Method::INITIALIZE || *method == Method::DISCOVER;
        if asks && said.is_some() && self.first.len() < REPEATED && !self.first.iter().any(|(known, ..)| *known == spot)
        {
            self.first.push((spot, method.clone(), params(&call.request.message)));
        }
        let discovered = said.as_ref().filter(|_| *method == Method::DISCOVER).and_then(discovered);
        if let Some(claimed) = claim(call).or(discovered) {
            self.claimed = self.claimed.or(Some(claimed));
            if self.declared.is_none() {
                let declared = about.and_then(|about| about.field(meta::CLIENT_CAPABILITIES));
                self.declared = declared.and_then(|declared| declared.value().ok());
            }
        }
        if discovered.is_some() {
            self.discovered.push(spot);
        }
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

    /// How a client that is to speak this begins. Whoever asks for a version gets that one, and nothing else is said before.
    pub(super) fn repeated(&self, wanted: Protocol) -> (Protocol, Repeated) {
        let first = || self.first.iter().map(|it| (it.1.clone(), self.sent(it))).collect();
        match (wanted, self.agreed) {
            (Protocol::Auto, Some(agreed)) => (Protocol::Legacy(agreed), Repeated { first: first(), assumed: None }),
            (Protocol::Auto, None) if self.claimed.is_some() || !self.first.is_empty() => {
                let assumed = self.claimed.or(Some(Revision::LATEST_LEGACY));
                (Protocol::Auto, Repeated { first: first(), assumed })
            }
            (given, _) => (given, Repeated::default()),
        }
    }

    /// The params of a request as they must have been. Who writes down the calls of a library does not see what that adds, and
    /// no server says who it is without.
    fn sent(&self, (spot, _, params): &(Spot, Method, Value)) -> Value {
        let mut params = params.clone();
        if !self.discovered.contains(spot) {
            return params;
        }
        if params.is_null() {
            params = json!({});
        }
        let version = self.claimed.unwrap_or(Revision::LATEST_MODERN).to_string();
        let about = params.as_object_mut().map(|params| params.entry("_meta").or_insert_with(|| json!({})));
        if let Some(about) = about.and_then(Value::as_object_mut) {
            about.entry(meta::PROTOCOL_VERSION).or_insert_with(|| version.into());
            about.entry(meta::CLIENT_CAPABILITIES).or_insert_with(|| self.capabilities());
        }
        params
    }

    /// Where what is sent first stands, in its order.
    pub(super) fn spots(&self) -> impl Iterator<Item = Spot> {
        self.first.iter().map(|(spot, ..)| *spot)
    }
}

/// Where a request stands.
pub(super) fn spot(call: &Call) -> Spot {
    (call.request.seq, call.request.item)
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

    fn began(calls: &[Call], wanted: Protocol) -> (Protocol, usize, Option<Revision>) {
        let mut opening = Opening::default();
        calls.iter().chain(calls).for_each(|call| opening.take(call));
        let (protocol, Repeated { first, assumed }) = opening.repeated(wanted);
        (protocol, first.len(), assumed)
    }

    #[test]
    fn a_session_begins_again_as_it_did() {
        let refused = call(0, DISCOVER, REFUSED);
        let agreed = call(2, INITIALIZE, r#""result":{"protocolVersion":"2025-06-18"}"#);
        let (old, modern) = (Protocol::Legacy(Revision::V2025_06_18), Some(Revision::V2026_07_28));
        assert_eq!(began(&[refused.clone(), agreed.clone()], Protocol::Auto), (old, 1, None));
        assert_eq!(began(&[call(0, DISCOVER, r#""result":{}"#), agreed.clone()], Protocol::Auto), (old, 1, None));
        assert_eq!(began(std::slice::from_ref(&refused), Protocol::Auto), (Protocol::Auto, 1, modern));
        let latest = Some(Revision::LATEST_LEGACY);
        assert_eq!(began(&[call(0, INITIALIZE, REFUSED)], Protocol::Auto), (Protocol::Auto, 1, latest));
        assert_eq!(began(&[], Protocol::Auto), (Protocol::Auto, 0, None));
        assert_eq!(began(&[refused, agreed], Protocol::Modern), (Protocol::Modern, 0, None));
    }

    #[test]
    fn what_a_library_adds_to_its_calls_is_added_again() {
        let asks = r#""result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url"}},"b":{"method":"roots/list"}}}"#;
        let calls = [
            call(0, r#""method":"server/discover""#, r#""result":{"supportedVersions":["2025-11-25","2026-07-28"]}"#),
            call(2, r#""method":"tools/call","params":{"name":"a"}"#, asks),
        ];
        let mut opening = Opening::default();
        calls.iter().chain(&calls).for_each(|call| opening.take(call));
        let (_, Repeated { first, assumed }) = opening.repeated(Protocol::Auto);
        assert_eq!(assumed, Some(Revision::V2026_07_28));
        let about = &first[0].1["_meta"];
        assert_eq!(about[meta::PROTOCOL_VERSION], "2026-07-28");
        assert_eq!(about[meta::CLIENT_CAPABILITIES], json!({"elicitation": {"url": {}}, "roots": {}}));
        // Who was refused may have been refused for what it lacked.
        let mut refused = Opening::default();
        refused.take(&call(0, r#""method":"server/discover""#, REFUSED));
        assert_eq!(refused.repeated(Protocol::Auto).1.first[0].1, Value::Null);
    }
}
