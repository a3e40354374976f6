//! A server on HTTP and in memory until it is dropped, and the one accept loop.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rehearsal_wire::http::server::{BindError, Handle, HttpServer, HttpServerOptions, ResponseMode};
use rehearsal_wire::{Connection, memory};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Server;

/// How long a server may take to report that it is healthy.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server that stops may take to send its last answers.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a POST of HTTP+SSE waits for an answer that may be an HTTP status.
const POST_HOLD: Duration = Duration::from_secs(1);

/// A server on a free port of this machine, and on any number of connections in memory. It is gone when it is dropped, also
/// if the test panics.
///
/// It runs on a thread of its own, so it serves tests without a runtime and blocking clients too.
pub struct ServerFixture {
    server: Server,
    handle: Handle,
    stop: watch::Sender<bool>,
    runtime: tokio::runtime::Handle,
    thread: Option<JoinHandle<()>>,
}

/// Why a server could not start.
#[derive(thiserror::Error)]
pub enum StartError {
    /// It cannot listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// It has no thread to run on.
    #[error("cannot start the server's thread")]
    Thread(#[source] io::Error),
    /// It listens, but does not report that it is healthy.
    #[error("the server listens on {url}, but does not answer there")]
    Unhealthy {
        /// The URL that was requested.
        url: String,
        /// What went wrong.
        #[source]
        cause: io::Error,
    },
}

debug_as_display!(StartError);

impl fmt::Debug for ServerFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerFixture").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl ServerFixture {
    /// Starts a server. When this returns, clients can connect.
    pub fn start(server: Server, options: HttpServerOptions) -> Result<ServerFixture, StartError> {
        let (stop, mut stopping) = watch::channel(false);
        let (started, starting) = mpsc::channel();
        let served = server.clone();
        let thread = std::thread::Builder::new().name("mcp server".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(StartError::Thread(error)))),
            };
            let handle = runtime.handle().clone();
            runtime.block_on(async {
                match HttpServer::bind(options).await {
                    Ok(listener) => {
                        // If the receiver is gone, the test is over already.
                        let _ = started.send(Ok((listener.handle(), handle)));
                        // An error means that the fixture is gone.
                        let stopped = async { drop(stopping.wait_for(|stopping| *stopping).await) };
                        serve_http(&served, listener, stopped).await;
                    }
                    Err(error) => drop(started.send(Err(error.into()))),
                }
            });
            runtime.shutdown_background();
        });
        let thread = thread.map_err(StartError::Thread)?;
        let gone = |_| StartError::Thread(io::Error::other("the thread of the server ended"));
        let (handle, runtime) = starting.recv().map_err(gone)??;
        let fixture = ServerFixture { server, handle, stop, runtime, thread: Some(thread) };
        let unhealthy = |cause| StartError::Unhealthy { url: fixture.health_url(), cause };
        check_health(fixture.handle.address()).map_err(unhealthy)?;
        Ok(fixture)
    }

    /// The URL of Streamable HTTP, for both eras.
    pub fn url(&self) -> String {
        self.handle.url()
    }

    /// The URL of HTTP+SSE.
    pub fn sse_url(&self) -> String {
        self.handle.sse_url()
    }

    /// The URL at which the server reports that it is healthy.
    pub fn health_url(&self) -> String {
        format!("http://{}/health", self.handle.address())
    }

    /// A new connection in memory.
    pub fn connection(&self) -> Connection {
        let (client, served) = memory::pair();
        let server = self.server.clone();
        self.runtime.spawn(async move { server.serve(served).await });
        client
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Runs a future on the server's thread, and waits for it.
    pub(crate) fn block_on<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (done, result) = mpsc::channel();
        self.runtime.spawn(async move { drop(done.send(future.await)) });
        result.recv().ok()
    }
}

impl Drop for ServerFixture {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic on that thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Serves every client of a listener until `stopped` returns, and then stops the server. `None` if the listener failed, or if
/// an `exit` fault ended the server.
pub async fn serve_http<T>(server: &Server, mut listener: HttpServer, stopped: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(stopped);
    let mut connections = JoinSet::new();
    let output = loop {
        tokio::select! {
            connection = listener.accept() => match connection {
                Some(connection) => {
                    let server = server.clone();
                    connections.spawn(async move { server.serve(connection).await });
                }
                None => return None,
            },
            Some(_) = connections.join_next() => {}
            // As after a crash: no last answers, and every socket is closed.
            _ = server.exited() => return None,
            output = &mut stopped => break output,
        }
    };
    server.stop();
    // A client that does not read its last answers is not waited for.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, listener.shutdown()).await;
    Some(output)
}

/// The options of a listener that serves a chain.
pub fn http_options(server: &Server) -> HttpServerOptions {
    let chain = server.chain();
    let needs = chain.surface().http.clone();
    HttpServerOptions {
        revisions: chain.surface().revisions().to_vec(),
        answers: if needs.only_streams { ResponseMode::Events } else { ResponseMode::Auto },
        retry: needs.retry,
        hold_posts: needs.refuses_with_status.then_some(POST_HOLD),
        tool_schema: Some(Arc::new(move |tool: &str| needs.header_schemas.get(tool).cloned())),
        ..HttpServerOptions::default()
    }
}

fn check_health(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, START_TIMEOUT)?;
    stream.set_read_timeout(Some(START_TIMEOUT))?;
    write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut status = [0; 12];
    stream.read_exact(&mut status)?;
    let status = String::from_utf8_lossy(&status);
    if status == "HTTP/1.1 200" { Ok(()) } else { Err(io::Error::other(format!("it answered {status:?}"))) }
}
