//! The universal test server, and the journal, for one test.

use std::sync::Arc;

use rehearsal_core::answer::ExpectedCall;
use rehearsal_core::answer::harness::{Harness, HarnessError, QueueView};
use serde_json::Value;

use super::load::Files;
use super::server::now_ms;
use super::{MockError, MockServer};

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
