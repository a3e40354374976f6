//! The refusal of a request before the application receives it.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{Either, Full};
use rehearsal_core::message::{ErrorReply, Message, RequestId};
use rehearsal_core::protocol::{Era, code};

use super::event_stream::EventStream;

/// An HTTP response: a whole body or a stream of events.
pub(super) type HttpReply = Response<Either<Full<Bytes>, EventStream>>;

/// The error code for an invalid request in the handshake era, as in the TypeScript SDK.
pub(super) const BAD_REQUEST: i64 = -32000;
/// The error code for an unknown session in the handshake era. Some clients check it in addition to the status 404.
pub(super) const NO_SESSION: i64 = -32001;

/// The refusal of a request: an HTTP status and a JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rejection {
    /// The HTTP status.
    pub(super) status: StatusCode,
    /// The error in the body.
    pub(super) error: ErrorReply,
    /// The id of the refused request, if it could be read.
    pub(super) id: Option<RequestId>,
    /// The HTTP methods for the `Allow` header.
    pub(super) allow: Option<&'static str>,
}

impl Rejection {
    /// Builds a refusal without a request id.
    pub(super) fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Rejection {
        Rejection { status, error: ErrorReply::new(code, message), id: None, allow: None }
    }

    /// Adds the request id.
    pub(super) fn with_id(self, id: Option<&RequestId>) -> Rejection {
        Rejection { id: id.cloned(), ..self }
    }

    /// The session is unknown or has ended.
    pub(super) fn no_session() -> Rejection {
        Rejection::new(StatusCode::NOT_FOUND, NO_SESSION, "Session not found")
    }

    /// A limit is reached.
    pub(super) fn busy(what: &str) -> Rejection {
        Rejection::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, format!("too many {what}"))
    }

    /// The server is shutting down.
    pub(super) fn closing() -> Rejection {
        Rejection::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "the server closed the connection")
    }

    /// The HTTP method is not supported on this path.
    pub(super) fn method(allow: &'static str) -> Rejection {
        let message = format!("Method Not Allowed: this path supports {allow}");
        Rejection { allow: Some(allow), ..Rejection::new(StatusCode::METHOD_NOT_ALLOWED, BAD_REQUEST, message) }
    }

    /// The client accepts no response form of this server.
    pub(super) fn not_acceptable() -> Rejection {
        let message = "Not Acceptable: the client must accept application/json or text/event-stream";
        Rejection::new(StatusCode::NOT_ACCEPTABLE, BAD_REQUEST, message)
    }

    /// Builds the HTTP response.
    pub(super) fn into_reply(self) -> HttpReply {
        let body = Message::error(self.id, &self.error).raw().clone();
        let mut answer = whole(self.status, body);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        answer
    }
}

/// Marks a missing response: the socket is closed without one.
#[derive(Clone, Copy, Debug)]
pub(super) struct CloseSocket;

impl CloseSocket {
    /// Builds the marker in place of a response.
    pub(super) fn reply() -> HttpReply {
        let mut answer = whole(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new());
        answer.extensions_mut().insert(CloseSocket);
        answer
    }
}

/// Builds a response with a whole body.
pub(super) fn whole(status: StatusCode, body: Bytes) -> HttpReply {
    let mut answer = Response::new(Either::Left(Full::new(body)));
    *answer.status_mut() = status;
    answer
}

/// Returns the HTTP status of the application's response.
///
/// Since 2026-07-28 some errors have their own status. Before, all have status 200: a 404 would mean that the session
/// has ended.
pub(super) fn status_of(era: Era, error: Option<i64>) -> StatusCode {
    match (era, error) {
        (Era::Modern, Some(code::METHOD_NOT_FOUND)) => StatusCode::NOT_FOUND,
        (Era::Modern, Some(error)) if code::is_modern(error) => StatusCode::BAD_REQUEST,
        (Era::Modern | Era::Legacy, _) => StatusCode::OK,
    }
}
