//! The client's answers to server requests and input requests.
//!
//! In the handshake era a server sends requests, in the stateless era an `input_required` result with input requests.
//! One set of answers serves both.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::code;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// A server request or an input request.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// `sampling/createMessage`, `elicitation/create`, `roots/list` or anything else.
    pub method: Method,
    /// The params; `null` if there are none.
    pub params: Value,
}

/// The client's answer: a result or an error.
pub type HandlerResult = Result<Value, ErrorReply>;

type Handler = Arc<dyn Fn(&ServerRequest) -> HandlerReply + Send + Sync>;

/// An answer, or a future of one.
pub(super) enum HandlerReply {
    Ready(HandlerResult),
    Future(Pin<Box<dyn Future<Output = HandlerResult> + Send>>),
}

impl HandlerReply {
    /// The reply that is sent to the server.
    pub(super) async fn reply(self) -> Reply {
        let answer = match self {
            HandlerReply::Ready(answer) => answer,
            HandlerReply::Future(answer) => answer.await,
        };
        match answer {
            Ok(result) => Reply::Result(RawJson::from_value(&result)),
            Err(error) => Reply::Error(error),
        }
    }
}

/// Scripted answers to requests of servers. A client declares the capabilities that it has answers for.
#[derive(Clone, Default)]
pub struct ClientHandlers {
    handlers: Vec<(Method, Handler)>,
    /// The handler that is tried before all others.
    first: Option<Handler>,
    user: Arc<Mutex<UserActivity>>,
}

/// When a user answered server requests.
#[derive(Debug, Default)]
struct UserActivity {
    /// The number of answers that the user has not finished.
    open: usize,
    /// The time of the last finished answer.
    last: Option<Instant>,
}

impl ClientHandlers {
    /// Answers `ping` only.
    pub fn new() -> ClientHandlers {
        ClientHandlers::default()
    }

    /// Answers a method with a function. A later call for the same method replaces it.
    pub fn on(
        self,
        method: Method,
        answer: impl Fn(&ServerRequest) -> HandlerResult + Send + Sync + 'static,
    ) -> ClientHandlers {
        self.handled(method, move |request| HandlerReply::Ready(answer(request)))
    }

