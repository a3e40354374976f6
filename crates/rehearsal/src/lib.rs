//! Tests everything that uses the [Model Context Protocol](https://modelcontextprotocol.io): servers, clients and agents.
//!
//! | to | start with |
//! |---|---|
//! | test a server | [`Client`], with the assertions and matchers of [`testing`] |
//! | test a client or an agent | [`MockServer`], a server that answers as the test declares |
//! | test against a recording | [`Recorder`] records, [`ReplayServer`] answers as the recorded server did |
//! | check an agent's plan without its servers | [`dry_run()`] |
//! | check JSON values | [`matcher`], the same in mocks, replays and tests |
//!
//! Every part supports stdio, Streamable HTTP and HTTP+SSE, and all five protocol versions.
//!
//! # Test a server
//!
//! ```no_run
//! use rehearsal::Client;
//! use rehearsal::testing::{assert_contains, assert_tool_exists};
//! use serde_json::json;
//!
//! # async fn test() -> Result<(), rehearsal::ClientError> {
//! let client = Client::command("my-server").args(["--verbose"]).env("TOKEN", "x").connect().await?;
//! assert_tool_exists(client.list_tools().await?, "add");
//! let response = client.call_tool("add", json!({"a": 2, "b": 40})).await?;
//! assert!(response.success());
//! assert_contains(&response, "42");
//! # Ok(())
//! # }
//! ```
//!
//! The server exits with its client, also when the test panics.
//!
//! # Test a client
//!
//! ```
//! use rehearsal::mock::text;
//! use rehearsal::{Client, MockServer};
//! use serde_json::json;
//!
//! # #[cfg(feature = "mock")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = MockServer::builder()
//!     .tool("add")
//!     .when(json!({"a": 2}))
//!     .respond(text("42"))
//!     .times(1) // checked when `server` is dropped
//!     .start()?;
//!
//! // The client or agent under test connects to `server.url()`; here it is our own client.
//! let client = Client::url(server.url()).connect().await?;
//! assert_eq!(client.call_tool("add", json!({"a": 2, "b": 40})).await?.content(), "42");
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! The default is everything, with the binary `rehearse`. Without default features there are [`Client`], [`testing`] and
//! [`matcher`] over stdio, containers and memory, which is enough to test a server and compiles fast.
//!
//! | feature | adds |
//! |---|---|
//! | `http` | `Client::url` and `Client::listening`, with TLS |
//! | `json-schema` | the matcher operator `schema` |
//! | `mock` | [`MockServer`], [`ReplayServer`], [`Recorder`], `generate`, `verify`, `Client::config`; includes `http` and `json-schema` |
//! | `dry-run` | [`dry_run()`] and the [`cache`] of recorded results; includes `mock` |
//! | `oauth` | `ClientBuilder::oauth`; includes `http` |
//! | `rmcp` | `record::intercept`, for transports of the official Rust SDK; includes `mock` |
//! | `cli` | the binary `rehearse`; includes `dry-run`, `mock` and `oauth` |

#![cfg_attr(
    not(feature = "mock"),
    allow(dead_code, unused_imports, reason = "the modules of the features use what is private to the crate")
)]

#[macro_use(debug_as_display)]
extern crate rehearsal_core as _;

#[cfg(feature = "dry-run")]
pub mod cache;
pub mod client;
#[cfg(feature = "mock")]
pub mod config;
#[cfg(feature = "dry-run")]
pub mod dry_run;
#[cfg(feature = "dry-run")]
pub mod exec;
#[cfg(feature = "mock")]
pub mod generate;
#[cfg(feature = "mock")]
pub mod mock;
#[cfg(feature = "oauth")]
pub mod oauth;
#[cfg(feature = "mock")]
pub mod record;
#[cfg(feature = "mock")]
pub mod replay;
#[cfg(feature = "mock")]
pub mod serve;
#[cfg(feature = "mock")]
pub mod store;
pub mod testing;
#[cfg(feature = "mock")]
pub mod verify;

