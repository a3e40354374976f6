//! One plain request, for what is asked beside MCP.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::timeout;

use super::answer::{ReadEnd, read};
use super::peer::Peer;
use super::posted::Posted;
use super::{ConnectError, Options};

/// The longest body that a [`fetch`] takes.
pub const FETCH_LIMIT: usize = 1024 * 1024;

/// Makes one request as it stands and reads the whole answer: redirects are not followed, and of `options` only how a
/// connection is made counts.
pub async fn fetch(
    options: &Options,
    request: Request<Bytes>,
    limit: Duration,
) -> Result<Response<Bytes>, ConnectError> {
    let (head, body) = request.into_parts();
    let mut options = Options { authorize: None, url: head.uri, ..options.clone() };
    options.headers.clear();
    let peer = Peer::new(&options)?.without_redirects();
    let fetched = timeout(limit, async {
        let answer = peer.request(head.method, head.headers, &http::HeaderMap::new(), Posted::new(body).0).await;
        let answer = answer.map_err(|error| ConnectError::Failed { why: error.to_string() })?;
        let status = answer.status;
        let headers = answer.head.headers.clone();
        let read = read(answer.body, FETCH_LIMIT).await;
        match read.end {
            ReadEnd::Whole => {
                let mut response = Response::new(read.bytes);
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                Ok(response)
            }
            ReadEnd::TooLong => {
                Err(ConnectError::Failed { why: format!("the answer is longer than the limit of {FETCH_LIMIT} bytes") })
            }
            ReadEnd::Broken { why } => Err(ConnectError::Failed { why }),
        }
    });
    fetched.await.unwrap_or_else(|_| Err(ConnectError::Failed { why: format!("no answer within {limit:?}") }))
}
