//! A client that drives any MCP server from a test.
//!
//! ```text
//! ConnectTarget ──► Connection ──► handshake (era, version) ──► Client ──► RequestBuilder ──► ServerResponse
//!                                                          │
//!                         requests of the server ──► ClientHandlers
//! ```
//!
//! ```no_run
//! # async fn example() -> Result<(), rehearsal::client::ClientError> {
//! use rehearsal::client::Client;
//! use serde_json::json;
//!
//! let client = Client::command("my-server").args(["--verbose"]).connect().await?;
//! let response = client.call_tool("echo", json!({"message": "hello"})).await?;
//! assert!(response.success());
//! assert_eq!(response.content(), "hello");
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod builder;
#[expect(clippy::module_inception, reason = "a file is named after the one thing in it")]
mod client;
mod connection;
#[cfg(feature = "http")]
mod endpoint;
mod error;
mod handlers;
mod handshake;
#[cfg(feature = "http")]
mod listening_server;
mod listing;
mod params;
mod pending_request;
mod request_builder;
mod response;
mod subscription;
mod target;
#[cfg(feature = "oauth")]
mod token;

pub use builder::ClientBuilder;
pub use client::Client;
#[cfg(feature = "http")]
pub use endpoint::HttpTransport;
pub use error::{ClientError, Evidence, NoiseSource};
pub use handlers::{ClientHandlers, HandlerResult, ServerRequest};
pub use handshake::Connecting;
pub(crate) use handshake::is_discovery;
pub use listing::{Listing, UnusableItem, UnusableReason};
pub use request_builder::{InFlightRequest, RequestBuilder};
pub use response::{LogMessage, ProgressUpdate, ServerResponse};
pub use subscription::{ListenFilter, Subscription};
pub use target::Protocol;
#[cfg(feature = "oauth")]
pub use token::RenewingToken;
