//! How a connection is made.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::BoxFuture;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Makes connections with one time limit for everything: name, TCP and TLS.
///
/// The limit of [`HttpConnector`] is for TCP alone, and a server that accepts and then says nothing is the usual way to hang.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    tls: HttpsConnector<HttpConnector>,
    limit: Duration,
}

impl Connector {
    pub(super) fn new(tls: HttpsConnector<HttpConnector>, limit: Duration) -> Connector {
        Connector { tls, limit }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.tls.poll_ready(context)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let (connecting, limit) = (self.tls.call(url), self.limit);
        Box::pin(async move {
            let connected = timeout(limit, connecting).await;
            let late = || io::Error::new(io::ErrorKind::TimedOut, format!("not connected within {limit:?}"));
            connected.map_err(|_| late())?
        })
    }
}
