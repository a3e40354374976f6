//! What to connect to, and how.

#[cfg(feature = "http")]
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use rehearsal_core::protocol::Revision;
use rehearsal_wire::stdio::{self, ServerCommand};
use rehearsal_wire::{Connection, container};
#[cfg(feature = "http")]
use tokio::sync::OnceCell;

#[cfg(feature = "http")]
use super::endpoint::{Endpoint, HttpTransport};
use super::error::ClientError;
#[cfg(feature = "http")]
use super::listening_server::ListeningServer;

/// Which era and version a client uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The stateless era if the server supports it, otherwise a handshake.
    #[default]
    Auto,
    /// A handshake that offers this version.
    Legacy(Revision),
    /// The stateless era and nothing else.
    Modern,
}

impl std::str::FromStr for Protocol {
    type Err = String;

    /// `auto`, `legacy`, `modern`, or a version such as `2025-06-18`.
    fn from_str(text: &str) -> Result<Protocol, String> {
        match text {
            "auto" => Ok(Protocol::Auto),
            "legacy" => Ok(Protocol::Legacy(Revision::LATEST_LEGACY)),
            "modern" => Ok(Protocol::Modern),
            version => match version.parse::<Revision>() {
                Ok(revision) if revision.has_handshake() => Ok(Protocol::Legacy(revision)),
                Ok(_) => Ok(Protocol::Modern),
                Err(error) => Err(format!("{error}; or use auto, legacy or modern")),
            },
        }
    }
}

/// What to connect to.
#[derive(Debug)]
pub(super) enum ConnectTarget {
    Command(ServerCommand),
    Container(container::Container),
    #[cfg(feature = "http")]
    Url(Endpoint),
    /// A server to start that is reached over HTTP; `endpoint.url` is empty, or the path.
    #[cfg(feature = "http")]
    Listening {
        command: ServerCommand,
        endpoint: Endpoint,
        /// Started with the first connection, and reused for further connections of the handshake.
        started: OnceCell<Arc<ListeningServer>>,
    },
    /// `None` once it was taken.
    Connection(Mutex<Option<Connection>>),
}

impl ConnectTarget {
    /// What a builder call was made on, for error messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            ConnectTarget::Command(_) => "a command",
            ConnectTarget::Container(_) => "a container",
            #[cfg(feature = "http")]
            ConnectTarget::Url(_) => "a URL",
            #[cfg(feature = "http")]
            ConnectTarget::Listening { .. } => "a command that listens on a port",
            ConnectTarget::Connection(_) => "a connection",
        }
    }

    /// The command to start on this machine.
    pub(super) fn command_mut(&mut self) -> Option<&mut ServerCommand> {
        match self {
            ConnectTarget::Command(command) => Some(command),
            #[cfg(feature = "http")]
            ConnectTarget::Listening { command, .. } => Some(command),
            #[cfg(feature = "http")]
            ConnectTarget::Url(_) => None,
            ConnectTarget::Container(_) | ConnectTarget::Connection(_) => None,
        }
    }

    /// Whether a second connection can be made where the first one broke.
    pub(super) fn can_reopen(&self) -> bool {
        match self {
            ConnectTarget::Command(_) | ConnectTarget::Container(_) => true,
            #[cfg(feature = "http")]
            ConnectTarget::Url(_) => true,
            // The process or connection that broke cannot be replaced.
            #[cfg(feature = "http")]
            ConnectTarget::Listening { .. } => false,
            ConnectTarget::Connection(_) => false,
        }
    }

    /// Whether HTTP+SSE should be tried where Streamable HTTP was refused.
    pub(super) fn may_be_sse(&self) -> bool {
        match self {
            #[cfg(feature = "http")]
            ConnectTarget::Url(endpoint) | ConnectTarget::Listening { endpoint, .. } => {
                endpoint.transport == HttpTransport::Auto
            }
            ConnectTarget::Command(_) | ConnectTarget::Container(_) | ConnectTarget::Connection(_) => false,
        }
    }

    /// Connects; `sse` selects HTTP+SSE after Streamable HTTP was refused.
    #[cfg_attr(not(feature = "http"), expect(unused_variables, reason = "only HTTP has these settings"))]
    pub(super) async fn open(&self, sse: bool, limit: Duration) -> Result<Connection, ClientError> {
        match self {
            ConnectTarget::Command(command) => stdio::spawn(command).await.map_err(ClientError::Start),
            ConnectTarget::Container(container) => container::spawn(container).await.map_err(ClientError::Engine),
            #[cfg(feature = "http")]
            ConnectTarget::Url(endpoint) => endpoint.open(&endpoint.url, sse, limit).await,
            #[cfg(feature = "http")]
            ConnectTarget::Listening { command, endpoint, started } => {
                let path = Some(endpoint.url.as_str()).filter(|path| !path.is_empty());
                let start = || async { ListeningServer::start(command, path, limit).await.map(Arc::new) };
                let listening = started.get_or_try_init(start).await?;
                Ok(listening.behind(endpoint.open(listening.url(), sse, limit).await?))
            }
            ConnectTarget::Connection(connection) => {
                let taken = connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
                taken.ok_or_else(|| ClientError::BadTarget { what: "this connection was already used".to_owned() })
            }
        }
    }
}
