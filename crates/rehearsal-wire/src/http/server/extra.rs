//! Paths beside MCP, for whoever serves more than that.

use std::fmt;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::options::Limits;
use super::refusal::{Answer, BAD_REQUEST, Refusal};
use crate::BoxFuture;

/// Paths beside those of MCP. They are behind the same check of `Host` and `Origin`, and bodies have the same limit.
pub trait Routes: fmt::Debug + Send + Sync {
    /// Whether a path is one of them. The paths of MCP come first.
    fn has(&self, path: &str) -> bool;

    /// Answers a request to one of them.
    fn answer(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>>;
}

/// Reads a request whole and lets it be answered.
pub(super) async fn answer(
    routes: &dyn Routes,
    parts: Parts,
    body: Incoming,
    limits: &Limits,
) -> Result<Answer, Refusal> {
    let collected = tokio::time::timeout(limits.body_timeout, Limited::new(body, limits.body).collect()).await;
    let refuse = |status, message: String| Err(Refusal::new(status, BAD_REQUEST, message));
    let body = match collected {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("the body is longer than the limit of {} bytes", limits.body);
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, message);
        }
        Ok(Err(error)) => return refuse(StatusCode::BAD_REQUEST, format!("could not read the body: {error}")),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive".to_owned()),
    };
    let answer = routes.answer(Request::from_parts(parts, body)).await;
    Ok(answer.map(|body| Either::Left(Full::new(body))))
}