    /// Answers a method with an async function; the server waits for it.
    pub fn on_async<F>(
        self,
        method: Method,
        answer: impl Fn(&ServerRequest) -> F + Send + Sync + 'static,
    ) -> ClientHandlers
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        self.handled(method, move |request| HandlerReply::Future(Box::pin(answer(request))))
    }

    /// Answers a method by a user. The time that the user needs does not count against the timeout of a request.
    pub fn on_user<F>(
        self,
        method: Method,
        answer: impl Fn(&ServerRequest) -> F + Send + Sync + 'static,
    ) -> ClientHandlers
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let user = self.user.clone();
        self.handled(method, move |request| {
            let (user, answer) = (user.clone(), answer(request));
            HandlerReply::Future(Box::pin(async move {
                user.lock().unwrap_or_else(PoisonError::into_inner).open += 1;
                let result = answer.await;
                let mut user = user.lock().unwrap_or_else(PoisonError::into_inner);
                user.open = user.open.saturating_sub(1);
                user.last = Some(Instant::now());
                result
            }))
        })
    }

    /// When a user last answered a server request: now, if an answer is not finished.
    pub(super) fn last_user_activity(&self) -> Option<Instant> {
        let user = self.user.lock().unwrap_or_else(PoisonError::into_inner);
        if user.open > 0 { Some(Instant::now()) } else { user.last }
    }

    fn handled(
        mut self,
        method: Method,
        answer: impl Fn(&ServerRequest) -> HandlerReply + Send + Sync + 'static,
    ) -> ClientHandlers {
        self.handlers.retain(|(other, _)| *other != method);
        self.handlers.push((method, Arc::new(answer)));
        self
    }

    /// Answers a method with a function. If that returns `None`, the earlier handler of the method answers.
    pub fn on_some(
        self,
        method: Method,
        answer: impl Fn(&ServerRequest) -> Option<HandlerResult> + Send + Sync + 'static,
    ) -> ClientHandlers {
        let otherwise = self.clone();
        self.handled(method, move |request| {
            answer(request).map_or_else(|| otherwise.handle(request), HandlerReply::Ready)
        })
    }

    /// Answers every method but `ping` with a function. If that returns `None`, the method's own handler answers.
    pub(crate) fn on_any(
        self,
        answer: impl Fn(&ServerRequest) -> Option<HandlerResult> + Send + Sync + 'static,
    ) -> ClientHandlers {
        let otherwise = self.clone();
        let first = move |request: &ServerRequest| {
            answer(request).map_or_else(|| otherwise.handle(request), HandlerReply::Ready)
        };
        ClientHandlers { first: Some(Arc::new(first)), ..self }
    }

    /// Answers a method with these answers in turn. After the last one, the client responds with an error.
    pub fn on_sequence(self, method: Method, answers: impl IntoIterator<Item = Value>) -> ClientHandlers {
        let queue: Mutex<VecDeque<Value>> = Mutex::new(answers.into_iter().collect());
        self.on(method, move |request| {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            next.ok_or_else(|| {
                let message = format!("{} was requested more often than there are scripted answers", request.method);
                ErrorReply::new(code::INTERNAL_ERROR, message)
            })
        })
    }

    /// Lists these as the roots: pairs of URI and name.
    pub fn roots<U: Into<String>, N: Into<String>>(self, roots: impl IntoIterator<Item = (U, N)>) -> ClientHandlers {
        let root = |(uri, name): (U, N)| json!({"uri": uri.into(), "name": name.into()});
        let roots: Vec<Value> = roots.into_iter().map(root).collect();
        self.on(Method::ROOTS_LIST, move |_| Ok(json!({"roots": roots})))
    }

    /// Answers every sampling request with this text.
    pub fn sampling_text(self, text: impl Into<String>) -> ClientHandlers {
        let text = text.into();
        self.on(Method::SAMPLING, move |_| {
            Ok(json!({
                "role": "assistant",
                "content": {"type": "text", "text": text},
                "model": "rehearsal",
                "stopReason": "endTurn",
            }))
        })
    }

    /// Accepts every elicitation with this content.
    pub fn elicitation_accept(self, content: Value) -> ClientHandlers {
        self.on(Method::ELICITATION, move |_| Ok(json!({"action": "accept", "content": content})))
    }

    /// Accepts every elicitation with the defaults that its schema gives.
    pub fn elicitation_defaults(self) -> ClientHandlers {
        self.on(Method::ELICITATION, |request| {
            let properties = request.params.pointer("/requestedSchema/properties").and_then(Value::as_object);
            let default = |(key, schema): (&String, &Value)| Some((key.clone(), schema.get("default")?.clone()));
            let content: Map<String, Value> = properties.into_iter().flatten().filter_map(default).collect();
            Ok(json!({"action": "accept", "content": content}))
        })
    }

    /// Declines every elicitation.
    pub fn elicitation_decline(self) -> ClientHandlers {
        self.on(Method::ELICITATION, |_| Ok(json!({"action": "decline"})))
    }

    /// The capabilities of the client: one for everything that it has an answer for.
    pub(super) fn capabilities(&self) -> Value {
        let mut capabilities = Map::new();
        for (method, _) in &self.handlers {
            match method.as_str() {
                "roots/list" => drop(capabilities.insert("roots".into(), json!({"listChanged": true}))),
                "sampling/createMessage" => drop(capabilities.insert("sampling".into(), json!({}))),
                "elicitation/create" => drop(capabilities.insert("elicitation".into(), json!({}))),
                _ => {}
            }
        }
        Value::Object(capabilities)
    }

    /// Whether there is an answer to a method.
    pub(super) fn handles(&self, method: &Method) -> bool {
        self.first.is_some() || self.handlers.iter().any(|(other, _)| other == method)
    }

    /// The answer to a server request or an input request.
    pub(super) fn handle(&self, request: &ServerRequest) -> HandlerReply {
        let of_method =
            || self.handlers.iter().find(|(method, _)| *method == request.method).map(|(_, handler)| handler);
        match self.first.as_ref().filter(|_| request.method != Method::PING).or_else(of_method) {
            // A server that waits for an answer must not wait for one that panicked.
            Some(handler) => catch_unwind(AssertUnwindSafe(|| handler(request))).unwrap_or_else(|_| {
                let message = format!("the scripted answer to {} panicked", request.method);
                HandlerReply::Ready(Err(ErrorReply::new(code::INTERNAL_ERROR, message)))
            }),
            None if request.method == Method::PING => HandlerReply::Ready(Ok(json!({}))),
            None => {
                let message = format!("this client has no answer to {}", request.method);
                HandlerReply::Ready(Err(ErrorReply::new(code::METHOD_NOT_FOUND, message)))
            }
        }
    }
}

impl fmt::Debug for ClientHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.handlers.iter().map(|(method, _)| method)).finish()
    }
}
