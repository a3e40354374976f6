//! The HTTP client: its connections, one request with its response, and plain requests outside MCP.

use std::convert::Infallible;
use std::error::Error;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tower_service::Service;

use super::http_sse::resolve;
use super::options::{Authorize, MAX_CHALLENGES, RetryDecision};
use super::response::{HttpResponse, REFUSAL_LIMIT, ReadEnd, read};
use super::{ConnectError, HttpClientOptions};
use crate::{BoxFuture, HttpMeta};

/// How long an idle connection is kept. Node and uvicorn close one after five idle seconds, and a request that is sent
/// at that moment is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// The most redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// An HTTP client for one server. Connections are reused. Cookies, proxies and compression are not used, so that
/// messages arrive exactly as sent. A redirect is followed only if it keeps method and body and stays on the same
/// origin, because our headers may be secret.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    client: Client<Connector, RequestBody>,
    headers: HeaderMap,
    url: Uri,
    /// The URL after redirects.
    final_url: Arc<OnceLock<Uri>>,
    authorize: Option<Arc<dyn Authorize>>,
    /// The number of requests that wait for a login.
    waiting_for_login: Arc<AtomicUsize>,
}

/// Why there is no response.
#[derive(Clone, Debug)]
pub(super) enum RequestFailure {
    /// The server could not be reached, or the connection broke.
    Broken { why: String },
    /// Authorization failed.
    Unauthorized { why: String },
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestFailure::Broken { why } => f.write_str(why),
            RequestFailure::Unauthorized { why } => write!(f, "not authorized: {why}"),
        }
    }
}

/// Counts one request that waits for a login, until this is dropped.
struct LoginGuard<'a>(&'a AtomicUsize);

impl<'a> LoginGuard<'a> {
    fn new(count: &'a AtomicUsize) -> LoginGuard<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        LoginGuard(count)
    }
}

impl Drop for LoginGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HttpClient {
    pub(super) fn new(options: &HttpClientOptions) -> Result<HttpClient, ConnectError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let tls = HttpsConnectorBuilder::new()
            .with_tls_config(tls(&options.url, &options.root_certificates)?)
            .https_or_http()
            .enable_http1();
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(Connector::new(tls.wrap_connector(tcp), options.connect_timeout));
        let mut headers = options.headers.clone();
        headers.values_mut().for_each(|value| value.set_sensitive(true)); // hidden in debug output
        let (url, authorize) = (options.url.clone(), options.authorize.clone());
        Ok(HttpClient { client, headers, url, final_url: Arc::default(), authorize, waiting_for_login: Arc::default() })
    }

    /// Returns a client for another URL of this server.
    pub(super) fn with_url(&self, url: Uri) -> HttpClient {
        HttpClient { url, final_url: Arc::default(), ..self.clone() }
    }

    /// Returns a client that follows no redirects.
    pub(super) fn without_redirects(self) -> HttpClient {
        let _ = self.final_url.set(self.url.clone());
        self
    }

    /// True while a request waits for a login.
    pub(super) fn is_waiting_for_login(&self) -> bool {
        self.waiting_for_login.load(Ordering::Relaxed) > 0
    }

    /// Waits for `work` up to `limit`. The time of a login does not count.
    pub(super) async fn run_with_limit<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(limit, &mut work).await {
                Ok(done) => return Some(done),
                Err(_) if self.is_waiting_for_login() => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends a request, and repeats it if the server requires authorization and the caller can supply it. `ours` are
    /// the headers of the transport, `theirs` those of the caller, which take precedence.
    pub(super) async fn request(
        &self,
        method: Method,
        ours: HeaderMap,
        theirs: &HeaderMap,
        mut body: RequestBody,
    ) -> Result<HttpResponse, RequestFailure> {
        let given = self.headers.contains_key(AUTHORIZATION) || theirs.contains_key(AUTHORIZATION);
        let send = |ours, body| async {
            self.send_once(method.clone(), ours, theirs, body).await.map_err(|why| RequestFailure::Broken { why })
        };
        let Some(authorize) = self.authorize.as_ref().filter(|_| !given) else { return send(ours, body).await };
        let unauthorized = |why| RequestFailure::Unauthorized { why };
        let mut challenges = 0;
        loop {
            let sent = {
                let _guard = LoginGuard::new(&self.waiting_for_login);
                authorize.authorization().await.map_err(unauthorized)?
            };
            let mut headers = ours.clone();
            headers.extend(sent.clone().map(|value| (AUTHORIZATION, value)));
            let next = body.repeat();
            let answer = send(headers, std::mem::replace(&mut body, next)).await?;
            let wanted = matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if !wanted || challenges == MAX_CHALLENGES {
                return Ok(answer);
            }
            challenges += 1;
            let _guard = LoginGuard::new(&self.waiting_for_login);
            match authorize.refused(sent.as_ref(), &answer.head).await.map_err(unauthorized)? {
                // A connection can be reused only if the body was read to its end.
                RetryDecision::Yes => drop(read(answer.body, REFUSAL_LIMIT).await),
                RetryDecision::No => return Ok(answer),
            }
        }
    }

    async fn send_once(
        &self,
        method: Method,
        mut ours: HeaderMap,
        theirs: &HeaderMap,
        mut body: RequestBody,
    ) -> Result<HttpResponse, String> {
        ours.insert(USER_AGENT, HeaderValue::from_static(concat!("rehearsal/", env!("CARGO_PKG_VERSION"))));
        overwrite(&mut ours, &self.headers);
        overwrite(&mut ours, theirs);
        let mut url = self.final_url.get().unwrap_or(&self.url).clone();
        // After the first response the URL is known, so the body need not be kept for a redirect.
        let mut redirects = if self.final_url.get().is_none() { MAX_REDIRECTS } else { 0 };
        loop {
            let repeat = (redirects > 0).then(|| (ours.clone(), body.repeat()));
            let mut request = Request::new(body);
            *request.method_mut() = method.clone();
            *request.uri_mut() = url.clone();
            *request.headers_mut() = ours;
            let response = self.client.request(request).await.map_err(|error| self.explain(&error))?;
            let (parts, answer) = response.into_parts();
            let head = HttpMeta { status: Some(parts.status), headers: parts.headers };
            match redirect_target(&url, &head).zip(repeat) {
                Some((next, repeat)) => {
                    // A connection can be reused only if the body was read to its end.
                    read(answer, REFUSAL_LIMIT).await;
                    (ours, body) = repeat;
                    (url, redirects) = (next, redirects - 1);
                }
                None => {
                    let _ = self.final_url.set(url);
                    return Ok(HttpResponse { status: parts.status, head: Arc::new(head), body: answer });
                }
            }
        }
    }

    fn explain(&self, error: &ClientError) -> String {
        let what = if error.is_connect() { "cannot connect to" } else { "the connection broke:" };
        let cause = error.source().map_or_else(|| error.to_string(), join_causes);
        match (error.is_connect(), self.url.authority()) {
            (true, Some(authority)) => format!("{what} {authority}: {cause}"),
            _ => format!("{what} {cause}"),
        }
    }
}

