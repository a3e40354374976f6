//! The declarations of a 2026-07-28 request in `_meta`.

use serde_json::{Value, json};

use super::{Era, LogLevel, Revision, code, meta};
use crate::message::ErrorReply;

/// The version, the client and its capabilities that a request declares in `_meta`. Nothing is inferred from earlier
/// requests, even on the same connection.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The declared version.
    pub version: &'a str,
    /// The client's capabilities: an object.
    pub capabilities: &'a Value,
    /// The client's name and version.
    pub client: Option<&'a Value>,
    /// The level from which on the client requests log messages.
    pub log_level: Option<LogLevel>,
}

impl<'a> Claim<'a> {
    /// Whether a request declares a version.
    pub fn is_made(meta: Option<&Value>) -> bool {
        meta.is_some_and(|meta| meta.get(meta::PROTOCOL_VERSION).is_some())
    }

    /// Parses `_meta`. The error names the required keys that are missing or of the wrong type.
    pub fn read(meta: &'a Value) -> Result<Claim<'a>, ErrorReply> {
        let version = meta.get(meta::PROTOCOL_VERSION).and_then(Value::as_str);
        let capabilities = meta.get(meta::CLIENT_CAPABILITIES).filter(|capabilities| capabilities.is_object());
        let (Some(version), Some(capabilities)) = (version, capabilities) else {
            let missing = [
                version.is_none().then_some(meta::PROTOCOL_VERSION),
                capabilities.is_none().then_some(meta::CLIENT_CAPABILITIES),
            ];
            let missing: Vec<&str> = missing.into_iter().flatten().collect();
            let message = format!("Invalid params: _meta lacks {}", missing.join(" and "));
            return Err(ErrorReply::new(code::INVALID_PARAMS, message).with_data(&json!({"missing": missing})));
        };
        let invalid = |message: String| ErrorReply::new(code::INVALID_PARAMS, message);
        let log_level = match meta.get(meta::LOG_LEVEL) {
            None => None,
            Some(Value::String(name)) => Some(LogLevel::named(name).ok_or_else(|| invalid(LogLevel::unknown(name)))?),
            Some(_) => return Err(invalid(format!("{} must be a string", meta::LOG_LEVEL))),
        };
        Ok(Claim { version, capabilities, client: meta.get(meta::CLIENT_INFO), log_level })
    }

    /// The declared version, if it is served.
    pub fn revision(&self, served: &[Revision]) -> Result<Revision, ErrorReply> {
        let is_served = |revision: &Revision| revision.era() == Era::Modern && served.contains(revision);
        self.version.parse().ok().filter(is_served).ok_or_else(|| Claim::unsupported(self.version, served))
    }

    /// The error for a version that is not served.
    pub fn unsupported(requested: &str, served: &[Revision]) -> ErrorReply {
        let supported = Claim::supported(served);
        let message = format!("Unsupported protocol version: {requested:?} (supported: {})", supported.join(", "));
        let data = json!({"supported": supported, "requested": requested});
        ErrorReply::new(code::UNSUPPORTED_VERSION, message).with_data(&data)
    }

    /// The served versions that a request may declare.
    pub fn supported(served: &[Revision]) -> Vec<&'static str> {
        let modern = served.iter().filter(|revision| revision.era() == Era::Modern);
        modern.map(|revision| revision.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(meta: Value) -> i64 {
        Claim::read(&meta).and_then(|claim| claim.revision(&Revision::ALL)).unwrap_err().code
    }

    #[test]
    fn a_claim_is_checked_key_by_key() {
        let (version, capabilities) = (meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES);
        assert_eq!(code(json!({version: "2026-07-28"})), code::INVALID_PARAMS);
        assert_eq!(code(json!({version: 2026, capabilities: {}})), code::INVALID_PARAMS);
        assert_eq!(code(json!({version: "2026-07-28", capabilities: []})), code::INVALID_PARAMS);
        assert_eq!(code(json!({version: "2025-11-25", capabilities: {}})), code::UNSUPPORTED_VERSION);
        let loud = json!({version: "2026-07-28", capabilities: {}, meta::LOG_LEVEL: "loud"});
        assert_eq!(code(loud), code::INVALID_PARAMS);
        let valid = json!({version: "2026-07-28", capabilities: {}, meta::LOG_LEVEL: "info"});
        assert_eq!(Claim::read(&valid).unwrap().log_level, Some(LogLevel::Info));
    }
}
