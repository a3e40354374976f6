//! How a client is made.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(feature = "http")]
use bytes::Bytes;
use rehearsal_core::exchange::Side;
use rehearsal_core::message::Message;
use rehearsal_core::protocol::Revision;
use rehearsal_wire::Connection;
use rehearsal_wire::container::Container;
use rehearsal_wire::stdio::{ServerCommand, StderrSink};
use serde_json::Value;
#[cfg(feature = "http")]
use tokio::sync::OnceCell;

use super::client::Client;
use super::connection::{MessageObserver, RedactText};
#[cfg(feature = "http")]
use super::endpoint::{Endpoint, HttpTransport};
use super::error::ClientError;
use super::handlers::ClientHandlers;
use super::handshake::Connecting;
use super::target::{ConnectTarget, Protocol};
#[cfg(feature = "mock")]
use crate::config::{ServerEntry, read_config};

/// The environment variable of every server that a client starts, so that it can detect a test run.
const TEST_MODE: (&str, &str) = ("REHEARSAL_TEST_MODE", "1");

/// The settings of a client before it connects.
///
/// A setting that does not apply to the target is an error of [`connect`](ClientBuilder::connect):
///
/// ```
/// use std::time::Duration;
///
/// use rehearsal::Client;
/// use rehearsal::transport::memory_pair;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Client::command("my-server").args(["--stdio"]).env("TOKEN", "x").timeout(Duration::from_secs(5));
/// # drop(server);
///
/// let (end, _other) = memory_pair();
/// let error = Client::connection(end).args(["--stdio"]).connect().await.unwrap_err();
/// assert!(error.to_string().starts_with("`args` does not apply to a connection"));
/// # }
/// ```
#[must_use = "nothing happens before `connect`"]
pub struct ClientBuilder {
    pub(super) target: ConnectTarget,
    pub(super) protocol: Protocol,
    pub(super) timeout: Duration,
    pub(super) handlers: ClientHandlers,
    pub(super) capabilities: Option<Value>,
    pub(super) client_info: Value,
    pub(super) observer: Option<MessageObserver>,
    /// Redacts the text of the server before it becomes evidence.
    pub(super) redact: Option<RedactText>,
    pub(super) assumed: Option<Revision>,
    /// How long to wait for a response to `server/discover` before the server is treated as a legacy one.
    pub(super) probe: Duration,
    /// The first call that does not apply to the target, as the message of the error.
    pub(super) inapplicable: Option<String>,
}

const NEEDS_PROCESS: &str = "it needs a server that the client starts";
const NEEDS_COMMAND: &str = "it needs a server that the client starts on this machine";

impl Client {
    /// A server to start; a program without a slash is looked up in `PATH`.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), rehearsal::ClientError> {
    /// let client = rehearsal::Client::command("npx").args(["-y", "some-server"]).env("TOKEN", "x").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn command(program: impl Into<OsString>) -> ClientBuilder {
        ClientBuilder::new(ConnectTarget::Command(started(program)))
    }

    /// A server to reach over HTTP.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), rehearsal::ClientError> {
    /// let client = rehearsal::Client::url("http://127.0.0.1:3000/mcp").header("X-Team", "tests").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "http")]
    pub fn url(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(ConnectTarget::Url(Endpoint { url: url.into(), ..Endpoint::default() }))
    }

    /// A server to start that listens on a port. Its URL is read from its stdout or stderr, and it ends with the
    /// client.
    ///
    /// `listening on http://127.0.0.1:43121/mcp`, `running on http://0.0.0.0:8000` and `listening on port 3001` are
    /// recognized. Without a path there, [`path`](ClientBuilder::path) is used, or `/mcp`.
    #[cfg(feature = "http")]
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

    /// A connection that is open already, such as one end of [`memory_pair`](crate::transport::memory_pair).
    pub fn connection(connection: Connection) -> ClientBuilder {
        ClientBuilder::new(ConnectTarget::Connection(Mutex::new(Some(connection))))
    }

    /// A server by its name in an `.mcp.json`. Variables in the file are replaced from the environment of this process.
    #[cfg(feature = "mock")]
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

