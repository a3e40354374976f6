//! A client that is connected.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{Message, Method, Reply};
use rehearsal_core::protocol::{Era, Revision, meta};
use rehearsal_wire::{SendError, StopOutcome};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::connection::ClientConnection;
use super::error::{ClientError, Evidence};
use super::handlers::ClientHandlers;
use super::handshake::OpenConnection;
use super::params::{Params, meta_suffix};
use super::request_builder::RequestBuilder;
use super::response::ServerResponse;
use super::subscription::Subscription;

/// A connected client; clones share the connection.
///
/// [`Client::command`], `Client::url`, `Client::listening`, [`Client::container`], [`Client::connection`] and
/// `Client::config` return a [`ClientBuilder`](super::ClientBuilder) for the server.
///
/// ```
/// # #[cfg(not(feature = "mock"))]
/// # fn main() {}
/// # #[cfg(feature = "mock")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rehearsal::Client;
/// use serde_json::json;
///
/// # use rehearsal::mock::{text, tool_error};
/// # let server = rehearsal::MockServer::builder()
/// #     .tool("add")
/// #     .when(json!({"a": 2}))
/// #     .respond(text("42"))
/// #     .respond(tool_error("not a number"))
/// #     .start()?;
/// # let url = server.url();
/// let client = Client::url(url).connect().await?;
///
/// let response = client.call_tool("add", json!({"a": 2, "b": 40})).await?;
/// assert!(response.success());
/// assert_eq!(response.content(), "42");
///
/// let failed = client.call_tool("add", json!({"a": "two"})).await?;
/// assert!(failed.is_tool_error());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
///
/// Any number of requests may be in flight at once. When the last clone is dropped, the server is killed;
/// [`close`](Client::close) shuts it down.
#[derive(Clone)]
pub struct Client {
    pub(super) inner: Arc<ClientInner>,
}

pub(super) struct ClientInner {
    pub(super) connection: Arc<ClientConnection>,
    _opened: Arc<OpenConnection>,
    pub(super) negotiated: HandshakeResult,
    pub(super) timeout: Duration,
    pub(super) handlers: ClientHandlers,
    /// The `_meta` that every request carries in the stateless era; empty before that.
    pub(super) meta: Vec<(&'static str, Box<RawValue>)>,
    /// This `_meta` as text, as it is appended to the other params.
    pub(super) written_meta: Vec<u8>,
    /// The input schemas of the tools that were listed, for the headers that repeat arguments.
    pub(super) schemas: Mutex<HashMap<String, Arc<Value>>>,
    /// The log level that every request of the stateless era carries.
    pub(super) log_level: Mutex<Option<Box<RawValue>>>,
    pub(super) subscriptions: Mutex<HashMap<String, Subscription>>,
}

/// The result of the handshake.
pub(super) struct HandshakeResult {
    pub(super) revision: Revision,
    server_info: Value,
    capabilities: Value,
    instructions: Option<String>,
    /// The reply of the handshake; `None` if there was none.
    reply: Option<Reply>,
}

impl HandshakeResult {
    pub(super) fn new(
        revision: Revision,
        server_info: Value,
        result: &Value,
        reply: Option<&Reply>,
    ) -> HandshakeResult {
        HandshakeResult {
            revision,
            server_info,
            reply: reply.cloned(),
            capabilities: result.get("capabilities").cloned().unwrap_or_default(),
            instructions: result.get("instructions").and_then(Value::as_str).map(str::to_owned),
        }
    }

    /// The result without a handshake.
    pub(super) fn assumed(revision: Revision) -> HandshakeResult {
        HandshakeResult::new(revision, Value::Null, &Value::Null, None)
    }
}

impl Client {
    pub(super) fn new(
        opened: Arc<OpenConnection>,
        negotiated: HandshakeResult,
        timeout: Duration,
        handlers: ClientHandlers,
        capabilities: &Value,
        client_info: &Value,
    ) -> Client {
        let meta = match negotiated.revision.era() {
            Era::Legacy => Vec::new(),
            Era::Modern => vec![
                (meta::PROTOCOL_VERSION, text(negotiated.revision.as_str())),
                (meta::CLIENT_CAPABILITIES, text(capabilities)),
                (meta::CLIENT_INFO, text(client_info)),
            ],
        };
        let fields: Vec<_> = meta.iter().map(|(key, text)| (*key, Cow::Borrowed(&**text))).collect();
        let written_meta = meta_suffix(&fields).expect("JSON can always be written");
        let (schemas, log_level, subscriptions) = Default::default();
        let inner = ClientInner {
            connection: opened.connection.clone(),
            _opened: opened,
            negotiated,
            timeout,
            handlers,
            meta,
            written_meta,
            schemas,
            log_level,
            subscriptions,
        };
        Client { inner: Arc::new(inner) }
    }

