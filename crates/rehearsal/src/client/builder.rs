//! How a client is made.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::exchange::Side;
use rehearsal_core::message::Message;
use rehearsal_core::protocol::Revision;
use rehearsal_wire::Connection;
use rehearsal_wire::container::Container;
use rehearsal_wire::stdio::{ServerCommand, StderrSink};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::client::Client;
use super::connection::{MessageObserver, RedactText};
use super::error::ClientError;
use super::handlers::ClientHandlers;
use super::handshake::Connecting;
use super::target::{ConnectTarget, Endpoint, HttpTransport, Protocol};
use crate::config::{ServerEntry, read_config};

/// The environment variable that every server gets that a client starts, so that it can detect a test run.
const TEST_MODE: (&str, &str) = ("REHEARSAL_TEST_MODE", "1");

/// Every setting of a client before it connects.
#[must_use = "nothing happens before `connect`"]
pub struct ClientBuilder {
    pub(super) target: ConnectTarget,
    pub(super) protocol: Protocol,
    pub(super) timeout: Duration,
    pub(super) answers: ClientHandlers,
    pub(super) capabilities: Option<Value>,
    pub(super) client_info: Value,
    pub(super) tap: Option<MessageObserver>,
    /// Redacts the text of the server before it becomes evidence.
    pub(super) clean: Option<RedactText>,
    pub(super) assumed: Option<Revision>,
    /// How long to wait for a response to `server/discover` before the server is treated as a legacy one.
    pub(super) probe: Duration,
}

impl Client {
    /// A server to start; a program without a slash is looked up in `PATH`.
    pub fn command(program: impl Into<OsString>) -> ClientBuilder {
        ClientBuilder::new(ConnectTarget::Command(started(program)))
    }

    /// A server to reach over HTTP.
    pub fn url(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(ConnectTarget::Url(Endpoint { url: url.into(), ..Endpoint::default() }))
    }

    /// A server to start that listens on a port. Its URL is read from its stdout or stderr, and it ends with the
    /// client.
    ///
    /// `listening on http://127.0.0.1:43121/mcp`, `running on http://0.0.0.0:8000` and `listening on port 3001` are
    /// recognized. Without a path there, [`path`](ClientBuilder::path) is used, or `/mcp`.
    pub fn listening(program: impl Into<OsString>) -> ClientBuilder {
        let command = started(program);
        ClientBuilder::new(ConnectTarget::Listening {
            command,
            endpoint: Endpoint::default(),
            started: OnceCell::new(),
        })
    }

    /// A server in a container: an image to run, or a running container to run something in.
    pub fn container(container: Container) -> ClientBuilder {
        let mut container = container;
        container.environment.insert(TEST_MODE.0.into(), TEST_MODE.1.into());
        ClientBuilder::new(ConnectTarget::Container(container))
    }

    /// Something that is connected already, such as one end of [`memory::pair`](rehearsal_wire::memory::pair).
    pub fn connection(connection: Connection) -> ClientBuilder {
        ClientBuilder::new(ConnectTarget::Connection(Mutex::new(Some(connection))))
    }

    /// A server by its name in an `.mcp.json`; variables in the file come from our environment.
    pub fn config(file: impl AsRef<Path>, name: &str) -> Result<ClientBuilder, ClientError> {
        let entry = read_config(file.as_ref(), name, |variable| std::env::var(variable).ok())?;
        Ok(entry.into())
    }
}

/// A command with the environment variable of tests.
fn started(program: impl Into<OsString>) -> ServerCommand {
    let mut command = ServerCommand::new(program);
    command.environment.insert(TEST_MODE.0.into(), TEST_MODE.1.into());
    command
}

impl From<ServerEntry> for ClientBuilder {
    fn from(entry: ServerEntry) -> ClientBuilder {
        match entry {
            ServerEntry::Command { command, arguments, environment, working_dir } => {
                let builder = Client::command(command).arguments(arguments);
                let builder = environment.into_iter().fold(builder, |builder, (key, value)| builder.env(key, value));
                match working_dir {
                    Some(path) => builder.working_dir(path),
                    None => builder,
                }
            }
            ServerEntry::Url { url, headers, sse } => {
                let builder = headers.into_iter().fold(Client::url(url), |builder, (k, v)| builder.header(k, v));
                if sse { builder.transport(HttpTransport::Sse) } else { builder }
            }
        }
    }
}

impl ClientBuilder {
    fn new(target: ConnectTarget) -> ClientBuilder {
        ClientBuilder {
            target,
            protocol: Protocol::Auto,
            timeout: Duration::from_secs(30),
            answers: ClientHandlers::new(),
            capabilities: None,
            client_info: serde_json::json!({"name": "rehearsal", "version": env!("CARGO_PKG_VERSION")}),
            tap: None,
            clean: None,
            assumed: None,
            probe: Duration::from_secs(2),
        }
    }

