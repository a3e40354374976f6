//! What a test of a server needs in addition to the client: assertions, matchers, fixtures, snapshots.
//!
//! ```no_run
//! use rehearsal::Client;
//! use rehearsal::testing::{ContentMatcher, Project, assert_success};
//! use serde_json::json;
//!
//! const FORECAST: ContentMatcher = ContentMatcher::all(&["rain", "Oslo"]);
//!
//! # async fn test() {
//! let project = Project::new().copy("fixtures/weather", "data");
//! let server = project.start(|folder| Client::command("my-server").env("DATA", folder.join("data"))).await;
//!
//! let response = server.call_tool("forecast", json!({"city": "Oslo"})).await.unwrap();
//! assert_success(&response);
//! FORECAST.assert_matches(&response);
//! # }
//! ```

mod assertions;
mod blocking;
mod content;
mod project;
mod shared_server;
mod snapshot;

pub use assertions::{
    assert_contains, assert_error_code, assert_failure, assert_failure_contains, assert_matches, assert_success,
    assert_tool_exists,
};
pub use blocking::BlockingClient;
pub use content::{ContentMatcher, ContentPattern, TextCase};
pub use project::{Project, RunningServer};
pub use shared_server::{SharedContainer, SharedServer};
pub use snapshot::Snapshot;
