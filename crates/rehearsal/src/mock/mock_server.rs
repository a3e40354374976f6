//! A mock for one test, and how HTTP serves a mock.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rehearsal_core::answer::harness::{Harness, HarnessError, QueueView};
use rehearsal_core::answer::{ExpectedCall, Mock};
use rehearsal_core::message::Method;
use rehearsal_core::script::mock::Otherwise;
use rehearsal_wire::http::server::{BindError, Handle, HttpServer, Options};
use rehearsal_wire::{Connection, memory};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::control::Control;
use super::load::{Files, LoadError, compile};
use super::server::now_ms;
use super::{Called, Server};

/// How long it may take to say that it is healthy.
const READY: Duration = Duration::from_secs(10);
/// How long a server that is dropped may take to say its last words.
const FAREWELL: Duration = Duration::from_secs(2);

/// A mock on a free port of this machine, for one test. It is gone when it is dropped, also by a test that panics.
///
/// ```no_run
/// use rehearsal::Client;
/// use rehearsal::mock::MockServer;
/// use serde_json::json;
///
/// #[tokio::test]
/// async fn the_agent_asks_for_the_weather() -> Result<(), Box<dyn std::error::Error>> {
///     let weather = MockServer::start("tests/weather.mock.yaml")?;
///     weather.expect_tool("get_forecast", 1);
///     let client = Client::url(weather.url()).connect().await?;
///     client.call_tool("get_forecast", json!({"city": "Oslo"})).await?;
///     Ok(())
/// } // what was expected and did not happen is told here
/// ```
///
/// It runs on a thread of its own, so it serves tests without a runtime and blocking clients as well.
pub struct MockServer {
    server: Server,
    handle: Handle,
    files: Vec<PathBuf>,
    stop: watch::Sender<bool>,
    runtime: tokio::runtime::Handle,
    thread: Option<JoinHandle<()>>,
    expected: Mutex<Vec<Expected>>,
}

/// Why a mock could not begin.
#[derive(Debug, thiserror::Error)]
pub enum MockError {
    /// Its files make no mock.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It cannot listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// It has no thread to run on.
    #[error("cannot begin")]
    Begin(#[source] io::Error),
    /// It listens, and does not say that it is healthy.
    #[error("the mock listens on {url}, but does not answer there")]
    Unhealthy {
        /// Where it was asked.
        url: String,
        /// What became of that.
        #[source]
        cause: io::Error,
    },
}

/// How to start a process that serves a mock on its stdin and stdout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The program.
    pub command: String,
    /// What it is told.
    pub args: Vec<String>,
    /// What its environment has beyond ours.
    pub env: BTreeMap<String, String>,
}

struct Expected {
    tool: String,
    least: u64,
    most: Option<u64>,
}

impl fmt::Debug for MockServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl MockServer {
    /// Serves a file. When this returns, it has said that it is healthy, and clients can connect.
    pub fn start(file: impl AsRef<Path>) -> Result<MockServer, MockError> {
        MockServer::start_files(Files::new([file.as_ref()]))
    }

    /// Serves several files as one mock.
    pub fn start_files(files: Files) -> Result<MockServer, MockError> {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let paths = files.paths.iter().map(absolute).collect();
        MockServer::begin(files.load()?, paths)
    }

    /// Serves what a text says; there is no file, and so no [`MockServer::stdio`].
    pub fn from_text(text: &str) -> Result<MockServer, MockError> {
        let mock = compile(&[("mock".to_owned(), text.to_owned())], Otherwise::Refuse)?;
        MockServer::begin(mock, Vec::new())
    }

