//! A request that is refused before the application sees it.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{Either, Full};
use rehearsal_core::message::{ErrorReply, Message, RequestId};
use rehearsal_core::protocol::{Era, code};

use super::event_stream::EventStream;

/// What goes back over HTTP: a whole body or a stream of events.
pub(super) type Answer = Response<Either<Full<Bytes>, EventStream>>;

/// The code with which servers of the handshake era say that a request is bad; the TypeScript SDK's choice.
pub(super) const BAD_REQUEST: i64 = -32000;
/// The code with which they say that a session is gone. Some clients look for it besides the status 404.
pub(super) const NO_SESSION: i64 = -32001;

/// Why a request is refused: an HTTP status and a JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    /// The status.
    pub(super) status: StatusCode,
    /// The error in the body.
    pub(super) error: ErrorReply,
    /// The request that is refused, where its id could be read.
    pub(super) id: Option<RequestId>,
    /// The methods of HTTP that would not have been refused.
    pub(super) allow: Option<&'static str>,
}

impl Refusal {
    /// A refusal of something without an id.
    pub(super) fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Refusal {
        Refusal { status, error: ErrorReply::new(code, message), id: None, allow: None }
    }

    /// The same refusal, of a request.
    pub(super) fn of(self, id: Option<&RequestId>) -> Refusal {
        Refusal { id: id.cloned(), ..self }
    }

    /// The session is unknown, or over.
    pub(super) fn no_session() -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, NO_SESSION, "Session not found")
    }

    /// There is too much to do already.
    pub(super) fn busy(what: &str) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, format!("too many {what}"))
    }

    /// The server is on its way out.
    pub(super) fn closing() -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "the server closed the conversation")
    }

    /// The method of HTTP has no meaning here.
    pub(super) fn method(allow: &'static str) -> Refusal {
        let message = format!("Method Not Allowed: here is only {allow}");
        Refusal { allow: Some(allow), ..Refusal::new(StatusCode::METHOD_NOT_ALLOWED, BAD_REQUEST, message) }
    }

    /// The client takes no answer that we can give.
    pub(super) fn not_acceptable() -> Refusal {
        let message = "Not Acceptable: the client must accept application/json or text/event-stream";
        Refusal::new(StatusCode::NOT_ACCEPTABLE, BAD_REQUEST, message)
    }

    /// As it goes back.
    pub(super) fn answer(self) -> Answer {
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

/// Marks what is no answer at all: the socket is closed without a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct HungUp;

impl HungUp {
    /// Where an answer would have been.
    pub(super) fn answer() -> Answer {
        let mut answer = whole(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new());
        answer.extensions_mut().insert(HungUp);
        answer
    }
}

/// An answer that is there as a whole.
pub(super) fn whole(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(body)));
    *answer.status_mut() = status;
    answer
}

/// The status of an answer that the application gave.
///
/// Since 2026-07-28 some errors have a status of their own. Before, all are 200: a 404 would say that the session is gone.
pub(super) fn status_of(era: Era, error: Option<i64>) -> StatusCode {
    match (era, error) {
        (Era::Modern, Some(code::METHOD_NOT_FOUND)) => StatusCode::NOT_FOUND,
        (Era::Modern, Some(error)) if code::is_modern(error) => StatusCode::BAD_REQUEST,
        (Era::Modern | Era::Legacy, _) => StatusCode::OK,
    }
}