/// Returns the URL to repeat the request at, if this is a redirect within the same origin.
fn redirect_target(url: &Uri, head: &HttpMeta) -> Option<Uri> {
    head.status.filter(|status| matches!(status.as_u16(), 307 | 308))?;
    resolve(url, head.headers.get(LOCATION)?.to_str().ok()?).ok()
}

/// Replaces each header that `winner` contains. An empty value removes the header.
fn overwrite(headers: &mut HeaderMap, winner: &HeaderMap) {
    for name in winner.keys() {
        let before = headers.remove(name).filter(|value| !value.is_empty());
        for value in winner.get_all(name) {
            if before.is_none() || !value.is_empty() {
                headers.append(name, value.clone());
            }
        }
    }
}

/// Joins an error and its causes: `client error: tcp connect error: Connection refused (os error 111)`
pub fn join_causes(error: &(dyn Error + 'static)) -> String {
    let mut joined = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !joined.ends_with(&text) {
            joined.push_str(": ");
            joined.push_str(&text);
        }
        cause = error.source();
    }
    joined
}

/// Builds the TLS configuration. It names the ring provider, because an application may have installed another one for
/// the process.
pub(in crate::http) fn tls(url: &Uri, root_certificates: &[Bytes]) -> Result<ClientConfig, ConnectError> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in root_certificates.iter().enumerate() {
        add_certificates(&mut roots, certificate)
            .map_err(|why| ConnectError::BadCertificate { number: index + 1, why })?;
    }
    // Reading the system's certificates takes milliseconds, which a connection without TLS does not need.
    if url.scheme() == Some(&http::uri::Scheme::HTTPS) {
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            let why = system.errors.iter().map(|error| join_causes(error)).collect();
            return Err(ConnectError::NoRootCertificates { why });
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| ConnectError::Failed { why: join_causes(&error) })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Adds one DER certificate, or every certificate of a PEM file.
fn add_certificates(roots: &mut RootCertStore, certificate: &Bytes) -> Result<(), String> {
    if !certificate.trim_ascii_start().starts_with(b"-----") && !certificate.starts_with(b"#") {
        return roots.add(CertificateDer::from(certificate.to_vec())).map_err(|error| join_causes(&error));
    }
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(certificate) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| join_causes(&error))?;
        found = true;
    }
    if found { Ok(()) } else { Err("no certificate in the PEM text".to_owned()) }
}

