//! What was not recorded, asked of the real server, and recorded.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::answer::{Answer, Asked, Provenance, Question, adapted};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Reply};
use rehearsal_core::protocol::{Era, code, meta};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::line::{Heard, Line, Server, Work};
use super::parked::{Open, Parked, Waiting};
use crate::client::{Asked as Wanted, ClientBuilder, Response};
use crate::mock::{Forwards, Live};
use crate::record::Recorder;

/// How many connections to the real server there are; those that nobody uses make room.
const LINES: usize = 64;

/// The real server, reached when it is first needed. What is said is recorded.
///
/// Each client has a connection of its own, on which the server is told what that client can do. Over stateless HTTP nobody
/// knows which client a request comes from: there, requests that come with the same capabilities share a connection, one
/// after the other where the server could ask something. What it asks is asked of the client, in the way of its era.
pub struct Upstream {
    server: Box<dyn Fn() -> ClientBuilder + Send + Sync>,
    recorder: Recorder,
    server_info: Map<String, Value>,
    lines: Mutex<Vec<Arc<Line>>>,
    /// Those that made room.
    closing: Mutex<JoinSet<io::Result<()>>>,
    parked: Parked,
    /// How many requests it answered, and how many it did not.
    answered: AtomicU64,
    failed: AtomicU64,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("server_info", &self.server_info).finish_non_exhaustive()
    }
}

impl Upstream {
    /// A server that is not reached yet; `server_info` is what the recording says about it.
    pub fn new(
        server: impl Fn() -> ClientBuilder + Send + Sync + 'static,
        recorder: Recorder,
        server_info: Map<String, Value>,
    ) -> Upstream {
        let (lines, closing, parked, answered, failed) = Default::default();
        Upstream { server: Box::new(server), recorder, server_info, lines, closing, parked, answered, failed }
    }

