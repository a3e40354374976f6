//! Forwards requests to a live server, and merges what that server offers into the chain's own offer.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::answer::{
    Answer, IncomingRequest, InputRequest, Introduction, ListKind, ListedForm, Lists, Provenance, RequestContext,
    ResultKind, Surface, SurfaceItem, WrittenFor,
};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::{Era, Prompt, Resource, ResourceTemplate, Tool, code, meta};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::suspended_requests::{OpenInput, SuspendedRequest, SuspendedRequests};
use super::upstream_connection::{ForwardedCall, UpstreamConnection, UpstreamEvent, UpstreamSpec};
use crate::client::{Client, ClientBuilder, HandlerResult, ServerRequest, ServerResponse};
use crate::record::Recorder;
use crate::serve::handler::RequestHandle;

/// How many connections to the live server there are; idle ones are closed to make room.
const MAX_CONNECTIONS: usize = 64;

/// A live server, connected to when it is first needed.
///
/// Each client has a connection of its own, on which the server gets that client's capabilities. Requests over stateless HTTP
/// do not name their client: there, requests with the same capabilities share a connection, one after the other if the
/// server may request input. Its server requests are sent to the client in the form of its era.
pub struct Upstream {
    server: Box<dyn Fn() -> ClientBuilder + Send + Sync>,
    recorder: Option<Recorder>,
    server_info: Map<String, Value>,
    is_merged: bool,
    connections: Mutex<Vec<Arc<UpstreamConnection>>>,
    /// Connections that made room.
    closing: Mutex<JoinSet<io::Result<()>>>,
    suspended: SuspendedRequests,
    answered: AtomicU64,
    failed: AtomicU64,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("server_info", &self.server_info).finish_non_exhaustive()
    }
}

impl Upstream {
    /// A live server that is not connected to yet. Its lists are not merged into those of the chain, and nothing is recorded.
    pub fn new(server: impl Fn() -> ClientBuilder + Send + Sync + 'static) -> Upstream {
        let (connections, closing, suspended, answered, failed) = Default::default();
        let (recorder, server_info, is_merged) = (None, Map::new(), false);
        let server = Box::new(server);
        Upstream { server, recorder, server_info, is_merged, connections, closing, suspended, answered, failed }
    }

    /// Records the messages of the server; `server_info` describes the server in the recording.
    #[must_use]
    pub fn recorded(self, recorder: Recorder, server_info: Map<String, Value>) -> Upstream {
        Upstream { recorder: Some(recorder), server_info, ..self }
    }

    /// Merges the capabilities and lists of the server into those of the chain.
    #[must_use]
    pub fn merged(self) -> Upstream {
        Upstream { is_merged: true, ..self }
    }

    /// Whether its capabilities and lists are merged into those of the chain.
    pub(in crate::serve) fn is_merged(&self) -> bool {
        self.is_merged
    }

    /// Whether the answer to a request depends on what the upstream offers.
    pub(in crate::serve) fn needs_surface(method: &Method) -> bool {
        let methods = [Method::INITIALIZE, Method::DISCOVER, Method::SUBSCRIPTIONS_LISTEN];
        methods.contains(method) || ListKind::from_method(method.as_str()).is_some()
    }

