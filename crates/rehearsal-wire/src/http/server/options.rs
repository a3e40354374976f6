//! What a server may be told.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::protocol::{Era, Revision};
use serde_json::Value;

use super::router::Routes;
use crate::MESSAGE_LIMIT;

/// The input schema of a tool, by its name.
pub type ToolSchema = Arc<dyn Fn(&str) -> Option<Arc<Value>> + Send + Sync>;

/// What a server may be told; the default serves every version on a free port of this machine alone.
#[derive(Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// The path of Streamable HTTP.
    pub path: String,
    /// The path of the stream of HTTP+SSE.
    pub sse_path: String,
    /// The path that clients of HTTP+SSE post to.
    pub message_path: String,
    /// The versions that are served. HTTP+SSE is there if 2024-11-05 is one of them.
    pub revisions: Vec<Revision>,
    /// Whether the handshake creates a session.
    pub sessions: Sessions,
    /// How POSTs are answered.
    pub answers: Answers,
    /// Which `Host` a request may name.
    pub hosts: Hosts,
    /// Which `Origin` a request may come from, if it says so: that of a page in a browser.
    pub origins: Hosts,
    /// How long clients of 2025-11-25 should wait before they come back to a closed stream.
    pub retry: Option<Duration>,
    /// How long a stream may be silent before a comment shows that it lives; a POST without an answer becomes a stream.
    pub keep_alive: Duration,
    /// How long a session may be unused before it ends.
    pub session_idle: Duration,
    /// How long a shutdown waits for what still runs.
    pub grace: Duration,
    /// Where to find the input schemas of tools, so that `Mcp-Param-*` can be checked.
    pub tool_schema: Option<ToolSchema>,
    /// How long a POST of HTTP+SSE may wait for the application before it is acknowledged, so that it can still be
    /// refused with a status. Without it, it is acknowledged at once.
    pub hold_posts: Option<Duration>,
    /// Paths beside those of MCP.
    pub routes: Option<Arc<dyn Routes>>,
    /// How much is too much.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            address: ([127, 0, 0, 1], 0).into(),
            path: "/mcp".to_owned(),
            sse_path: "/sse".to_owned(),
            message_path: "/message".to_owned(),
            revisions: Revision::ALL.to_vec(),
            sessions: Sessions::On,
            answers: Answers::Lazy,
            hosts: Hosts::default(),
            origins: Hosts::default(),
            retry: None,
            keep_alive: Duration::from_secs(15),
            session_idle: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(5),
            tool_schema: None,
            hold_posts: None,
            routes: None,
            limits: Limits::default(),
        }
    }
}

impl Options {
    /// The served versions of an era, oldest first.
    pub(super) fn served(&self, era: Era) -> impl Iterator<Item = Revision> + '_ {
        Revision::ALL.into_iter().filter(move |revision| revision.era() == era && self.revisions.contains(revision))
    }

    /// Whether the stateless era is served.
    pub(super) fn serves_modern(&self) -> bool {
        self.served(Era::Modern).next().is_some()
    }

    /// Whether the handshake era is served over Streamable HTTP.
    pub(super) fn serves_legacy(&self) -> bool {
        self.served(Era::Legacy).any(Revision::has_streamable_http)
    }

    /// Whether HTTP+SSE is served.
    pub(super) fn serves_two_endpoints(&self) -> bool {
        self.revisions.contains(&Revision::V2024_11_05)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address)
            .field("path", &self.path)
            .field("revisions", &self.revisions)
            .field("sessions", &self.sessions)
            .field("answers", &self.answers)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Whether the handshake creates a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// `initialize` mints an `Mcp-Session-Id`; each session is a connection.
    On,
    /// No request needs a session, and all of the handshake era share one connection. GET and DELETE are refused.
    Off,
}

/// How POSTs are answered, as far as the client accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// As JSON if the answer is the first thing to say, otherwise as a stream of events.
    Lazy,
    /// Always as a stream of events, except errors that have an HTTP status of their own.
    Events,
    /// Always as JSON: anything but the answer cannot be sent.
    Json,
}

/// Which names a `Host` or `Origin` header may contain, whatever address the server listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// `localhost`, IP addresses, and these names: `example.com` with any port, `example.com:8080`, or
    /// `https://example.com` for an origin. An IP address in an `Origin` must be a loopback address or that of the `Host`.
    Named(Vec<String>),
    /// Any name. Every web page in a browser that reaches the server can then send it requests.
    Any,
}

impl Default for Hosts {
    /// `localhost` and IP addresses.
    fn default() -> Hosts {
        Hosts::Named(Vec::new())
    }
}

/// How much is too much.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a body; beyond it the answer is 413.
    pub body: usize,
    /// Bytes of all bodies longer than 64 KiB that are being received, at least `body`; further ones wait.
    pub bodies: usize,
    /// How long a body may wait for that; beyond it the answer is 503.
    pub bodies_wait: Duration,
    /// Bytes of the head of a request; beyond it the answer is 431. At least 8192.
    pub head: usize,
    /// Open sessions, streams of HTTP+SSE among them; beyond it the answer is 503.
    pub sessions: usize,
    /// POSTs and streams that are being answered; beyond it the answer is 503.
    pub streams: usize,
    /// Open sockets; further clients wait to be let in.
    pub sockets: usize,
    /// Messages that wait: on each channel for a client that does not read, and in each connection for the application.
    pub queue: usize,
    /// Bytes that wait on each channel for a client that does not read; the application waits when there are more.
    pub queue_bytes: usize,
    /// Events that each session keeps for clients that come back.
    pub history: usize,
    /// Bytes of those events.
    pub history_bytes: usize,
    /// Bytes of those events of all sessions.
    pub history_total: usize,
    /// How long the head of a request may take.
    pub head_timeout: Duration,
    /// How long a body may take; beyond it the answer is 408.
    pub body_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: MESSAGE_LIMIT,
            bodies: 4 * MESSAGE_LIMIT,
            bodies_wait: Duration::from_secs(10),
            head: 64 * 1024,
            sessions: 1024,
            streams: 4096,
            sockets: 4096,
            queue: 256,
            queue_bytes: 1024 * 1024,
            history: 1024,
            history_bytes: MESSAGE_LIMIT,
            history_total: 4 * MESSAGE_LIMIT,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
        }
    }
}