    /// How many requests it answered, and how many it did not.
    pub(super) fn asked(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    fn closing(&self) -> MutexGuard<'_, JoinSet<io::Result<()>>> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place on the connection for a client.
    fn work(&self, live: Live<'_>) -> Result<Work, String> {
        let (standing, terms) = (live.standing(), &live.asked().terms);
        self.parked.purge();
        let mut lines = self.lines();
        let suits = |line: &Arc<Line>| line.is_for(&standing, terms) && (!live.is_shared() || line.is_shareable());
        if let Some(line) = lines.iter().find(|line| suits(line)) {
            return Ok(line.work());
        }
        let mut needless: Vec<_> = lines.extract_if(.., |line| line.is_over() && line.is_idle()).collect();
        if lines.len() >= LINES {
            let mut idle = lines.iter().position(|line| line.is_idle());
            // Who was sent away may never come back; who asks now is there.
            while idle.is_none() && self.parked.give_up() {
                idle = lines.iter().position(|line| line.is_idle());
            }
            let idle = idle.ok_or_else(|| format!("more than {LINES} clients wait for the server"))?;
            needless.push(lines.remove(idle));
        }
        let mut closing = self.closing();
        while closing.try_join_next().is_some() {}
        for line in needless {
            closing.spawn(async move { line.close().await });
        }
        let line = Line::new(standing, terms, self.recorder.tape());
        let work = line.work();
        lines.push(line);
        Ok(work)
    }

    async fn begin(&self, live: Live<'_>) -> Result<Work, String> {
        let asked = live.asked();
        let mut params = asked.params.clone();
        let token = params.get("_meta").and_then(|meta| meta.get(meta::PROGRESS_TOKEN)).cloned();
        if let Some(params) = params.as_object_mut() {
            // Ours are not those of the client.
            for key in ["_meta", "requestState", "inputResponses"] {
                params.shift_remove(key);
            }
        }
        let server = Server { builder: self.server.as_ref(), info: &self.server_info };
        let mut work = self.work(live)?;
        work.begin(asked.method.clone(), params, token, asked.terms.logs, server).await?;
        Ok(work)
    }

    async fn ask(&self, live: Live<'_>) -> Result<Reply, String> {
        let asked = live.asked();
        let mut work = match Parked::is_state(asked) {
            false => self.begin(live).await?,
            true => match self.parked.take(asked) {
                Err(error) => return Ok(Reply::Error(error)),
                Ok(Waiting { work, open, .. }) => {
                    let open = answered(open, asked);
                    if !open.is_empty() {
                        return Ok(self.send_away(asked, work, open));
                    }
                    work
                }
            },
        };
        loop {
            tokio::select! {
                biased;
                Some(heard) = work.heard.recv() => {
                    let mut wanted = Vec::new();
                    let mut next = Some(heard);
                    // What is asked together is asked together.
                    while let Some(heard) = next {
                        match heard {
                            Heard::Told(method, params) => {
                                if let Some(params) = work.line().told(&method, params) {
                                    live.tell(method, &params).await;
                                }
                            }
                            Heard::Asked(question, answer) => wanted.push((question, answer)),
                        }
                        next = work.heard.try_recv().ok();
                    }
                    let open = askable(wanted, &work);
                    match asked.terms.era() {
                        _ if open.is_empty() => {}
                        Era::Legacy => pass_on(open, live).await,
                        Era::Modern => return Ok(self.send_away(asked, work, open)),
                    }
                }
                response = &mut work.answering => {
                    let response = response.map_err(|error| error.to_string())?;
                    if response.is_input_required() {
                        return Err("it wants to know what the client did not tell".to_owned());
                    }
                    let client = work.line().client().ok_or("the server is gone")?;
                    let (from, info) = (Some(client.revision()), client.server_info());
                    return Ok(adapted(&reply(&response), &asked.method, from, asked.terms.revision, info));
                }
            }
        }
    }

    /// Sends a client of 2026-07-28 away until it knows what the server wants to know.
    fn send_away(&self, asked: &Asked, work: Work, open: Vec<Open>) -> Reply {
        let questions: Vec<Question> = open.iter().map(|(question, _)| question.clone()).collect();
        let info = work.line().client().map_or_else(|| json!({}), |client| client.server_info().clone());
        let state = self.parked.put(asked, work, open);
        Reply::Result(Question::input_required(&questions, Some(state), asked, &info))
    }

    /// Whether somebody at the real server waits for what comes with a request.
    pub(super) fn waits_for(&self, asked: &Asked) -> bool {
        Parked::is_state(asked)
    }

    /// Ends the conversations with the server, and puts them into the trace.
    pub(super) async fn close(&self) -> io::Result<()> {
        self.parked.clear();
        let lines = std::mem::take(&mut *self.lines());
        for line in lines {
            line.close().await?;
        }
        let mut closing = std::mem::take(&mut *self.closing());
        while let Some(closed) = closing.join_next().await {
            closed.map_err(io::Error::other).flatten()?;
        }
        Ok(())
    }
}

/// Of what the server wants to know, what this client can be asked; the rest is answered with why not.
fn askable(wanted: Vec<(Wanted, oneshot::Sender<crate::client::Answer>)>, work: &Work) -> Vec<Open> {
    let mut open = Vec::new();
    for (at, (wanted, answer)) in wanted.into_iter().enumerate() {
        match work.line().question(wanted, format!("question-{}", at + 1)) {
            Ok(question) => open.push((question, answer)),
            Err(why) => drop(answer.send(Err(ErrorReply::new(code::INTERNAL_ERROR, why)))),
        }
    }
    open
}

/// Asks a client of the handshake era.
async fn pass_on(open: Vec<Open>, live: Live<'_>) {
    let (questions, mut answers): (Vec<_>, Vec<_>) =
        open.into_iter().map(|(question, answer)| (question, Some(answer))).unzip();
    for (name, said) in live.ask(&questions).await.into_iter().flatten() {
        let at = questions.iter().position(|question| question.name == name);
        if let Some(answer) = at.and_then(|at| answers[at].take()) {
            let said = said.map_err(|why| ErrorReply::new(code::INTERNAL_ERROR, why));
            // The server may have gone meanwhile.
            let _ = answer.send(said);
        }
    }
}

/// Passes on what a client of 2026-07-28 came back with; what it did not answer stays open.
fn answered(open: Vec<Open>, asked: &Asked) -> Vec<Open> {
    let given = asked.params.get("inputResponses");
    let mut left = Vec::new();
    for (question, answer) in open {
        match given.and_then(|given| given.get(&question.name)) {
            // The server may have gone meanwhile.
            Some(said) => drop(answer.send(Ok(said.clone()))),
            None => left.push((question, answer)),
        }
    }
    left
}

impl Forwards for Upstream {
    fn forward<'a>(&'a self, live: Live<'a>) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            match self.ask(live).await {
                Ok(reply) => {
                    // Who comes back with an answer is still at the same request.
                    if !Parked::is_state(live.asked()) {
                        self.answered.fetch_add(1, Ordering::Relaxed);
                    }
                    Answer { provenance: Provenance::Live, ..Answer::protocol(reply) }
                }
                Err(why) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    let why = format!("this was not recorded, and the server did not answer: {why}");
                    let reply = Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why.clone()));
                    Answer { provenance: Provenance::Nobody, remarks: vec![why], ..Answer::protocol(reply) }
                }
            }
        })
    }
}

fn reply(response: &Response) -> Reply {
    match response.error() {
        Some(error) => Reply::Error(error.clone()),
        None => {
            let raw = RawJson::parse(response.bytes()).ok().and_then(|message| message.field("result"));
            Reply::Result(raw.unwrap_or_else(|| RawJson::from_value(response.result())))
        }
    }
}