pub use client::{Client, ClientBuilder, ClientError, ServerResponse};
#[cfg(feature = "dry-run")]
pub use dry_run::dry_run;
#[cfg(feature = "dry-run")]
pub use exec::exec;
#[cfg(feature = "mock")]
pub use mock::MockServer;
#[cfg(feature = "mock")]
pub use record::Recorder;
/// Matchers: expectations about JSON values, the same in mocks, replays and tests.
///
/// ```
/// use rehearsal::matcher::Matcher;
/// use serde_json::json;
///
/// let matcher = Matcher::parse(&json!({"city": "Oslo", "temperature": {"gt": -60}}))?;
/// assert!(matcher.matches(&json!({"city": "Oslo", "temperature": 4, "wind": 2})));
/// assert_eq!(matcher.check(&json!({"city": "Bergen", "temperature": 4}))[0].path.to_string(), "$.city");
/// # Ok::<(), rehearsal::matcher::MatcherError>(())
/// ```
#[doc(inline)]
pub use rehearsal_core::matcher;
#[cfg(feature = "mock")]
pub use replay::ReplayServer;

/// JSON-RPC messages: the types of requests, responses and notifications in signatures of this crate.
///
/// ```
/// use rehearsal::message::{Message, Method};
///
/// let message = Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
/// assert_eq!(message.method(), Some(&Method::TOOLS_LIST));
/// ```
pub mod message {
    pub use rehearsal_core::exchange::{Channel, Exchange, Outcome, Side, TimedMessage};
    pub use rehearsal_core::json::RawJson;
    pub use rehearsal_core::message::{
        Body, ErrorReply, Garbled, GarbledReason, Message, Method, Notification, Reply, Request, RequestId, Response,
    };
}

/// MCP's versions, lists and content: the types in signatures of this crate.
///
/// ```
/// use rehearsal::protocol::{Era, Revision};
///
/// assert_eq!(Revision::V2025_06_18.era(), Era::Legacy);
/// assert!("2026-07-28".parse::<Revision>().is_ok());
/// ```
pub mod protocol {
    pub use rehearsal_core::protocol::content::{self, Content};
    pub use rehearsal_core::protocol::{
        Era, LogLevel, Prompt, Resource, ResourceTemplate, Revision, Tool, UnknownRevision, code,
    };
}

/// The findings of a check: the types of [`verify`]'s report.
#[cfg(feature = "mock")]
pub mod report {
    pub use rehearsal_core::report::{Case, CaseStatus, Finding, Location, Report, Severity, Verdict};
}

/// Recorded sessions: the contents of trace and journal files, and the redaction of secrets.
///
/// ```
/// use std::io::Cursor;
///
/// use rehearsal::trace::TraceReader;
///
/// let parts: Vec<_> = TraceReader::new(Cursor::new("")).collect();
/// assert!(parts.is_empty());
/// ```
#[cfg(feature = "mock")]
pub mod trace {
    pub use rehearsal_core::redact::{Redaction, RedactionSummary};
    pub use rehearsal_core::trace::{
        Entry, EntryBody, Format, Headers, HttpHead, Part, PlacedMessage, ReadError, RecordedCall, RelatedEvent,
        RequestIdentity, SessionEnd, SessionStart, Timeline, TimelineItem, TraceReader, TraceWriter,
    };
}

/// Connections to servers: what a [`ClientBuilder`] connects to, and how connections end.
///
/// ```no_run
/// use rehearsal::Client;
/// use rehearsal::transport::Container;
///
/// # async fn test() -> Result<(), rehearsal::ClientError> {
/// let client = Client::container(Container::image("my-server:latest")).connect().await?;
/// # Ok(())
/// # }
/// ```
pub mod transport {
    pub use rehearsal_wire::container::{
        BackgroundContainer, Container, ContainerTarget, Engine, EngineError, build as build_image,
    };
    #[cfg(feature = "http")]
    pub use rehearsal_wire::http::proxy::HttpProxyOptions;
    #[cfg(feature = "http")]
    pub use rehearsal_wire::http::server::HttpServerOptions;
    pub use rehearsal_wire::memory::pair as memory_pair;
    pub use rehearsal_wire::stdio::{ClientStreams, ServerCommand, SpawnError, StderrSink, StopMethod};
    pub use rehearsal_wire::{Connection, ConnectionEnd, SendError, StopOutcome};
}

// For the binary, tests, benches and examples of this repository; not part of the API.
#[doc(hidden)]
pub use rehearsal_core as core;
#[doc(hidden)]
pub use rehearsal_wire as wire;
