//! A mock server for one test, with expectations about the requests that it receives.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref, RangeBounds};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::answer::harness::{Harness, HarnessError, QueueView};
use rehearsal_core::answer::{Chain, ExpectedCall, LoggedRequest, Provenance};
use rehearsal_core::message::Method;
use rehearsal_wire::http::server::HttpServerOptions;
use serde_json::Value;

use super::control::Control;
use super::load::{LoadError, MockFiles, Unanswered, chain_of};
use crate::serve::{Server, ServerFixture, StartError, now_ms};

/// A mock MCP server on a free port of this machine, for one test. Dropping it stops the server, also if the test panics.
///
/// A mock is declared in a [mock file](MockServer::start) or [in Rust](MockServer::builder).
///
/// ```
/// use rehearsal::mock::text;
/// use rehearsal::{Client, MockServer};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::builder().tool("add").respond(text("42")).times(1).start()?;
/// let client = Client::url(server.url()).connect().await?;
/// assert_eq!(client.call_tool("add", json!({"a": 2, "b": 40})).await?.content(), "42");
/// # Ok(())
/// # }
/// ```
///
/// With a file, and an expectation about all calls of a tool:
///
/// ```no_run
/// use rehearsal::{Client, MockServer};
/// use serde_json::json;
///
/// #[tokio::test]
/// async fn the_agent_requests_the_weather() -> Result<(), Box<dyn std::error::Error>> {
///     let weather = MockServer::start("tests/weather.mock.yaml")?;
///     weather.expect_tool("get_forecast", 1);
///     let client = Client::url(weather.url()).connect().await?;
///     client.call_tool("get_forecast", json!({"city": "Oslo"})).await?;
///     Ok(())
/// } // panics here if the tool was not called once
/// ```
///
/// The server runs on its own thread, so it also serves tests without a runtime and blocking clients.
#[derive(Debug)]
pub struct MockServer {
    fixture: ServerFixture,
    files: MockFiles,
    expectations: Mutex<Vec<Expectation>>,
}

/// Why a mock could not start.
#[derive(thiserror::Error)]
pub enum MockError {
    /// The mock files cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The server could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A call of a [`MockBuilder`](super::MockBuilder) makes no sense where it is.
    #[error("{0}")]
    Builder(String),
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

/// An expected number of requests.
#[derive(Debug)]
pub(super) struct Expectation {
    /// The subject of the failure: `the tool add`.
    pub(super) label: String,
    pub(super) method: Method,
    /// The tool, prompt or URI.
    pub(super) name: String,
    /// Counts only requests that this rule of the mock answered.
    pub(super) rule: Option<String>,
    pub(super) least: u64,
    pub(super) most: Option<u64>,
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
        Ok(MockServer { fixture, files, expectations: Mutex::default() })
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
        let (label, name) = (format!("the tool {tool}"), tool.to_owned());
        self.expect([Expectation { label, method: Method::TOOLS_CALL, name, rule: None, least, most }]);
        self
    }

    pub(super) fn expect(&self, expectations: impl IntoIterator<Item = Expectation>) {
        self.expectations.lock().unwrap_or_else(PoisonError::into_inner).extend(expectations);
    }

    /// The expectations that are not met, a message each.
    pub fn unmet_expectations(&self) -> Vec<String> {
        let expectations = self.expectations.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = self.calls();
        expectations.iter().filter_map(|expectation| expectation.unmet(&calls)).collect()
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

impl Expectation {
    /// The message of an expectation that is not met.
    fn unmet(&self, calls: &[LoggedRequest]) -> Option<String> {
        let Expectation { label, least, most, .. } = self;
        let counted: Vec<_> = calls.iter().filter(|call| self.counts(call)).collect();
        let count = counted.len() as u64;
        if count >= *least && most.is_none_or(|most| count <= most) {
            return None;
        }
        let expected = match most {
            Some(0) => "never".to_owned(),
            Some(most) if most == least => times(*least),
            Some(most) => format!("{least} to {}", times(*most)),
            None => format!("at least {}", times(*least)),
        };
        let details = match (count, &self.method) {
            (0, _) => other_calls(calls),
            (_, method) if *method == Method::RESOURCES_READ => String::new(),
            _ => counted.iter().map(|call| format!("\n  with {}", call.arguments())).collect(),
        };
        Some(format!("{label} was expected {expected}, and was called {}{details}", times(count)))
    }

    fn counts(&self, call: &LoggedRequest) -> bool {
        let answered_by = |rule: &String| match &call.provenance {
            Provenance::Script { rule: answered, .. } => **answered == **rule,
            _ => false,
        };
        call.method == self.method
            && call.name().as_deref() == Some(&self.name)
            && self.rule.as_ref().is_none_or(answered_by)
    }
}

fn times(count: u64) -> String {
    format!("{count} time{}", if count == 1 { "" } else { "s" })
}

/// The tools, prompts and resources that were used instead.
fn other_calls(calls: &[LoggedRequest]) -> String {
    let named = [Method::TOOLS_CALL, Method::RESOURCES_READ, Method::PROMPTS_GET];
    let mut others: Vec<_> =
        calls.iter().filter(|call| named.contains(&call.method)).filter_map(LoggedRequest::name).collect();
    others.dedup();
    match &others[..] {
        [] => "; no tool was".to_owned(),
        [only] => format!("; {only} was"),
        several => format!("; {} were", several.join(", ")),
    }
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
        // If the test is panicking already, its own message is the useful one.
        assert!(unmet.is_empty() || std::thread::panicking(), "{}", unmet.join("\n"));
    }
}

/// An expected number of requests: a number such as `1`, or a range such as `2..` or `..=3`.
pub trait CallCount {
    /// The minimum and the maximum.
    fn bounds(self) -> (u64, Option<u64>);
}

impl CallCount for u64 {
    fn bounds(self) -> (u64, Option<u64>) {
        (self, Some(self))
    }
}

macro_rules! call_count {
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

call_count!(
    std::ops::Range<u64>,
    std::ops::RangeInclusive<u64>,
    std::ops::RangeFrom<u64>,
    std::ops::RangeToInclusive<u64>,
    std::ops::RangeTo<u64>
);

impl MockServer {
    /// The universal test server: one tool, `get_data`, whose answers are in the request or are loaded before it.
    pub fn harness() -> Result<MockServer, MockError> {
        let harness = Some(Arc::new(Harness::default()));
        MockServer::start_files(MockFiles { harness, ..MockFiles::default() })
    }

    /// Loads the responses of a test case, a JSON list, in place of what it had.
    ///
    /// Returns an error if a response is invalid, or if this server has no queues.
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

    /// Compares the requests so far with expected ones. The error has a paragraph for each missing one, with the closest call.
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
