//! What a proxy may be told.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use tokio::sync::watch;

use crate::http::client::{self, ConnectError};
use crate::http::server::Hosts;

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
    /// The usual options for a server: only this machine may ask, or whoever knows us by the address that we listen on.
    pub fn new(listen: SocketAddr, upstream: &str) -> Result<Options, ConnectError> {
        let hosts = match listen.ip() {
            address if address.is_loopback() || address.is_unspecified() => Hosts::Loopback,
            IpAddr::V4(address) => Hosts::LoopbackAnd(vec![address.to_string()]),
            IpAddr::V6(address) => Hosts::LoopbackAnd(vec![format!("[{address}]")]),
        };
        Ok(Options {
            listen,
            upstream: client::Options::new(upstream)?.url,
            hosts: hosts.clone(),
            origins: hosts,
            authorization: None,
            root_certificates: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(1),
            limits: Limits::default(),
        })
    }
}