    /// Adds arguments for the server's command.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> ClientBuilder {
        let arguments = arguments.into_iter().map(Into::into);
        match &mut self.target {
            ConnectTarget::Command(command) | ConnectTarget::Listening { command, .. } => {
                command.arguments.extend(arguments)
            }
            ConnectTarget::Container(container) => container.arguments.extend(arguments),
            ConnectTarget::Url(_) | ConnectTarget::Connection(_) => {}
        }
        self
    }

    /// Sets a variable for the server.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> ClientBuilder {
        match &mut self.target {
            ConnectTarget::Command(command) | ConnectTarget::Listening { command, .. } => {
                command.environment.insert(name.into(), value.into());
            }
            ConnectTarget::Container(container) => drop(container.environment.insert(name.into(), value.into())),
            ConnectTarget::Url(_) | ConnectTarget::Connection(_) => {}
        }
        self
    }

    /// Where the server runs.
    pub fn working_dir(mut self, path: impl Into<PathBuf>) -> ClientBuilder {
        if let ConnectTarget::Command(command) | ConnectTarget::Listening { command, .. } = &mut self.target {
            command.working_dir = Some(path.into());
        }
        self
    }

    /// Sees every line of the server's stderr as it comes.
    pub fn on_stderr(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> ClientBuilder {
        let sink: StderrSink = Arc::new(sink);
        match &mut self.target {
            ConnectTarget::Command(command) | ConnectTarget::Listening { command, .. } => command.stderr = Some(sink),
            ConnectTarget::Container(container) => container.stderr = Some(sink),
            ConnectTarget::Url(_) | ConnectTarget::Connection(_) => {}
        }
        self
    }

    fn endpoint(&mut self) -> Option<&mut Endpoint> {
        match &mut self.target {
            ConnectTarget::Url(endpoint) | ConnectTarget::Listening { endpoint, .. } => Some(endpoint),
            ConnectTarget::Command(_) | ConnectTarget::Container(_) | ConnectTarget::Connection(_) => None,
        }
    }

    /// The path of the MCP endpoint of a server that is started by [`Client::listening`], such as `/sse`. It overrides
    /// the path that the server prints.
    pub fn path(mut self, path: impl Into<String>) -> ClientBuilder {
        if let ConnectTarget::Listening { endpoint, .. } = &mut self.target {
            endpoint.url = path.into();
        }
        self
    }

    /// Sends a header with every HTTP request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> ClientBuilder {
        if let Some(endpoint) = self.endpoint() {
            endpoint.headers.insert(name.into(), value.into());
        }
        self
    }

    /// Logs in if the server requires it. A configured header `Authorization` takes precedence.
    #[cfg(feature = "oauth")]
    pub fn oauth(mut self, oauth: crate::oauth::OAuth) -> ClientBuilder {
        if let Some(endpoint) = self.endpoint() {
            endpoint.oauth = Some(oauth);
        }
        self
    }

    /// Authorizes with an [`Authority`](crate::oauth::Authority) that exists already.
    #[cfg(feature = "oauth")]
    pub(crate) fn authority(mut self, authority: Arc<crate::oauth::Authorizer>) -> ClientBuilder {
        if let Some(endpoint) = self.endpoint() {
            endpoint.authority = tokio::sync::OnceCell::new_with(Some(authority));
        }
        self
    }

    /// Which HTTP transport to use.
    pub fn transport(mut self, wanted: HttpTransport) -> ClientBuilder {
        if let Some(endpoint) = self.endpoint() {
            endpoint.transport = wanted;
        }
        self
    }

    /// Trusts this certificate (PEM) in addition to the usual root certificates.
    pub fn root_certificate(mut self, pem: impl Into<Bytes>) -> ClientBuilder {
        if let Some(endpoint) = self.endpoint() {
            endpoint.root_certificates.push(pem.into());
        }
        self
    }

    /// Which era and version to use.
    pub fn protocol(self, protocol: Protocol) -> ClientBuilder {
        ClientBuilder { protocol, ..self }
    }

    /// Begins with a handshake that offers `revision`.
    pub fn legacy(self, revision: Revision) -> ClientBuilder {
        self.protocol(Protocol::Legacy(revision))
    }

    /// Uses 2026-07-28 only.
    pub fn modern(self) -> ClientBuilder {
        self.protocol(Protocol::Modern)
    }

    /// How long to wait for a response, unless a call has its own timeout. The default is 30 seconds.
    pub fn timeout(self, timeout: Duration) -> ClientBuilder {
        ClientBuilder { timeout, ..self }
    }

    /// The answers to requests of the server.
    pub fn handlers(self, answers: ClientHandlers) -> ClientBuilder {
        ClientBuilder { answers, ..self }
    }

    /// Changes the answers to requests of the server.
    pub fn map_handlers(self, change: impl FnOnce(ClientHandlers) -> ClientHandlers) -> ClientBuilder {
        ClientBuilder { answers: change(self.answers), ..self }
    }

    /// Declares exactly these capabilities, whatever there are answers for.
    pub fn capabilities(self, capabilities: Value) -> ClientBuilder {
        ClientBuilder { capabilities: Some(capabilities), ..self }
    }

    /// The `clientInfo` of the client.
    pub fn client_info(self, name: &str, version: &str) -> ClientBuilder {
        ClientBuilder { client_info: serde_json::json!({"name": name, "version": version}), ..self }
    }

    /// Redacts the text of the server before it becomes evidence.
    pub(crate) fn redact_output(self, clean: impl Fn(&str) -> String + Send + Sync + 'static) -> ClientBuilder {
        ClientBuilder { clean: Some(Arc::new(clean)), ..self }
    }

    /// Uses this version without a handshake, if one is given.
    pub(crate) fn assuming(self, assumed: Option<Revision>) -> ClientBuilder {
        ClientBuilder { assumed, ..self }
    }

    /// Sees every message that passes, in both directions.
    pub fn on_message(self, tap: impl Fn(Side, &Message) + Send + Sync + 'static) -> ClientBuilder {
        ClientBuilder { tap: Some(Arc::new(tap)), ..self }
    }

    /// Starts the server or connects to it, and negotiates a version.
    ///
    /// If that fails, the server is shut down before this returns. If this is dropped, the server is killed;
    /// [`connecting`](ClientBuilder::connecting) can be closed.
    pub async fn connect(self) -> Result<Client, ClientError> {
        let connecting = self.connecting();
        let connected = connecting.connect().await;
        if connected.is_err() {
            connecting.close().await;
        }
        connected
    }

    /// A connection that can be closed while it is being established.
    pub fn connecting(self) -> Connecting {
        Connecting::new(self)
    }
}
