//! One request, and the version, client and settings that hold for it.
//!
//! ```text
//! _meta names a version ──► modern: the request has everything           2026-07-28
//! anything else         ──► legacy: the connection has its `initialize`   2024-11-05 … 2025-11-25
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::message::{ErrorReply, Method};
use crate::protocol::{Claim, Era, LogLevel, Revision, code, meta};

/// One request, and everything that its answer may depend on.
#[derive(Clone, Debug)]
pub struct IncomingRequest {
    /// The method.
    pub method: Method,
    /// The params: an object, empty if the request has none.
    pub params: Value,
    /// The version and the client.
    pub context: RequestContext,
    /// HTTP headers by their names in lower case, an object; empty over stdio.
    pub headers: Value,
}

impl IncomingRequest {
    /// A request without headers.
    pub fn new(method: Method, params: Value, context: RequestContext) -> IncomingRequest {
        IncomingRequest { method, params, context, headers: json!({}) }
    }

    /// The error for a method that the version does not have.
    pub fn method_not_found(&self) -> ErrorReply {
        let message = format!("there is no method {} in {}", self.method, self.context.revision);
        ErrorReply::new(code::METHOD_NOT_FOUND, message)
    }

    /// The name or URI that the request is about.
    pub fn subject(&self) -> Option<&str> {
        self.params.get("name").or_else(|| self.params.get("uri")).and_then(Value::as_str)
    }

    /// The era in which this client accepts a task in place of a result, if it does.
    pub fn task_era(&self) -> Option<Era> {
        let has_task = self.params.get("task").is_some_and(Value::is_object);
        match self.context.era() {
            Era::Modern => self.context.has_tasks_extension().then_some(Era::Modern),
            Era::Legacy => (has_task && self.context.revision == Revision::V2025_11_25).then_some(Era::Legacy),
        }
    }

    /// `_meta` of the request; null if there is none.
    pub fn meta(&self) -> &Value {
        self.params.get("_meta").unwrap_or(&Value::Null)
    }
}

/// The state that a server keeps for a legacy connection.
#[derive(Clone, Debug, Default)]
pub struct LegacyState {
    /// The client that `initialize` named.
    pub client: Option<NegotiatedClient>,
    /// The level of `logging/setLevel`.
    pub log_level: Option<LogLevel>,
    /// The URIs of `resources/subscribe`.
    pub subscriptions: BTreeSet<String>,
}

impl LegacyState {
    /// The context of a request after the handshake.
    pub fn context(&self) -> Option<RequestContext> {
        let client = self.client.as_ref()?;
        Some(RequestContext {
            revision: client.revision,
            client: Arc::clone(&client.client),
            capabilities: Arc::clone(&client.capabilities),
            logs: self.log_level.map_or(LogFilter::Any, LogFilter::From),
        })
    }
}

/// The result of `initialize`.
#[derive(Clone, Debug)]
pub struct NegotiatedClient {
    /// The version that both ends use.
    pub revision: Revision,
    /// The client's name and version.
    pub client: Arc<Value>,
    /// The client's capabilities.
    pub capabilities: Arc<Value>,
}

/// The version, the client and the settings that hold for one request.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The version of the answer.
    pub revision: Revision,
    /// The client's name and version.
    pub client: Arc<Value>,
    /// The client's capabilities.
    pub capabilities: Arc<Value>,
    /// The log messages that the client requested.
    pub logs: LogFilter,
}

/// The log messages that a client requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFilter {
    /// None. Since 2026-07-28 a client requests log messages with each request.
    None,
    /// Any. Before 2026-07-28 the server chooses until the client sets a level.
    Any,
    /// The messages of this level and above.
    From(LogLevel),
}

impl LogFilter {
    /// Whether a log message is included; one of an unknown level is, unless the client requested none.
    pub fn include(self, level: Option<LogLevel>) -> bool {
        match self {
            LogFilter::None => false,
            LogFilter::Any => true,
            LogFilter::From(from) => level.is_none_or(|level| level >= from),
        }
    }
}

