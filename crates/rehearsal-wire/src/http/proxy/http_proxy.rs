//! A proxy: its listener, its options, and the trait that observes what passes.

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

use super::relay::{Relay, forward, told};
use super::request_head::Rules;
use super::rewrite::Origin;
use super::upstream::Upstream;
use crate::http::client;
use crate::http::client::ConnectError;
use crate::http::server::Hosts;

/// A reverse proxy. Dropping it ends everything at once; [`HttpProxy::shutdown`] is polite.
#[derive(Debug)]
pub struct HttpProxy {
    address: SocketAddr,
    upstream: Uri,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Why a proxy could not begin.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The server cannot be reached at all.
    #[error(transparent)]
    Upstream(#[from] ConnectError),
}

impl HttpProxy {
    /// Begins to listen.
    pub async fn bind(options: Options, tap: Arc<dyn Tap>) -> Result<HttpProxy, BindError> {
        let Options {
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
        let failed = |source| BindError::Address { address: listen, source };
        let way = Upstream::new(&upstream, &root_certificates, connect_timeout)?;
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let rules = Rules { hosts, origins, upstream: Origin::of(&upstream), authorization, head_limit: limits.head };
        let sockets = limits.sockets;
        let relay = Relay { rules: Arc::new(rules), tap, upstream: way, limits, grace };
        let (stop, stopping) = watch::channel(false);
        let task = tokio::spawn(serve(listener, Arc::new(relay), sockets, stopping));
        Ok(HttpProxy { address, upstream, stop, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that clients use in the place of the server's: only host and port are others.
    pub fn url(&self) -> String {
        let path = self.upstream.path_and_query().map_or("/", |path| path.as_str());
        format!("http://{}{path}", self.address)
    }

    /// Stops listening, waits a little for responses that are on their way, then closes everything; returns when it is over.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        // The only errors are that it is over already.
        let _ = (&mut self.task).await;
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, relay: Arc<Relay>, sockets: usize, mut stopping: watch::Receiver<bool>) {
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
                // Out of file descriptors, or the client is gone already: neither gets better at once.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = tasks.join_next() => {}
            () = told(&mut stopping) => break,
        }
    }
    drop(listener);
    let all_done = async |tasks: &mut JoinSet<()>| while tasks.join_next().await.is_some() {};
    let _ = tokio::time::timeout(relay.grace + Duration::from_secs(1), all_done(&mut tasks)).await;
    tasks.shutdown().await;
}

/// Watches everything that passes through a proxy.
pub trait Tap: Send + Sync + 'static {
    /// A request begins. Requests with the same number came over the same client socket.
    fn begin(&self, socket: u64, head: HttpHead) -> Box<dyn Watcher>;
}

/// Watches one request and its response.
pub trait Watcher: Send {
    /// Something was read; nothing of it has been forwarded yet.
    fn saw(&mut self, sight: Sight<'_>);

    /// All that was seen is about to be forwarded.
    ///
    /// [`Forward::Wait`] is heard only while the body of the request is on its way, for 64 KiB and two seconds at most.
    fn forwarding(&mut self) -> Forward;

    /// What was held back has waited for two seconds, and is forwarded now.
    fn released(&mut self);
}

/// Whether what was read may go on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// It may.
    Now,
    /// Together with what comes next.
    Wait,
}

/// What was read. Data comes without the framing of HTTP, in whatever pieces it arrived.
#[derive(Debug)]
pub enum Sight<'a> {
    /// Some of the body of the request.
    RequestData(&'a [u8]),
    /// The request is whole.
    RequestEnd,
    /// The head of a response; those with a status of 1xx are followed by another.
    Response(HttpHead),
    /// Some of the body of the response.
    ResponseData(&'a [u8]),
    /// The response is whole.
    ResponseEnd,
    /// Nothing more comes.
    Over(Over),
}

/// Why nothing more comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Both the request and the response are whole.
    Done,
    /// The client went away.
    ClientGone,
    /// The upstream went away, or could not be reached, and this is why.
    UpstreamGone(String),
    /// The request, or what is left of it, was not forwarded.
    Refused(String),
    /// Both sides speak another protocol from here on, as they agreed; it is forwarded and not watched.
    Upgraded,
    /// The proxy was stopped.
    Stopped,
}

/// What a proxy may be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The server. Its path is not used for anything but [`HttpProxy::url`](super::HttpProxy::url): every path is forwarded.
    pub upstream: Uri,
    /// Which `Host` a request may name.
    pub hosts: Hosts,
    /// Which `Origin` a request may come from, if it says so: that of a page in a browser.
    pub origins: Hosts,
    /// The `Authorization` of every request that brings none of its own, as it is just then. Whoever watches does not see it.
    pub authorization: Option<watch::Receiver<Option<HeaderValue>>>,
    /// Certificates to trust beside those of the system, each as PEM or DER.
    pub root_certificates: Vec<Bytes>,
    /// How long a connection to the server may take to be made.
    pub connect_timeout: Duration,
    /// How long a shutdown waits for responses that are not streams of events.
    pub grace: Duration,
    /// How much is too much.
    pub limits: Limits,
}

/// How much is too much.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of the head of a request, beyond which the answer is 431, or of a response, beyond which it is no longer
    /// understood.
    pub head: usize,
    /// How long the head of a request may take.
    pub head_timeout: Duration,
    /// Open client sockets; further clients wait to be let in.
    pub sockets: usize,
    /// Requests of one socket that wait for their responses; the next ones are not read.
    pub pipelined: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { head: 64 * 1024, head_timeout: Duration::from_secs(30), sockets: 4096, pipelined: 256 }
    }
}

impl Options {
    /// The usual options for an upstream server.
    pub fn new(listen: SocketAddr, upstream: &str) -> Result<Options, ConnectError> {
        Ok(Options {
            listen,
            upstream: client::Options::new(upstream)?.url,
            hosts: Hosts::default(),
            origins: Hosts::default(),
            authorization: None,
            root_certificates: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(1),
            limits: Limits::default(),
        })
    }
}
