//! One connection to the live server, for one client.
//!
//! ```text
//! request ──► ForwardedCall ──► Client ──► the live server
//!                  ▲                          │ notifications, server requests
//!                  └── while a call is active ┤
//! client ◄──────────── otherwise ─────────────┘
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rehearsal_core::answer::{InputRequest, LogFilter, RequestContext, adapt_notification};
use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{ErrorReply, Message, Method, Reply};
use rehearsal_core::protocol::{Era, LogLevel, code, meta};
use rehearsal_core::trace::{EntryBody, SessionEnd};
use serde_json::{Map, Value, json};
use tokio::sync::{OnceCell, mpsc, oneshot};

use crate::client::{Client, ClientBuilder, ClientError, ClientHandlers, HandlerResult, ServerRequest, ServerResponse};
use crate::record::SessionRecorder;
use crate::serve::ConnectionHandle;

/// Maximum time for an answer of the live server. It is long because the server may request input from a user.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// How many events are kept for a request whose client must send input first.
const MAX_KEPT: usize = 64;

/// The capabilities under which input can be requested, and the methods that request it.
const INPUT_CAPABILITIES: [(&str, Method); 3] =
    [("elicitation", Method::ELICITATION), ("sampling", Method::SAMPLING), ("roots", Method::ROOTS_LIST)];

/// How the live server is reached, and its description in the recording.
#[derive(Clone, Copy)]
pub(super) struct UpstreamSpec<'a> {
    pub(super) builder: &'a (dyn Fn() -> ClientBuilder + Send + Sync),
    pub(super) info: &'a Map<String, Value>,
}

/// A message of the live server that is no response.
pub(super) enum UpstreamEvent {
    Notification(Method, Value),
    Request(ServerRequest, oneshot::Sender<HandlerResult>),
}

tokio::task_local! {
    /// The call whose input rounds are being fulfilled.
    static CURRENT_CALL: mpsc::UnboundedSender<UpstreamEvent>;
}

/// One connection to the live server, made when it is first needed.
pub(super) struct UpstreamConnection {
    downstream: ConnectionHandle,
    /// The capabilities that the server gets.
    capabilities: Value,
    context: RequestContext,
    client: OnceCell<Result<Client, String>>,
    tape: Option<SessionRecorder>,
    router: Arc<UpstreamRouter>,
    log_from: Mutex<Option<LogLevel>>,
}

/// Passes events to the call or to the client that they belong to.
struct UpstreamRouter {
    calls: Mutex<Vec<CallChannel>>,
    next: AtomicU64,
    /// Gets the events while no call is active.
    idle: mpsc::UnboundedSender<UpstreamEvent>,
}

/// An active call, which gets the events meanwhile.
struct CallChannel {
    number: u64,
    events: mpsc::UnboundedSender<UpstreamEvent>,
    /// If its client must send input first: how many events are kept until it does.
    suspended: Option<usize>,
}

/// A request that was sent to the live server; dropping it cancels the request.
pub(super) struct ForwardedCall {
    pub(super) response: Pin<Box<dyn Future<Output = Result<ServerResponse, ClientError>> + Send>>,
    sender: mpsc::UnboundedSender<UpstreamEvent>,
    pub(super) events: mpsc::UnboundedReceiver<UpstreamEvent>,
    connection: Arc<UpstreamConnection>,
    number: u64,
}

impl fmt::Debug for UpstreamConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamConnection").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

/// The client's capabilities that the live server gets: input that it may request, and extensions.
fn forwarded_capabilities(context: &RequestContext) -> Value {
    let keys = ["elicitation", "sampling", "roots", "experimental", "extensions"];
    let declared = keys.iter().filter_map(|key| {
        let declared = context.capabilities.get(key).filter(|declared| declared.is_object())?;
        // Changes of the roots are not forwarded.
        let declared = if *key == "roots" { json!({}) } else { declared.clone() };
        Some(((*key).to_owned(), declared))
    });
    Value::Object(declared.collect())
}

