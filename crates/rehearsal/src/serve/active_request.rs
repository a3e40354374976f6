//! A request that was received and not answered yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rehearsal_core::answer::{
    Action, ActiveResponder, Answer, Chain, IncomingRequest, InputRequest, LoggedOutcome, Passed,
};
use rehearsal_core::exchange::Channel;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply, RequestId};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::connection::{PendingInput, ServerConnection};
use super::faulty_answer::answer_with_fault;
use super::tasks::InputResponse;

/// A request that was received and not answered yet, and how its client is reached.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    pub(super) connection: Arc<ServerConnection>,
    /// The chain that began to answer it.
    pub(super) chain: Arc<Chain>,
    pub(super) channel: Channel,
    pub(super) id: RequestId,
    pub(super) request: Arc<IncomingRequest>,
    /// The params as they were received, for the log.
    pub(super) params: Option<RawJson>,
    pub(super) cancelled: watch::Receiver<bool>,
    pub(super) received: Instant,
}

/// Server requests that the client has not answered yet, by their names.
pub(super) type PendingInputs = BTreeMap<String, PendingInput>;

/// Why work on a request ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// The client cancelled the request.
    Cancelled,
    /// The connection closes.
    Closing,
}

impl ActiveRequest {
    /// Sends a notification that belongs to this request.
    pub(super) async fn notify(&self, method: Method, params: &Value) {
        self.connection.notify(self.channel, method, params).await;
    }

    /// The next action of its responder.
    pub(super) fn next_action(&self, responder: &mut ActiveResponder) -> Action {
        let mut state = self.connection.state();
        self.chain.next(responder, &self.request, &mut state, self.connection.server.environment())
    }

    /// An answer in the client's version, from a source that is not in the chain.
    pub(super) fn finished(&self, answer: Answer) -> Answer {
        self.chain.finish(&self.request, answer, &mut self.connection.state())
    }

    /// The answer of a live server to a request that all sources passed.
    pub(super) fn forwarded(&self, passed: &Passed, answer: Answer) -> Answer {
        let fault = answer.fault.clone().or(passed.fault().cloned());
        self.finished(Answer { fault, ..answer })
    }

    /// The refusal of a request that all sources passed.
    pub(super) fn refusal(&self, passed: &Passed) -> Answer {
        let mut state = self.connection.state();
        self.chain.refusal(&self.request, passed, &mut state, self.connection.server.environment())
    }

    /// Returns once the client cancelled the request.
    pub(super) async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
            // The request ended, so it cannot be cancelled any more.
            std::future::pending().await
        }
    }

    /// Returns once the request needs no answer any more.
    pub(super) async fn stopped(&self) -> StopReason {
        tokio::select! {
            biased;
            () = self.cancelled() => StopReason::Cancelled,
            () = self.connection.closing() => StopReason::Closing,
        }
    }

    /// Waits, unless the request needs no answer any more.
    pub(super) async fn pause(&self, duration: Duration) -> Result<(), StopReason> {
        tokio::select! {
            biased;
            stop = self.stopped() => Err(stop),
            () = tokio::time::sleep(duration) => Ok(()),
        }
    }

    /// Sends input requests, and waits for the responses. An error in a response is the reason why there is no input.
    pub(super) async fn request_input(
        &self,
        requests: &[InputRequest],
        meta: Option<&Value>,
    ) -> Result<Vec<InputResponse>, StopReason> {
        let mut pending = PendingInputs::default();
        self.send_inputs(requests, meta, &mut pending).await;
        let mut responses = Vec::new();
        for request in requests {
            match self.await_input(&request.name, &mut pending).await {
                Ok(response) => responses.extend(response.map(|response| (request.name.clone(), response))),
                Err(stop) => {
                    self.cancel_inputs(pending, &Map::new()).await;
                    return Err(stop);
                }
            }
        }
        Ok(responses)
    }

    /// Sends input requests without waiting for the responses.
    pub(super) async fn send_inputs(
        &self,
        requests: &[InputRequest],
        meta: Option<&Value>,
        pending: &mut PendingInputs,
    ) {
        for request in requests {
            let input = self.connection.new_pending_input();
            self.connection.send(self.channel, request.request(input.id.clone(), meta)).await;
            pending.insert(request.name.clone(), input);
        }
    }

    /// Waits for a response; `None` if no such request was sent.
    pub(super) async fn await_input(
        &self,
        name: &str,
        pending: &mut PendingInputs,
    ) -> Result<Option<Result<Value, String>>, StopReason> {
        let Some(input) = pending.get_mut(name) else { return Ok(None) };
        let reply = tokio::select! {
            biased;
            reply = &mut input.reply => reply.ok(),
            stop = self.stopped() => return Err(stop),
        };
        pending.remove(name);
        Ok(reply.map(|reply| match reply {
            Reply::Result(result) => {
                result.value().map_err(|error| format!("the client's answer cannot be read: {error}"))
            }
            Reply::Error(error) => Err(format!("the client answered with an error: {error}")),
        }))
    }

    /// Cancels input requests, with further params of the notification.
    pub(super) async fn cancel_inputs(&self, pending: PendingInputs, more: &Map<String, Value>) {
        for input in pending.into_values() {
            self.connection.remove_pending_input(&input.id);
            let id = ("requestId".to_owned(), json!(input.id));
            let params: Map<_, _> = std::iter::once(id).chain(more.clone()).collect();
            self.notify(Method::CANCELLED, &params.into()).await;
        }
    }

    /// Sends the answer, with its delay and its fault.
    pub(super) async fn finish(self, answer: Option<Answer>) {
        let Some(answer) = answer else { return self.abandon().await };
        if let Some(delay) = answer.delay
            && self.pause(delay).await.is_err()
        {
            return self.abandon().await;
        }
        if let Some(fault) = answer.fault.clone() {
            return answer_with_fault(self, answer, &fault).await;
        }
        self.connection.deactivate(self.channel, &self.id);
        self.log(&answer, outcome(&answer.reply));
        self.connection.send(self.channel, answer.message(self.id)).await;
    }

    /// Ends the request without an answer.
    pub(super) async fn abandon(&self) {
        self.connection.deactivate(self.channel, &self.id);
        self.connection.leave_unanswered(self.channel);
        self.connection.skip_batch_item(self.channel, &self.id).await;
    }

    /// Logs the answer.
    pub(super) fn log(&self, answer: &Answer, outcome: LoggedOutcome) {
        let (method, params) = (self.request.method.clone(), self.params.clone());
        self.connection.server.log(method, params, self.received, answer, outcome);
    }
}

/// The kind of a reply.
pub(super) fn outcome(reply: &Reply) -> LoggedOutcome {
    match reply {
        Reply::Result(_) => LoggedOutcome::Result,
        Reply::Error(error) => LoggedOutcome::Error { code: error.code },
    }
}
