//! One connection to the real server, for one client.
//!
//! ```text
//! request ──► Work ──► Client ──► the real server
//!               ▲                      │ says something, asks something
//!               └─ while it works ◄────┤
//! conversation ◄── when nothing works ─┘
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rehearsal_core::answer::{Logs, Question, Terms, adapted_notification};
use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{ErrorReply, Message, Method, Reply};
use rehearsal_core::protocol::{Era, code, meta};
use rehearsal_core::script::mock::LogLevel;
use rehearsal_core::trace::{End, What};
use serde_json::{Map, Value, json};
use tokio::sync::{OnceCell, mpsc, oneshot};

use crate::client::{Answer, Answers, Asked, Client, ClientBuilder, ClientError, Response};
use crate::mock::Standing;
use crate::record::Tape;

/// How long the real server may take for an answer. People are asked on the way.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How much is kept for a request whose client was sent away.
const KEPT: usize = 64;

/// What can be asked of a client, and the capability that says so.
const ASKED: [(&str, Method); 3] =
    [("elicitation", Method::ELICITATION), ("sampling", Method::SAMPLING), ("roots", Method::ROOTS_LIST)];

/// How the real server is reached, and what the recording says about it.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    pub(super) builder: &'a (dyn Fn() -> ClientBuilder + Send + Sync),
    pub(super) info: &'a Map<String, Value>,
}

/// Something that the real server says, beside its answer.
pub(super) enum Heard {
    Told(Method, Value),
    Asked(Asked, oneshot::Sender<Answer>),
}

tokio::task_local! {
    /// Whose rounds of `input_required` are being fulfilled.
    static EAR: mpsc::UnboundedSender<Heard>;
}

/// One connection to the real server, made when it is first needed.
pub(super) struct Line {
    standing: Standing,
    /// What the server was told that its client can do.
    capabilities: Value,
    terms: Terms,
    client: OnceCell<Result<Client, String>>,
    tape: Tape,
    ears: Arc<Ears>,
    log_from: Mutex<Option<LogLevel>>,
}

/// Who listens.
struct Ears {
    works: Mutex<Vec<Ear>>,
    next: AtomicU64,
    /// Hears what is said while nothing works.
    conversation: mpsc::UnboundedSender<Heard>,
}

/// A request that hears what is said meanwhile.
struct Ear {
    number: u64,
    hears: mpsc::UnboundedSender<Heard>,
    /// Where its client was sent away: how much is kept until it comes back.
    parked: Option<usize>,
}

/// A request that the real server works on; dropping it takes it back.
pub(super) struct Work {
    pub(super) answering: Pin<Box<dyn Future<Output = Result<Response, ClientError>> + Send>>,
    ear: mpsc::UnboundedSender<Heard>,
    pub(super) heard: mpsc::UnboundedReceiver<Heard>,
    line: Arc<Line>,
    number: u64,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

/// What of a client's capabilities the real server is told: what it may ask, and what both may know beside the protocol.
fn offered(terms: &Terms) -> Value {
    let keys = ["elicitation", "sampling", "roots", "experimental", "extensions"];
    let declared = keys.iter().filter_map(|key| {
        let declared = terms.capabilities.get(key).filter(|declared| declared.is_object())?;
        // Whoever is asked once has said everything: changes are not passed on.
        let declared = if *key == "roots" { json!({}) } else { declared.clone() };
        Some(((*key).to_owned(), declared))
    });
    Value::Object(declared.collect())
}

impl Line {
    /// A connection that is not made yet, for the client of a conversation.
    pub(super) fn new(standing: Standing, terms: &Terms, tape: Tape) -> Arc<Line> {
        let (conversation, heard) = mpsc::unbounded_channel();
        let ears = Ears { works: Mutex::default(), next: AtomicU64::new(0), conversation };
        let line = Arc::new(Line {
            standing,
            capabilities: offered(terms),
            terms: terms.clone(),
            client: OnceCell::new(),
            tape,
            ears: Arc::new(ears),
            log_from: Mutex::default(),
        });
        tokio::spawn(pass_on(Arc::downgrade(&line), heard));
        line
    }

    /// Whether this is the connection for a client.
    pub(super) fn is_for(&self, standing: &Standing, terms: &Terms) -> bool {
        let same_era = self.terms.era() == terms.era();
        same_era && self.standing.is(standing) && self.capabilities == offered(terms) && !self.is_broken()
    }

    /// Whether a request of one client may come between those of another. A server of the handshake era does not say for
    /// which request it asks something, so whoever can be asked has the connection alone.
    pub(super) fn is_shareable(&self) -> bool {
        let is_asked = ASKED.iter().any(|(capability, _)| self.capabilities.get(capability).is_some());
        let names_requests = self.client().is_some_and(|client| client.revision().era() == Era::Modern);
        !is_asked || names_requests || self.is_idle()
    }