    /// How many requests it answered, and how many it did not.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    fn closing(&self) -> MutexGuard<'_, JoinSet<io::Result<()>>> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Arc<UpstreamConnection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spec(&self) -> UpstreamSpec<'_> {
        UpstreamSpec { builder: self.server.as_ref(), info: &self.server_info }
    }

    /// A call on the connection for a client.
    fn new_call(&self, handle: RequestHandle<'_>, context: &RequestContext) -> Result<ForwardedCall, String> {
        let client = handle.connection();
        self.suspended.remove_expired();
        let mut connections = self.connections();
        let fits =
            |it: &Arc<UpstreamConnection>| it.is_for(&client, context) && (!handle.is_shared() || it.is_shareable());
        if let Some(connection) = connections.iter().find(|connection| fits(connection)) {
            return Ok(connection.new_call());
        }
        let mut unused: Vec<_> = connections.extract_if(.., |it| it.is_over() && it.is_idle()).collect();
        if connections.len() >= MAX_CONNECTIONS {
            let mut idle = connections.iter().position(|connection| connection.is_idle());
            // A client that must send input first may never do so; this one is waiting now.
            while idle.is_none() && self.suspended.remove_oldest() {
                idle = connections.iter().position(|connection| connection.is_idle());
            }
            let idle = idle.ok_or_else(|| format!("more than {MAX_CONNECTIONS} clients wait for the server"))?;
            unused.push(connections.remove(idle));
        }
        let mut closing = self.closing();
        while closing.try_join_next().is_some() {}
        for connection in unused {
            closing.spawn(async move { connection.close().await });
        }
        let recorder = self.recorder.as_ref().map(Recorder::session);
        let connection = UpstreamConnection::new(client, context, recorder);
        let call = connection.new_call();
        connections.push(connection);
        Ok(call)
    }

    /// What the live server offers to a client with this context.
    pub(in crate::serve) async fn surface(
        &self,
        handle: RequestHandle<'_>,
        context: &RequestContext,
    ) -> Result<Surface, String> {
        let call = self.new_call(handle, context)?;
        let client = call.connection().connected(self.spec()).await?.clone();
        let revision = context.revision;
        let info = Some(client.server_info().clone()).filter(Value::is_object);
        let capabilities = client.server_capabilities().as_object().cloned().unwrap_or_default();
        let is_exact = client.revision() == revision;
        let has = |capability: &str| capabilities.contains_key(capability);
        let item = |id: String, value: Value| {
            let form = if is_exact { ListedForm::Verbatim(value) } else { ListedForm::Newest(value) };
            SurfaceItem { id, form, needs: None }
        };
        let failed = |error: crate::client::ClientError| error.to_string();
        let mut items: [Vec<SurfaceItem>; 4] = Default::default();
        if has("tools") {
            let tools = client.listing::<Tool>().await.map_err(failed)?.items;
            items[ListKind::Tools as usize] = tools.into_iter().map(|it| item(it.name, it.raw)).collect();
        }
        if has("resources") {
            let resources = client.listing::<Resource>().await.map_err(failed)?.items;
            items[ListKind::Resources as usize] = resources.into_iter().map(|it| item(it.uri, it.raw)).collect();
            // Many servers with resources have no templates, and some refuse to list none.
            let templates = client.listing::<ResourceTemplate>().await.map(|it| it.items).unwrap_or_default();
            items[ListKind::ResourceTemplates as usize] =
                templates.into_iter().map(|it| item(it.uri_template, it.raw)).collect();
        }
        if has("prompts") {
            let prompts = client.listing::<Prompt>().await.map_err(failed)?.items;
            items[ListKind::Prompts as usize] = prompts.into_iter().map(|it| item(it.name, it.raw)).collect();
        }
        let introduction = Introduction::new(info, capabilities, client.instructions());
        Ok(Surface {
            introduction: Some(Arc::new(introduction)),
            lists: Some(Arc::new(Lists::new(items, None))),
            ..Surface::default()
        })
    }

    async fn begin(&self, handle: RequestHandle<'_>) -> Result<ForwardedCall, String> {
        let request = handle.request();
        let mut params = request.params.clone();
        let token = request.meta().get(meta::PROGRESS_TOKEN).cloned();
        if let Some(params) = params.as_object_mut() {
            // They belong to the client's connection, not to the one with the live server.
            for key in ["_meta", "requestState", "inputResponses"] {
                params.shift_remove(key);
            }
        }
        let mut call = self.new_call(handle, &request.context)?;
        call.begin(request.method.clone(), params, token, request.context.logs, self.spec()).await?;
        Ok(call)
    }

    async fn answer(&self, handle: RequestHandle<'_>) -> Result<Answer, String> {
        let request = handle.request();
        let mut call = match SuspendedRequests::is_state(request) {
            false => self.begin(handle).await?,
            true => match self.suspended.take(request) {
                Err(error) => return Ok(Answer::new(Reply::Error(error), Provenance::Live)),
                Ok(SuspendedRequest { call, inputs, .. }) => {
                    let missing = deliver_responses(inputs, request);
                    if !missing.is_empty() {
                        return Ok(self.input_required(request, call, missing));
                    }
                    call
                }
            },
        };
        loop {
            tokio::select! {
                biased;
                Some(event) = call.events.recv() => {
                    let mut requested = Vec::new();
                    let mut next = Some(event);
                    // What the server requests at once is requested at once.
                    while let Some(event) = next {
                        match event {
                            UpstreamEvent::Notification(method, params) => {
                                if let Some(params) = call.connection().notification(&method, params) {
                                    handle.notify(method, &params).await;
                                }
                            }
                            UpstreamEvent::Request(request, answer) => requested.push((request, answer)),
                        }
                        next = call.events.try_recv().ok();
                    }
                    let inputs = supported_inputs(requested, &call);
                    match request.context.era() {
                        _ if inputs.is_empty() => {}
                        Era::Legacy => request_input(inputs, handle).await,
                        Era::Modern => return Ok(self.input_required(request, call, inputs)),
                    }
                }
                response = &mut call.response => {
                    let response = response.map_err(|error| error.to_string())?;
                    if response.is_input_required() {
                        return Err("it requires input that the client does not support".to_owned());
                    }
                    let client = call.connection().client().ok_or("the server is gone")?;
                    return Ok(live_answer(&response, client));
                }
            }
        }
    }

    /// The `input_required` result for a client of 2026-07-28. The call waits until the client repeats the request.
    fn input_required(&self, request: &IncomingRequest, call: ForwardedCall, inputs: Vec<OpenInput>) -> Answer {
        let requests: Vec<InputRequest> = inputs.iter().map(|(input, _)| input.clone()).collect();
        let server = call.connection().client().map(|client| Arc::new(client.server_info().clone()));
        let state = self.suspended.put(request, call, inputs);
        let result = InputRequest::result(&requests, Some(state));
        Answer {
            kind: ResultKind::InputRequired,
            written_for: WrittenFor::Verbatim,
            server,
            ..Answer::new(Reply::Result(RawJson::from_value(&result)), Provenance::Live)
        }
    }

    /// The live server's answer, or an error if it has none.
    pub(in crate::serve) async fn forward(&self, handle: RequestHandle<'_>) -> Answer {
        match self.answer(handle).await {
            Ok(answer) => {
                // A request that is repeated with input is counted once.
                if !SuspendedRequests::is_state(handle.request()) {
                    self.answered.fetch_add(1, Ordering::Relaxed);
                }
                answer
            }
            Err(why) => self.failure(&why),
        }
    }

    /// The error for a request that the live server did not answer.
    pub(in crate::serve) fn failure(&self, why: &str) -> Answer {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let what = if self.is_merged { "the server behind the mock" } else { "this was not recorded, and the server" };
        Answer::refusal(ErrorReply::new(code::INTERNAL_ERROR, format!("{what} did not answer: {why}")))
    }

    /// Disconnects, and completes the recording.
    pub async fn close(&self) -> io::Result<()> {
        self.suspended.clear();
        let connections = std::mem::take(&mut *self.connections());
        for connection in connections {
            connection.close().await?;
        }
        let mut closing = std::mem::take(&mut *self.closing());
        while let Some(closed) = closing.join_next().await {
            closed.map_err(io::Error::other).flatten()?;
        }
        Ok(())
    }
}

