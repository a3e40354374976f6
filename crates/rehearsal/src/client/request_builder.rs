//! One request and its options: timeout, headers, progress, input rounds.

use std::borrow::Cow;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Message, Method, Reply, RequestId};
use rehearsal_core::protocol::{Era, Tool, code, header, meta};
use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use super::client::Client;
use super::connection::{NotificationObserver, OutgoingRequest};
use super::error::ClientError;
use super::handlers::ServerRequest;
use super::params::{MetaField, Params, WithMeta, meta_suffix};
use super::pending_request::{CancelMode, PendingRequest};
use super::response::{LogMessage, ProgressUpdate, ServerResponse};

/// The `_meta` that this client sends.
enum MetaFields<'a> {
    /// The `_meta` of every request of this client.
    Standard,
    /// The `_meta` of every request with further members.
    Extended(Vec<MetaField<'a>>),
}

/// At most this many input rounds are followed for one request.
const MAX_INPUT_ROUNDS: usize = 16;

/// One request; `.await` sends it and waits for the answer.
///
/// Dropping the future while it waits cancels the request, as the negotiated version requires.
#[must_use = "nothing is sent before `.await` or `start`"]
pub struct RequestBuilder {
    client: Client,
    method: Method,
    params: Params,
    options: Option<Box<RequestOptions>>,
}

/// Settings that most calls do not change.
#[derive(Default)]
struct RequestOptions {
    timeout: Option<Duration>,
    headers: Vec<(String, String)>,
    on_progress: Option<Arc<dyn Fn(ProgressUpdate) + Send + Sync>>,
    on_log: Option<Arc<dyn Fn(LogMessage) + Send + Sync>>,
    on_notification: Option<NotificationObserver>,
    progress: bool,
    max_input_rounds: Option<usize>,
}

impl RequestBuilder {
    pub(super) fn new(client: Client, method: Method, params: Params) -> RequestBuilder {
        RequestBuilder { client, method, params, options: None }
    }

    fn with_option(mut self, set: impl FnOnce(&mut RequestOptions)) -> RequestBuilder {
        set(self.options.get_or_insert_default());
        self
    }

    /// Sets the arguments of a tool or prompt.
    pub fn arguments(mut self, arguments: impl Serialize) -> RequestBuilder {
        self.params.set_arguments(&arguments);
        self
    }

    /// Sets how long to wait for the answer.
    pub fn timeout(self, timeout: Duration) -> RequestBuilder {
        self.with_option(|options| options.timeout = Some(timeout))
    }

    /// Requests progress; the response contains it.
    pub fn with_progress(self) -> RequestBuilder {
        self.with_option(|options| options.progress = true)
    }

    /// Requests progress, and passes it to `callback` as it arrives.
    pub fn on_progress(self, callback: impl Fn(ProgressUpdate) + Send + Sync + 'static) -> RequestBuilder {
        self.with_progress().with_option(|options| options.on_progress = Some(Arc::new(callback)))
    }

    /// Passes the log messages of this request to `callback` as they arrive.
    pub fn on_log(self, callback: impl Fn(LogMessage) + Send + Sync + 'static) -> RequestBuilder {
        self.with_option(|options| options.on_log = Some(Arc::new(callback)))
    }

    /// Requests progress, and passes every notification of this request to `callback`, exactly as on the wire.
    pub(crate) fn on_notification(self, callback: impl Fn(&Message) + Send + Sync + 'static) -> RequestBuilder {
        self.with_progress().with_option(|options| options.on_notification = Some(Arc::new(callback)))
    }

