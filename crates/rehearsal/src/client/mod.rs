//! A client that drives any MCP server from a test.
//!
//! ```text
//! Target ──► Connection ──► handshake (era, version) ──► Client ──► Call ──► Response
//!                                                          │
//!                         requests of the server ──► Answers
//! ```
//!
//! ```no_run
//! # async fn example() -> Result<(), rehearsal::client::ClientError> {
//! use rehearsal::client::Client;
//! use serde_json::json;
//!
//! let client = Client::command("my-server").arguments(["--verbose"]).connect().await?;
//! let response = client.call_tool("echo", json!({"message": "hello"})).await?;
//! assert!(response.success());
//! assert_eq!(response.content(), "hello");
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod answers;
mod builder;
mod call;
mod conversation;
mod error;
mod handshake;
mod listening;
mod listing;
mod params;
mod pending_request;
mod response;
mod session;
mod subscription;
mod target;
#[cfg(feature = "oauth")]
mod token;

pub use answers::{Answer, Answers, Asked};
pub use builder::ClientBuilder;
pub use call::{Call, InFlight};
pub use error::{ClientError, Evidence, NoiseOn};
pub use handshake::Connecting;
pub(crate) use handshake::is_discovery;
pub use listing::{Listing, Unusable, WhyUnusable};
pub use response::{LogMessage, Progress, Response};
pub use session::Client;
pub use subscription::{Listen, Subscription};
pub use target::{HttpTransport, Protocol};
#[cfg(feature = "oauth")]
pub use token::Token;
