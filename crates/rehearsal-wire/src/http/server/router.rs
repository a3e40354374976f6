//! Routes a request by its path and method, including the paths of the application.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;

use super::fault::AbortConnection;
use super::rejection::{BAD_REQUEST, CloseSocket, HttpReply, Rejection, whole};
use super::sessions::SessionRegistry;
use super::{HttpServerOptions, get, http_sse, post, read_post};
use crate::BoxFuture;
use crate::http::origin_check;
use crate::http::origin_check::RequestOrigin;

/// Handles one request. An error closes the socket without a response.
pub(super) async fn route(
    registry: Arc<SessionRegistry>,
    request: Request<Incoming>,
) -> Result<HttpReply, AbortConnection> {
    let answer = find(&registry, request).await.unwrap_or_else(Rejection::into_reply);
    if answer.extensions().get::<CloseSocket>().is_some() { Err(AbortConnection) } else { Ok(answer) }
}

async fn find(registry: &Arc<SessionRegistry>, request: Request<Incoming>) -> Result<HttpReply, Rejection> {
    let (parts, body) = request.into_parts();
    let options = &registry.options;
    let path = parts.uri.path();
    if path == "/health" {
        return health(&parts.method);
    }
    check_origin(&parts, options)?;
    if path == options.path && (options.serves_legacy() || options.serves_modern()) {
        return match parts.method {
            Method::POST => post::post(registry, parts, body).await,
            Method::GET => get::get(registry, &parts),
            Method::DELETE => get::delete(registry, &parts),
            _ if options.serves_legacy() => Err(Rejection::method("GET, POST, DELETE")),
            _ => Err(Rejection::method("POST")),
        };
    }
    if path == options.sse_path && options.serves_http_sse() {
        return match parts.method {
            Method::GET => http_sse::open_stream(registry, &parts),
            _ => Err(Rejection::method("GET")),
        };
    }
    if path == options.message_path && options.serves_http_sse() {
        return match parts.method {
            Method::POST => http_sse::post(registry, parts, body).await,
            _ => Err(Rejection::method("POST")),
        };
    }
    if let Some(routes) = options.routes.as_deref().filter(|routes| routes.has(path)) {
        return answer(routes, parts, body, registry).await;
    }
    Err(Rejection::new(StatusCode::NOT_FOUND, BAD_REQUEST, format!("Not Found: {path}")))
}

/// Checks the `Host` and the `Origin` of a request.
fn check_origin(parts: &Parts, options: &HttpServerOptions) -> Result<(), Rejection> {
    let all = |name: HeaderName| {
        let values = parts.headers.get_all(name).into_iter();
        values.map(|value| value.to_str().unwrap_or_default())
    };
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let named = RequestOrigin { hosts: all(HOST), authority, origins: all(ORIGIN) };
    origin_check::check(named, &options.hosts, &options.origins)
        .map_err(|what| Rejection::new(StatusCode::FORBIDDEN, BAD_REQUEST, format!("Forbidden: {what}")))
}

fn health(method: &Method) -> Result<HttpReply, Rejection> {
    if method != Method::GET {
        return Err(Rejection::method("GET"));
    }
    let mut answer = whole(StatusCode::OK, Bytes::from_static(b"ok"));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(answer)
}

/// Paths outside MCP. `Host`, `Origin` and the length of a body are checked for them too.
pub trait CustomRoutes: fmt::Debug + Send + Sync {
    /// True if a path is one of them. The paths of MCP take precedence.
    fn has(&self, path: &str) -> bool;

    /// Handles a request to one of them.
    fn answer(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>>;
}

/// Reads a whole request and passes it to the routes.
pub(super) async fn answer(
    routes: &dyn CustomRoutes,
    parts: Parts,
    body: Incoming,
    registry: &SessionRegistry,
) -> Result<HttpReply, Rejection> {
    let (body, _reserved) = read_post::receive(body, registry).await?;
    let answer = routes.answer(Request::from_parts(parts, body)).await;
    Ok(answer.map(|body| Either::Left(Full::new(body))))
}
