//! Routes a request by its path and method, including the paths of the application.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;

use super::fault::Broken;
use super::refusal::{Answer, BAD_REQUEST, HungUp, Refusal, whole};
use super::registry::Registry;
use super::{Options, get, http_sse, post, read_post};
use crate::BoxFuture;
use crate::http::guard;
use crate::http::guard::Named;

/// Handles one request. An error closes the socket without a response.
pub(super) async fn route(registry: Arc<Registry>, request: Request<Incoming>) -> Result<Answer, Broken> {
    let answer = find(&registry, request).await.unwrap_or_else(Refusal::answer);
    if answer.extensions().get::<HungUp>().is_some() { Err(Broken) } else { Ok(answer) }
}

async fn find(registry: &Arc<Registry>, request: Request<Incoming>) -> Result<Answer, Refusal> {
    let (parts, body) = request.into_parts();
    let options = &registry.options;
    let path = parts.uri.path();
    if path == "/health" {
        return health(&parts.method);
    }
    welcome(&parts, options)?;
    if path == options.path && (options.serves_legacy() || options.serves_modern()) {
        return match parts.method {
            Method::POST => post::post(registry, parts, body).await,
            Method::GET => get::get(registry, &parts),
            Method::DELETE => get::delete(registry, &parts),
            _ if options.serves_legacy() => Err(Refusal::method("GET, POST, DELETE")),
            _ => Err(Refusal::method("POST")),
        };
    }
    if path == options.sse_path && options.serves_two_endpoints() {
        return match parts.method {
            Method::GET => http_sse::listen(registry, &parts),
            _ => Err(Refusal::method("GET")),
        };
    }
    if path == options.message_path && options.serves_two_endpoints() {
        return match parts.method {
            Method::POST => http_sse::post(registry, parts, body).await,
            _ => Err(Refusal::method("POST")),
        };
    }
    if let Some(routes) = options.routes.as_deref().filter(|routes| routes.has(path)) {
        return answer(routes, parts, body, registry).await;
    }
    Err(Refusal::new(StatusCode::NOT_FOUND, BAD_REQUEST, format!("Not Found: {path}")))
}

/// Checks the `Host` and the `Origin` of a request.
fn welcome(parts: &Parts, options: &Options) -> Result<(), Refusal> {
    let all = |name: HeaderName| {
        let values = parts.headers.get_all(name).into_iter();
        values.map(|value| value.to_str().unwrap_or_default())
    };
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let named = Named { hosts: all(HOST), authority, origins: all(ORIGIN) };
    guard::check(named, &options.hosts, &options.origins)
        .map_err(|what| Refusal::new(StatusCode::FORBIDDEN, BAD_REQUEST, format!("Forbidden: {what}")))
}

fn health(method: &Method) -> Result<Answer, Refusal> {
    if method != Method::GET {
        return Err(Refusal::method("GET"));
    }
    let mut answer = whole(StatusCode::OK, Bytes::from_static(b"ok"));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(answer)
}

/// Paths outside MCP. `Host`, `Origin` and the length of a body are checked for them too.
pub trait Routes: fmt::Debug + Send + Sync {
    /// True if a path is one of them. The paths of MCP take precedence.
    fn has(&self, path: &str) -> bool;

    /// Handles a request to one of them.
    fn answer(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>>;
}

/// Reads a whole request and passes it to the routes.
pub(super) async fn answer(
    routes: &dyn Routes,
    parts: Parts,
    body: Incoming,
    registry: &Registry,
) -> Result<Answer, Refusal> {
    let (body, _reserved) = read_post::receive(body, registry).await?;
    let answer = routes.answer(Request::from_parts(parts, body)).await;
    Ok(answer.map(|body| Either::Left(Full::new(body))))
}
