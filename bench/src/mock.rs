//! A mock beside a hard-coded server on the official Rust SDK, and beside a smaller mock.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rehearsal::Client;
use rehearsal::client::Protocol;
use rehearsal::core::protocol::Revision;
use rehearsal::mock::{MockFiles, http_options};
use rehearsal::serve::{self, Server};
use rehearsal::wire::http::server::{HttpServer, HttpServerOptions};
use rehearsal::wire::{MESSAGE_LIMIT, stdio};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::stdio::{arguments, sequential};
use crate::table::{Contest, Table};

/// What makes this program a mock instead of the benchmark: a file follows.
pub(crate) const ARGUMENT: &str = "mock";
/// The argument for the same role over HTTP.
pub(crate) const OVER_HTTP: &str = "mock-http";

/// How many calls one turn makes.
const CALLS: u32 = 10_000;
/// How many tools and rules a large mock has.
const MANY: usize = 10_000;

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let folder = Folder::new("mock")?;
    let echo = folder.file("echo", "  - { name: echo, answers: [{ text: '{{ arguments.message }}' }] }\n")?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    #[cfg(feature = "peers")]
    crate::rmcp_echo::measure(
        table,
        &runtime,
        &crate::rmcp_echo::Ours {
            name: "mock",
            on_stdio: [ARGUMENT.as_ref(), &echo],
            over_http: [OVER_HTTP.as_ref(), &echo],
        },
    )?;
    let (mut tools, mut rules) = (String::new(), String::from("  - name: echo\n    answers:\n"));
    for number in 0..MANY {
        writeln!(tools, "  - {{ name: tool_{number}, answers: [{{ text: hello }}] }}")?;
        writeln!(rules, "      - {{ when: {{ message: number {number} }}, text: never }}")?;
    }
    tools.push_str("  - { name: echo, answers: [{ text: '{{ arguments.message }}' }] }\n");
    rules.push_str("      - text: '{{ arguments.message }}'\n");
    for (what, text) in [("tools", tools), ("rules of one tool", rules)] {
        let contest = Contest::new(format!("mock: echo over stdio, {MANY} {what}"), "the mock with one tool and rule");
        if !table.wants(&contest.what) {
            continue;
        }
        let large = runtime.block_on(over_stdio(&[ARGUMENT.as_ref(), &folder.file(what, &text)?]))?;
        let small = runtime.block_on(over_stdio(&[ARGUMENT.as_ref(), &echo]))?;
        table.measure(contest, || sequential(&runtime, &large, CALLS), || sequential(&runtime, &small, CALLS))?;
        runtime.block_on(async { (large.close().await, small.close().await) });
    }
    let contest = Contest::new("mock: from start to the first answer", "the smallest server that there is");
    table.measure(
        contest,
        || first_answer(&[ARGUMENT.as_ref(), &echo]),
        || first_answer(&[crate::echo::ARGUMENT.as_ref()]),
    )
}

/// A client of this program in another role.
pub(crate) async fn over_stdio(words: &[&Path]) -> Result<Client, Box<dyn Error>> {
    let client = Client::command(std::env::current_exe()?).args(words);
    let client = client.protocol(Protocol::Legacy(Revision::LATEST_LEGACY)).connect().await?;
    checked(client).await
}

pub(crate) async fn checked(client: Client) -> Result<Client, Box<dyn Error>> {
    let response = client.call_tool("echo", arguments()).await?;
    if response.content() != "hello" {
        return Err(format!("the server answered {:?}", response.content()).into());
    }
    Ok(client)
}

/// From starting this program in another role until it has answered `initialize`.
pub(crate) fn first_answer(words: &[&Path]) -> Result<Duration, Box<dyn Error>> {
    first_answer_of(Command::new(std::env::current_exe()?).args(words))
}

/// From starting a process until it has answered `initialize`.
pub(crate) fn first_answer_of(command: &mut Command) -> Result<Duration, Box<dyn Error>> {
    let client = json!({"name": "bench", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let started = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    writeln!(child.stdin.as_mut().ok_or("no stdin")?, "{request}")?;
    let answered = child.stdout.as_mut().ok_or("no stdout")?.read(&mut [0; 1])?;
    let took = started.elapsed();
    drop(child.stdin.take());
    child.wait()?;
    if answered == 0 { Err("the server ended before it answered".into()) } else { Ok(took) }
}

/// Exits this process when its parent closes stdin.
pub(crate) fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
}

/// Serves a file on stdin and stdout.
pub(crate) fn serve(file: Option<&String>) -> Result<(), Box<dyn Error>> {
    let server = Server::new(MockFiles::new(file).load()?);
    let runtime = runtime()?;
    runtime.block_on(async {
        server.serve(stdio::own_stdio(MESSAGE_LIMIT)?).await;
        Ok(())
    })
}

/// Serves a file over HTTP, and prints the URL to stdout; until stdin ends.
pub(crate) fn serve_http(file: Option<&String>) -> Result<(), Box<dyn Error>> {
    end_with_stdin();
    let server = Server::new(MockFiles::new(file).load()?);
    let options = http_options(&server, None);
    on_http(server, options)
}

/// Serves over HTTP, and prints the URL to stdout.
pub(crate) fn on_http(server: Server, options: HttpServerOptions) -> Result<(), Box<dyn Error>> {
    runtime()?.block_on(async {
        let listener = HttpServer::bind(options).await?;
        writeln!(io::stdout(), "{}", listener.url())?;
        serve::serve_http(&server, listener, std::future::pending::<()>()).await;
        Ok(())
    })
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// A folder for the files of one run.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("rehearsal-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn file(&self, name: &str, tools: &str) -> io::Result<PathBuf> {
        let path = self.0.join(format!("{}.mock.yaml", name.replace(' ', "-")));
        std::fs::write(&path, format!("server: {{ name: bench }}\ntools:\n{tools}"))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover in the temporary folder does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