    pub(super) fn begin(mock: Mock, files: Vec<PathBuf>) -> Result<MockServer, MockError> {
        let server = Server::new(mock);
        let options = http_options(&server);
        let (stop, stopping) = watch::channel(false);
        let (tell, told) = mpsc::channel();
        let served = server.clone();
        let thread = std::thread::Builder::new().name("mock server".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(tell.send(Err(MockError::Begin(error)))),
            };
            let handle = runtime.handle().clone();
            runtime.block_on(async {
                match HttpServer::bind(options).await {
                    Ok(listener) => {
                        // Nobody waiting means that the test is over already.
                        let _ = tell.send(Ok((listener.handle(), handle)));
                        run(&served, listener, stopping).await;
                    }
                    Err(error) => drop(tell.send(Err(error.into()))),
                }
            });
            runtime.shutdown_background();
        });
        let thread = thread.map_err(MockError::Begin)?;
        let gone = || MockError::Begin(io::Error::other("the thread of the server ended"));
        let (handle, runtime) = told.recv().map_err(|_| gone())??;
        let thread = Some(thread);
        let mock = MockServer { server, handle, files, stop, runtime, thread, expected: Mutex::default() };
        let unhealthy = |cause| MockError::Unhealthy { url: mock.health_url(), cause };
        healthy(mock.handle.address()).map_err(unhealthy)?;
        Ok(mock)
    }

    /// Where it says whether it is healthy, for whoever waits for it in another process.
    pub fn health_url(&self) -> String {
        format!("http://{}/health", self.handle.address())
    }

    /// The address of Streamable HTTP, both eras.
    pub fn url(&self) -> String {
        self.handle.url()
    }

    /// The address of HTTP+SSE.
    pub fn sse_url(&self) -> String {
        self.handle.sse_url()
    }

    /// A connection without a transport, to the same server.
    pub fn connection(&self) -> Connection {
        let (ours, theirs) = memory::pair();
        let server = self.server.clone();
        self.runtime.spawn(async move { server.serve(theirs).await });
        ours
    }

    /// How to start the same files as a process, for whoever wants `command`, `args` and `env`. The process is another
    /// server: it has its own state, and this one hears nothing of it.
    pub fn stdio(&self, rehearse: impl Into<String>) -> Parameters {
        let mut args = vec!["mock".to_owned()];
        args.extend(self.server.harness().map(|_| "--harness".to_owned()));
        let fills = self.server.mock().is_some_and(|mock| mock.otherwise() == Otherwise::FillFromSchema);
        args.extend(fills.then(|| "--schema-fill".to_owned()));
        args.extend(self.files.iter().map(|file| file.display().to_string()));
        Parameters { command: rehearse.into(), args, env: BTreeMap::new() }
    }

    /// Expects a tool to be called so often: `1`, `2..`, `..=3`. What did not happen is told when this is dropped.
    pub fn expect_tool(&self, tool: &str, times: impl Times) -> &MockServer {
        let (least, most) = times.bounds();
        let expected = Expected { tool: tool.to_owned(), least, most };
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).push(expected);
        self
    }

    /// What was expected and did not happen.
    pub fn unmet(&self) -> Vec<String> {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let unmet = expected.iter().filter_map(|Expected { tool, least, most }| {
            let calls = self.calls_of(tool);
            let count = calls.len() as u64;
            let fits = count >= *least && most.is_none_or(|most| count <= most);
            (!fits).then(|| {
                let wanted = match most {
                    Some(most) if most == least => format!("{least} times"),
                    Some(most) => format!("{least} to {most} times"),
                    None => format!("at least {least} times"),
                };
                let arguments: Vec<_> = calls.iter().map(|arguments| format!("\n  with {arguments}")).collect();
                let others = if count > 0 { arguments.concat() } else { other_tools(&self.calls()) };
                format!("the tool {tool} was expected {wanted}, and was called {count} times{others}")
            })
        });
        unmet.collect()
    }

    /// What was asked so far.
    pub fn calls(&self) -> Vec<Called> {
        self.server.calls()
    }

    /// The arguments of every call of a tool so far.
    pub fn calls_of(&self, tool: &str) -> Vec<Value> {
        let calls = self.calls();
        let named = calls.iter().filter(|it| it.method == Method::TOOLS_CALL && it.name().as_deref() == Some(tool));
        named.map(Called::arguments).collect()
    }

    /// Begins anew, with the state of the file and an empty journal: what a test case does that shares a server.
    pub fn reset(&self) {
        self.server.reset();
    }

    /// The server itself.
    pub fn server(&self) -> &Server {
        &self.server
    }
}

fn other_tools(calls: &[Called]) -> String {
    let mut others: Vec<_> =
        calls.iter().filter(|it| it.method == Method::TOOLS_CALL).filter_map(Called::name).collect();
    others.dedup();
    if others.is_empty() { "; no tool was".to_owned() } else { format!("; {} was", others.join(", ")) }
}