    /// Whether nobody needs it now.
    pub(super) fn is_idle(&self) -> bool {
        self.ears.works().is_empty()
    }

    /// Whether nobody will need it any more.
    pub(super) fn is_over(&self) -> bool {
        self.standing.is_over() || self.is_broken()
    }

    /// Whether the server could not be reached, or is gone.
    fn is_broken(&self) -> bool {
        match self.client.get() {
            Some(Ok(client)) => client.is_over(),
            Some(Err(_)) => true,
            None => false,
        }
    }

    /// Who the server says it is.
    pub(super) fn client(&self) -> Option<&Client> {
        self.client.get()?.as_ref().ok()
    }

    /// A question of the server's for a client; `Err` says why it cannot be asked. Where both speak the same version, as
    /// the server asked it.
    pub(super) fn question(&self, asked: Asked, name: String) -> Result<Question, String> {
        let mut params = asked.params;
        // What is in `_meta` belongs to the other conversation.
        params.as_object_mut().map(|params| params.shift_remove("_meta"));
        let question = Question { name, method: asked.method, params };
        let from = self.client().map(Client::revision);
        if from == Some(self.terms.revision) { Ok(question) } else { question.adapted(&self.terms, from) }
    }

    /// A notification of the server's in the version of the client; `None` where that has no such thing.
    pub(super) fn told(&self, method: &Method, params: Value) -> Option<Value> {
        adapted_notification(method, params, self.client().map(Client::revision), self.terms.revision)
    }

    /// Work that is about to begin: from now on this is not idle.
    pub(super) fn work(self: &Arc<Self>) -> Work {
        let (ear, heard) = mpsc::unbounded_channel();
        let number = self.ears.next.fetch_add(1, Ordering::Relaxed);
        self.ears.works().push(Ear { number, hears: ear.clone(), parked: None });
        let answering = Box::pin(std::future::pending());
        Work { answering, ear, heard, line: Arc::clone(self), number }
    }

    async fn connected(&self, server: Server<'_>) -> Result<&Client, String> {
        let connected = self.client.get_or_init(|| async {
            self.tape.start(server.info.clone());
            let terms = &self.terms;
            if terms.era() == Era::Legacy
                && let Ok(client) = self.prepared((server.builder)().legacy(terms.revision)).connect().await
            {
                return Ok(client);
            }
            // A server that does not speak the client's version may speak another.
            self.prepared((server.builder)()).connect().await.map_err(|error| error.to_string())
        });
        connected.await.as_ref().map_err(Clone::clone)
    }

    fn prepared(&self, builder: ClientBuilder) -> ClientBuilder {
        let (tape, ears) = (self.tape.clone(), Arc::clone(&self.ears));
        let builder = builder.capabilities(self.capabilities.clone()).answers(self.answers());
        builder.on_message(move |from, message| {
            ears.listen(from, message);
            let message = message.clone();
            tape.put([What::Message { from, channel: Channel::MAIN, message, event_id: None }]);
        })
    }

    /// Every question goes to whoever can ask the client.
    fn answers(&self) -> Answers {
        let can = |capability: &str| self.capabilities.get(capability).is_some();
        let askable = ASKED.into_iter().filter(|(capability, _)| can(capability));
        askable.fold(Answers::new(), |answers, (_, method)| {
            let ears = Arc::clone(&self.ears);
            answers.on_later(method, move |asked| {
                let (answer, answered) = oneshot::channel();
                ears.hear(Heard::Asked(asked.clone(), answer));
                async move { answered.await.unwrap_or_else(|_| Err(nobody())) }
            })
        })
    }

    /// Asks for the log messages that the client has asked for.
    async fn want_logs(&self, client: &Client, logs: Logs) {
        let from = match logs {
            Logs::From(from) => from,
            Logs::None | Logs::Any => return,
        };
        let before = self.log_from.lock().unwrap_or_else(PoisonError::into_inner).replace(from);
        let can = client.revision().era() == Era::Modern || client.server_capabilities().get("logging").is_some();
        if before != Some(from) && can {
            // A server that does not want to know says what it likes.
            let _ = client.set_log_level(from.name()).await;
        }
    }

