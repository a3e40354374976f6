//! The session and version that a client repeats on later requests.

use std::str::FromStr;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use rehearsal_core::message::{Body, Message, Method, Reply, RequestId};
use rehearsal_core::protocol::{Revision, header, meta};

use crate::HttpMeta;

/// The session and version that a client repeats on later requests, taken from the messages it sends and receives.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientState {
    /// The session id from the server.
    session: Option<HeaderValue>,
    /// The negotiated version of the handshake.
    negotiated: Option<String>,
    /// The version in `_meta` of the last stateless request.
    claimed: Option<String>,
}

impl ClientState {
    /// Returns the headers of a message, and stores the version in its `_meta`.
    pub(super) fn headers_for(&mut self, message: &Message) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(version) = version_in_meta(message) {
            set(&mut headers, header::PROTOCOL_VERSION, &version);
            for (name, value) in
                message.as_request().map(|request| header::for_request(request, None)).unwrap_or_default()
            {
                set(&mut headers, &name, &value);
            }
            self.claimed = Some(version);
        } else if handshake_id(message).is_none() {
            headers = self.headers();
        }
        headers
    }

    /// Returns the headers of a request without a message.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(session) = &self.session {
            headers.insert(name(header::SESSION_ID), session.clone());
        }
        let version = match (&self.negotiated, &self.claimed) {
            (Some(version), _) => Some(version).filter(|version| has_feature(version, Revision::has_version_header)),
            // A notification has no version in `_meta`, so in the stateless era only the header carries it.
            (None, claimed) => claimed.as_ref().filter(|_| self.session.is_none()),
        };
        if let Some(version) = version {
            set(&mut headers, header::PROTOCOL_VERSION, version);
        }
        headers
    }

    /// Notes that the server accepted the handshake. Its session id, if any, replaces the older one.
    pub(super) fn handshake_accepted(&mut self, head: &HttpMeta) {
        self.session = head.headers.get(header::SESSION_ID).cloned();
        self.negotiated = None;
    }

    /// Stores the version from the server's response to `initialize`.
    pub(super) fn handshake_answered(&mut self, reply: &Reply) {
        if let Reply::Result(result) = reply {
            self.negotiated = result.field("protocolVersion").and_then(|version| version.text());
        }
    }

    /// True after a handshake.
    pub(super) fn has_handshake(&self) -> bool {
        self.negotiated.is_some()
    }

    /// True if there is a session to end.
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// True if a broken stream can be resumed. Before the handshake completes, only the ids of the events decide.
    pub(super) fn has_resumption(&self) -> bool {
        self.negotiated.as_deref().is_none_or(|version| has_feature(version, Revision::has_resumption))
    }
}

/// Returns the version in the `_meta` of a stateless message.
pub(super) fn version_in_meta(message: &Message) -> Option<String> {
    message.params()?.at(&["_meta", meta::PROTOCOL_VERSION])?.text()
}

/// Returns the id of an `initialize` request of the handshake era.
pub(super) fn handshake_id(message: &Message) -> Option<&RequestId> {
    let request = message.as_request().filter(|request| request.method == Method::INITIALIZE)?;
    if version_in_meta(message).is_none() { Some(&request.id) } else { None }
}

/// Returns the ids of the requests in a message: one, or those of a batch.
pub(super) fn request_ids(message: &Message) -> Vec<RequestId> {
    match message.body() {
        Body::Request(request) => vec![request.id.clone()],
        Body::Batch(messages) => messages.iter().filter_map(Message::as_request).map(|one| one.id.clone()).collect(),
        Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => Vec::new(),
    }
}

/// Checks a version for a feature. An unknown version counts as newer than all known ones.
fn has_feature(version: &str, fact: impl Fn(Revision) -> bool) -> bool {
    Revision::from_str(version).map_or(true, fact)
}

fn name(name: &str) -> HeaderName {
    HeaderName::from_bytes(name.as_bytes()).expect("the protocol's header names are tokens")
}

/// Sets a header. A value that no header can hold is omitted, and the server decides how to respond.
fn set(headers: &mut HeaderMap, key: &str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name(key), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, params: &str) -> Message {
        Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#))
    }

    fn shown(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        lines.sort();
        lines
    }

    fn after_handshake(version: &str) -> ClientState {
        let mut state = ClientState::default();
        let mut headers = HeaderMap::new();
        headers.insert("mcp-session-id", HeaderValue::from_static("s1"));
        state.handshake_accepted(&HttpMeta { status: None, headers });
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{version}"}}}}"#);
        state.handshake_answered(&Message::parse(answer).as_response().unwrap().reply);
        state
    }

    #[test]
    fn the_client_repeats_the_session_and_if_required_the_version() {
        let table: &[(&str, &[&str])] = &[
            ("2024-11-05", &["mcp-session-id: s1"]),
            ("2025-03-26", &["mcp-session-id: s1"]),
            ("2025-06-18", &["mcp-protocol-version: 2025-06-18", "mcp-session-id: s1"]),
            ("2025-11-25", &["mcp-protocol-version: 2025-11-25", "mcp-session-id: s1"]),
            ("2099-01-01", &["mcp-protocol-version: 2099-01-01", "mcp-session-id: s1"]),
        ];
        for (version, expected) in table {
            let mut state = after_handshake(version);
            assert_eq!(shown(&state.headers_for(&request("tools/list", "{}"))), *expected);
        }
    }

    #[test]
    fn a_new_handshake_has_no_headers_of_the_old_session() {
        let mut state = after_handshake("2025-11-25");
        assert_eq!(shown(&state.headers_for(&request("initialize", "{}"))), [""; 0]);
    }

    #[test]
    fn a_version_in_meta_sets_its_own_headers_and_no_session() {
        let mut state = after_handshake("2025-11-25");
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let call = request("tools/call", &format!(r#"{{"name":"run","arguments":{{}},{meta}}}"#));
        let expected = ["mcp-method: tools/call", "mcp-name: run", "mcp-protocol-version: 2026-07-28"];
        assert_eq!(shown(&state.headers_for(&call)), expected);
        let initialize = request("initialize", &format!("{{{meta}}}"));
        assert_eq!(handshake_id(&initialize), None);

        let mut state = ClientState::default();
        state.headers_for(&call);
        let cancelled = Message::parse(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
        assert_eq!(shown(&state.headers_for(&cancelled)), ["mcp-protocol-version: 2026-07-28"]);
    }

    #[test]
    fn a_version_that_no_header_can_hold_is_omitted() {
        let params = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"a\nb"}}"#;
        assert_eq!(shown(&ClientState::default().headers_for(&request("ping", params))), ["mcp-method: ping"]);
    }
}
