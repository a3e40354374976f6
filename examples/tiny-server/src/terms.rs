//! In which version a request is answered, decided message by message.
//!
//! ```text
//! _meta names a version ──► modern: the request says everything          2026-07-28
//! anything else         ──► legacy: the connection remembers `initialize` 2024-11-05 … 2025-11-25
//! ```

use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::{Era, Revision, code, meta};
use serde_json::{Value, json};

use crate::logging::{self, Level};
use crate::session::Memory;

/// What holds for one request.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The version that it is answered in.
    pub(crate) revision: Revision,
    /// What the client can do, as it declared it.
    pub(crate) capabilities: Value,
    /// From which level on the client wants log messages; `None` is silence.
    pub(crate) log_from: Option<Level>,
}

/// What `initialize` settled.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    /// The version that both ends speak.
    pub(crate) revision: Revision,
    /// What the client can do.
    pub(crate) capabilities: Value,
}

impl Terms {
    /// The terms of a request, or why it cannot be answered in any version.
    pub(crate) fn of(method: &Method, params: &Value, memory: &Memory) -> Result<Terms, ErrorReply> {
        let claims = params.get("_meta").is_some_and(|meta| meta.get(meta::PROTOCOL_VERSION).is_some());
        let modern_only = *method == Method::DISCOVER || *method == Method::SUBSCRIPTIONS_LISTEN;
        match &memory.handshake {
            _ if claims => Terms::modern(params),
            // Nobody before 2026-07-28 knows these methods, so whoever calls them forgot `_meta`.
            None if modern_only => Terms::modern(params),
            None if *method == Method::INITIALIZE || *method == Method::PING => {
                Ok(Terms { revision: Revision::LATEST_LEGACY, capabilities: json!({}), log_from: None })
            }
            None => Err(ErrorReply::new(
                code::INVALID_REQUEST,
                format!(
                    "{method} came before initialize; send initialize first, or name a version in _meta[{:?}]",
                    meta::PROTOCOL_VERSION
                ),
            )),
            Some(handshake) => Ok(Terms {
                revision: handshake.revision,
                capabilities: handshake.capabilities.clone(),
                log_from: Some(memory.log_level.unwrap_or(Level::LOWEST)),
            }),
        }
    }

    /// The era of the version.
    pub(crate) fn era(&self) -> Era {
        self.revision.era()
    }

    /// Nothing is inferred from earlier requests, even on the same pipe.
    fn modern(params: &Value) -> Result<Terms, ErrorReply> {
        let invalid = |message: String| ErrorReply::new(code::INVALID_PARAMS, message);
        let meta = &params["_meta"];
        let required = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES];
        let missing: Vec<_> = required.into_iter().filter(|key| meta.get(key).is_none()).collect();
        if !missing.is_empty() {
            return Err(invalid(format!("_meta lacks {}", missing.join(" and "))));
        }
        let Some(version) = meta[meta::PROTOCOL_VERSION].as_str() else {
            return Err(invalid(format!("{} must be a string", meta::PROTOCOL_VERSION)));
        };
        let capabilities = &meta[meta::CLIENT_CAPABILITIES];
        if !capabilities.is_object() {
            return Err(invalid(format!("{} must be an object", meta::CLIENT_CAPABILITIES)));
        }
        let revision = version.parse().ok().filter(|revision: &Revision| revision.era() == Era::Modern);
        let revision = revision.ok_or_else(|| {
            let data = json!({"supported": supported(), "requested": version});
            ErrorReply::new(code::UNSUPPORTED_VERSION, format!("unsupported protocol version {version:?}"))
                .with_data(&data)
        })?;
        let log_from = match meta.get(meta::LOG_LEVEL) {
            None => None,
            Some(Value::String(name)) => Some(Level::named(name).ok_or_else(|| invalid(logging::unknown(name)))?),
            Some(_) => return Err(invalid(format!("{} must be a string", meta::LOG_LEVEL))),
        };
        Ok(Terms { revision, capabilities: capabilities.clone(), log_from })
    }
}

/// The versions that a request may name in `_meta`.
pub(crate) fn supported() -> Vec<&'static str> {
    let modern = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Modern);
    modern.map(Revision::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(params: Value) -> i64 {
        Terms::of(&Method::TOOLS_LIST, &params, &Memory::default()).unwrap_err().code
    }

    #[test]
    fn a_claim_is_checked_key_by_key() {
        let version = meta::PROTOCOL_VERSION;
        let capabilities = meta::CLIENT_CAPABILITIES;
        assert_eq!(code(json!({"_meta": {version: "2026-07-28"}})), code::INVALID_PARAMS);
        assert_eq!(code(json!({"_meta": {version: 2026, capabilities: {}}})), code::INVALID_PARAMS);
        assert_eq!(code(json!({"_meta": {version: "2026-07-28", capabilities: []}})), code::INVALID_PARAMS);
        assert_eq!(code(json!({"_meta": {version: "2025-11-25", capabilities: {}}})), code::UNSUPPORTED_VERSION);
        let loud = json!({"_meta": {version: "2026-07-28", capabilities: {}, meta::LOG_LEVEL: "loud"}});
        assert_eq!(code(loud), code::INVALID_PARAMS);
    }

    #[test]
    fn without_a_claim_the_handshake_comes_first() {
        assert_eq!(code(json!({})), code::INVALID_REQUEST);
        assert!(Terms::of(&Method::PING, &json!({}), &Memory::default()).is_ok());
    }

    #[test]
    fn a_claim_counts_even_after_a_handshake() {
        let handshake = Handshake { revision: Revision::V2025_06_18, capabilities: json!({"roots": {}}) };
        let memory = Memory { handshake: Some(handshake), ..Memory::default() };
        let legacy = Terms::of(&Method::TOOLS_LIST, &json!({}), &memory).unwrap();
        assert_eq!(legacy.revision, Revision::V2025_06_18);
        let claim = json!({"_meta": {meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {}}});
        let modern = Terms::of(&Method::TOOLS_LIST, &claim, &memory).unwrap();
        assert_eq!((modern.revision, modern.capabilities), (Revision::V2026_07_28, json!({})));
    }
}
