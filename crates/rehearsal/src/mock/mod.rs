//! Mock MCP servers, declared in Rust or in YAML files.
//!
//! ```text
//! MockBuilder ─► text ─┐
//! files ───────────────┴─load──► Chain: script ─► harness ─► protocol ─► schema ──► Server (see `serve`)
//! ```
//!
//! [`MockServer`] is the fixture for tests: a server on a free port that stops when it is dropped. Over HTTP, paths under
//! `/control` control a mock.
//!
//! ```
//! use rehearsal::mock::{error, text};
//! use rehearsal::{Client, MockServer};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = MockServer::builder()
//!     .tool("forecast")
//!     .when(json!({"city": "Oslo"}))
//!     .respond(text("Rain in Oslo"))
//!     .respond(error(-32602, "no such city"))
//!     .start()?;
//!
//! let client = Client::url(server.url()).connect().await?;
//! assert_eq!(client.call_tool("forecast", json!({"city": "Oslo"})).await?.content(), "Rain in Oslo");
//! assert_eq!(client.call_tool("forecast", json!({"city": "Atlantis"})).await?.error_code(), Some(-32602));
//! # Ok(())
//! # }
//! ```

mod answer;
mod builder;
mod control;
mod draft_from_server;
mod load;
mod mock_server;

pub use answer::{MockAnswer, error, result, template, text, tool_error};
pub use builder::{MockBuilder, MockItem};
pub use draft_from_server::{DraftedMock, ServerLists, draft};
pub use load::{LoadError, MockFiles, Reload, Unanswered, chain_of, check, watch};
pub use mock_server::{CallCount, MockError, MockServer, StdioParameters, http_options};
pub use rehearsal_core::answer::harness::{Harness, HarnessError, QueueView};
pub use rehearsal_core::answer::{ExpectedCall, LoggedOutcome, LoggedRequest, Provenance, UnmetCall};
pub use rehearsal_core::script::ScriptError;