    /// The negotiated version.
    pub fn revision(&self) -> Revision {
        self.inner.negotiated.revision
    }

    /// The `serverInfo`: an object with `name` and `version`, or `null`.
    pub fn server_info(&self) -> &Value {
        &self.inner.negotiated.server_info
    }

    /// The capabilities that the server declared.
    pub fn server_capabilities(&self) -> &Value {
        &self.inner.negotiated.capabilities
    }

    /// The server's `instructions`.
    pub fn instructions(&self) -> Option<&str> {
        self.inner.negotiated.instructions.as_deref()
    }

    /// The answer to `server/discover` or `initialize` that negotiated the version; `None` without a handshake.
    pub(crate) fn handshake_reply(&self) -> Option<&Reply> {
        self.inner.negotiated.reply.as_ref()
    }

    /// Waits until a server of the handshake era has had time to request and apply the client's roots.
    ///
    /// Such a server sends `roots/list` after the handshake and does not report when it has applied the response, so this
    /// returns 100 ms after the last response, at most after 2 s. Without roots, and since 2026-07-28, it returns at once.
    pub async fn roots_applied(&self) {
        let has_roots = self.inner.handlers.capabilities().get("roots").is_some();
        if has_roots && self.revision().era() == Era::Legacy {
            self.inner.connection.roots_applied().await;
        }
    }