impl UpstreamConnection {
    /// A connection for a client, not made yet.
    pub(super) fn new(
        downstream: ConnectionHandle,
        context: &RequestContext,
        tape: Option<SessionRecorder>,
    ) -> Arc<UpstreamConnection> {
        let (idle, events) = mpsc::unbounded_channel();
        let router = UpstreamRouter { calls: Mutex::default(), next: AtomicU64::new(0), idle };
        let connection = Arc::new(UpstreamConnection {
            downstream,
            capabilities: forwarded_capabilities(context),
            context: context.clone(),
            client: OnceCell::new(),
            tape,
            router: Arc::new(router),
            log_from: Mutex::default(),
        });
        tokio::spawn(forward_idle_events(Arc::downgrade(&connection), events));
        connection
    }

    /// Whether this is the connection for a client.
    pub(super) fn is_for(&self, downstream: &ConnectionHandle, context: &RequestContext) -> bool {
        let same_era = self.context.era() == context.era();
        let same_capabilities = || self.capabilities == forwarded_capabilities(context);
        same_era && self.downstream.is(downstream) && same_capabilities() && !self.is_broken()
    }

    /// Whether a request of one client may come between those of another. The server requests of the handshake era do not
    /// name the request that they belong to, so a client that may get some has the connection for itself.
    pub(super) fn is_shareable(&self) -> bool {
        let gives_input = INPUT_CAPABILITIES.iter().any(|(capability, _)| self.capabilities.get(capability).is_some());
        let names_requests = self.client().is_some_and(|client| client.revision().era() == Era::Modern);
        !gives_input || names_requests || self.is_idle()
    }

    /// Whether no call is active.
    pub(super) fn is_idle(&self) -> bool {
        self.router.calls().is_empty()
    }

    /// Whether its client or the live server disconnected.
    pub(super) fn is_over(&self) -> bool {
        self.downstream.is_closed() || self.is_broken()
    }

    /// Whether the live server could not be reached, or disconnected.
    fn is_broken(&self) -> bool {
        match self.client.get() {
            Some(Ok(client)) => client.is_over(),
            Some(Err(_)) => true,
            None => false,
        }
    }

    /// The client of the live server, once it is connected.
    pub(super) fn client(&self) -> Option<&Client> {
        self.client.get()?.as_ref().ok()
    }

    /// A server request in the version of the client; `Err` is the reason why the client cannot get it.
    pub(super) fn input_request(&self, request: ServerRequest, name: String) -> Result<InputRequest, String> {
        let mut params = request.params;
        // `_meta` belongs to the connection with the live server.
        params.as_object_mut().map(|params| params.shift_remove("_meta"));
        let input = InputRequest { name, method: request.method, params };
        let from = self.client().map(Client::revision);
        if from == Some(self.context.revision) { Ok(input) } else { input.adapted(&self.context, from) }
    }

    /// A notification in the version of the client; `None` if that version does not have it. If a list changed, it is read
    /// again for the next list request.
    pub(super) fn notification(&self, method: &Method, params: Value) -> Option<Value> {
        if method.as_str().ends_with("/list_changed") {
            self.downstream.discard_surface();
        }
        adapt_notification(method, params, self.client().map(Client::revision), self.context.revision)
    }

    /// A call that is about to begin; from now on the connection is not idle.
    pub(super) fn new_call(self: &Arc<Self>) -> ForwardedCall {
        let (sender, events) = mpsc::unbounded_channel();
        let number = self.router.next.fetch_add(1, Ordering::Relaxed);
        self.router.calls().push(CallChannel { number, events: sender.clone(), suspended: None });
        let response = Box::pin(std::future::pending());
        ForwardedCall { response, sender, events, connection: Arc::clone(self), number }
    }

