//! The options of a server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::protocol::{Era, Revision};
use serde_json::Value;

use super::router::CustomRoutes;
use crate::MESSAGE_LIMIT;

/// Returns the input schema of a tool by its name.
pub type ToolSchema = Arc<dyn Fn(&str) -> Option<Arc<Value>> + Send + Sync>;

/// The options of a server. The default serves every version on a free port of this machine alone.
#[derive(Clone)]
pub struct HttpServerOptions {
    /// The address to listen on; port 0 selects a free one.
    pub address: SocketAddr,
    /// The path of Streamable HTTP.
    pub path: String,
    /// The path of the HTTP+SSE stream.
    pub sse_path: String,
    /// The path that HTTP+SSE clients post to.
    pub message_path: String,
    /// The served versions. HTTP+SSE is served if 2024-11-05 is among them.
    pub revisions: Vec<Revision>,
    /// Whether the handshake creates a session.
    pub sessions: SessionMode,
    /// The form in which POSTs are answered.
    pub answers: ResponseMode,
    /// The allowed values of `Host`.
    pub hosts: AllowedHosts,
    /// The allowed values of `Origin`, which browsers send for the page that makes the request.
    pub origins: AllowedHosts,
    /// How long clients of 2025-11-25 should wait before they resume a closed stream.
    pub retry: Option<Duration>,
    /// How long a stream may be silent before a comment keeps it alive. After that time a POST without a response
    /// becomes a stream.
    pub keep_alive: Duration,
    /// How long a session may be idle before it ends.
    pub session_idle: Duration,
    /// How long a shutdown waits for active requests.
    pub grace: Duration,
    /// Returns the input schemas of tools, to check `Mcp-Param-*` headers.
    pub tool_schema: Option<ToolSchema>,
    /// How long an HTTP+SSE POST may wait for the application before it is acknowledged. Within that time it can be
    /// refused with a status. `None` acknowledges it at once.
    pub hold_posts: Option<Duration>,
    /// The paths outside MCP.
    pub routes: Option<Arc<dyn CustomRoutes>>,
    /// The limits.
    pub limits: HttpServerLimits,
}

impl Default for HttpServerOptions {
    fn default() -> HttpServerOptions {
        HttpServerOptions {
            address: ([127, 0, 0, 1], 0).into(),
            path: "/mcp".to_owned(),
            sse_path: "/sse".to_owned(),
            message_path: "/message".to_owned(),
            revisions: Revision::ALL.to_vec(),
            sessions: SessionMode::On,
            answers: ResponseMode::Auto,
            hosts: AllowedHosts::default(),
            origins: AllowedHosts::default(),
            retry: None,
            keep_alive: Duration::from_secs(15),
            session_idle: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(5),
            tool_schema: None,
            hold_posts: None,
            routes: None,
            limits: HttpServerLimits::default(),
        }
    }
}

impl HttpServerOptions {
    /// Returns the served versions of an era, oldest first.
    pub(super) fn served(&self, era: Era) -> impl Iterator<Item = Revision> + '_ {
        Revision::ALL.into_iter().filter(move |revision| revision.era() == era && self.revisions.contains(revision))
    }

    /// True if the stateless era is served.
    pub(super) fn serves_modern(&self) -> bool {
        self.served(Era::Modern).next().is_some()
    }

    /// True if the handshake era is served over Streamable HTTP.
    pub(super) fn serves_legacy(&self) -> bool {
        self.served(Era::Legacy).any(Revision::has_streamable_http)
    }

    /// True if HTTP+SSE is served.
    pub(super) fn serves_http_sse(&self) -> bool {
        self.revisions.contains(&Revision::V2024_11_05)
    }
}

impl fmt::Debug for HttpServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServerOptions")
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
pub enum SessionMode {
    /// `initialize` creates an `Mcp-Session-Id`; each session is a connection.
    On,
    /// No request needs a session, and the whole handshake era shares one connection. GET and DELETE are refused.
    Off,
}

/// The form in which POSTs are answered, if the client accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMode {
    /// JSON if the response is the first message, otherwise a stream of events.
    Auto,
    /// Always a stream of events, except for errors with an HTTP status of their own.
    Events,
    /// Always JSON: only the response can be sent.
    Json,
}

/// The names that `Host` and `Origin` may contain, whatever address the server listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHosts {
    /// `localhost`, IP addresses, and these names: `example.com` with any port, `example.com:8080`, or
    /// `https://example.com` for an origin. An IP address in an `Origin` must be a loopback address or that of the `Host`.
    Named(Vec<String>),
    /// Any name. Every web page in a browser that can reach the server may then send it requests.
    Any,
}

impl Default for AllowedHosts {
    /// Allows `localhost` and IP addresses.
    fn default() -> AllowedHosts {
        AllowedHosts::Named(Vec::new())
    }
}

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct HttpServerLimits {
    /// The longest body in bytes; a longer one gets a 413.
    pub body: usize,
    /// The most bytes of bodies over 64 KiB that are received concurrently, at least `body`; further ones wait.
    pub bodies: usize,
    /// How long a body may wait for that; after it the client gets a 503.
    pub bodies_wait: Duration,
    /// The longest head of a request in bytes, at least 8192; a longer one gets a 431.
    pub head: usize,
    /// The most open sessions, including HTTP+SSE streams; a further one gets a 503.
    pub sessions: usize,
    /// The most active POSTs and streams; a further one gets a 503.
    pub streams: usize,
    /// The most open sockets; further clients wait until one closes.
    pub sockets: usize,
    /// The most queued messages: on each channel for a client that does not read, and in each connection for the
    /// application.
    pub queue: usize,
    /// The number of queued bytes on a channel from which the application has to wait.
    pub queue_bytes: usize,
    /// The most events that each session keeps for resumption.
    pub history: usize,
    /// The most bytes that each session keeps for resumption.
    pub history_bytes: usize,
    /// The most bytes that all sessions together keep for resumption.
    pub history_total: usize,
    /// The time limit for receiving the head of a request.
    pub head_timeout: Duration,
    /// The time limit for receiving a body; after it the client gets a 408.
    pub body_timeout: Duration,
}

impl Default for HttpServerLimits {
    fn default() -> HttpServerLimits {
        HttpServerLimits {
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
