//! One request in hand.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::answer::Terms;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Message, Method, RequestId};
use rehearsal_core::protocol::{Revision, meta};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::answer;
use crate::instead::Instead;
use crate::session::Session;

/// One request in hand: what is asked, on which terms, and how to reach whoever asks.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) session: Arc<Session>,
    pub(crate) channel: Channel,
    pub(crate) id: RequestId,
    pub(crate) method: Method,
    /// An object; empty where the request had none.
    pub(crate) params: Value,
    pub(crate) terms: Terms,
    pub(crate) cancelled: watch::Receiver<bool>,
}

/// Why work on a request ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client wants no answer any more.
    Cancelled,
    /// The whole conversation comes to an end.
    Closing,
}

impl Call {
    /// A param that must be a string.
    pub(crate) fn text_param(&self, name: &str) -> Result<&str, Instead> {
        let text = self.params.get(name).and_then(Value::as_str);
        text.ok_or_else(|| Instead::invalid_params(format!("{} needs a string `{name}`", self.method)))
    }

    /// Tells the client something that belongs to this request.
    pub(crate) async fn notify(&self, method: Method, params: Value) {
        let message = Message::notification(method, Some(&params)).expect("a JSON value can always be written");
        self.session.send(self.channel, message).await;
    }

    /// Tells how far the work is, if the client gave a token to tell it by.
    pub(crate) async fn progress(&self, progress: u64, total: u64) {
        let Some(token) = self.params["_meta"].get(meta::PROGRESS_TOKEN) else { return };
        let mut params = json!({"progressToken": token, "progress": progress, "total": total});
        if self.terms.revision >= Revision::V2025_03_26 {
            params["message"] = format!("step {progress} of {total}").into();
        }
        self.notify(Method::PROGRESS, params).await;
    }

    /// Returns once there is no point in going on.
    pub(crate) async fn stopped(&self) -> Stop {
        let mut cancelled = self.cancelled.clone();
        tokio::select! {
            biased;
            _ = cancelled.wait_for(|cancelled| *cancelled) => Stop::Cancelled,
            () = self.session.closing() => Stop::Closing,
        }
    }

    /// Waits that long, unless there is no point in going on.
    pub(crate) async fn pause(&self, duration: Duration) -> Result<(), Instead> {
        tokio::select! {
            biased;
            _ = self.stopped() => Err(Instead::Silence),
            () = tokio::time::sleep(duration) => Ok(()),
        }
    }

    /// Answers the request.
    pub(crate) async fn settle(self, outcome: Result<Value, Instead>) {
        self.session.end(self.channel, &self.id);
        match answer::message(&self, outcome) {
            Some(message) => self.session.send(self.channel, message).await,
            None => self.session.keep_silent(self.channel),
        }
    }
}
