//! Subscriptions to changes.

use std::sync::PoisonError;
use std::time::Duration;

use rehearsal_core::message::{Message, Method, RequestId};
use rehearsal_core::protocol::{Era, meta};
use serde_json::{Map, Value, json};

use super::client::Client;
use super::error::ClientError;
use super::request_builder::InFlightRequest;

/// A subscription filter of 2026-07-28.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenFilter {
    /// Subscribes to changes of the list of tools.
    pub tools: bool,
    /// Subscribes to changes of the list of prompts.
    pub prompts: bool,
    /// Subscribes to changes of the list of resources.
    pub resources: bool,
    /// Subscribes to updates of these resources.
    pub uris: Vec<String>,
}

/// An open `subscriptions/listen`. Dropping it ends the subscription.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    /// Resolves when the server ends the subscription; dropping it cancels the request.
    _open: <InFlightRequest as IntoFuture>::IntoFuture,
    /// The filter that the server acknowledged.
    pub accepted: Value,
}

/// How long a subscription may stay open: until it is dropped.
const NO_TIMEOUT: Duration = Duration::from_secs(60 * 60 * 24 * 365);

impl Client {
    /// Subscribes to changes of a resource; [`notification`](Client::notification) waits for one.
    pub async fn subscribe(&self, uri: &str) -> Result<(), ClientError> {
        match self.revision().era() {
            Era::Legacy => {
                self.request(Method::RESOURCES_SUBSCRIBE, json!({"uri": uri})).await?.into_result()?;
            }
            Era::Modern => {
                let subscription =
                    self.listen(ListenFilter { uris: vec![uri.to_owned()], ..ListenFilter::default() }).await?;
                let mut open = self.inner.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
                open.insert(uri.to_owned(), subscription);
            }
        }
        Ok(())
    }

    /// Ends the subscription to a resource.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), ClientError> {
        match self.revision().era() {
            Era::Legacy => {
                self.request(Method::RESOURCES_UNSUBSCRIBE, json!({"uri": uri})).await?.into_result()?;
            }
            Era::Modern => {
                self.inner.subscriptions.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
            }
        }
        Ok(())
    }

    /// Opens a subscription of 2026-07-28 and waits until the server acknowledges it.
    pub async fn listen(&self, listen: ListenFilter) -> Result<Subscription, ClientError> {
        if self.revision().era() == Era::Legacy {
            let hint = "use `subscribe`; before 2026-07-28 servers send `list_changed` without a request";
            let (method, revision) = (Method::SUBSCRIPTIONS_LISTEN, self.revision());
            return Err(ClientError::UnsupportedInVersion { method, revision, hint });
        }
        let params = json!({"notifications": listen.filter()});
        let stream = self.request(Method::SUBSCRIPTIONS_LISTEN, params).timeout(NO_TIMEOUT).start().await?;
        let id = stream.id().clone();
        let ours = |message: &Message| {
            message.method() == Some(&Method::SUBSCRIPTION_ACKNOWLEDGED) && subscription_id(message) == Some(id.clone())
        };
        let after = self.inner.timeout;
        let method = Method::SUBSCRIPTIONS_LISTEN;
        let mut open = stream.into_future();
        tokio::select! {
            acknowledged = tokio::time::timeout(after, self.inner.connection.notification(ours)) => {
                match acknowledged {
                    Ok(Ok(message)) => {
                        let params = message.params().and_then(|params| params.field("notifications")?.value().ok());
                        Ok(Subscription { _open: open, accepted: params.unwrap_or_default() })
                    }
                    Ok(Err(ending)) => Err(ClientError::ServerClosed { method, ending, evidence: self.evidence() }),
                    Err(_) => Err(ClientError::TimedOut { method, after, evidence: self.evidence() }),
                }
            }
            response = &mut open => {
                response?.into_result()?;
                Err(ClientError::BadResult { method, what: "it ended before it was acknowledged".to_owned() })
            }
        }
    }
}

impl ListenFilter {
    fn filter(&self) -> Value {
        let mut filter = Map::new();
        let kinds = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        filter.extend(kinds.into_iter().filter(|(_, wanted)| *wanted).map(|(key, _)| (key.to_owned(), true.into())));
        if !self.uris.is_empty() {
            filter.insert("resourceSubscriptions".into(), self.uris.clone().into());
        }
        Value::Object(filter)
    }
}

fn subscription_id(message: &Message) -> Option<RequestId> {
    let id = message.params()?.at(&["_meta", meta::SUBSCRIPTION_ID])?;
    match id.value().ok()? {
        Value::String(text) => Some(RequestId::Text(text)),
        value => value.as_i64().map(RequestId::Number),
    }
}
