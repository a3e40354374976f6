//! What to connect to, and how.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use rehearsal_core::protocol::Revision;
use rehearsal_wire::http::client as http_client;
use rehearsal_wire::stdio::{self, ServerCommand};
use rehearsal_wire::{Connection, container};
use tokio::sync::OnceCell;

use super::error::ClientError;
use super::listening_server::ListeningServer;
#[cfg(feature = "oauth")]
use crate::oauth::{Authorizer, OAuth};

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
                Err(error) => Err(format!("{error}; or say auto, legacy or modern")),
            },
        }
    }
}

/// The HTTP transport for a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP, or HTTP+SSE if the server does not support that.
    #[default]
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE, of 2024-11-05.
    Sse,
}

/// What HTTP needs.
#[derive(Debug, Default)]
pub(super) struct Endpoint {
    pub(super) url: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) transport: HttpTransport,
    pub(super) root_certificates: Vec<Bytes>,
    #[cfg(feature = "oauth")]
    pub(super) oauth: Option<OAuth>,
    /// Created with the first connection, and reused for further connections of the handshake.
    #[cfg(feature = "oauth")]
    pub(super) authority: OnceCell<Arc<Authorizer>>,
}

/// What to connect to.
#[derive(Debug)]
pub(super) enum ConnectTarget {
    Command(ServerCommand),
    Container(container::Container),
    Url(Endpoint),
    /// A server to start that is reached over HTTP; `endpoint.url` is empty, or the path.
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
    /// Whether a second connection can be made where the first one broke.
    pub(super) fn can_reopen(&self) -> bool {
        match self {
            ConnectTarget::Command(_) | ConnectTarget::Container(_) | ConnectTarget::Url(_) => true,
            // The process or connection that broke cannot be replaced.
            ConnectTarget::Listening { .. } | ConnectTarget::Connection(_) => false,
        }
    }

    /// Whether HTTP+SSE should be tried where Streamable HTTP was refused.
    pub(super) fn may_be_sse(&self) -> bool {
        match self {
            ConnectTarget::Url(endpoint) | ConnectTarget::Listening { endpoint, .. } => {
                endpoint.transport == HttpTransport::Auto
            }
            ConnectTarget::Command(_) | ConnectTarget::Container(_) | ConnectTarget::Connection(_) => false,
        }
    }

    /// Connects; `sse` selects HTTP+SSE after Streamable HTTP was refused.
    pub(super) async fn open(&self, sse: bool, limit: Duration) -> Result<Connection, ClientError> {
        match self {
            ConnectTarget::Command(command) => stdio::spawn(command).await.map_err(ClientError::Start),
            ConnectTarget::Container(container) => container::spawn(container).await.map_err(ClientError::Engine),
            ConnectTarget::Url(endpoint) => endpoint.open(&endpoint.url, sse, limit).await,
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

impl Endpoint {
    async fn open(&self, url: &str, sse: bool, limit: Duration) -> Result<Connection, ClientError> {
        let bad = |what: String| ClientError::BadTarget { what };
        let mut options = http_client::HttpClientOptions::new(url).map_err(|error| bad(error.to_string()))?;
        options.headers = header_map(&self.headers)?;
        options.connect_timeout = limit;
        options.accept_timeout = limit;
        options.endpoint_timeout = limit;
        options.root_certificates = self.root_certificates.clone();
        #[cfg(feature = "oauth")]
        {
            if let Some(oauth) = &self.oauth {
                let make = || async { Authorizer::new(oauth.clone(), options.clone()).await.map(Arc::new) };
                self.authority.get_or_try_init(make).await.map_err(|error| bad(error.to_string()))?;
            }
            options.authorize = self.authority.get().map(|authority| authority.clone() as _);
        }
        let connection = if sse || self.transport == HttpTransport::Sse {
            http_client::connect_sse(options).await
        } else {
            http_client::connect(options)
        };
        connection.map_err(|error| bad(http_client::join_causes(&error)))
    }
}

fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, ClientError> {
    let header = |(name, value): (&String, &String)| {
        let what = || ClientError::BadTarget { what: format!("{name:?} cannot be a header with that value") };
        let name = HeaderName::try_from(name.as_str()).map_err(|_| what())?;
        Ok((name, HeaderValue::try_from(value.as_str()).map_err(|_| what())?))
    };
    headers.iter().map(header).collect()
}
