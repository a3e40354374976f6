//! Calls over Streamable HTTP on the loopback.

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self as client, SendRequest};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rehearsal::Client;
use rehearsal::client::{HttpTransport, Protocol};
use rehearsal::core::protocol::Revision;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

use crate::echo::{answer, result};
use crate::stdio::{arguments, sequential};
use crate::table::{Contest, Table};

/// What makes this program the server instead of the benchmark.
pub(crate) const ARGUMENT: &str = "echo-http";

/// How many calls one turn makes.
const CALLS: u32 = 5_000;

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let server = Server::start(&[ARGUMENT])?;
    let eras = [("2025-11-25", Protocol::Legacy(Revision::LATEST_LEGACY)), ("2026-07-28", Protocol::Modern)];
    for (version, protocol) in eras {
        let url = format!("http://{}/mcp", server.at);
        let connect = Client::url(url).transport(HttpTransport::Streamable).protocol(protocol).connect();
        let client = runtime.block_on(connect)?;
        let response = runtime.block_on(client.call_tool("echo", arguments()))?;
        let mut bare =
            runtime.block_on(BareLoop::connect(server.at, response.exchange().request.message.raw().clone()))?;
        let contest = Contest::new(format!("call_tool over HTTP, {version}"), "hyper alone, at both ends");
        table.measure(contest, || sequential(&runtime, &client, CALLS), || bare.sequential(&runtime))?;
        runtime.block_on(client.close());
    }
    Ok(())
}

/// The POST of the calls, without a client library.
struct BareLoop {
    at: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
    request: Bytes,
}

impl BareLoop {
    async fn connect(at: SocketAddr, request: Bytes) -> Result<BareLoop, Box<dyn Error>> {
        let stream = TcpStream::connect(at).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = client::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(BareLoop { at, sender, request })
    }

    fn sequential(&mut self, runtime: &Runtime) -> Result<Duration, Box<dyn Error>> {
        runtime.block_on(async {
            let started = Instant::now();
            for _ in 0..CALLS {
                let request = Request::post("/mcp")
                    .header("host", self.at.to_string())
                    .header("content-type", "application/json")
                    .header("accept", "application/json, text/event-stream")
                    .body(Full::new(self.request.clone()))?;
                self.sender.ready().await?;
                let response = self.sender.send_request(request).await?;
                response.into_body().collect().await?.to_bytes();
            }
            Ok(started.elapsed() / CALLS)
        })
    }
}

/// This program in another role; ends when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) at: SocketAddr,
}

impl Server {
    /// Starts it with these words; the first is the role.
    pub(crate) fn start(words: &[&str]) -> Result<Server, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let address = line.trim().trim_start_matches("http://").trim_end_matches("/mcp");
        Ok(Server { child, at: address.parse()? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Exits this process when its parent closes stdin.
pub(crate) fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
}

/// Serves on a port of its own, and prints it to stdout; until stdin ends.
pub(crate) fn echo() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    end_with_stdin();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(io::stdout(), "{}", listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(server::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond)));
        }
    })
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let refused = |status| {
        let mut response = Response::new(Full::new(Bytes::new()));
        *response.status_mut() = status;
        Ok(response)
    };
    if request.method() != Method::POST {
        return refused(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Ok(body) = request.into_body().collect().await else { return refused(StatusCode::BAD_REQUEST) };
    let body = body.to_bytes();
    let mut output = Vec::with_capacity(256);
    if !answer(&body, result(&body), &mut output) {
        return refused(StatusCode::ACCEPTED);
    }
    let mut response = Response::new(Full::new(output.into()));
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}
