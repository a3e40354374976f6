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
//!
//! The assertions panic with the expectation, the actual value and the whole response:
//!
//! ```
//! # #[cfg(not(feature = "mock"))]
//! # fn main() {}
//! # #[cfg(feature = "mock")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rehearsal::Client;
//! use rehearsal::testing::{ContentMatcher, assert_contains, assert_error_code, assert_tool_exists};
//! use serde_json::json;
//!
//! # use rehearsal::mock::{error, text};
//! # let server = rehearsal::MockServer::builder()
//! #     .tool("forecast")
//! #     .when(json!({"city": "Oslo"}))
//! #     .respond(text("Rain in Oslo"))
//! #     .respond(error(-32602, "no such city"))
//! #     .start()?;
//! # let url = server.url();
//! let client = Client::url(url).connect().await?;
//! assert_tool_exists(client.list_tools().await?, "forecast");
//!
//! let response = client.call_tool("forecast", json!({"city": "Oslo"})).await?;
//! assert_contains(&response, "Rain");
//! ContentMatcher::text("rain").and(!ContentMatcher::text("snow")).assert_matches(&response);
//!
//! assert_error_code(&client.call_tool("forecast", json!({"city": "Atlantis"})).await?, -32602);
//! # Ok(())
//! # }
//! ```

mod assertions;
mod blocking;
mod content_matcher;
mod project;
mod shared_server;
mod snapshot;

pub use assertions::{
    assert_contains, assert_error_code, assert_failure, assert_failure_contains, assert_matches, assert_success,
    assert_tool_exists,
};
pub use blocking::BlockingClient;
pub use content_matcher::{ContentCase, ContentMatcher, ContentPattern};
pub use project::{Project, RunningServer};
pub use shared_server::{SharedContainer, SharedServer};
pub use snapshot::Snapshot;
