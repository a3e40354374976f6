//! The redirect endpoint to which an authorization server sends the browser back.
//!
//! ```text
//! browser ── GET /callback?code=…&state=… ──► CallbackListener ──► the whole URL
//! ```

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::origin_check::{RequestOrigin, check};
use super::server::AllowedHosts;

/// The path of the redirect URI.
const PATH: &str = "/callback";
/// The most connections that are served concurrently: browsers, and clients that use this port by mistake.
const MAX_CONNECTIONS: usize = 16;
/// The time that a client has to send the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

const DONE_PAGE: &str = "<!doctype html><title>Rehearsal</title>\
<p>The login is complete in the browser. You can close this page and return to the terminal.";

/// Listens on this machine for the browser that an authorization server redirects.
#[derive(Debug)]
pub struct CallbackListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl CallbackListener {
    /// Listens on 127.0.0.1: on `port` if that is free, otherwise on any port.
    pub async fn bind(port: Option<u16>) -> io::Result<CallbackListener> {
        let bound = match port {
            Some(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.ok(),
            None => None,
        };
        let listener = match bound {
            Some(listener) => listener,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
        };
        Ok(CallbackListener { address: listener.local_addr()?, listener })
    }

    /// Returns the redirect URI, such as `http://127.0.0.1:41234/callback`.
    pub fn uri(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for a request with the right `state`, and returns its whole URL. Requests with another `state` are
    /// rejected.
    pub async fn wait_for(&self, state: &str) -> io::Result<String> {
        let (found, mut queries) = mpsc::channel(1);
        let expected: Arc<str> = format!("state={state}").into();
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            tokio::select! {
                Some(query) = queries.recv() => {
                    // The browser gets its page before the listener closes.
                    let _ = tokio::time::timeout(HEAD_TIMEOUT, connections.join_all()).await;
                    return Ok(format!("{}?{query}", self.uri()));
                }
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let (stream, _) = accepted?;
                    let (found, expected) = (found.clone(), Arc::clone(&expected));
                    let service = service_fn(move |request| {
                        let checked = check_query(&request, &expected);
                        if let Ok(query) = &checked {
                            // The queue is full if the query has arrived before.
                            let _ = found.try_send(query.clone());
                        }
                        async move { Ok::<_, Infallible>(page(checked.map(|_| ()))) }
                    });
                    connections.spawn(async move {
                        let mut builder = http1::Builder::new();
                        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).keep_alive(false);
                        // A client that disconnects is ignored.
                        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
                _ = tokio::time::sleep(HEAD_TIMEOUT), if connections.len() >= MAX_CONNECTIONS => connections.abort_all(),
            }
        }
    }
}

/// Returns the expected query, or the status that rejects the request.
fn check_query(request: &Request<Incoming>, expected: &str) -> Result<String, StatusCode> {
    let hosts = request.headers().get_all(HOST).iter().filter_map(|host| host.to_str().ok());
    let named = RequestOrigin { hosts, authority: None, origins: std::iter::empty() };
    if check(named, &AllowedHosts::default(), &AllowedHosts::Any).is_err() {
        return Err(StatusCode::FORBIDDEN);
    }
    if request.uri().path() != PATH || request.method() != Method::GET {
        return Err(StatusCode::NOT_FOUND);
    }
    let query = request.uri().query().unwrap_or_default();
    if query.split('&').any(|pair| pair == expected) { Ok(query.to_owned()) } else { Err(StatusCode::BAD_REQUEST) }
}

fn page(checked: Result<(), StatusCode>) -> Response<Full<Bytes>> {
    let mut response = match checked {
        Ok(()) => Response::new(Full::new(Bytes::from_static(DONE_PAGE.as_bytes()))),
        Err(status) => {
            let mut response = Response::new(Full::new(Bytes::from_static(b"this is not the expected callback\n")));
            *response.status_mut() = status;
            response
        }
    };
    let kind = if checked.is_ok() { "text/html; charset=utf-8" } else { "text/plain" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::super::client::{self, fetch};
    use super::*;

    async fn visit(url: &str) -> StatusCode {
        let request = Request::get(url).body(Bytes::new()).unwrap();
        let options = client::HttpClientOptions::new(url).unwrap();
        fetch(&options, request, Duration::from_secs(20)).await.unwrap().status()
    }

    #[tokio::test]
    async fn only_a_callback_with_the_expected_state_is_accepted() {
        let listener = CallbackListener::bind(None).await.unwrap();
        let uri = listener.uri();
        let browser = async {
            let elsewhere = uri.replace("/callback", "/favicon.ico");
            assert_eq!(visit(&elsewhere).await, StatusCode::NOT_FOUND);
            assert_eq!(visit(&uri).await, StatusCode::BAD_REQUEST);
            assert_eq!(visit(&format!("{uri}?code=evil&state=guess")).await, StatusCode::BAD_REQUEST);
            assert_eq!(visit(&format!("{uri}?code=c&state=s1")).await, StatusCode::OK);
        };
        let (callback_url, ()) = tokio::join!(listener.wait_for("s1"), browser);
        assert_eq!(callback_url.unwrap(), format!("{uri}?code=c&state=s1"));
    }

    #[tokio::test]
    async fn another_port_is_used_if_the_requested_one_is_taken() {
        let first = CallbackListener::bind(None).await.unwrap();
        let port = first.address.port();
        let second = CallbackListener::bind(Some(port)).await.unwrap();
        assert_ne!(first.uri(), second.uri());
        drop(first);
        drop(second);
        assert_eq!(CallbackListener::bind(Some(port)).await.unwrap().address.port(), port);
    }
}
