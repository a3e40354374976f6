//! One request in hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rehearsal_core::answer::{Answer, CallOutcome, Question};
use rehearsal_core::exchange::Channel;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply, RequestId};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::session::{Pending, Session};
use super::tasks::Said;
use super::wrong::answer_wrongly;

/// One request in hand: what is asked, and how to reach whoever asks.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) session: Arc<Session>,
    pub(super) channel: Channel,
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) params: Option<RawJson>,
    pub(super) cancelled: watch::Receiver<bool>,
    /// When it came.
    pub(super) since: Instant,
}

/// Questions that the client has not answered yet, by their names.
pub(super) type Posed = BTreeMap<String, Pending>;

/// Why work on a request ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The client wants no answer any more.
    Cancelled,
    /// The whole conversation comes to an end.
    Closing,
}

impl Call {
    /// Tells the client something that belongs to this request.
    pub(super) async fn notify(&self, method: Method, params: &Value) {
        self.session.notify(self.channel, method, params).await;
    }

    /// Returns once the client wants no answer any more.
    pub(super) async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
            // Nobody is left who could cancel.
            std::future::pending().await
        }
    }

    /// Returns once there is no point in going on.
    pub(super) async fn stopped(&self) -> Stop {
        tokio::select! {
            biased;
            () = self.cancelled() => Stop::Cancelled,
            () = self.session.closing() => Stop::Closing,
        }
    }

    /// Waits that long, unless there is no point in going on.
    pub(super) async fn pause(&self, duration: Duration) -> Result<(), Stop> {
        tokio::select! {
            biased;
            stop = self.stopped() => Err(stop),
            () = tokio::time::sleep(duration) => Ok(()),
        }
    }

    /// Asks the client by requests of our own, all at once; an error says why there is no answer.
    pub(super) async fn ask(&self, questions: &[Question], meta: Option<&Value>) -> Result<Vec<Said>, Stop> {
        let mut posed = Posed::default();
        self.pose(questions, meta, &mut posed).await;
        let mut answers = Vec::new();
        for question in questions {
            match self.hear(&question.name, &mut posed).await {
                Ok(answer) => answers.extend(answer.map(|answer| (question.name.clone(), answer))),
                Err(stop) => {
                    self.withdraw(posed, &Map::new()).await;
                    return Err(stop);
                }
            }
        }
        Ok(answers)
    }

    /// Asks the client, and waits for nothing.
    pub(super) async fn pose(&self, questions: &[Question], meta: Option<&Value>, posed: &mut Posed) {
        for question in questions {
            let asked = self.session.question();
            self.session.send(self.channel, question.request(asked.id.clone(), meta)).await;
            posed.insert(question.name.clone(), asked);
        }
    }

    /// Waits for an answer; nothing where nobody was asked that.
    pub(super) async fn hear(&self, name: &str, posed: &mut Posed) -> Result<Option<Result<Value, String>>, Stop> {
        let Some(asked) = posed.get_mut(name) else { return Ok(None) };
        let reply = tokio::select! {
            biased;
            reply = &mut asked.reply => reply.ok(),
            stop = self.stopped() => return Err(stop),
        };
        posed.remove(name);
        Ok(reply.map(|reply| match reply {
            Reply::Result(result) => {
                result.value().map_err(|error| format!("the client's answer cannot be read: {error}"))
            }
            Reply::Error(error) => Err(format!("the client answered with an error: {error}")),
        }))
    }

    /// Tells the client that nobody waits for its answers any more.
    pub(super) async fn withdraw(&self, posed: Posed, said: &Map<String, Value>) {
        for asked in posed.into_values() {
            self.session.forget(&asked.id);
            let id = ("requestId".to_owned(), json!(asked.id));
            let params: Map<_, _> = std::iter::once(id).chain(said.clone()).collect();
            self.notify(Method::CANCELLED, &params.into()).await;
        }
    }

    /// Answers, or keeps silent where there is nothing to say any more.
    pub(super) async fn settle(self, answer: Option<Answer>) {
        let Some(answer) = answer else { return self.give_up().await };
        if let Some(delay) = answer.delay
            && self.pause(delay).await.is_err()
        {
            return self.give_up().await;
        }
        if let Some(fault) = answer.fault.clone() {
            return answer_wrongly(self, answer, &fault).await;
        }
        self.session.end(self.channel, &self.id);
        self.note(&answer, outcome(&answer.reply));
        self.session.send(self.channel, answer.message(self.id)).await;
    }

    /// Nobody wants an answer any more, or nobody shall get one.
    pub(super) async fn give_up(&self) {
        self.session.end(self.channel, &self.id);
        self.session.keep_silent(self.channel);
        self.session.send_nothing(self.channel, &self.id).await;
    }

    /// Takes note of what is answered.
    pub(super) fn note(&self, answer: &Answer, outcome: CallOutcome) {
        let (method, params) = (self.method.clone(), self.params.clone());
        self.session.server.note(method, params, self.since, answer, outcome);
    }
}

/// What an answer is, in short.
pub(super) fn outcome(reply: &Reply) -> CallOutcome {
    match reply {
        Reply::Result(_) => CallOutcome::Result,
        Reply::Error(error) => CallOutcome::Error { code: error.code },
    }
}