type DialError = Box<dyn Error + Send + Sync>;

/// Opens connections with one time limit for name resolution, TCP and TLS.
///
/// The limit of [`HttpConnector`] covers TCP alone. The usual hang is a server that accepts a connection and then sends
/// nothing.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    tls: HttpsConnector<HttpConnector>,
    limit: Duration,
}

impl Connector {
    pub(super) fn new(tls: HttpsConnector<HttpConnector>, limit: Duration) -> Connector {
        Connector { tls, limit }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Self::Response, DialError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        self.tls.poll_ready(context)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let (connecting, limit) = (self.tls.call(url), self.limit);
        Box::pin(async move {
            let connected = timeout(limit, connecting).await;
            let late = || io::Error::new(io::ErrorKind::TimedOut, format!("not connected within {limit:?}"));
            connected.map_err(|_| late())?
        })
    }
}

/// A request body that reports when it is taken to be written.
///
/// A request may be followed by its cancellation on another connection. Waiting until the request is being written
/// keeps the two in order as far as two connections can.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Full<Bytes>,
    started: Option<oneshot::Sender<()>>,
}

impl RequestBody {
    /// Builds a body, and a receiver that resolves when the body is taken or dropped.
    pub(super) fn new(bytes: Bytes) -> (RequestBody, oneshot::Receiver<()>) {
        let (started, on_start) = oneshot::channel();
        (RequestBody { body: Full::new(bytes), started: Some(started) }, on_start)
    }

    /// Copies the body for a repeated request.
    pub(super) fn repeat(&self) -> RequestBody {
        RequestBody { body: self.body.clone(), started: None }
    }

    /// Builds an empty body.
    pub(super) fn empty() -> RequestBody {
        RequestBody { body: Full::default(), started: None }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(started) = self.started.take() {
            let _ = started.send(()); // the receiver may be dropped
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The longest response body that [`fetch`] reads, in bytes.
pub const FETCH_LIMIT: usize = 1024 * 1024;

/// Sends one request and reads the whole response. Redirects are not followed, and only the connection settings of
/// `options` are used.
pub async fn fetch(
    options: &HttpClientOptions,
    request: Request<Bytes>,
    limit: Duration,
) -> Result<Response<Bytes>, ConnectError> {
    let (head, body) = request.into_parts();
    let mut options = HttpClientOptions { authorize: None, url: head.uri, ..options.clone() };
    options.headers.clear();
    let peer = HttpClient::new(&options)?.without_redirects();
    let fetched = timeout(limit, async {
        let answer = peer.request(head.method, head.headers, &http::HeaderMap::new(), RequestBody::new(body).0).await;
        let answer = answer.map_err(|error| ConnectError::Failed { why: error.to_string() })?;
        let status = answer.status;
        let headers = answer.head.headers.clone();
        let read = read(answer.body, FETCH_LIMIT).await;
        match read.end {
            ReadEnd::Whole => {
                let mut response = Response::new(read.bytes);
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                Ok(response)
            }
            ReadEnd::TooLong => Err(ConnectError::Failed {
                why: format!("the response is longer than the limit of {FETCH_LIMIT} bytes"),
            }),
            ReadEnd::Broken { why } => Err(ConnectError::Failed { why }),
        }
    });
    fetched.await.unwrap_or_else(|_| Err(ConnectError::Failed { why: format!("no response within {limit:?}") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines = [(&'static str, &'static str)];

    fn map(headers: &Lines) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn a_header_can_be_replaced_repeated_added_and_removed() {
        let ours = [("mcp-method", "ping"), ("mcp-name", "")];
        let table: &[(&Lines, &Lines)] = &[
            (&[("mcp-method", "x")], &[("mcp-name", ""), ("mcp-method", "x")]),
            (
                &[("mcp-method", "x"), ("mcp-method", "y")],
                &[("mcp-name", ""), ("mcp-method", "x"), ("mcp-method", "y")],
            ),
            (&[("mcp-method", "")], &[("mcp-name", "")]),
            (&[("mcp-name", "")], &ours),
            (&[("mcp-param-x", "")], &[ours[0], ours[1], ("mcp-param-x", "")]),
        ];
        for (theirs, expected) in table {
            let mut headers = map(&ours);
            overwrite(&mut headers, &map(theirs));
            assert_eq!(headers, map(expected), "{theirs:?}");
        }
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let mut options = HttpClientOptions::new("http://localhost/mcp").unwrap();
        options.headers = map(&[("authorization", "Bearer secret")]);
        let shown = format!("{:?}", HttpClient::new(&options).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
}
