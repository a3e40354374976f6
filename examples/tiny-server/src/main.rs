//! A small MCP server to try things on; `--help` says how.

mod command_line;

use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use command_line::{Command, HELP};
use rehearsal_wire::http::server::{self, HttpServer};
use rehearsal_wire::{MESSAGE_LIMIT, stdio};
use tiny_server::{Options, Server};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// How long a server that was told to end may say its last words.
const FAREWELL: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    match command_line::read(std::env::args().skip(1)) {
        Ok(Command::Help) => print(HELP),
        Ok(Command::Version) => print(concat!("tiny-server ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Command::Serve { http, page_size }) => match serve(http, Server::new(Options { page_size })) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("tiny-server: {}", with_causes(&*error));
                ExitCode::FAILURE
            }
        },
        Err(misuse) => {
            eprintln!("tiny-server: {misuse}\nhint: tiny-server --help");
            ExitCode::from(2)
        }
    }
}

/// Prints to a stdout that may have been closed, such as that of `| head -1`.
fn print(text: &str) -> ExitCode {
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// `cannot listen on 127.0.0.1:80: Permission denied`
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn serve(http: Option<SocketAddr>, server: Server) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        match http {
            None => serve_stdio(&server).await.map_err(Box::from),
            Some(address) => serve_http(&server, address).await,
        }
    });
    // A thread that reads from a terminal cannot be stopped, and must not be waited for.
    runtime.shutdown_background();
    served
}

async fn serve_stdio(server: &Server) -> io::Result<()> {
    let connection = stdio::own(MESSAGE_LIMIT)?;
    let serving = server.serve(connection);
    tokio::pin!(serving);
    tokio::select! {
        _ = &mut serving => {}
        () = told_to_end()? => {
            server.stop();
            // Whoever does not read the last words does not hold us up.
            let _ = tokio::time::timeout(FAREWELL, serving).await;
        }
    }
    Ok(())
}

async fn serve_http(server: &Server, address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let mut listener = HttpServer::bind(server::Options { address, ..server::Options::default() }).await?;
    let end = told_to_end()?;
    tokio::pin!(end);
    eprintln!("listening on {}", listener.url());
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            connection = listener.accept() => match connection {
                Some(connection) => {
                    let server = server.clone();
                    conversations.spawn(async move { server.serve(connection).await });
                }
                None => return Ok(()),
            },
            Some(_) = conversations.join_next() => {}
            () = &mut end => break,
        }
    }
    server.stop();
    // Whoever does not read the last words does not hold us up.
    let _ = tokio::time::timeout(FAREWELL, listener.shutdown()).await;
    Ok(())
}

/// Resolves at SIGTERM or SIGINT.
fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
