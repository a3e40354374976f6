//! A small MCP server to try things on, on the official Rust SDK.

mod input;
mod server;

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::ServiceExt;
use rmcp::model::ProtocolVersion;
use rmcp::service::ServerInitializeError;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use server::TinyServer;
use tokio::net::TcpListener;

const HELP: &str = "\
tiny-server: a small MCP server to try things on; `rehearse list -- tiny-server` shows what it offers

Usage: tiny-server [--http] [--only legacy|modern]

  --http      Listens on a free port of 127.0.0.1 instead of stdin, and prints the URL on stderr.
  --only ERA  Serves the versions with a handshake alone (legacy), or those since 2026-07-28 (modern).
";

/// How long a client whose stream broke is asked to wait.
///
/// The SDK's own 3 s would be longer than the calls take, and an answer that comes in the meantime is lost.
const RETRY: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let all = ProtocolVersion::KNOWN_VERSIONS;
    let modern = all.iter().position(|version| *version == ProtocolVersion::V_2026_07_28).unwrap_or(all.len());
    let (mut is_http, mut versions) = (false, all);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            "--http" => is_http = true,
            "--only" => match arguments.next().as_deref() {
                Some("legacy") => versions = &all[..modern],
                Some("modern") => versions = &all[modern..],
                _ => return misuse(format_args!("--only must be legacy or modern")),
            },
            _ => return misuse(format_args!("unknown argument {argument:?}")),
        }
    }
    match serve(is_http, versions) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tiny-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn misuse(misuse: fmt::Arguments<'_>) -> ExitCode {
    eprintln!("tiny-server: {misuse}\nhint: tiny-server --help");
    ExitCode::from(2)
}

fn serve(is_http: bool, versions: &'static [ProtocolVersion]) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served =
        runtime.block_on(async { if is_http { serve_http(versions).await } else { serve_stdio(versions).await } });
    // A thread that reads from a terminal cannot be stopped, and must not be waited for.
    runtime.shutdown_background();
    served
}

async fn serve_stdio(versions: &'static [ProtocolVersion]) -> Result<(), Box<dyn Error>> {
    match TinyServer::new(versions).serve(rmcp::transport::stdio_pipes()).await {
        Ok(running) => {
            running.waiting().await?;
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn serve_http(versions: &'static [ProtocolVersion]) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = Some(RETRY);
    let config = StreamableHttpServerConfig::default().with_sse_retry(Some(RETRY));
    let service = StreamableHttpService::new(move || Ok(TinyServer::new(versions)), Arc::new(sessions), config);
    loop {
        let (stream, _) = listener.accept().await?;
        // Without this an answer waits for the client to acknowledge its headers, for 40 ms.
        stream.set_nodelay(true)?;
        let service = service.clone();
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.handle(request).await) }
        });
        tokio::spawn(async move {
            // A client that disconnects is no failure of the server.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}