async fn run(server: &Server, mut listener: HttpServer, mut stopping: watch::Receiver<bool>) {
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            connection = listener.accept() => match connection {
                Some(connection) => {
                    let server = server.clone();
                    conversations.spawn(async move { server.serve(connection).await });
                }
                None => break,
            },
            Some(_) = conversations.join_next() => {}
            // As a process that died: no last words, and every socket is closed.
            _ = server.exited() => return,
            // Whoever could tell us is gone, or tells us.
            _ = stopping.wait_for(|stopping| *stopping) => break,
        }
    }
    server.stop();
    let _ = tokio::time::timeout(FAREWELL, listener.shutdown()).await;
}

/// Asks a server whether it is healthy.
fn healthy(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, READY)?;
    stream.set_read_timeout(Some(READY))?;
    write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut status = [0; 12];
    stream.read_exact(&mut status)?;
    let status = String::from_utf8_lossy(&status);
    if status == "HTTP/1.1 200" { Ok(()) } else { Err(io::Error::other(format!("it answered {status:?}"))) }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic on that thread was told when it happened.
            let _ = thread.join();
        }
        let unmet = self.unmet();
        // A test that fails already has told more than this could.
        assert!(unmet.is_empty() || std::thread::panicking(), "{}", unmet.join("\n"));
    }
}

/// How often something is expected: a number, or a range of them.
pub trait Times {
    /// At least and at most.
    fn bounds(self) -> (u64, Option<u64>);
}

impl Times for u64 {
    fn bounds(self) -> (u64, Option<u64>) {
        (self, Some(self))
    }
}

macro_rules! times {
    ($($range:ty),*) => {
        $(impl Times for $range {
            fn bounds(self) -> (u64, Option<u64>) {
                let least = match self.start_bound() {
                    Bound::Included(least) => *least,
                    Bound::Excluded(least) => least + 1,
                    Bound::Unbounded => 0,
                };
                let most = match self.end_bound() {
                    Bound::Included(most) => Some(*most),
                    Bound::Excluded(most) => Some(most.saturating_sub(1)),
                    Bound::Unbounded => None,
                };
                (least, most)
            }
        })*
    };
}

times!(
    std::ops::Range<u64>,
    std::ops::RangeInclusive<u64>,
    std::ops::RangeFrom<u64>,
    std::ops::RangeToInclusive<u64>,
    std::ops::RangeTo<u64>
);

impl MockServer {
    /// The universal test server: one tool, `get_data`, whose answers come with the question or are loaded before.
    pub fn harness() -> Result<MockServer, MockError> {
        let harness = Some(Arc::new(Harness::default()));
        MockServer::start_files(Files { harness, ..Files::default() })
    }

    /// Loads the responses of a test case, a JSON list, in place of what it had.
    ///
    /// Fails where a response makes no sense, and where this server has no queues.
    pub fn load_queue(&self, test_case: &str, responses: &Value) -> Result<QueueView, HarnessError> {
        match self.server().harness() {
            Some(harness) => harness.load(test_case, responses.to_string().as_bytes(), now_ms()),
            None => {
                Err(HarnessError::TooMuch { what: "this server has no queues; start it with harness()".to_owned() })
            }
        }
    }

    /// The queue of a test case as it is now.
    pub fn queue(&self, test_case: &str) -> Option<QueueView> {
        self.server().harness()?.view(test_case)
    }

    /// What was expected and did not happen, a paragraph each, with the call that came closest.
    pub fn verify(&self, expected: &[ExpectedCall]) -> Result<(), String> {
        let unmet: Vec<_> = self.server().journal().verify(expected).iter().map(ToString::to_string).collect();
        if unmet.is_empty() { Ok(()) } else { Err(unmet.join("\n")) }
    }
}

/// How long a POST of HTTP+SSE waits for the mock, so that it can be refused.
const HOLD: Duration = Duration::from_secs(1);

/// What a listener is told about a mock: its versions, the arguments that travel as headers, and the paths that control
/// it.
pub fn http_options(server: &Server) -> Options {
    let Some(mock) = server.mock() else { return Options::default() };
    let schemas: HashMap<String, Arc<Value>> =
        mock.header_schemas().map(|(tool, schema)| (tool.to_owned(), Arc::new(schema.clone()))).collect();
    Options {
        revisions: mock.revisions().to_vec(),
        tool_schema: Some(Arc::new(move |tool: &str| schemas.get(tool).cloned())),
        hold_posts: mock.refuses_requests().then_some(HOLD),
        routes: Some(Arc::new(Control(server.clone()))),
        ..Options::default()
    }
}
