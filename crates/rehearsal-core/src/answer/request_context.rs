//! One request, the version in which it is answered, and everything else that its answer may depend on.
//!
//! ```text
//! _meta names a version ──► modern: the request says everything          2026-07-28
//! anything else         ──► legacy: the connection remembers `initialize` 2024-11-05 … 2025-11-25
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::message::{ErrorReply, Method};
use crate::protocol::{Era, Revision, code, meta};
use crate::script::mock::LogLevel;

/// One request, and everything that its answer may depend on.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is asked for.
    pub method: Method,
    /// With what: an object, empty where the request had none.
    pub params: Value,
    /// In which version, by whom.
    pub terms: Terms,
    /// HTTP headers by their names in lower case, an object; empty over stdio.
    pub headers: Value,
    /// Which conversation it belongs to, among all of this process.
    pub conversation: u64,
}

impl Asked {
    /// A request without headers.
    pub fn new(method: Method, params: Value, terms: Terms) -> Asked {
        Asked { method, params, terms, headers: json!({}), conversation: 0 }
    }

    /// The refusal of a method that its version does not know.
    pub fn no_method(&self) -> ErrorReply {
        let message = format!("there is no method {} in {}", self.method, self.terms.revision);
        ErrorReply::new(code::METHOD_NOT_FOUND, message)
    }

    /// The era in which this client takes a task in place of an answer, where it does.
    pub fn task_era(&self) -> Option<Era> {
        let wants = self.params.get("task").is_some_and(Value::is_object);
        match self.terms.era() {
            Era::Modern => self.terms.has_tasks_extension().then_some(Era::Modern),
            Era::Legacy => (wants && self.terms.revision == Revision::V2025_11_25).then_some(Era::Legacy),
        }
    }

    /// `_meta` of the request.
    pub(super) fn meta(&self) -> &Value {
        self.params.get("_meta").unwrap_or(&Value::Null)
    }
}

/// What of the world a rule may look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) asked: &'a Asked,
    /// How often this was asked for, from 1.
    pub(super) call: u64,
    pub(super) state: &'a Map<String, Value>,
}

/// What a client of the handshake era may expect its server to remember.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// What `initialize` settled.
    pub handshake: Option<Handshake>,
    /// What `logging/setLevel` asked for.
    pub log_level: Option<LogLevel>,
    /// What `resources/subscribe` asked for.
    pub subscriptions: BTreeSet<String>,
}

impl Memory {
    /// What holds for a request after the handshake.
    pub fn terms(&self) -> Option<Terms> {
        let handshake = self.handshake.as_ref()?;
        Some(Terms {
            revision: handshake.revision,
            client: Arc::clone(&handshake.client),
            capabilities: Arc::clone(&handshake.capabilities),
            logs: self.log_level.map_or(Logs::Any, Logs::From),
        })
    }
}

/// What `initialize` settled.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The version that both ends speak.
    pub revision: Revision,
    /// Who the client is.
    pub client: Arc<Value>,
    /// What the client can do.
    pub capabilities: Arc<Value>,
}

/// What holds for one request.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The version that it is answered in.
    pub revision: Revision,
    /// Who the client is, as it says.
    pub client: Arc<Value>,
    /// What the client can do, as it declared it.
    pub capabilities: Arc<Value>,
    /// Which log messages the client wants.
    pub logs: Logs,
}

/// Which log messages a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    /// None: since 2026-07-28 who wants some says so.
    None,
    /// Those that the server likes to tell: it has said nothing, before 2026-07-28.
    Any,
    /// Those from this level on.
    From(LogLevel),
}

impl Logs {
    /// Whether a message of a level, or of one that nobody knows, is among them.
    pub fn include(self, level: Option<LogLevel>) -> bool {
        match self {
            Logs::None => false,
            Logs::Any => true,
            Logs::From(from) => level.is_none_or(|level| level >= from),
        }
    }
}

impl Terms {
    /// The terms of a request, or why it cannot be answered in any version.
    pub fn of(method: &Method, params: &Value, memory: &Memory, served: &[Revision]) -> Result<Terms, ErrorReply> {
        let (claims, modern_only) = (claims_version(params), is_modern_only(method));
        // To a server of the handshake era alone, the marks of the other one mean nothing.
        let serves_modern = served.iter().any(|revision| revision.era() == Era::Modern);
        match memory.terms() {
            None if modern_only && !serves_modern => {
                Err(ErrorReply::new(code::METHOD_NOT_FOUND, format!("there is no method {method} here")))
            }
            _ if claims && serves_modern => Terms::modern(params, served),
            // Nobody before 2026-07-28 knows these methods, so whoever calls them forgot `_meta`.
            None if modern_only => Terms::modern(params, served),
            None if *method == Method::INITIALIZE || *method == Method::PING => Ok(Terms {
                revision: Revision::LATEST_LEGACY,
                client: Arc::default(),
                capabilities: Arc::default(),
                logs: Logs::None,
            }),
            None => Err(ErrorReply::new(
                code::INVALID_REQUEST,
                format!(
                    "{method} came before initialize; send initialize first, or name a version in _meta[{:?}]",
                    meta::PROTOCOL_VERSION
                ),
            )),
            Some(terms) => Ok(terms),
        }
    }

