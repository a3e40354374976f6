//! A token for a program that makes requests of its own, such as a proxy.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use rehearsal_wire::http::client::{Authorize, HttpClientOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Client, ClientError};
use crate::oauth::{Authorizer, OAuth};

/// How often the token is checked. It is renewed half a minute before it expires.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// A token that is refreshed until this is dropped.
#[derive(Debug)]
pub struct RenewingToken {
    header: watch::Receiver<Option<HeaderValue>>,
    renewing: JoinHandle<()>,
}

impl RenewingToken {
    /// Logs in to a server if it requires that. For this, connects once and closes the connection.
    pub async fn get(url: &str, oauth: OAuth) -> Result<RenewingToken, ClientError> {
        let bad = |what: String| ClientError::BadTarget { what };
        let options = HttpClientOptions::new(url).map_err(|error| bad(error.to_string()))?;
        let authority = Authorizer::new(oauth, options).await.map_err(|error| bad(error.to_string()))?;
        let authority = Arc::new(authority);
        Client::url(url).authority(authority.clone()).connect().await?.close().await;
        let (sender, header) = watch::channel(authority.authorization().await.map_err(bad)?);
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(RETRY_INTERVAL).await;
                // If it cannot be refreshed now, the server decides whether the old one is still valid.
                if let Ok(token) = authority.authorization().await {
                    sender.send_if_modified(|old| std::mem::replace(old, token.clone()) != token);
                }
            }
        });
        Ok(RenewingToken { header, renewing })
    }

    /// The current value of `Authorization`; `None` if the server requires none.
    pub fn header(&self) -> watch::Receiver<Option<HeaderValue>> {
        self.header.clone()
    }
}

impl Drop for RenewingToken {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}
