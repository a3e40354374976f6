//! Serves until the client disconnects or a signal stops the server.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

use crate::server::InstructionServer;

/// After a stop signal: maximum time for pending responses.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Why serving ended before it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error("cannot listen on {address}: {cause}")]
    Listen { address: SocketAddr, cause: io::Error },
    #[error("signals cannot be awaited: {0}")]
    Signals(#[source] io::Error),
    #[error("the handshake failed: {0}")]
    Handshake(#[source] Box<ServerInitializeError>),
}

/// Serves stdin and stdout until stdin ends.
pub(crate) async fn stdio(server: InstructionServer) -> Result<(), ServeError> {
    let end = stop_signal().map_err(ServeError::Signals)?;
    let serving = async {
        match server.serve(stdio_pipes()).await {
            Ok(running) => {
                // It ends because the client disconnected, which is no failure.
                let _ = running.waiting().await;
                Ok(())
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServeError::Handshake(Box::new(error))),
        }
    };
    tokio::select! {
        served = serving => served,
        () = end => Ok(()),
    }
}

/// Serves Streamable HTTP at `/mcp`, and prints the URL to stderr: `listening on http://127.0.0.1:43121/mcp`.
pub(crate) async fn http(server: InstructionServer, address: SocketAddr) -> Result<(), ServeError> {
    let end = stop_signal().map_err(ServeError::Signals)?;
    tokio::pin!(end);
    let failed = |cause| ServeError::Listen { address, cause };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    eprintln!("listening on http://{}/mcp", listener.local_addr().map_err(failed)?);
    let config = StreamableHttpServerConfig::default();
    let stop = config.cancellation_token.clone();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut end => break,
        };
        // The client disconnected at once, or there are too many open files: the server continues.
        match accepted {
            Ok((stream, _)) => answer(&service, &connections, stream),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    stop.cancel();
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, connections.shutdown()).await;
    Ok(())
}

fn answer(
    service: &StreamableHttpService<InstructionServer, LocalSessionManager>,
    connections: &GracefulShutdown,
    stream: TcpStream,
) {
    // Without this an answer waits for the client to acknowledge its headers, for 40 ms.
    let _ = stream.set_nodelay(true);
    let service = service.clone();
    let answer = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let service = service.clone();
        async move {
            let response = service.handle(request).await;
            Ok::<_, Infallible>(response)
        }
    });
    let connection = connections.watch(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    // A disconnect of the client is no failure.
    tokio::spawn(async move { drop(connection.await) });
}

/// Resolves at SIGTERM or SIGINT.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
