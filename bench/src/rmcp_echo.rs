//! rmcp beside ours: its server with the same tool, and its client against the same server.

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rehearsal::Client;
use rehearsal::client::{HttpTransport, Protocol};
use rehearsal::core::protocol::Revision;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio::runtime::{Builder, Runtime};

use crate::echo;
use crate::mock::{checked, end_with_stdin, over_stdio};
use crate::stdio::{BARE, BareLoop, arguments, sequential};
use crate::table::{Contest, Table};

/// What makes this program that server instead of the benchmark.
pub(crate) const ARGUMENT: &str = "rmcp-echo";
/// The argument for the same role over HTTP.
pub(crate) const OVER_HTTP: &str = "rmcp-echo-http";

/// How many calls one turn makes.
const CALLS: u32 = 5_000;

/// A server of ours with the same answers: its name, and this program in its role, on stdio and over HTTP.
pub(crate) struct Ours<'a> {
    pub(crate) name: &'static str,
    pub(crate) on_stdio: [&'a Path; 2],
    pub(crate) over_http: [&'a Path; 2],
}

pub(crate) fn measure(table: &mut Table, runtime: &Runtime, ours: &Ours<'_>) -> Result<(), Box<dyn Error>> {
    let Ours { name, on_stdio, over_http: on_http } = ours;
    let what = format!("{name}: echo over stdio, 2025-11-25");
    let contest = Contest::new(what, "rmcp 3.8, hard-coded, non-blocking pipes");
    if table.wants(&contest.what) {
        let ours = runtime.block_on(over_stdio(on_stdio))?;
        let theirs = runtime.block_on(over_stdio(&[ARGUMENT.as_ref()]))?;
        table.measure(contest, || sequential(runtime, &ours, CALLS), || sequential(runtime, &theirs, CALLS))?;
        runtime.block_on(async { (ours.close().await, theirs.close().await) });
    }
    let contest = Contest::new(format!("{name}: echo over HTTP, 2025-11-25"), "rmcp 3.8, hard-coded, TCP_NODELAY");
    if table.wants(&contest.what) {
        let ours = Listening::start(on_http)?;
        let theirs = Listening::start(&[OVER_HTTP.as_ref()])?;
        let (ours_at, theirs_at) = (ours.url.clone(), theirs.url.clone());
        let our_client = runtime.block_on(over_http(&ours_at))?;
        let their_client = runtime.block_on(over_http(&theirs_at))?;
        table.measure(
            contest,
            || sequential(runtime, &our_client, CALLS),
            || sequential(runtime, &their_client, CALLS),
        )?;
        runtime.block_on(async { (our_client.close().await, their_client.close().await) });
    }
    Ok(())
}

/// A client of a server that prints its URL to stdout.
async fn over_http(url: &str) -> Result<Client, Box<dyn Error>> {
    let client = Client::url(url).transport(HttpTransport::Streamable);
    checked(client.protocol(Protocol::Legacy(Revision::LATEST_LEGACY)).connect().await?).await
}

/// This program in another role, over HTTP; ends when it is dropped.
struct Listening {
    child: Child,
    url: String,
}

impl Listening {
    fn start(words: &[&Path]) -> Result<Listening, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        Ok(Listening { child, url: line.trim().to_owned() })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // An error means that it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server with one tool, which returns its argument.
#[derive(Clone, Debug)]
struct Echo;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    message: String,
}

#[tool_router]
impl Echo {
    #[tool(description = "Returns its message")]
    fn echo(&self, Parameters(arguments): Parameters<Arguments>) -> String {
        arguments.message
    }
}

#[tool_handler]
impl ServerHandler for Echo {}

/// Serves on stdin and stdout, without the thread that tokio's own go through.
pub(crate) fn serve() -> Result<(), Box<dyn Error>> {
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let input = pipe::OpenOptions::new().open_receiver("/dev/stdin")?;
        let output = pipe::OpenOptions::new().open_sender("/dev/stdout")?;
        Echo.serve((input, output)).await?.waiting().await?;
        Ok(())
    })
}

/// Serves over HTTP, and prints the URL to stdout; until stdin ends.
pub(crate) fn serve_http() -> Result<(), Box<dyn Error>> {
    end_with_stdin();
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(|| Ok(Echo), sessions, StreamableHttpServerConfig::default());
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = service.clone();
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            tokio::spawn(async move {
                // A disconnect of the client is no failure.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    })
}

/// What rmcp writes for the call.
const REQUEST: &[u8] =
    br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}"#;

pub(crate) fn measure_client(table: &mut Table, runtime: &Runtime, calls: u32) -> Result<(), Box<dyn Error>> {
    let _entered = runtime.enter();
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    let command = command.arg(echo::ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let pipes = (child.stdout.take().ok_or("no stdout")?, child.stdin.take().ok_or("no stdin")?);
    let client = runtime.block_on(().serve(pipes))?;
    let mut bare = BareLoop::start(REQUEST.to_vec())?;
    let contest = Contest::new("rmcp 3.8 over stdio, 2025-11-25", BARE);
    table.measure(contest, || rmcp_sequential(runtime, &client, calls), || bare.sequential())
}

fn rmcp_sequential(
    runtime: &Runtime,
    client: &RunningService<RoleClient, ()>,
    calls: u32,
) -> Result<Duration, Box<dyn Error>> {
    // Its calls take a map.
    let arguments = serde_json::to_value(arguments())?.as_object().cloned().unwrap_or_default();
    runtime.block_on(async {
        let started = Instant::now();
        for _ in 0..calls {
            client.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments.clone())).await?;
        }
        Ok(started.elapsed() / calls)
    })
}
