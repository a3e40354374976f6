//! A whole MCP server from YAML files.
//!
//! ```text
//! files ──load──► Chain: script ─► harness ─► protocol ─► schema ──► Server (see `serve`)
//! ```
//!
//! [`MockServer`] is the fixture for tests: a server on a free port that is gone when it is dropped. Over HTTP there are paths
//! to control a mock, beside those of MCP.

mod control;
mod draft;
mod load;
mod mock_server;

pub use draft::{DraftedMock, ServerLists, draft};
pub use load::{LoadError, MockFiles, Reload, Unanswered, chain_of, check, watch};
pub use mock_server::{CallCount, MockError, MockServer, StdioParameters, http_options};
pub use rehearsal_core::answer::{CallOutcome, ExpectedCall, LoggedRequest, UnmetCall};