/// The answer in the version of the live server; the chain brings it into the client's.
fn live_answer(response: &ServerResponse, client: &Client) -> Answer {
    let reply = match response.error() {
        Some(error) => Reply::Error(error.clone()),
        None => {
            let raw = RawJson::parse(response.bytes()).ok().and_then(|message| message.field("result"));
            Reply::Result(raw.unwrap_or_else(|| RawJson::from_value(response.result())))
        }
    };
    Answer {
        written_for: WrittenFor::Recorded(Some(client.revision())),
        server: Some(Arc::new(client.server_info().clone())),
        ..Answer::new(reply, Provenance::Live)
    }
}

/// The server requests that the client supports. The others are answered with the reason why they cannot be sent.
fn supported_inputs(
    requested: Vec<(ServerRequest, oneshot::Sender<HandlerResult>)>,
    call: &ForwardedCall,
) -> Vec<OpenInput> {
    let mut inputs = Vec::new();
    for (number, (requested, answer)) in requested.into_iter().enumerate() {
        match call.connection().input_request(requested, format!("input-{}", number + 1)) {
            Ok(input) => inputs.push((input, answer)),
            Err(why) => drop(answer.send(Err(ErrorReply::new(code::INTERNAL_ERROR, why)))),
        }
    }
    inputs
}

/// Requests input from a client of the handshake era, and passes its responses to the live server.
async fn request_input(inputs: Vec<OpenInput>, handle: RequestHandle<'_>) {
    let (requests, mut answers): (Vec<_>, Vec<_>) =
        inputs.into_iter().map(|(request, answer)| (request, Some(answer))).unzip();
    for (name, response) in handle.request_input(&requests).await.into_iter().flatten() {
        let index = requests.iter().position(|request| request.name == name);
        if let Some(answer) = index.and_then(|index| answers[index].take()) {
            let response = response.map_err(|why| ErrorReply::new(code::INTERNAL_ERROR, why));
            // The live server may have disconnected meanwhile.
            let _ = answer.send(response);
        }
    }
}

/// Passes the input responses of a client of 2026-07-28 to the live server. Returns the requests without a response.
fn deliver_responses(inputs: Vec<OpenInput>, request: &IncomingRequest) -> Vec<OpenInput> {
    let responses = request.params.get("inputResponses");
    let mut missing = Vec::new();
    for (input, answer) in inputs {
        match responses.and_then(|responses| responses.get(&input.name)) {
            // The live server may have disconnected meanwhile.
            Some(response) => drop(answer.send(Ok(response.clone()))),
            None => missing.push((input, answer)),
        }
    }
    missing
}
