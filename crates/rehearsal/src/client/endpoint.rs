//! The HTTP settings of a client, and how it connects with them.

use std::collections::BTreeMap;
#[cfg(feature = "oauth")]
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use rehearsal_wire::Connection;
use rehearsal_wire::http::client as http_client;
#[cfg(feature = "oauth")]
use tokio::sync::OnceCell;

use super::error::ClientError;
#[cfg(feature = "oauth")]
use crate::oauth::{Authorizer, OAuth};

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

/// The HTTP settings of a client.
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

impl Endpoint {
    /// Connects to `url`; `sse` selects HTTP+SSE.
    pub(super) async fn open(&self, url: &str, sse: bool, limit: Duration) -> Result<Connection, ClientError> {
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
