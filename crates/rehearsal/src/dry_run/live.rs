//! The tools of live servers, and what a plan gets for their responses.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rehearsal_core::protocol::Tool;
use rehearsal_sandbox::ErrorKind;
use serde_json::Value;
use tokio::task::JoinSet;

use super::call::CallEnd;
use super::catalogue::{Catalogue, ServerTools};
use super::value::{error_message, result_value};
use crate::cache::{Cache, CacheError};
use crate::client::{ClientBuilder, ClientError, ServerResponse};

/// The present time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Catalogue {
    /// Connects to servers at the same time, lists their tools, and saves the lists in the cache for runs without the
    /// servers. A server that cannot be reached is unavailable.
    ///
    /// Each server gets a handshake and `tools/list`, nothing else, and is closed before this function returns.
    pub async fn from_servers(
        servers: impl IntoIterator<Item = (String, ClientBuilder)>,
        cache: Option<&Arc<Cache>>,
    ) -> Result<Catalogue, CacheError> {
        let mut listings = JoinSet::new();
        for (name, builder) in servers {
            listings.spawn(async move { (name, list_tools(builder).await) });
        }
        let mut catalogue = Catalogue::default();
        for (name, listed) in listings.join_all().await {
            match listed {
                Ok(tools) => {
                    if let Some(cache) = cache {
                        cache.save_catalogue(&name, &tools, now_ms())?;
                    }
                    catalogue.insert(name, ServerTools::Known { tools, saved_ms: None });
                }
                Err(error) => catalogue.insert(name, ServerTools::Unavailable { reason: error.to_string() }),
            }
        }
        Ok(catalogue)
    }

    /// The saved tools of servers, without connecting to any. `servers` are the names of the configuration; without any, all
    /// saved servers are used.
    pub fn saved(cache: &Cache, servers: &[String]) -> Result<Catalogue, CacheError> {
        let names = if servers.is_empty() { cache.catalogues()? } else { servers.to_vec() };
        let mut catalogue = Catalogue::default();
        for name in names {
            let tools = match cache.catalogue(&name)? {
                Some(saved) => ServerTools::Known { tools: saved.tools, saved_ms: Some(saved.at_ms) },
                None => {
                    let saved = cache.catalogues()?;
                    let others =
                        if saved.is_empty() { String::new() } else { format!(" (saved: {})", saved.join(", ")) };
                    let reason = format!(
                        "its tools are not saved{others}; connect once without --offline, or import a recording with --server {name}"
                    );
                    ServerTools::Unavailable { reason }
                }
            };
            catalogue.insert(name, tools);
        }
        Ok(catalogue)
    }
}

async fn list_tools(builder: ClientBuilder) -> Result<Vec<Value>, ClientError> {
    let client = builder.connect().await?;
    let tools = client.list_tools().await;
    let _ = client.close().await;
    Ok(tools?.into_iter().map(|Tool { raw, .. }| raw).collect())
}

/// What a plan gets for the response of a server.
pub(crate) fn end_of_response(response: &Result<ServerResponse, ClientError>) -> CallEnd {
    let failed = |kind, message: String, content: Value| CallEnd::Error { kind, message, content };
    match response {
        Ok(response) if response.is_tool_error() => {
            let content = response.result().get("content").cloned().unwrap_or_default();
            failed(ErrorKind::Tool, error_message(response.result()), content)
        }
        Ok(response) if !response.success() => {
            let message = response.error_message().unwrap_or_else(|| "the result cannot be used".to_owned());
            failed(ErrorKind::Protocol, message, Value::Null)
        }
        Ok(response) => CallEnd::Value(result_value(response.result())),
        Err(error @ ClientError::TimedOut { .. }) => failed(ErrorKind::Timeout, error.to_string(), Value::Null),
        Err(error) => failed(ErrorKind::Protocol, error.to_string(), Value::Null),
    }
}