    /// The era of the version.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Whether the client declared the tasks extension of 2026-07-28.
    pub fn has_tasks_extension(&self) -> bool {
        let extension = self.capabilities.get("extensions").and_then(|all| all.get(meta::TASKS_EXTENSION));
        self.era() == Era::Modern && extension.is_some_and(Value::is_object)
    }

    /// Nothing is inferred from earlier requests, even on the same pipe.
    fn modern(params: &Value, served: &[Revision]) -> Result<Terms, ErrorReply> {
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
        let is_served = |revision: &Revision| revision.era() == Era::Modern && served.contains(revision);
        let revision = version.parse().ok().filter(is_served).ok_or_else(|| {
            let data = json!({"supported": supported(served), "requested": version});
            ErrorReply::new(code::UNSUPPORTED_VERSION, format!("unsupported protocol version {version:?}"))
                .with_data(&data)
        })?;
        let logs = match meta.get(meta::LOG_LEVEL) {
            None => Logs::None,
            Some(Value::String(name)) => Logs::From(LogLevel::named(name).ok_or_else(|| invalid(unknown_level(name)))?),
            Some(_) => return Err(invalid(format!("{} must be a string", meta::LOG_LEVEL))),
        };
        let client = meta.get(meta::CLIENT_INFO).cloned().unwrap_or_else(|| Value::Object(Map::new()));
        Ok(Terms { revision, client: client.into(), capabilities: capabilities.clone().into(), logs })
    }
}

fn claims_version(params: &Value) -> bool {
    params.get("_meta").is_some_and(|meta| meta.get(meta::PROTOCOL_VERSION).is_some())
}

/// Nobody before 2026-07-28 knows these methods.
fn is_modern_only(method: &Method) -> bool {
    *method == Method::DISCOVER || *method == Method::SUBSCRIPTIONS_LISTEN
}

/// Of the versions that are served, those that a request may name in `_meta`.
pub fn supported(served: &[Revision]) -> Vec<&'static str> {
    let modern = served.iter().filter(|revision| revision.era() == Era::Modern);
    modern.map(|revision| revision.as_str()).collect()
}

/// The newest version of the handshake era that is served, no newer than what the client wants if that can be.
pub(super) fn settle(wanted: Option<Revision>, served: &[Revision]) -> Option<Revision> {
    let legacy = || served.iter().copied().filter(|revision| revision.has_handshake());
    wanted.filter(|wanted| legacy().any(|revision| revision == *wanted)).or_else(|| legacy().max())
}

/// `unknown level "loud"; there are debug, info, …`
pub fn unknown_level(level: &str) -> String {
    let names = LogLevel::ALL.map(LogLevel::name);
    format!("unknown level {level:?}; there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(params: Value) -> i64 {
        Terms::of(&Method::TOOLS_LIST, &params, &Memory::default(), &Revision::ALL).unwrap_err().code
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
        assert!(Terms::of(&Method::PING, &json!({}), &Memory::default(), &Revision::ALL).is_ok());
    }

    #[test]
    fn a_claim_counts_even_after_a_handshake() {
        let handshake = Handshake {
            revision: Revision::V2025_06_18,
            client: json!({"name": "c"}).into(),
            capabilities: json!({"roots": {}}).into(),
        };
        let memory = Memory { handshake: Some(handshake), ..Memory::default() };
        let legacy = Terms::of(&Method::TOOLS_LIST, &json!({}), &memory, &Revision::ALL).unwrap();
        assert_eq!((legacy.revision, legacy.client), (Revision::V2025_06_18, json!({"name": "c"}).into()));
        let claim = json!({"_meta": {meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {}}});
        let modern = Terms::of(&Method::TOOLS_LIST, &claim, &memory, &Revision::ALL).unwrap();
        assert_eq!((modern.revision, modern.capabilities), (Revision::V2026_07_28, json!({}).into()));
    }

    #[test]
    fn a_handshake_settles_a_version_that_is_served_and_has_one() {
        let served = [Revision::V2024_11_05, Revision::V2025_06_18, Revision::V2026_07_28];
        for (wanted, settled) in [
            (Some(Revision::V2024_11_05), Some(Revision::V2024_11_05)),
            (Some(Revision::V2025_11_25), Some(Revision::V2025_06_18)),
            (Some(Revision::V2026_07_28), Some(Revision::V2025_06_18)),
            (None, Some(Revision::V2025_06_18)),
        ] {
            assert_eq!(settle(wanted, &served), settled, "{wanted:?}");
        }
        assert_eq!(settle(None, &[Revision::V2026_07_28]), None);
    }
}
