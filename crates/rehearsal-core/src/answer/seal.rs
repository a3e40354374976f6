//! State that a client carries and cannot change.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

/// How long a client may take to come back.
const LIFE_MS: u64 = 30 * 60 * 1000;

/// Signs state with a key of its own: HMAC-SHA256 over the state, the request that it belongs to and its end of life.
#[derive(Clone)]
pub struct Seal {
    key: [u8; 32],
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

/// Why state that came back is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("requestState is not what was given, or belongs to another request")]
    Forged,
    #[error("requestState has expired")]
    Expired,
}

impl Seal {
    /// A seal with this key, which must be random and belongs to one process.
    pub fn new(key: [u8; 32]) -> Seal {
        Seal { key }
    }

    /// State as it is given to the client.
    pub(super) fn close(&self, state: &Value, belongs_to: &str, now_ms: u64) -> String {
        let body = format!("{}.{state}", now_ms.saturating_add(LIFE_MS));
        let mark = self.mark(body.as_bytes(), belongs_to).finalize().into_bytes();
        format!("{}.{}", BASE64.encode(&body), BASE64.encode(mark))
    }

    /// State that came back.
    pub(super) fn open(&self, given: &str, belongs_to: &str, now_ms: u64) -> Result<Value, Broken> {
        let (body, mark) = given.split_once('.').ok_or(Broken::Forged)?;
        let (body, mark) = (BASE64.decode(body), BASE64.decode(mark));
        let (Ok(body), Ok(mark)) = (body, mark) else { return Err(Broken::Forged) };
        self.mark(&body, belongs_to).verify_slice(&mark).map_err(|_| Broken::Forged)?;
        let body = String::from_utf8(body).map_err(|_| Broken::Forged)?;
        let (end, state) = body.split_once('.').ok_or(Broken::Forged)?;
        if end.parse::<u64>().map_err(|_| Broken::Forged)? < now_ms {
            return Err(Broken::Expired);
        }
        serde_json::from_str(state).map_err(|_| Broken::Forged)
    }

    fn mark(&self, body: &[u8], belongs_to: &str) -> Hmac<Sha256> {
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
    fn state_comes_back_only_unchanged_in_time_and_for_the_same_request() {
        let seal = Seal::new([7; 32]);
        let state = json!({"step": 2, "answers": {"name": "Ada"}});
        let given = seal.close(&state, "tools/call a", 1000);
        assert_eq!(seal.open(&given, "tools/call a", 2000), Ok(state));
        assert_eq!(seal.open(&given, "tools/call b", 2000), Err(Broken::Forged));
        assert_eq!(seal.open(&given, "tools/call a", 1001 + LIFE_MS), Err(Broken::Expired));
        assert_eq!(Seal::new([8; 32]).open(&given, "tools/call a", 2000), Err(Broken::Forged));
        for at in 0..given.len() {
            let mut forged = given.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert!(seal.open(&forged, "tools/call a", 2000).is_err(), "{forged}");
        }
        assert!(seal.open("", "tools/call a", 0).is_err());
    }
}
