//! Signed request state for input rounds; and rounds of clients that got no state.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

/// How many rounds without state a connection keeps; beyond it the oldest are dropped.
const MAX_ROUNDS: usize = 10_000;

/// Input rounds whose clients got no state, each with the request that it belongs to; the oldest first.
#[derive(Debug, Default)]
pub(in crate::answer) struct StatelessRounds(VecDeque<(String, Value)>);

impl StatelessRounds {
    /// Stores a round until its client repeats the request.
    pub(super) fn keep(&mut self, key: String, round: Value) {
        if self.0.len() == MAX_ROUNDS {
            self.0.pop_front();
        }
        self.0.push_back((key, round));
    }

    /// Removes the oldest round of a request.
    pub(in crate::answer) fn take(&mut self, key: &str) -> Option<Value> {
        let index = self.0.iter().position(|(other, _)| other == key)?;
        self.0.remove(index).map(|(_, round)| round)
    }
}

/// How long a client may take to continue an input round.
const STATE_LIFETIME_MS: u64 = 30 * 60 * 1000;

/// Signs request state with a key of its own: HMAC-SHA256 over the state, the request that it belongs to and its expiry.
#[derive(Clone)]
pub struct StateSigner {
    key: [u8; 32],
}

impl std::fmt::Debug for StateSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateSigner")
    }
}

/// Why a request state is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::answer) enum InvalidState {
    #[error("requestState was changed, or belongs to another request")]
    Forged,
    #[error("requestState has expired")]
    Expired,
}

impl StateSigner {
    /// A signer with this key, which must be random and belong to one process.
    pub fn new(key: [u8; 32]) -> StateSigner {
        StateSigner { key }
    }

    /// The signed state that is sent to the client.
    pub(in crate::answer) fn sign(&self, state: &Value, belongs_to: &str, now_ms: u64) -> String {
        let body = format!("{}.{state}", now_ms.saturating_add(STATE_LIFETIME_MS));
        let mark = self.mac(body.as_bytes(), belongs_to).finalize().into_bytes();
        format!("{}.{}", BASE64.encode(&body), BASE64.encode(mark))
    }

    /// The state that a client sent, if its signature is valid.
    pub(in crate::answer) fn verify(&self, given: &str, belongs_to: &str, now_ms: u64) -> Result<Value, InvalidState> {
        let (body, mark) = given.split_once('.').ok_or(InvalidState::Forged)?;
        let (body, mark) = (BASE64.decode(body), BASE64.decode(mark));
        let (Ok(body), Ok(mark)) = (body, mark) else { return Err(InvalidState::Forged) };
        self.mac(&body, belongs_to).verify_slice(&mark).map_err(|_| InvalidState::Forged)?;
        let body = String::from_utf8(body).map_err(|_| InvalidState::Forged)?;
        let (end, state) = body.split_once('.').ok_or(InvalidState::Forged)?;
        if end.parse::<u64>().map_err(|_| InvalidState::Forged)? < now_ms {
            return Err(InvalidState::Expired);
        }
        serde_json::from_str(state).map_err(|_| InvalidState::Forged)
    }

    fn mac(&self, body: &[u8], belongs_to: &str) -> Hmac<Sha256> {
        let mut mark = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        mark.update(&(body.len() as u64).to_be_bytes());
        mark.update(body);
        mark.update(belongs_to.as_bytes());
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_changed_expired_or_foreign_request_state_is_refused() {
        let signer = StateSigner::new([7; 32]);
        let state = json!({"step": 2, "answers": {"name": "Ada"}});
        let given = signer.sign(&state, "tools/call a", 1000);
        assert_eq!(signer.verify(&given, "tools/call a", 2000), Ok(state));
        assert_eq!(signer.verify(&given, "tools/call b", 2000), Err(InvalidState::Forged));
        assert_eq!(signer.verify(&given, "tools/call a", 1001 + STATE_LIFETIME_MS), Err(InvalidState::Expired));
        assert_eq!(StateSigner::new([8; 32]).verify(&given, "tools/call a", 2000), Err(InvalidState::Forged));
        for at in 0..given.len() {
            let mut forged = given.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert!(signer.verify(&forged, "tools/call a", 2000).is_err(), "{forged}");
        }
        assert!(signer.verify("", "tools/call a", 0).is_err());
    }
}
