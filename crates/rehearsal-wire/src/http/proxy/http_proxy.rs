//! The proxy: its listener, its options, and the trait that observes the traffic.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use rehearsal_core::trace::HttpHead;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::request_head::ForwardRules;
use super::rewrite::Origin;
use super::socket_relay::{SocketRelay, forward, wait_until_set};
use super::upstream::ProxyUpstream;
use crate::http::client;
use crate::http::client::ConnectError;
use crate::http::server::AllowedHosts;

/// A reverse proxy. Dropping it closes all connections at once; [`HttpProxy::shutdown`] waits for active responses.
#[derive(Debug)]
pub struct HttpProxy {
    address: SocketAddr,
    upstream: Uri,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Why a proxy could not start.
#[derive(thiserror::Error)]
pub enum ProxyBindError {
    /// The proxy cannot listen on the address.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The URL of the upstream or a root certificate cannot be used.
    #[error(transparent)]
    Upstream(#[from] ConnectError),
}

debug_as_display!(ProxyBindError);

impl HttpProxy {
    /// Starts the proxy.
    pub async fn bind(options: HttpProxyOptions, tap: Arc<dyn ProxyTap>) -> Result<HttpProxy, ProxyBindError> {
        let HttpProxyOptions {
            listen,
            upstream,
            hosts,
            origins,
            authorization,
            root_certificates,
            connect_timeout,
            grace,
            limits,
        } = options;
        let failed = |source| ProxyBindError::Address { address: listen, source };
        let connector = ProxyUpstream::new(&upstream, &root_certificates, connect_timeout)?;
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let rules = ForwardRules {
            hosts,
            origins,
            upstream: Origin::from_url(&upstream),
            authorization,
            head_limit: limits.head,
        };
        let sockets = limits.sockets;
        let relay = SocketRelay { rules: Arc::new(rules), tap, upstream: connector, limits, grace };
        let (stop, stopping) = watch::channel(false);
        let task = tokio::spawn(serve(listener, Arc::new(relay), sockets, stopping));
        Ok(HttpProxy { address, upstream, stop, task })
    }

    /// Returns the address that the proxy listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL that clients use instead of the server's: only host and port differ.
    pub fn url(&self) -> String {
        let path = self.upstream.path_and_query().map_or("/", |path| path.as_str());
        format!("http://{}{path}", self.address)
    }

