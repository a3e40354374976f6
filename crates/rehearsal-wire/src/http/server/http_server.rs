//! A listener, and the conversations that begin there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::options::Options;
use super::registry::Registry;
use super::router::route;
use crate::Connection;

/// A server of MCP over HTTP. Dropping it ends everything at once; [`HttpServer::shutdown`] is polite.
#[derive(Debug)]
pub struct HttpServer {
    newcomers: mpsc::UnboundedReceiver<Connection>,
    handle: Handle,
    pub(super) registry: Arc<Registry>,
    task: JoinHandle<()>,
}

/// A way to a server that somebody else is serving.
#[derive(Clone, Debug)]
pub struct Handle {
    address: SocketAddr,
    path: Arc<str>,
    sse_path: Arc<str>,
    stop: Arc<watch::Sender<bool>>,
    stopped: watch::Receiver<bool>,
}

/// Why a server could not begin.
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
    /// A path without a slash in front.
    #[error("path {path:?} does not begin with a slash")]
    Path {
        /// The path.
        path: String,
    },
}

impl HttpServer {
    /// Begins to listen.
    pub async fn bind(options: Options) -> Result<HttpServer, BindError> {
        for path in [&options.path, &options.sse_path, &options.message_path] {
            if !path.starts_with('/') {
                return Err(BindError::Path { path: path.clone() });
            }
        }
        let failed = |source| BindError::Address { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (path, sse_path) = (options.path.as_str().into(), options.sse_path.as_str().into());
        let (sender, newcomers) = mpsc::unbounded_channel();
        let registry = Arc::new(Registry::new(options, sender));
        let (stop, stopping) = watch::channel(false);
        let (stopped, is_stopped) = watch::channel(false);
        let task = tokio::spawn(serve(listener, registry.clone(), stopping, stopped));
        let handle = Handle { address, path, sse_path, stop: Arc::new(stop), stopped: is_stopped };
        Ok(HttpServer { newcomers, handle, registry, task })
    }

    /// The next conversation; `None` after a shutdown.
    pub async fn accept(&mut self) -> Option<Connection> {
        tokio::select! {
            biased;
            connection = self.newcomers.recv() => connection,
            // The registry keeps the way for newcomers open, so only this tells that nobody comes any more.
            () = told(&mut self.handle.stopped) => None,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.handle.address
    }

    /// The address of Streamable HTTP, such as `http://127.0.0.1:8080/mcp`.
    pub fn url(&self) -> String {
        self.handle.url()
    }

    /// The address of HTTP+SSE, such as `http://127.0.0.1:8080/sse`.
    pub fn sse_url(&self) -> String {
        self.handle.sse_url()
    }

    /// Something to shut the server down with, while somebody else waits in [`HttpServer::accept`].
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops listening, lets what runs finish for a while, then closes everything; returns when it is over.
    pub async fn shutdown(&self) {
        self.handle.shutdown().await;
    }
}

impl Handle {
    /// Where it can be reached.
    pub fn address(&self) -> SocketAddr {
        reachable(self.address)
    }

    /// The address of Streamable HTTP.
    pub fn url(&self) -> String {
        format!("http://{}{}", reachable(self.address), self.path)
    }

    /// The address of HTTP+SSE.
    pub fn sse_url(&self) -> String {
        format!("http://{}{}", reachable(self.address), self.sse_path)
    }

    /// Stops listening, lets what runs finish for a while, then closes everything; returns when it is over.
    pub async fn shutdown(&self) {
        self.stop.send_replace(true);
        told(&mut self.stopped.clone()).await;
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
        self.registry.end_all();
    }
}

/// Waits until it is so, or until nobody is left who could say it.
async fn told(signal: &mut watch::Receiver<bool>) {
    let _ = signal.wait_for(|told| *told).await;
}

/// An address that a client can connect to: "every address" is none.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

async fn serve(
    listener: TcpListener,
    registry: Arc<Registry>,
    mut stopping: watch::Receiver<bool>,
    stopped: watch::Sender<bool>,
) {
    let options = &registry.options;
    let sockets = Arc::new(Semaphore::new(options.limits.sockets.clamp(1, Semaphore::MAX_PERMITS)));
    let check = (options.session_idle / 4).clamp(Duration::from_millis(1), Duration::from_secs(60));
    let mut expiry = tokio::time::interval(check);
    let mut tasks = JoinSet::new();
    let stop = stopping.clone();
    loop {
        let next = async {
            let permit = sockets.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        tokio::select! {
            (accepted, permit) = next => match accepted {
                Ok((stream, _)) => {
                    let talk = talk(stream, registry.clone(), stop.clone());
                    tasks.spawn(async move {
                        talk.await;
                        drop(permit);
                    });
                }
                // Out of file descriptors, or the client is gone already: neither gets better at once.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = tasks.join_next() => {}
            _ = expiry.tick() => registry.expire(),
            () = told(&mut stopping) => break,
        }
    }
    drop(listener);
    registry.drain();
    let all_done = async |tasks: &mut JoinSet<()>| while tasks.join_next().await.is_some() {};
    let _ = tokio::time::timeout(options.grace, all_done(&mut tasks)).await;
    registry.end_all();
    // Streams that were just ended still have to say so to their clients.
    let _ = tokio::time::timeout(Duration::from_secs(1), all_done(&mut tasks)).await;
    tasks.shutdown().await;
    stopped.send_replace(true);
}

/// Answers the requests that come over one socket.
async fn talk(stream: TcpStream, registry: Arc<Registry>, mut stop: watch::Receiver<bool>) {
    // Without it a chunk of a stream waits for the acknowledgement of the one before: 40 ms each.
    let _ = stream.set_nodelay(true);
    let limits = &registry.options.limits;
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(limits.head.max(8192));
    let service = service_fn(|request| route(registry.clone(), request));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // An error means that the client broke off or speaks no HTTP; it has been told as far as it listens.
    let _ = tokio::select! {
        served = connection.as_mut() => served,
        () = told(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}
