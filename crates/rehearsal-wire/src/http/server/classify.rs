//! Decides the era of a POST, and checks the rules of that era.
//!
//! The body decides first: a request with a version in its `_meta` belongs to the stateless era, whatever its headers
//! contain. The checks after that are, in this order: required `_meta` keys, headers that agree with the body,
//! a version that is served.

use http::{HeaderMap, StatusCode};
use rehearsal_core::message::{Body, ErrorReply, Message, Method, Request};
use rehearsal_core::protocol::{Claim, Era, Revision, code, header, meta};
use serde_json::Value;

use super::options::HttpServerOptions;
use super::rejection::{BAD_REQUEST, Rejection};

/// How a POST is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostKind {
    /// A stateless message, fully checked.
    Stateless,
    /// `initialize` of the handshake era, with the requested version if it is known.
    Handshake {
        /// The requested version in its params.
        wants: Option<Revision>,
    },
    /// A message of the handshake era that belongs to a session.
    Session,
}

/// Decides how a message is handled.
pub(super) fn classify(
    message: &Message,
    headers: &HeaderMap,
    options: &HttpServerOptions,
) -> Result<PostKind, Rejection> {
    // A server of the handshake era alone ignores the marks of the other era.
    let modern_header = options.serves_modern() && version_header(headers).is_some_and(is_modern);
    match message.body() {
        Body::Request(request) => {
            let claim = request.param(&["_meta", meta::PROTOCOL_VERSION]);
            if options.serves_modern() && claim.is_some() {
                check_modern(request, headers, options).map_err(|rejection| rejection.with_id(Some(&request.id)))?;
                return Ok(PostKind::Stateless);
            }
            if modern_header || (!options.serves_legacy() && request.method != Method::INITIALIZE) {
                // The request declares no version, so this error names what is missing.
                Claim::read(&meta_of(request)).map_err(|error| bad_request(error).with_id(Some(&request.id)))?;
            }
            if request.method != Method::INITIALIZE {
                return Ok(PostKind::Session);
            }
            let wants = request.param(&["protocolVersion"]).and_then(|version| version.text());
            if !options.serves_legacy() {
                let error = Claim::unsupported(&wants.unwrap_or_default(), &options.revisions);
                return Err(bad_request(error).with_id(Some(&request.id)));
            }
            Ok(PostKind::Handshake { wants: wants.and_then(|version| version.parse().ok()) })
        }
        // The headers of notifications are not specified, so none are required.
        Body::Notification(_) if modern_header => Ok(PostKind::Stateless),
        Body::Response(_) | Body::Batch(_) if modern_header => {
            let message = "2026-07-28 has neither batches nor server requests";
            Err(Rejection::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message))
        }
        Body::Notification(_) | Body::Response(_) | Body::Batch(_) if options.serves_legacy() => Ok(PostKind::Session),
        Body::Notification(_) | Body::Response(_) | Body::Batch(_) | Body::Garbled(_) => {
            let message = "only 2026-07-28 is served here, and its header is missing";
            Err(Rejection::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message))
        }
    }
}

/// Returns the version header.
pub(super) fn version_header(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or_default().trim())
}

/// True if a version, known or not, belongs to the stateless era.
pub(super) fn is_modern(version: &str) -> bool {
    let is_date = version.len() == 10
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_date && version >= Revision::V2026_07_28.as_str()
}

/// Returns the version of a request in the handshake era: from its header, else from the session, else the version that
/// applies without a header.
pub(super) fn legacy_revision(
    headers: &HeaderMap,
    negotiated: Option<Revision>,
    options: &HttpServerOptions,
) -> Result<Revision, Rejection> {
    let Some(version) = version_header(headers) else { return Ok(negotiated.unwrap_or(Revision::WITHOUT_HEADER)) };
    let known = version.parse().ok().filter(|revision| options.served(Era::Legacy).any(|served| served == *revision));
    known.ok_or_else(|| {
        let served: Vec<&str> = options.served(Era::Legacy).map(Revision::as_str).collect();
        let message =
            format!("Bad Request: Unsupported protocol version: {version} (supported: {})", served.join(", "));
        Rejection::new(StatusCode::BAD_REQUEST, BAD_REQUEST, message)
    })
}

fn check_modern(request: &Request, headers: &HeaderMap, options: &HttpServerOptions) -> Result<(), Rejection> {
    let meta = meta_of(request);
    let claim = Claim::read(&meta).map_err(bad_request)?;
    let version = claim.version;
    let mismatch = |message: String| {
        Rejection::new(StatusCode::BAD_REQUEST, code::HEADER_MISMATCH, format!("Bad Request: {message}"))
    };
    let values = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let name = header::PROTOCOL_VERSION;
    match &values(name)[..] {
        [found] if found.trim() == version => {}
        [found] => return Err(mismatch(format!("header {name} is {found:?}, but the body has {version:?}"))),
        [] => return Err(mismatch(format!("header {name} is missing; the body has {version:?}"))),
        several => return Err(mismatch(format!("header {name} occurs {} times", several.len()))),
    }
    let tool = if request.method == Method::TOOLS_CALL { request.param(&["name"]) } else { None };
    let schema = options.tool_schema.as_ref().zip(tool.and_then(|tool| tool.text()));
    let schema = schema.and_then(|(schema_of, tool)| schema_of(&tool));
    header::check(request, schema.as_deref(), values).map_err(|disagreement| mismatch(disagreement.to_string()))?;
    claim.revision(&options.revisions).map_err(bad_request)?;
    Ok(())
}

fn meta_of(request: &Request) -> Value {
    request.param(&["_meta"]).and_then(|meta| meta.value().ok()).unwrap_or_default()
}

fn bad_request(error: ErrorReply) -> Rejection {
    Rejection { error, ..Rejection::new(StatusCode::BAD_REQUEST, code::INVALID_PARAMS, "") }
}
