//! A listener, and what is forwarded from there.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::options::Options;
use super::relay::{Relay, forward, told};
use super::request_head::Rules;
use super::rewrite::Origin;
use super::tap::Tap;
use super::upstream::Upstream;
use crate::http::client::ConnectError;

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