    /// Stops listening, waits a limited time for active responses, and closes all connections. Returns when they are
    /// closed.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        // An error means that the task has ended already.
        let _ = (&mut self.task).await;
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, relay: Arc<SocketRelay>, sockets: usize, mut stopping: watch::Receiver<bool>) {
    let sockets = Arc::new(Semaphore::new(sockets));
    let mut tasks = JoinSet::new();
    let stop = stopping.clone();
    let mut number = 0;
    loop {
        let next = async {
            let permit = sockets.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        tokio::select! {
            (accepted, permit) = next => match accepted {
                Ok((stream, _)) => {
                    number += 1;
                    let forwarding = forward(relay.clone(), stream, number, stop.clone());
                    tasks.spawn(async move {
                        forwarding.await;
                        drop(permit);
                    });
                }
                // No file descriptors are left, or the client has disconnected already. An immediate retry would fail
                // too.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = tasks.join_next() => {}
            () = wait_until_set(&mut stopping) => break,
        }
    }
    drop(listener);
    let all_done = async |tasks: &mut JoinSet<()>| while tasks.join_next().await.is_some() {};
    let _ = tokio::time::timeout(relay.grace + Duration::from_secs(1), all_done(&mut tasks)).await;
    tasks.shutdown().await;
}

/// Watches all traffic of a proxy.
pub trait ProxyTap: Send + Sync + 'static {
    /// A request starts. Requests with the same `socket` came over the same client socket.
    fn begin(&self, socket: u64, head: HttpHead) -> Box<dyn ExchangeObserver>;
}

/// Watches one request and its response.
pub trait ExchangeObserver: Send {
    /// Data was read; none of it has been forwarded yet.
    fn observe(&mut self, observed: Observed<'_>);

    /// Decides whether everything seen so far is forwarded now.
    ///
    /// [`Forward::Wait`] has an effect only while the body of the request is being received, for at most 64 KiB and two
    /// seconds.
    fn forwarding(&mut self) -> Forward;

    /// The held bytes have waited for two seconds, and are forwarded now.
    fn hold_expired(&mut self);
}

/// Whether the bytes that were read are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Forward them now.
    Now,
    /// Hold them, and forward them together with the next ones.
    Wait,
}

/// What was read. Data comes without the framing of HTTP, in pieces as it arrived.
#[derive(Debug)]
pub enum Observed<'a> {
    /// A part of the request body.
    RequestData(&'a [u8]),
    /// The request is complete.
    RequestEnd,
    /// The head of a response. After a 1xx status another head follows.
    Response(HttpHead),
    /// A part of the response body.
    ResponseData(&'a [u8]),
    /// The response is complete.
    ResponseEnd,
    /// The exchange ended.
    Over(ExchangeEnd),
}

/// Why an exchange ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeEnd {
    /// The request and the response are complete.
    Done,
    /// The client disconnected.
    ClientClosed,
    /// The upstream disconnected, or could not be reached; the text is the reason.
    UpstreamFailed(String),
    /// The request, or the rest of it, was not forwarded; the text is the reason.
    Refused(String),
    /// Both sides agreed to switch to another protocol. It is forwarded and not watched.
    Upgraded,
    /// The proxy was stopped.
    Stopped,
}

/// The options of a proxy.
#[derive(Clone, Debug)]
pub struct HttpProxyOptions {
    /// The address to listen on; port 0 selects a free one.
    pub listen: SocketAddr,
    /// The upstream. Its path is used only by [`HttpProxy::url`](super::HttpProxy::url): every path is forwarded.
    pub upstream: Uri,
    /// The allowed values of `Host`.
    pub hosts: AllowedHosts,
    /// The allowed values of `Origin`, which browsers send for the page that makes the request.
    pub origins: AllowedHosts,
    /// The `Authorization` for requests without one; its current value is used. Observers do not see it.
    pub authorization: Option<watch::Receiver<Option<HeaderValue>>>,
    /// Certificates to trust in addition to those of the system, each as PEM or DER.
    pub root_certificates: Vec<Bytes>,
    /// The time limit for connecting to the upstream.
    pub connect_timeout: Duration,
    /// How long a shutdown waits for responses that are not streams of events.
    pub grace: Duration,
    /// The limits.
    pub limits: HttpProxyLimits,
}

/// The limits of a proxy.
#[derive(Clone, Debug)]
pub struct HttpProxyLimits {
    /// The longest head, in bytes. A longer request head gets a 431; a longer response head is forwarded without being
    /// parsed.
    pub head: usize,
    /// The time limit for receiving the head of a request.
    pub head_timeout: Duration,
    /// The most open client sockets; further clients wait until one closes.
    pub sockets: usize,
    /// The most pending requests of one socket; further requests are not read until a response is sent.
    pub pipelined: usize,
}

impl Default for HttpProxyLimits {
    fn default() -> HttpProxyLimits {
        HttpProxyLimits { head: 64 * 1024, head_timeout: Duration::from_secs(30), sockets: 4096, pipelined: 256 }
    }
}

impl HttpProxyOptions {
    /// Builds the default options for an upstream.
    pub fn new(listen: SocketAddr, upstream: &str) -> Result<HttpProxyOptions, ConnectError> {
        Ok(HttpProxyOptions {
            listen,
            upstream: client::HttpClientOptions::new(upstream)?.url,
            hosts: AllowedHosts::default(),
            origins: AllowedHosts::default(),
            authorization: None,
            root_certificates: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(1),
            limits: HttpProxyLimits::default(),
        })
    }
}