impl RequestContext {
    /// The context of a request, or why it cannot be answered in any version.
    pub fn new(
        method: &Method,
        params: &Value,
        legacy: &LegacyState,
        served: &[Revision],
    ) -> Result<RequestContext, ErrorReply> {
        let (claims, modern_only) = (Claim::is_made(params.get("_meta")), is_modern_only(method));
        // A legacy server ignores the members of `_meta` that the modern era has.
        let serves_modern = served.iter().any(|revision| revision.era() == Era::Modern);
        match legacy.context() {
            None if modern_only && !serves_modern => {
                Err(ErrorReply::new(code::METHOD_NOT_FOUND, format!("there is no method {method} here")))
            }
            _ if claims && serves_modern => RequestContext::modern(params, served),
            // These methods exist since 2026-07-28 only, so `_meta` is missing.
            None if modern_only => RequestContext::modern(params, served),
            None if *method == Method::INITIALIZE || *method == Method::PING => Ok(RequestContext {
                revision: Revision::LATEST_LEGACY,
                client: Arc::default(),
                capabilities: Arc::default(),
                logs: LogFilter::None,
            }),
            None => Err(ErrorReply::new(
                code::INVALID_REQUEST,
                format!(
                    "{method} came before initialize; send initialize first, or name a version in _meta[{:?}]",
                    meta::PROTOCOL_VERSION
                ),
            )),
            Some(context) => Ok(context),
        }
    }

    /// The context that `initialize` with these params leads to.
    pub fn from_handshake(params: &Value, served: &[Revision]) -> Option<RequestContext> {
        let requested = params.get("protocolVersion").and_then(Value::as_str)?;
        let object = |key: &str| params.get(key).filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({}));
        Some(RequestContext {
            revision: negotiate(requested.parse().ok(), served)?,
            client: object("clientInfo").into(),
            capabilities: object("capabilities").into(),
            logs: LogFilter::Any,
        })
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

    /// Parses `_meta`. Nothing is inferred from earlier requests, even on the same connection.
    fn modern(params: &Value, served: &[Revision]) -> Result<RequestContext, ErrorReply> {
        let claim = Claim::read(&params["_meta"])?;
        Ok(RequestContext {
            revision: claim.revision(served)?,
            client: claim.client.cloned().unwrap_or_else(|| Value::Object(Map::new())).into(),
            capabilities: claim.capabilities.clone().into(),
            logs: claim.log_level.map_or(LogFilter::None, LogFilter::From),
        })
    }
}

/// Whether a method exists only since 2026-07-28.
fn is_modern_only(method: &Method) -> bool {
    *method == Method::DISCOVER || *method == Method::SUBSCRIPTIONS_LISTEN
}

/// The requested version if it is served and has a handshake, else the newest served one that has.
pub(super) fn negotiate(requested: Option<Revision>, served: &[Revision]) -> Option<Revision> {
    let legacy = || served.iter().copied().filter(|revision| revision.has_handshake());
    requested.filter(|requested| legacy().any(|revision| revision == *requested)).or_else(|| legacy().max())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(params: Value) -> i64 {
        RequestContext::new(&Method::TOOLS_LIST, &params, &LegacyState::default(), &Revision::ALL).unwrap_err().code
    }

    #[test]
    fn a_request_without_a_version_needs_a_handshake() {
        assert_eq!(code(json!({})), code::INVALID_REQUEST);
        assert!(RequestContext::new(&Method::PING, &json!({}), &LegacyState::default(), &Revision::ALL).is_ok());
    }

    #[test]
    fn a_version_in_meta_overrides_the_handshake() {
        let client = NegotiatedClient {
            revision: Revision::V2025_06_18,
            client: json!({"name": "c"}).into(),
            capabilities: json!({"roots": {}}).into(),
        };
        let legacy = LegacyState { client: Some(client), ..LegacyState::default() };
        let old = RequestContext::new(&Method::TOOLS_LIST, &json!({}), &legacy, &Revision::ALL).unwrap();
        assert_eq!((old.revision, old.client), (Revision::V2025_06_18, json!({"name": "c"}).into()));
        let claim = json!({"_meta": {meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {}}});
        let modern = RequestContext::new(&Method::TOOLS_LIST, &claim, &legacy, &Revision::ALL).unwrap();
        assert_eq!((modern.revision, modern.capabilities), (Revision::V2026_07_28, json!({}).into()));
    }

    #[test]
    fn a_handshake_negotiates_a_supported_legacy_version() {
        let served = [Revision::V2024_11_05, Revision::V2025_06_18, Revision::V2026_07_28];
        for (requested, negotiated) in [
            (Some(Revision::V2024_11_05), Some(Revision::V2024_11_05)),
            (Some(Revision::V2025_11_25), Some(Revision::V2025_06_18)),
            (Some(Revision::V2026_07_28), Some(Revision::V2025_06_18)),
            (None, Some(Revision::V2025_06_18)),
        ] {
            assert_eq!(negotiate(requested, &served), negotiated, "{requested:?}");
        }
        assert_eq!(negotiate(None, &[Revision::V2026_07_28]), None);
    }
}
