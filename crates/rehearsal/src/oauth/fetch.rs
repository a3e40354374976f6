//! The requests of a login, made by our own client.

use std::time::Duration;

use bytes::Bytes;
use rehearsal_wire::http::client::{Options, fetch};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

/// How long each request may take, unless it says so itself.
const LIMIT: Duration = Duration::from_secs(30);

/// Makes the requests of a login with our own client, so that certificates and limits are those of the server's
/// connection. Redirects are not followed.
pub(super) struct Fetcher {
    pub(super) options: Options,
}

impl OAuthHttpClient for Fetcher {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let limit = request.timeout.unwrap_or(LIMIT);
            let fetched = fetch(&self.options, request.request.map(Bytes::from), limit).await?;
            Ok(fetched.map(Vec::from))
        })
    }
}
