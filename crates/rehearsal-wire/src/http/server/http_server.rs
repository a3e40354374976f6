//! The listener, and the connections that it accepts.

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

use super::options::HttpServerOptions;
use super::router::route;
use super::sessions::SessionRegistry;
use crate::Connection;

/// An MCP server over HTTP. Dropping it closes all connections at once; [`HttpServer::shutdown`] waits for active
/// requests.
#[derive(Debug)]
pub struct HttpServer {
    new_connections: mpsc::UnboundedReceiver<Connection>,
    handle: Handle,
    pub(super) registry: Arc<SessionRegistry>,
    task: JoinHandle<()>,
}

/// A handle to a server that another task is serving.
#[derive(Clone, Debug)]
pub struct Handle {
    address: SocketAddr,
    path: Arc<str>,
    sse_path: Arc<str>,
    stop: Arc<watch::Sender<bool>>,
    stopped: watch::Receiver<bool>,
}

/// Why a server could not start.
#[derive(thiserror::Error)]
pub enum BindError {
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A path does not start with a slash.
    #[error("path {path:?} does not begin with a slash")]
    Path {
        /// The path.
        path: String,
    },
}

debug_as_display!(BindError);

impl HttpServer {
    /// Starts to listen.
    pub async fn bind(options: HttpServerOptions) -> Result<HttpServer, BindError> {
        for path in [&options.path, &options.sse_path, &options.message_path] {
            if !path.starts_with('/') {
                return Err(BindError::Path { path: path.clone() });
            }
        }
        let failed = |source| BindError::Address { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (path, sse_path) = (options.path.as_str().into(), options.sse_path.as_str().into());
        let (sender, new_connections) = mpsc::unbounded_channel();
        let registry = Arc::new(SessionRegistry::new(options, sender));
        let (stop, stopping) = watch::channel(false);
        let (stopped, is_stopped) = watch::channel(false);
        let task = tokio::spawn(serve(listener, registry.clone(), stopping, stopped));
        let handle = Handle { address, path, sse_path, stop: Arc::new(stop), stopped: is_stopped };
        Ok(HttpServer { new_connections, handle, registry, task })
    }

    /// Waits for the next connection; `None` after a shutdown.
    pub async fn accept(&mut self) -> Option<Connection> {
        tokio::select! {
            biased;
            connection = self.new_connections.recv() => connection,
            // The registry keeps the queue open, so only this flag reports the shutdown.
            () = wait_until_set(&mut self.handle.stopped) => None,
        }
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.handle.address
    }

    /// Returns the URL of Streamable HTTP, such as `http://127.0.0.1:8080/mcp`.
    pub fn url(&self) -> String {
        self.handle.url()
    }

    /// Returns the URL of HTTP+SSE, such as `http://127.0.0.1:8080/sse`.
    pub fn sse_url(&self) -> String {
        self.handle.sse_url()
    }

    /// Returns a handle to shut the server down while another task waits in [`HttpServer::accept`].
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops listening, waits a limited time for active requests, and closes all connections. Returns when they are
    /// closed.
    pub async fn shutdown(&self) {
        self.handle.shutdown().await;
    }
}

impl Handle {
    /// Returns the address that clients can connect to.
    pub fn address(&self) -> SocketAddr {
        reachable(self.address)
    }

    /// Returns the URL of Streamable HTTP.
    pub fn url(&self) -> String {
        format!("http://{}{}", reachable(self.address), self.path)
    }

    /// Returns the URL of HTTP+SSE.
    pub fn sse_url(&self) -> String {
        format!("http://{}{}", reachable(self.address), self.sse_path)
    }

    /// Stops listening, waits a limited time for active requests, and closes all connections. Returns when they are
    /// closed.
    pub async fn shutdown(&self) {
        self.stop.send_replace(true);
        wait_until_set(&mut self.stopped.clone()).await;
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
        self.registry.end_all();
    }
}

/// Waits until the flag is set, or its sender is dropped.
async fn wait_until_set(signal: &mut watch::Receiver<bool>) {
    let _ = signal.wait_for(|set| *set).await;
}

/// Returns an address that a client can connect to. The wildcard address is not one.
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
    registry: Arc<SessionRegistry>,
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
                    let serving = serve_socket(stream, registry.clone(), stop.clone());
                    tasks.spawn(async move {
                        serving.await;
                        drop(permit);
                    });
                }
                // No file descriptors are left, or the client has disconnected already. An immediate retry would fail
                // too.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = tasks.join_next() => {}
            _ = expiry.tick() => registry.expire(),
            () = wait_until_set(&mut stopping) => break,
        }
    }
    drop(listener);
    registry.drain();
    let all_done = async |tasks: &mut JoinSet<()>| while tasks.join_next().await.is_some() {};
    let _ = tokio::time::timeout(options.grace, all_done(&mut tasks)).await;
    registry.end_all();
    // Streams that were just ended still have to send their end to the client.
    let _ = tokio::time::timeout(Duration::from_secs(1), all_done(&mut tasks)).await;
    tasks.shutdown().await;
    stopped.send_replace(true);
}

/// Serves the requests of one socket.
async fn serve_socket(stream: TcpStream, registry: Arc<SessionRegistry>, mut stop: watch::Receiver<bool>) {
    // Otherwise each chunk of a stream waits for the acknowledgement of the previous one: 40 ms each.
    let _ = stream.set_nodelay(true);
    let limits = &registry.options.limits;
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(limits.head.max(8192));
    let service = service_fn(|request| route(registry.clone(), request));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // An error means that the client disconnected or does not use HTTP. hyper has sent an error response if that was
    // possible.
    let _ = tokio::select! {
        served = connection.as_mut() => served,
        () = wait_until_set(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}
