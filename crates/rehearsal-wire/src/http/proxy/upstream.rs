//! Connects to the upstream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http::uri::Scheme;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::http::client::{ConnectError, join_causes, tls};

/// Connects to the upstream.
pub(super) struct ProxyUpstream {
    /// The host, without the brackets of an IPv6 address.
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    timeout: Duration,
}

/// A connection to the upstream, with or without TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ProxyUpstream {
    pub(super) fn new(
        url: &Uri,
        root_certificates: &[Bytes],
        timeout: Duration,
    ) -> Result<ProxyUpstream, ConnectError> {
        let host = url.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).to_owned();
        let is_secret = url.scheme() == Some(&Scheme::HTTPS);
        let tls = if is_secret {
            let name = ServerName::try_from(host.clone())
                .map_err(|error| ConnectError::BadUrl { url: url.to_string(), why: error.to_string() })?;
            Some((TlsConnector::from(Arc::new(tls(url, root_certificates)?)), name))
        } else {
            None
        };
        let port = url.port_u16().unwrap_or(if is_secret { 443 } else { 80 });
        Ok(ProxyUpstream { host, port, tls, timeout })
    }

    /// Opens a connection; the error is the reason as text.
    pub(super) async fn connect(&self) -> Result<Stream, String> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, format!("not connected within {:?}", self.timeout));
        let connected = tokio::time::timeout(self.timeout, self.open()).await;
        connected.unwrap_or_else(|_| Err(late())).map_err(|error| {
            let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
            format!("cannot connect to {host}:{}: {}", self.port, join_causes(&error))
        })
    }

    async fn open(&self) -> io::Result<Stream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        // `localhost` has two addresses, and most servers listen on one of them.
        for address in lookup_host((self.host.as_str(), self.port)).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return self.secure(stream).await,
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn secure(&self, stream: TcpStream) -> io::Result<Stream> {
        stream.set_nodelay(true)?;
        match &self.tls {
            Some((connector, name)) => Ok(Stream::Tls(Box::new(connector.connect(name.clone(), stream).await?))),
            None => Ok(Stream::Plain(stream)),
        }
    }
}