    /// Ends the conversation with the server, and puts it into the trace.
    pub(super) async fn close(&self) -> std::io::Result<()> {
        if let Some(client) = self.client() {
            client.close().await;
        }
        let tape = self.tape.clone();
        let ended = tokio::task::spawn_blocking(move || tape.end(End::ClientClosed { status: None }));
        ended.await.map_err(std::io::Error::other)
    }
}

impl Ears {
    fn works(&self) -> MutexGuard<'_, Vec<Ear>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last request that began, of those whose client is there before those whose client was sent away.
    fn last(&self) -> Option<mpsc::UnboundedSender<Heard>> {
        let mut works = self.works();
        if let Some(ear) = works.iter().rfind(|ear| ear.parked.is_none()) {
            return Some(ear.hears.clone());
        }
        let ear = works.last_mut()?;
        let kept = ear.parked.as_mut().filter(|kept| **kept < KEPT)?;
        *kept += 1;
        Some(ear.hears.clone())
    }

    /// Gives to whoever it belongs to: the request whose round it is, the last that began, or the conversation.
    fn hear(&self, heard: Heard) {
        let whose = EAR.try_with(Clone::clone).ok();
        let ear = whose.or_else(|| self.last());
        let sent = ear.unwrap_or_else(|| self.conversation.clone()).send(heard);
        if let Err(mpsc::error::SendError(heard)) = sent {
            // It ended just now.
            let _ = self.conversation.send(heard);
        }
    }

    /// Takes up what the server says beside any answer. Progress is known by its token.
    fn listen(&self, from: Side, message: &Message) {
        let Some(told) = message.as_notification().filter(|_| from == Side::Server) else { return };
        if told.method == Method::PROGRESS || told.method == Method::CANCELLED {
            return;
        }
        let params = told.params.as_ref().and_then(|params| params.value().ok());
        self.hear(Heard::Told(told.method.clone(), params.unwrap_or_default()));
    }
}

impl Work {
    /// On which connection.
    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    /// Begins to ask the real server.
    pub(super) async fn begin(
        &mut self,
        method: Method,
        params: Value,
        token: Option<Value>,
        logs: Logs,
        server: Server<'_>,
    ) -> Result<(), String> {
        let (line, ear) = (Arc::clone(&self.line), self.ear.clone());
        let client = line.connected(server).await?.clone();
        line.want_logs(&client, logs).await;
        let mut call = client.request(method, params).timeout(PATIENCE);
        if let Some(token) = token {
            let ear = ear.clone();
            call = call.on_told(move |message| {
                let told = message.as_notification().filter(|told| told.method == Method::PROGRESS);
                let params = told.and_then(|told| told.params.as_ref()?.value().ok());
                let Some(mut params) = params.filter(Value::is_object) else { return };
                params[meta::PROGRESS_TOKEN] = token.clone();
                // Whoever asked may have gone.
                let _ = ear.send(Heard::Told(Method::PROGRESS, params));
            });
        }
        self.answering = Box::pin(EAR.scope(ear, call.into_future()));
        Ok(())
    }

    /// Its client was sent away.
    pub(super) fn park(&self) {
        self.set_parked(Some(0));
    }

    /// Its client is back.
    pub(super) fn resume(&self) {
        self.set_parked(None);
    }

    fn set_parked(&self, parked: Option<usize>) {
        if let Some(ear) = self.line.ears.works().iter_mut().find(|ear| ear.number == self.number) {
            ear.parked = parked;
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.line.ears.works().retain(|ear| ear.number != self.number);
        self.heard.close();
        while let Ok(heard) = self.heard.try_recv() {
            let _ = self.line.ears.conversation.send(heard);
        }
    }
}

/// Passes on what is said while nothing works. Since 2026-07-28 a client hears changes alone then, if it listens.
async fn pass_on(line: Weak<Line>, mut heard: mpsc::UnboundedReceiver<Heard>) {
    while let Some(heard) = heard.recv().await {
        let Some(line) = line.upgrade() else { return };
        let is_legacy = line.terms.era() == Era::Legacy;
        match heard {
            Heard::Told(method, params) => {
                if let Some(params) = line.told(&method, params) {
                    line.standing.tell(line.terms.era(), method, &params).await;
                }
            }
            Heard::Asked(asked, answer) => match line.question(asked, "question".to_owned()) {
                Ok(question) if is_legacy => {
                    let standing = line.standing.clone();
                    tokio::spawn(async move {
                        let said = match standing.ask(&question).await {
                            Some(Reply::Result(result)) => Ok(result.value().unwrap_or_default()),
                            Some(Reply::Error(error)) => Err(error),
                            None => Err(nobody()),
                        };
                        // The server may have gone meanwhile.
                        let _ = answer.send(said);
                    });
                }
                Ok(_) => drop(answer.send(Err(nobody()))),
                Err(why) => drop(answer.send(Err(ErrorReply::new(code::INTERNAL_ERROR, why)))),
            },
        }
    }
}

fn nobody() -> ErrorReply {
    ErrorReply::new(code::INTERNAL_ERROR, "nobody is there to be asked")
}