    /// The client of the live server, which is connected first.
    pub(super) async fn connected(&self, server: UpstreamSpec<'_>) -> Result<&Client, String> {
        let connected = self.client.get_or_init(|| async {
            if let Some(tape) = &self.tape {
                tape.start(server.info.clone());
            }
            let context = &self.context;
            if context.era() == Era::Legacy
                && let Ok(client) = self.prepared((server.builder)().legacy(context.revision)).connect().await
            {
                return Ok(client);
            }
            // A server that does not have the client's version may have another.
            self.prepared((server.builder)()).connect().await.map_err(|error| error.to_string())
        });
        connected.await.as_ref().map_err(Clone::clone)
    }

    fn prepared(&self, builder: ClientBuilder) -> ClientBuilder {
        let (tape, router) = (self.tape.clone(), Arc::clone(&self.router));
        let builder = builder.capabilities(self.capabilities.clone()).handlers(self.answers());
        builder.on_message(move |from, message| {
            router.receive(from, message);
            if let Some(tape) = &tape {
                let message = message.clone();
                tape.put([EntryBody::Message { from, channel: Channel::MAIN, message, event_id: None }]);
            }
        })
    }

    /// Passes every server request to the call or the client that can answer it.
    fn answers(&self) -> ClientHandlers {
        let has = |capability: &str| self.capabilities.get(capability).is_some();
        let supported = INPUT_CAPABILITIES.into_iter().filter(|(capability, _)| has(capability));
        supported.fold(ClientHandlers::new(), |answers, (_, method)| {
            let router = Arc::clone(&self.router);
            answers.on_async(method, move |request| {
                let (answer, answered) = oneshot::channel();
                router.route(UpstreamEvent::Request(request.clone(), answer));
                async move { answered.await.unwrap_or_else(|_| Err(no_client_error())) }
            })
        })
    }

    /// Requests the log messages that the client requested.
    async fn request_logs(&self, client: &Client, logs: LogFilter) {
        let from = match logs {
            LogFilter::From(from) => from,
            LogFilter::None | LogFilter::Any => return,
        };
        let before = self.log_from.lock().unwrap_or_else(PoisonError::into_inner).replace(from);
        let has_logging =
            client.revision().era() == Era::Modern || client.server_capabilities().get("logging").is_some();
        if before != Some(from) && has_logging {
            // A server that refuses the level sends what it chooses.
            let _ = client.set_log_level(from.name()).await;
        }
    }

    /// Disconnects, and completes the recording.
    pub(super) async fn close(&self) -> std::io::Result<()> {
        if let Some(client) = self.client() {
            client.close().await;
        }
        let Some(tape) = self.tape.clone() else { return Ok(()) };
        let ended = tokio::task::spawn_blocking(move || tape.end(SessionEnd::ClientClosed { status: None }));
        ended.await.map_err(std::io::Error::other)
    }
}

impl UpstreamRouter {
    fn calls(&self) -> MutexGuard<'_, Vec<CallChannel>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest call whose client waits for the answer, else the latest one that is suspended.
    fn latest(&self) -> Option<mpsc::UnboundedSender<UpstreamEvent>> {
        let mut calls = self.calls();
        if let Some(call) = calls.iter().rfind(|call| call.suspended.is_none()) {
            return Some(call.events.clone());
        }
        let call = calls.last_mut()?;
        let kept = call.suspended.as_mut().filter(|kept| **kept < MAX_KEPT)?;
        *kept += 1;
        Some(call.events.clone())
    }

    /// Passes an event to the call whose input round it belongs to, to the latest call, or to the client.
    fn route(&self, event: UpstreamEvent) {
        let current = CURRENT_CALL.try_with(Clone::clone).ok();
        let receiver = current.or_else(|| self.latest());
        let sent = receiver.unwrap_or_else(|| self.idle.clone()).send(event);
        if let Err(mpsc::error::SendError(event)) = sent {
            // The call ended just now.
            let _ = self.idle.send(event);
        }
    }

