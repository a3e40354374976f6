//! A mock for one test: expectations on a server that is gone when it is dropped.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref, RangeBounds};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::answer::harness::{Harness, HarnessError, QueueView};
use rehearsal_core::answer::{Chain, ExpectedCall, LoggedRequest};
use rehearsal_core::message::Method;
use rehearsal_wire::http::server::HttpServerOptions;
use serde_json::Value;

use super::control::Control;
use super::load::{LoadError, MockFiles, Unanswered, chain_of};
use crate::serve::{Server, ServerFixture, StartError, now_ms};

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
/// } // panics here if the tool was not called once
/// ```
///
/// It runs on a thread of its own, so it serves tests without a runtime and blocking clients as well.
#[derive(Debug)]
pub struct MockServer {
    fixture: ServerFixture,
    files: MockFiles,
    expected: Mutex<Vec<Expected>>,
}

/// Why a mock could not start.
#[derive(thiserror::Error)]
pub enum MockError {
    /// Its files make no mock.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The server could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

debug_as_display!(MockError);

/// How to start a process that serves a mock on its stdin and stdout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdioParameters {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The variables that are added to its environment.
    pub env: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Expected {
    tool: String,
    least: u64,
    most: Option<u64>,
}

impl MockServer {
    /// Serves a file. When this returns, clients can connect.
    pub fn start(file: impl AsRef<Path>) -> Result<MockServer, MockError> {
        MockServer::start_files(MockFiles::new([file.as_ref()]))
    }

    /// Serves several files as one mock.
    pub fn start_files(mut files: MockFiles) -> Result<MockServer, MockError> {
        for path in &mut files.paths {
            *path = std::path::absolute(&*path).unwrap_or_else(|_| path.clone());
        }
        MockServer::begin(files.load()?, files)
    }

    /// Serves the text of a mock file. There is no file, and so no [`MockServer::stdio`].
    pub fn from_text(text: &str) -> Result<MockServer, MockError> {
        MockServer::begin(chain_of("mock", text)?, MockFiles::default())
    }

    pub(super) fn begin(chain: Chain, files: MockFiles) -> Result<MockServer, MockError> {
        let server = Server::new(chain);
        let options = http_options(&server, files.harness.as_ref());
        let fixture = ServerFixture::start(server, options)?;
        Ok(MockServer { fixture, files, expected: Mutex::default() })
    }

    /// How to start a process that serves the same files over stdio. The process is another server with its own state, and its
    /// requests are not logged here.
    pub fn stdio(&self, rehearse: impl Into<String>) -> StdioParameters {
        let mut args = vec!["mock".to_owned()];
        args.extend(self.files.harness.as_ref().map(|_| "--harness".to_owned()));
        args.extend((self.files.unanswered == Unanswered::FillFromSchema).then(|| "--schema-fill".to_owned()));
        args.extend(self.files.paths.iter().map(|file| file.display().to_string()));
        StdioParameters { command: rehearse.into(), args, env: BTreeMap::new() }
    }

    /// Expects a number of calls of a tool: `1`, `2..`, `..=3`. An expectation that is not met fails the test when the mock is
    /// dropped.
    pub fn expect_tool(&self, tool: &str, times: impl CallCount) -> &MockServer {
        let (least, most) = times.bounds();
        let expected = Expected { tool: tool.to_owned(), least, most };
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).push(expected);
        self
    }

    /// The expectations that are not met.
    pub fn unmet_expectations(&self) -> Vec<String> {
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

    /// The requests so far.
    pub fn calls(&self) -> Vec<LoggedRequest> {
        self.server().calls()
    }

    /// The arguments of every call of a tool so far.
    pub fn calls_of(&self, tool: &str) -> Vec<Value> {
        let calls = self.calls();
        let named = calls.iter().filter(|it| it.method == Method::TOOLS_CALL && it.name().as_deref() == Some(tool));
        named.map(LoggedRequest::arguments).collect()
    }

    /// Returns to the state of the file and an empty request log, for test cases that share a server.
    pub fn reset(&self) {
        self.server().reset();
    }
}

fn other_tools(calls: &[LoggedRequest]) -> String {
    let mut others: Vec<_> =
        calls.iter().filter(|it| it.method == Method::TOOLS_CALL).filter_map(LoggedRequest::name).collect();
    others.dedup();
    if others.is_empty() { "; no tool was".to_owned() } else { format!("; {} was", others.join(", ")) }
}

/// Its URLs, its connections in memory, and the server itself.
impl Deref for MockServer {
    type Target = ServerFixture;

    fn deref(&self) -> &ServerFixture {
        &self.fixture
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        let unmet = self.unmet_expectations();
        // A test that fails already has a better reason.
        assert!(unmet.is_empty() || std::thread::panicking(), "{}", unmet.join("\n"));
    }
}

/// How often something is expected: a number, or a range of them.
pub trait CallCount {
    /// At least and at most.
    fn bounds(self) -> (u64, Option<u64>);
}

impl CallCount for u64 {
    fn bounds(self) -> (u64, Option<u64>) {
        (self, Some(self))
    }
}

macro_rules! times {
    ($($range:ty),*) => {
        $(impl CallCount for $range {
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
        MockServer::start_files(MockFiles { harness, ..MockFiles::default() })
    }

    /// Loads the responses of a test case, a JSON list, in place of what it had.
    ///
    /// Fails where a response makes no sense, and where this server has no queues.
    pub fn load_queue(&self, test_case: &str, responses: &Value) -> Result<QueueView, HarnessError> {
        match &self.files.harness {
            Some(harness) => harness.load(test_case, responses.to_string().as_bytes(), now_ms()),
            None => Err(HarnessError::LimitExceeded {
                what: "this server has no queues; start it with harness()".to_owned(),
            }),
        }
    }

    /// The queue of a test case as it is now.
    pub fn queue(&self, test_case: &str) -> Option<QueueView> {
        self.files.harness.as_ref()?.view(test_case)
    }

    /// What was expected and did not happen, a paragraph each, with the call that came closest.
    pub fn verify(&self, expected: &[ExpectedCall]) -> Result<(), String> {
        let unmet: Vec<_> = self.server().log().verify(expected).iter().map(ToString::to_string).collect();
        if unmet.is_empty() { Ok(()) } else { Err(unmet.join("\n")) }
    }
}

/// The options of a listener that serves a mock: those of its chain, and the control interface.
pub fn http_options(server: &Server, harness: Option<&Arc<Harness>>) -> HttpServerOptions {
    let control = Control { server: server.clone(), harness: harness.cloned() };
    HttpServerOptions { routes: Some(Arc::new(control)), ..crate::serve::http_options(server) }
}