    /// Sets an HTTP header of this request. It replaces a header of the same name that the client would send.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> RequestBuilder {
        self.with_option(|options| options.headers.push((name.into(), value.into())))
    }

    /// Follows at most this many input rounds; after that, `input_required` is returned as the response.
    pub fn max_input_rounds(self, rounds: usize) -> RequestBuilder {
        self.with_option(|options| options.max_input_rounds = Some(rounds))
    }

    /// Sends the request and returns while the server works on it. Rounds of `input_required` are not followed.
    pub async fn start(self) -> Result<InFlightRequest, ClientError> {
        Ok(InFlightRequest { running: self.begin()?.started().await? })
    }

    pub(super) async fn run(&mut self) -> Result<ServerResponse, ClientError> {
        if self.client.revision().era() == Era::Legacy {
            return self.once().await;
        }
        let wanted = self.options.as_ref().and_then(|options| options.max_input_rounds);
        let mut round = 0;
        for _ in 0..MAX_INPUT_ROUNDS {
            let response = self.once().await?;
            if response.error_code() == Some(code::HEADER_MISMATCH) && self.fetch_tool_schema().await {
                continue;
            }
            if !response.is_input_required() || wanted.is_some_and(|wanted| round >= wanted) {
                return Ok(response);
            }
            round += 1;
            // Boxed, because it is large and rare.
            match Box::pin(self.input_responses(&response)).await {
                Some((inputs, state)) => {
                    let Some(params) = self.params.as_object_mut() else { return Ok(response) };
                    params.insert("inputResponses".into(), Value::Object(inputs));
                    match state {
                        Some(state) => params.insert("requestState".into(), state),
                        None => params.remove("requestState"),
                    };
                }
                None => return Ok(response),
            }
        }
        let what = format!("the server required input {MAX_INPUT_ROUNDS} times and never answered");
        Err(ClientError::BadResult { method: self.method.clone(), what })
    }

    async fn once(&self) -> Result<ServerResponse, ClientError> {
        // A separate function, because a future that moves the request would keep two copies of it.
        let mut running = self.begin()?;
        Ok(ServerResponse::new(running.answered().await?))
    }

    fn begin(&self) -> Result<PendingRequest, ClientError> {
        let inner = &self.client.inner;
        let number = inner.connection.next_id();
        let message = self.message(number);
        let message = message.map_err(|cause| ClientError::BadParams { method: self.method.clone(), cause })?;
        Ok(inner.connection.begin(OutgoingRequest {
            headers: self.http_headers(&message)?,
            message,
            token: self.wants_progress().then(|| RawJson::from_value(&number.into())),
            limit: self.options.as_ref().and_then(|options| options.timeout).unwrap_or(inner.timeout),
            watch: self.watch(),
            cancel_mode: self.cancel_mode(),
        }))
    }

    fn message(&self, number: i64) -> Result<Message, serde_json::Error> {
        let (id, method) = (number.into(), self.method.clone());
        match &self.params {
            Params::Named(named) => Ok(match self.meta(number) {
                MetaFields::Standard => named.request(id, method, &self.client.inner.written_meta),
                MetaFields::Extended(meta) => named.request(id, method, &meta_suffix(&meta)?),
            }),
            Params::Any(params) => {
                let meta = match self.meta(number) {
                    MetaFields::Standard => self.usual_meta(),
                    MetaFields::Extended(meta) => meta,
                };
                let whole = WithMeta { params, meta };
                Message::request(id, method, whole.is_some().then_some(&whole))
            }
            Params::Unwritable(error) => Err(serde::ser::Error::custom(error)),
        }
    }

    fn usual_meta(&self) -> Vec<MetaField<'_>> {
        self.client.inner.meta.iter().map(|(key, text)| (*key, Cow::Borrowed(&**text))).collect()
    }

    /// The `_meta` of this request.
    fn meta(&self, number: i64) -> MetaFields<'_> {
        let level = match self.client.revision().era() {
            Era::Legacy => None,
            Era::Modern => self.client.inner.log_level.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        if level.is_none() && !self.wants_progress() {
            return MetaFields::Standard;
        }
        let mut fields = self.usual_meta();
        if let Some(level) = level {
            fields.push((meta::LOG_LEVEL, Cow::Owned(level)));
        }
        if self.wants_progress() {
            let token = to_raw_value(&number).expect("an integer can always be written");
            fields.push((meta::PROGRESS_TOKEN, Cow::Owned(token)));
        }
        MetaFields::Extended(fields)
    }

    fn wants_progress(&self) -> bool {
        self.options.as_ref().is_some_and(|options| options.progress)
    }

    fn cancel_mode(&self) -> CancelMode {
        match self.client.revision().era() {
            _ if self.method == Method::INITIALIZE => CancelMode::Silent,
            Era::Modern => CancelMode::CloseStream,
            Era::Legacy => CancelMode::Notify,
        }
    }

    fn watch(&self) -> Option<NotificationObserver> {
        let options = self.options.as_ref()?;
        if let Some(callback) = &options.on_notification {
            return Some(Arc::clone(callback));
        }
        let (on_progress, on_log) = (options.on_progress.clone(), options.on_log.clone());
        if on_progress.is_none() && on_log.is_none() {
            return None;
        }
        Some(Arc::new(move |message| {
            if let (Some(callback), Some(progress)) = (&on_progress, ProgressUpdate::read(message)) {
                callback(progress);
            }
            if let (Some(callback), Some(log)) = (&on_log, LogMessage::read(message)) {
                callback(log);
            }
        }))
    }

    fn http_headers(&self, message: &Message) -> Result<Option<Box<HeaderMap>>, ClientError> {
        if !self.client.inner.connection.sender.takes_headers() {
            return Ok(None);
        }
        let mut headers = HeaderMap::new();
        let wanted = self.client.revision().has_request_headers();
        let request = message.as_request().filter(|_| wanted);
        let schema = request.and_then(|request| {
            let tool = (request.method == Method::TOOLS_CALL).then(|| self.params.name())??;
            self.client.inner.schemas.lock().unwrap_or_else(PoisonError::into_inner).get(&tool).cloned()
        });
        let ours = request.map(|request| header::for_request(request, schema.as_deref())).unwrap_or_default();
        let theirs = self.options.iter().flat_map(|options| &options.headers);
        for (name, value) in ours.iter().chain(theirs) {
            let bad = || ClientError::BadTarget { what: format!("{name:?} cannot be a header with value {value:?}") };
            let name = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
            headers.insert(name, HeaderValue::try_from(value.as_str()).map_err(|_| bad())?);
        }
        Ok(Some(Box::new(headers)))
    }

    /// Lists the tools, because a header that repeats an argument was missing. Returns `false` if the schema of the tool was
    /// known already, or is still unknown.
    async fn fetch_tool_schema(&self) -> bool {
        let Some(tool) = self.params.name() else { return false };
        let known =
            |client: &Client| client.inner.schemas.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&tool);
        if self.method != Method::TOOLS_CALL || known(&self.client) {
            return false;
        }
        // Boxed, because listing makes calls of its own.
        let listed = Box::pin(self.client.listing::<Tool>()).await;
        listed.is_ok() && known(&self.client)
    }

    /// The input responses and the request state for an `input_required` result. `None` if an input request has no
    /// answer.
    async fn input_responses(&self, response: &ServerResponse) -> Option<(Map<String, Value>, Option<Value>)> {
        let result = response.result();
        let mut given = Vec::new();
        for (key, input) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let request = ServerRequest {
                method: input.get("method")?.as_str()?.into(),
                params: input.get("params").cloned().unwrap_or_default(),
            };
            if !self.client.inner.handlers.handles(&request.method) {
                return None;
            }
            given.push((key.clone(), self.client.inner.handlers.handle(&request)));
        }
        // The answers that take time were all started above, so they run concurrently.
        let mut inputs = Map::new();
        for (key, given) in given {
            match given.reply().await {
                Reply::Result(answer) => drop(inputs.insert(key, answer.value().ok()?)),
                Reply::Error(_) => return None,
            }
        }
        Some((inputs, result.get("requestState").cloned()))
    }
}

impl IntoFuture for RequestBuilder {
    type Output = Result<ServerResponse, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move { self.run().await })
    }
}

/// A request that the server works on; `.await` waits for its answer.
#[must_use = "dropping it takes the request back"]
pub struct InFlightRequest {
    running: PendingRequest,
}

impl InFlightRequest {
    /// Cancels the request.
    pub async fn cancel(self, reason: &str) {
        self.running.cancel(Some(reason)).await;
    }

    /// The id of the request.
    pub fn id(&self) -> &RequestId {
        &self.running.key.id
    }
}

impl IntoFuture for InFlightRequest {
    type Output = Result<ServerResponse, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let mut running = self.running.restart_timeout();
        Box::pin(async move { Ok(ServerResponse::new(running.answered().await?)) })
    }
}