    /// Routes the notifications of the live server. Progress is routed by its token.
    fn receive(&self, from: Side, message: &Message) {
        let Some(notification) = message.as_notification().filter(|_| from == Side::Server) else { return };
        if notification.method == Method::PROGRESS || notification.method == Method::CANCELLED {
            return;
        }
        let params = notification.params.as_ref().and_then(|params| params.value().ok());
        self.route(UpstreamEvent::Notification(notification.method.clone(), params.unwrap_or_default()));
    }
}

impl ForwardedCall {
    /// The connection that it is sent on.
    pub(super) fn connection(&self) -> &UpstreamConnection {
        &self.connection
    }

    /// Sends the request to the live server.
    pub(super) async fn begin(
        &mut self,
        method: Method,
        params: Value,
        token: Option<Value>,
        logs: LogFilter,
        server: UpstreamSpec<'_>,
    ) -> Result<(), String> {
        let (connection, sender) = (Arc::clone(&self.connection), self.sender.clone());
        let client = connection.connected(server).await?.clone();
        connection.request_logs(&client, logs).await;
        let mut call = client.request(method, params).timeout(ANSWER_TIMEOUT);
        if let Some(token) = token {
            let sender = sender.clone();
            call = call.on_notification(move |message| {
                let progress = message.as_notification().filter(|it| it.method == Method::PROGRESS);
                let params = progress.and_then(|progress| progress.params.as_ref()?.value().ok());
                let Some(mut params) = params.filter(Value::is_object) else { return };
                params[meta::PROGRESS_TOKEN] = token.clone();
                // The call may have ended.
                let _ = sender.send(UpstreamEvent::Notification(Method::PROGRESS, params));
            });
        }
        self.response = Box::pin(CURRENT_CALL.scope(sender, call.into_future()));
        Ok(())
    }

    /// Notes that its client must send input first.
    pub(super) fn suspend(&self) {
        self.set_suspended(Some(0));
    }

    /// Notes that its client waits for the answer again.
    pub(super) fn resume(&self) {
        self.set_suspended(None);
    }

    fn set_suspended(&self, suspended: Option<usize>) {
        if let Some(call) = self.connection.router.calls().iter_mut().find(|call| call.number == self.number) {
            call.suspended = suspended;
        }
    }
}

impl Drop for ForwardedCall {
    fn drop(&mut self) {
        self.connection.router.calls().retain(|call| call.number != self.number);
        self.events.close();
        while let Ok(event) = self.events.try_recv() {
            let _ = self.connection.router.idle.send(event);
        }
    }
}

/// Passes on the events while no call is active. Since 2026-07-28 a client gets only change notices then, if it subscribed.
async fn forward_idle_events(connection: Weak<UpstreamConnection>, mut events: mpsc::UnboundedReceiver<UpstreamEvent>) {
    while let Some(event) = events.recv().await {
        let Some(connection) = connection.upgrade() else { return };
        let era = connection.context.era();
        match event {
            UpstreamEvent::Notification(method, params) => {
                if let Some(params) = connection.notification(&method, params) {
                    connection.downstream.notify(era, method, &params).await;
                }
            }
            UpstreamEvent::Request(request, answer) => match connection.input_request(request, "input".to_owned()) {
                Ok(input) if era == Era::Legacy => {
                    let downstream = connection.downstream.clone();
                    tokio::spawn(async move {
                        let response = match downstream.request_input(&input).await {
                            Some(Reply::Result(result)) => Ok(result.value().unwrap_or_default()),
                            Some(Reply::Error(error)) => Err(error),
                            None => Err(no_client_error()),
                        };
                        // The live server may have disconnected meanwhile.
                        let _ = answer.send(response);
                    });
                }
                Ok(_) => drop(answer.send(Err(no_client_error()))),
                Err(why) => drop(answer.send(Err(ErrorReply::new(code::INTERNAL_ERROR, why)))),
            },
        }
    }
}

fn no_client_error() -> ErrorReply {
    ErrorReply::new(code::INTERNAL_ERROR, "no client is connected that could answer")
}