    /// Builds a request of any method. Its envelope is valid in the negotiated version.
    pub fn request(&self, method: impl Into<Method>, params: Value) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method.into(), Params::Any(Box::new(params)))
    }

    fn named(&self, method: Method, name: &str, arguments: &impl Serialize) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, Params::named(name, arguments))
    }

    /// Builds a tool call with more options: its own timeout, a callback for progress, and so on.
    pub fn call(&self, tool: &str) -> RequestBuilder {
        self.named(Method::TOOLS_CALL, tool, &json!({}))
    }

    /// Calls a tool. A response of the server is `Ok`, also if it is an error: see [`ServerResponse`].
    pub fn call_tool<A: Serialize>(
        &self,
        tool: &str,
        arguments: A,
    ) -> impl Future<Output = Result<ServerResponse, ClientError>> + Send + use<A> {
        let mut call = self.named(Method::TOOLS_CALL, tool, &arguments);
        async move { call.run().await }
    }

    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<ServerResponse, ClientError> {
        self.request(Method::RESOURCES_READ, json!({"uri": uri})).await
    }

    /// Gets a prompt.
    pub fn get_prompt<A: Serialize>(
        &self,
        name: &str,
        arguments: A,
    ) -> impl Future<Output = Result<ServerResponse, ClientError>> + Send + use<A> {
        let mut call = self.named(Method::PROMPTS_GET, name, &arguments);
        async move { call.run().await }
    }

    /// Requests completions for an argument of a prompt, or for a variable of a resource template.
    ///
    /// `reference` is `{"type": "ref/prompt", "name": …}` or `{"type": "ref/resource", "uri": …}`.
    pub async fn complete(&self, reference: Value, argument: &str, value: &str) -> Result<Vec<String>, ClientError> {
        let params = json!({"ref": reference, "argument": {"name": argument, "value": value}});
        let response = self.request(Method::COMPLETE, params).await?.into_result()?;
        let values = response.pointer("/completion/values").and_then(Value::as_array);
        let values = values.ok_or_else(|| ClientError::BadResult {
            method: Method::COMPLETE,
            what: "no list at $.completion.values".to_owned(),
        })?;
        Ok(values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect())
    }

    /// Checks that the server responds. 2026-07-28 has no `ping`, so `server/discover` is sent instead.
    pub async fn ping(&self) -> Result<ServerResponse, ClientError> {
        match self.revision().era() {
            Era::Legacy => self.request(Method::PING, Value::Null).await,
            Era::Modern => self.request(Method::DISCOVER, json!({})).await,
        }
    }

    /// Sets the lowest level of log messages that the server should send.
    pub async fn set_log_level(&self, level: &str) -> Result<(), ClientError> {
        match self.revision().era() {
            Era::Legacy => {
                self.request(Method::SET_LOG_LEVEL, json!({"level": level})).await?.into_result()?;
            }
            Era::Modern => {
                let mut slot = self.inner.log_level.lock().unwrap_or_else(PoisonError::into_inner);
                *slot = Some(text(level));
            }
        }
        Ok(())
    }

    /// Sends a notification.
    pub async fn notify(&self, method: impl Into<Method>, params: Value) -> Result<(), ClientError> {
        let method = method.into();
        let params = if params.is_null() { None } else { Some(params) };
        let message = Message::notification(method.clone(), params.as_ref());
        let message = message.map_err(|cause| ClientError::BadParams { method: method.clone(), cause })?;
        self.in_time(method, self.inner.connection.send_notification(Channel::MAIN, message)).await
    }

    /// Sends bytes unchanged, valid or not. Over a pipe no line end is added; over HTTP
    /// they are the body of a POST. The response of the server is among the [notifications](Client::take_notifications)
    /// or in the [evidence](Client::evidence).
    pub async fn send_bytes(&self, bytes: impl Into<Bytes>) -> Result<(), ClientError> {
        let (sender, bytes) = (&self.inner.connection.sender, bytes.into());
        self.inner.connection.observe(Side::Client, &Message::parse(bytes.clone()));
        self.in_time("bytes".into(), sender.send_bytes(sender.open_channel(), bytes)).await
    }

    /// Sends within the timeout, which a server that does not read exceeds.
    async fn in_time(
        &self,
        method: Method,
        sending: impl Future<Output = Result<(), SendError>>,
    ) -> Result<(), ClientError> {
        let after = self.inner.timeout;
        match self.inner.connection.in_time(after, sending).await {
            Some(Ok(())) => Ok(()),
            Some(Err(cause)) => Err(ClientError::NotSent { method, cause, evidence: self.evidence() }),
            None => Err(ClientError::TimedOut { method, after, evidence: self.evidence() }),
        }
    }

    /// Waits for the next notification of this method that belongs to no call, and takes it.
    pub async fn notification(&self, method: impl Into<Method>) -> Result<Message, ClientError> {
        let method = method.into();
        let wanted = |message: &Message| message.method() == Some(&method);
        let after = self.inner.timeout;
        match tokio::time::timeout(after, self.inner.connection.notification(wanted)).await {
            Ok(Ok(message)) => Ok(message),
            Ok(Err(ending)) => Err(ClientError::ServerClosed { method, ending, evidence: self.evidence() }),
            Err(_) => Err(ClientError::TimedOut { method, after, evidence: self.evidence() }),
        }
    }

    /// Removes and returns all unread notifications that belong to no call.
    pub fn take_notifications(&self) -> Vec<Message> {
        self.inner.connection.take_notifications()
    }

    /// The evidence so far: stderr, noise on stdout, responses without a request.
    pub fn evidence(&self) -> Box<Evidence> {
        self.inner.connection.evidence()
    }

    /// Whether the connection has ended, by either side.
    pub(crate) fn is_over(&self) -> bool {
        self.inner.connection.state().ended.is_some()
    }

    /// Closes the connection. A server process may exit by itself; then it gets SIGTERM, then SIGKILL. Returns which of these
    /// was needed.
    pub async fn close(&self) -> StopOutcome {
        self.inner.connection.sender.close().await
    }
}

/// Writes a value as JSON.
fn text(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    to_raw_value(value).expect("a string or a JSON value can always be written")
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("revision", &self.revision())
            .field("server_info", self.server_info())
            .finish_non_exhaustive()
    }
}