#[cfg(feature = "mock")]
impl From<ServerEntry> for ClientBuilder {
    fn from(entry: ServerEntry) -> ClientBuilder {
        match entry {
            ServerEntry::Command { command, arguments, environment, working_dir } => {
                let builder = Client::command(command).args(arguments).envs(environment);
                match working_dir {
                    Some(path) => builder.current_dir(path),
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
            handlers: ClientHandlers::new(),
            capabilities: None,
            client_info: serde_json::json!({"name": "rehearsal", "version": env!("CARGO_PKG_VERSION")}),
            observer: None,
            redact: None,
            assumed: None,
            probe: Duration::from_secs(2),
            inapplicable: None,
        }
    }

    /// Notes a call that does not fit the target. `connect` reports the first one.
    fn does_not_apply(&mut self, call: &'static str, hint: &'static str) {
        if self.inapplicable.is_none() {
            let target = self.target.kind();
            self.inapplicable = Some(format!("`{call}` does not apply to {target}; {hint}"));
        }
    }

    /// Adds an argument for the server's command.
    ///
    /// `connect` returns an error if the target is a URL or a connection, which have no arguments.
    pub fn arg(self, argument: impl Into<OsString>) -> ClientBuilder {
        self.add_arguments("arg", [argument.into()])
    }

    /// Adds arguments for the server's command, or for the image or command of a container.
    ///
    /// `connect` returns an error if the target is a URL or a connection, which have no arguments.
    pub fn args(self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> ClientBuilder {
        self.add_arguments("args", arguments.into_iter().map(Into::into))
    }

    fn add_arguments(mut self, call: &'static str, arguments: impl IntoIterator<Item = OsString>) -> ClientBuilder {
        if let Some(command) = self.target.command_mut() {
            command.arguments.extend(arguments);
        } else if let ConnectTarget::Container(container) = &mut self.target {
            container.arguments.extend(arguments);
        } else {
            self.does_not_apply(call, NEEDS_PROCESS);
        }
        self
    }

    /// Sets an environment variable for the server's process or container.
    ///
    /// `connect` returns an error if the target is a URL or a connection, which have no environment.
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> ClientBuilder {
        self.add_variables("env", [(name.into(), value.into())])
    }

    /// Sets several environment variables for the server's process or container.
    ///
    /// `connect` returns an error if the target is a URL or a connection, which have no environment.
    pub fn envs(
        self,
        variables: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
    ) -> ClientBuilder {
        self.add_variables("envs", variables.into_iter().map(|(name, value)| (name.into(), value.into())))
    }

    fn add_variables(
        mut self,
        call: &'static str,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> ClientBuilder {
        if let Some(command) = self.target.command_mut() {
            command.environment.extend(variables);
        } else if let ConnectTarget::Container(container) = &mut self.target {
            container.environment.extend(variables);
        } else {
            self.does_not_apply(call, NEEDS_PROCESS);
        }
        self
    }

    /// Sets the working directory of the server's process.
    ///
    /// `connect` returns an error if the client does not start a process on this machine.
    pub fn current_dir(mut self, path: impl Into<PathBuf>) -> ClientBuilder {
        match self.target.command_mut() {
            Some(command) => command.working_dir = Some(path.into()),
            None => self.does_not_apply("current_dir", NEEDS_COMMAND),
        }
        self
    }

    /// The working directory of a process; no other target has one.
    pub(crate) fn current_dir_of_process(mut self, path: &Path) -> ClientBuilder {
        if let Some(command) = self.target.command_mut() {
            command.working_dir = Some(path.to_owned());
        }
        self
    }

    /// What a recording states about the server: how it is reached, and the command or the URL.
    #[cfg(feature = "dry-run")]
    pub(crate) fn server_info(&self) -> serde_json::Map<String, Value> {
        let info = match &self.target {
            ConnectTarget::Command(command) | ConnectTarget::Listening { command, .. } => {
                let arguments: Vec<_> = command.arguments.iter().map(|word| word.to_string_lossy()).collect();
                let transport = if matches!(self.target, ConnectTarget::Command(_)) { "stdio" } else { "http" };
                let program = command.program.to_string_lossy();
                serde_json::json!({"transport": transport, "command": program, "arguments": arguments})
            }
            ConnectTarget::Url(endpoint) => serde_json::json!({"transport": "http", "url": endpoint.url}),
            ConnectTarget::Container(_) => serde_json::json!({"transport": "stdio"}),
            ConnectTarget::Connection(_) => serde_json::json!({"transport": "memory"}),
        };
        match info {
            Value::Object(info) => info,
            _ => serde_json::Map::new(),
        }
    }

    /// Calls `sink` with every line of the server's stderr. A server that this client does not start has no stderr.
    pub fn on_stderr(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> ClientBuilder {
        let sink: StderrSink = Arc::new(sink);
        if let Some(command) = self.target.command_mut() {
            command.stderr = Some(sink);
        } else if let ConnectTarget::Container(container) = &mut self.target {
            container.stderr = Some(sink);
        }
        self
    }

    /// Changes the HTTP settings, or notes that the target has none.
    #[cfg(feature = "http")]
    fn with_endpoint(mut self, call: &'static str, change: impl FnOnce(&mut Endpoint)) -> ClientBuilder {
        match &mut self.target {
            ConnectTarget::Url(endpoint) | ConnectTarget::Listening { endpoint, .. } => change(endpoint),
            ConnectTarget::Command(_) | ConnectTarget::Container(_) | ConnectTarget::Connection(_) => {
                self.does_not_apply(call, "it needs a server that is reached over HTTP");
            }
        }
        self
    }

    /// The path of the MCP endpoint of a server that is started by [`Client::listening`], such as `/sse`. It overrides
    /// the path that the server prints.
    ///
    /// `connect` returns an error for every other target; a URL has its path already.
    #[cfg(feature = "http")]
    pub fn path(mut self, path: impl Into<String>) -> ClientBuilder {
        match &mut self.target {
            ConnectTarget::Listening { endpoint, .. } => endpoint.url = path.into(),
            ConnectTarget::Url(_)
            | ConnectTarget::Command(_)
            | ConnectTarget::Container(_)
            | ConnectTarget::Connection(_) => self.does_not_apply("path", "it needs a server of `Client::listening`"),
        }
        self
    }

    /// Sends a header with every HTTP request.
    ///
    /// `connect` returns an error if the server is not reached over HTTP.
    #[cfg(feature = "http")]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> ClientBuilder {
        self.with_endpoint("header", |endpoint| drop(endpoint.headers.insert(name.into(), value.into())))
    }

    /// Logs in if the server requires it. A configured header `Authorization` takes precedence.
    ///
    /// `connect` returns an error if the server is not reached over HTTP.
    #[cfg(feature = "oauth")]
    pub fn oauth(self, oauth: crate::oauth::OAuth) -> ClientBuilder {
        self.with_endpoint("oauth", |endpoint| endpoint.oauth = Some(oauth))
    }

    /// Authorizes with an [`Authorizer`](crate::oauth::Authorizer) that exists already.
    #[cfg(feature = "oauth")]
    pub(crate) fn authority(self, authority: Arc<crate::oauth::Authorizer>) -> ClientBuilder {
        self.with_endpoint("authority", |endpoint| {
            endpoint.authority = tokio::sync::OnceCell::new_with(Some(authority));
        })
    }

    /// Which HTTP transport to use; by default Streamable HTTP, and HTTP+SSE if the server does not support that.
    ///
    /// `connect` returns an error if the server is not reached over HTTP.
    #[cfg(feature = "http")]
    pub fn transport(self, transport: HttpTransport) -> ClientBuilder {
        self.with_endpoint("transport", |endpoint| endpoint.transport = transport)
    }

    /// Trusts this certificate (PEM) in addition to the usual root certificates.
    ///
    /// `connect` returns an error if the server is not reached over HTTP.
    #[cfg(feature = "http")]
    pub fn root_certificate(self, pem: impl Into<Bytes>) -> ClientBuilder {
        self.with_endpoint("root_certificate", |endpoint| endpoint.root_certificates.push(pem.into()))
    }

    /// Sets the era and version; [`Protocol::Auto`] by default.
    pub fn protocol(self, protocol: Protocol) -> ClientBuilder {
        ClientBuilder { protocol, ..self }
    }

    /// Uses a handshake that offers `revision`.
    pub fn legacy(self, revision: Revision) -> ClientBuilder {
        self.protocol(Protocol::Legacy(revision))
    }

    /// Uses 2026-07-28 only.
    pub fn modern(self) -> ClientBuilder {
        self.protocol(Protocol::Modern)
    }

    /// Sets how long to wait for a response, unless a call has its own timeout. The default is 30 seconds.
    pub fn timeout(self, timeout: Duration) -> ClientBuilder {
        ClientBuilder { timeout, ..self }
    }

    /// Sets the answers to server requests; none by default.
    pub fn handlers(self, handlers: ClientHandlers) -> ClientBuilder {
        ClientBuilder { handlers, ..self }
    }

    /// Changes the answers to server requests.
    pub fn map_handlers(self, change: impl FnOnce(ClientHandlers) -> ClientHandlers) -> ClientBuilder {
        ClientBuilder { handlers: change(self.handlers), ..self }
    }

    /// Declares exactly these capabilities, independent of the [handlers](ClientBuilder::handlers).
    pub fn capabilities(self, capabilities: Value) -> ClientBuilder {
        ClientBuilder { capabilities: Some(capabilities), ..self }
    }

    /// Sets the `clientInfo`.
    pub fn client_info(self, name: &str, version: &str) -> ClientBuilder {
        ClientBuilder { client_info: serde_json::json!({"name": name, "version": version}), ..self }
    }

    /// Redacts the text of the server before it becomes evidence.
    pub(crate) fn redact_output(self, redact: impl Fn(&str) -> String + Send + Sync + 'static) -> ClientBuilder {
        ClientBuilder { redact: Some(Arc::new(redact)), ..self }
    }

    /// Uses this version without a handshake, if one is given.
    pub(crate) fn assuming(self, assumed: Option<Revision>) -> ClientBuilder {
        ClientBuilder { assumed, ..self }
    }

    /// Calls `observer` with every message of either side.
    pub fn on_message(self, observer: impl Fn(Side, &Message) + Send + Sync + 'static) -> ClientBuilder {
        ClientBuilder { observer: Some(Arc::new(observer)), ..self }
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
