//! Where other people's software is, and how to start it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// This folder of the repository.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The cache; installs on first use.
pub(crate) fn cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| {
        let output = std::process::Command::new(folder().join("install")).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "tests/interop/install failed");
        let text = String::from_utf8(output.stdout).unwrap();
        PathBuf::from(text.lines().last().unwrap())
    })
}

pub(crate) fn node() -> PathBuf {
    cache().join("node/node_modules/.bin/node")
}

pub(crate) fn npm_server(name: &str) -> PathBuf {
    cache().join("node/node_modules/@modelcontextprotocol").join(name).join("dist/index.js")
}

pub(crate) fn python(program: &str) -> PathBuf {
    cache().join("venv/bin").join(program)
}

/// One of the servers in `servers/`, over stdio.
pub(crate) fn script(name: &str) -> ClientBuilder {
    Client::command(python("python")).args([folder().join("servers").join(name)]).timeout(TIMEOUT)
}

/// Long enough for a busy machine, short enough to notice a hang.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// A server that was started beside us, reached over HTTP; ends when dropped.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    process: Child,
}

impl HttpServer {
    /// Ends it at once.
    pub(crate) async fn stop(mut self) {
        self.process.kill().await.unwrap();
    }
}

/// Starts a server and waits for a line on stderr that has `ready` in it.
pub(crate) async fn http_server(command: &mut Command, ready: &str, url: impl FnOnce(&str) -> String) -> HttpServer {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut stdout = process.stdout.take().unwrap();
    tokio::spawn(async move { while stdout.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {} });
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let wait = async {
        let mut seen = Vec::new();
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains(ready) {
                return line;
            }
            seen.push(line);
        }
        panic!("the server ended before it was ready:\n{}", seen.join("\n"));
    };
    let line = tokio::time::timeout(TIMEOUT, wait).await.expect("the server never became ready");
    tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
    HttpServer { url: url(&line), process }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// One of our small servers on another SDK.
pub(crate) async fn sdk_server(program: &Path, script: &str, transport: &str) -> HttpServer {
    let mut command = Command::new(program);
    command.arg(folder().join("servers").join(script)).arg(transport);
    listening(&mut command).await
}

/// A server that prints `listening on URL`.
pub(crate) async fn listening(command: &mut Command) -> HttpServer {
    http_server(command, "listening on", |line| line.rsplit(' ').next().unwrap().to_owned()).await
}
