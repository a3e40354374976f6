//! How a recorded session began, so that it can begin like that again.

use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Revision, meta};
use rehearsal_core::trace::Call;
use serde_json::Value;

use super::plan::{params, reply};
use crate::client::{Opening as Repeated, Protocol};

/// How many requests that agreed on nothing are repeated.
const REPEATED: usize = 1000;

/// Where a request stands in a session: its sequence number, and which of a batch it is.
pub(super) type Spot = (u64, Option<u32>);

/// How a session began, as far as that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening {
    /// What the client had declared.
    pub(super) capabilities: Option<Value>,
    /// The version that a handshake agreed on.
    agreed: Option<Revision>,
    /// The version that the requests of a session without a handshake claim.
    claimed: Option<Revision>,
    /// What was asked about the version without a handshake coming of it: `server/discover`, and what was refused.
    first: Vec<(Spot, Method, Value)>,
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
                self.capabilities = declared.and_then(|declared| declared.exact().ok()).or(self.capabilities.take());
            }
            return;
        }
        let spot = spot(call);
        let asks = *method == Method::INITIALIZE || *method == Method::DISCOVER;
        if asks && said.is_some() && self.first.len() < REPEATED && !self.first.iter().any(|(known, ..)| *known == spot)
        {
            self.first.push((spot, method.clone(), params(&call.request.message)));
        }
        if let Some(claimed) = claim(call) {
            self.claimed = self.claimed.or(Some(claimed));
            if self.capabilities.is_none() {
                let declared = about.and_then(|about| about.field(meta::CLIENT_CAPABILITIES));
                self.capabilities = declared.and_then(|declared| declared.exact().ok());
            }
        }
    }

    /// The version that was spoken, if that is known.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.agreed.or(self.claimed)
    }

    /// How a client that is to speak this begins. Whoever asks for a version gets that one, and nothing else is said before.
    pub(super) fn repeated(&self, wanted: Protocol) -> (Protocol, Repeated) {
        let first = || self.first.iter().map(|(_, method, params)| (method.clone(), params.clone())).collect();
        match (wanted, self.agreed) {
            (Protocol::Auto, Some(agreed)) => (Protocol::Legacy(agreed), Repeated { first: first(), assumed: None }),
            (Protocol::Auto, None) if self.claimed.is_some() || !self.first.is_empty() => {
                let assumed = self.claimed.or(Some(Revision::LATEST_LEGACY));
                (Protocol::Auto, Repeated { first: first(), assumed })
            }
            (given, _) => (given, Repeated::default()),
        }
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
}
