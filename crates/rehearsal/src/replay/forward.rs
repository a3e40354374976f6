//! What was not recorded, asked of the real server, and recorded.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use rehearsal_core::answer::{Answer, Provenance, adapted};
use rehearsal_core::exchange::Channel;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::{code, meta};
use rehearsal_core::trace::{End, What};
use serde_json::{Map, Value, json};
use tokio::sync::{OnceCell, mpsc};

use crate::client::{Client, ClientBuilder, Response};
use crate::mock::{Forwards, Live};
use crate::record::{Recorder, Tape};

/// The real server, reached when it is first needed. What is said is recorded.
///
/// It is not told that its client can be asked: a server that asks has to be recorded as a whole.
pub struct Upstream {
    builder: Mutex<Option<ClientBuilder>>,
    client: OnceCell<Result<Client, String>>,
    tape: Tape,
    server_info: Map<String, Value>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("server_info", &self.server_info).finish_non_exhaustive()
    }
}

impl Upstream {
    /// A server that is not reached yet; `server_info` is what the recording says about it.
    pub fn new(builder: ClientBuilder, recorder: &Recorder, server_info: Map<String, Value>) -> Upstream {
        let (builder, tape) = (Mutex::new(Some(builder)), recorder.tape());
        Upstream { builder, client: OnceCell::new(), tape, server_info }
    }

    async fn client(&self) -> Result<&Client, &str> {
        let connected = self.client.get_or_init(|| async {
            let builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner).take();
            let builder = builder.ok_or("the server was reached before")?;
            self.tape.start(self.server_info.clone());
            let tape = self.tape.clone();
            let builder = builder.on_message(move |from, message| {
                let message = message.clone();
                tape.put([What::Message { from, channel: Channel::MAIN, message, event_id: None }]);
            });
            builder.connect().await.map_err(|error| error.to_string())
        });
        connected.await.as_ref().map_err(String::as_str)
    }

    async fn ask(&self, live: Live<'_>) -> Result<Reply, String> {
        let client = self.client().await?;
        let mut params = match live.params() {
            None => json!({}),
            Some(params) => params.value().map_err(|error| error.to_string())?,
        };
        let token = params.get("_meta").and_then(|meta| meta.get(meta::PROGRESS_TOKEN)).cloned();
        if let Some(params) = params.as_object_mut() {
            // Ours are not those of the client.
            for key in ["_meta", "requestState", "inputResponses"] {
                params.shift_remove(key);
            }
        }
        let (tell, mut told) = mpsc::unbounded_channel();
        let call = client.request(live.method().clone(), params);
        let call = match token {
            None => call,
            Some(token) => call.on_progress(move |progress| {
                let mut params = json!({"progressToken": token, "progress": progress.progress});
                if let Some(total) = progress.total {
                    params["total"] = total.into();
                }
                if let Some(message) = progress.message {
                    params["message"] = message.into();
                }
                // Whoever asked may have gone.
                let _ = tell.send(params);
            }),
        };
        let answering = call.into_future();
        tokio::pin!(answering);
        let answered = loop {
            tokio::select! {
                biased;
                Some(params) = told.recv() => live.notify(Method::PROGRESS, &params).await,
                answered = &mut answering => break answered,
            }
        };
        while let Ok(params) = told.try_recv() {
            live.notify(Method::PROGRESS, &params).await;
        }
        let reply = answered.map(|response| reply(&response)).map_err(|error| error.to_string())?;
        let asked = live.asked();
        let from = Some(client.revision());
        Ok(adapted(&reply, &asked.method, from, asked.terms.revision, client.server_info()))
    }

    /// Ends the conversation with the server, and puts it into the trace.
    pub(super) async fn close(&self) -> io::Result<()> {
        if let Some(Ok(client)) = self.client.get() {
            client.close().await;
        }
        let tape = self.tape.clone();
        let ended = tokio::task::spawn_blocking(move || tape.end(End::ClientClosed { status: None }));
        ended.await.map_err(io::Error::other)
    }
}

impl Forwards for Upstream {
    fn forward<'a>(&'a self, live: Live<'a>) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            match self.ask(live).await {
                Ok(reply) => Answer { provenance: Provenance::Live, ..Answer::protocol(reply) },
                Err(why) => {
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
