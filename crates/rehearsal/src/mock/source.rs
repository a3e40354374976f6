//! Who answers.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use rehearsal_core::answer::{Answer, Asked, Begun, Change, Memory, Mock, Question, RecordedPlay, State, Terms, World};
use rehearsal_core::exchange::Channel;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::Era;
use rehearsal_core::script::mock::LogLevel;
use serde_json::Value;

use super::call::Call;
use super::news::News;
use super::session::Session;
use super::tasks::Said;

/// What a server answers from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Files that somebody wrote.
    Mock(Arc<Mock>),
    /// Something else.
    Other(Arc<dyn Answers>),
}

/// Something that can begin to answer every request.
pub(crate) trait Answers: Debug + Send + Sync {
    /// The terms of a request, or why it cannot be answered in any version.
    fn terms(&self, method: &Method, params: &Value, memory: &Memory) -> Result<Terms, ErrorReply>;

    /// Begins to answer a request, in any version.
    fn begin(&self, asked: Asked, memory: &mut Memory, world: &World<'_>) -> Begun;

    /// A request was refused before it could begin.
    fn refused(&self, method: &Method, params: Option<&RawJson>, error: &ErrorReply);

    /// What was [played](Begun::Plays) from a recording is answered like this now.
    fn answered(&self, play: &RecordedPlay, answer: &Answer);

    /// A conversation is over: what is remembered of it can be forgotten.
    fn ended(&self, conversation: u64);

    /// Who is asked about what is [unknown](Begun::Unknown).
    fn forwards(&self) -> Option<Arc<dyn Forwards>>;
}

/// Somebody who knows what nobody here knows: the real server.
pub(crate) trait Forwards: Debug + Send + Sync {
    /// Asks.
    fn forward<'a>(&'a self, live: Live<'a>) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;
}

/// A request in hand that somebody else answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live<'a> {
    pub(super) call: &'a Call,
    pub(super) asked: &'a Asked,
}

impl Live<'_> {
    /// What is asked for, in which version.
    pub(crate) fn asked(&self) -> &Asked {
        self.asked
    }

    /// Tells the client something that the server says meanwhile, if it wants to hear it.
    pub(crate) async fn tell(&self, method: Method, params: &Value) {
        let terms = &self.asked.terms;
        if method == Method::LOG_MESSAGE {
            if !terms.logs.include(LogLevel::of(params)) {
                return;
            }
        } else if terms.era() == Era::Modern && method != Method::PROGRESS {
            self.call.session.tell_listeners(&method, params);
            return;
        }
        self.call.notify(method, params).await;
    }

    /// Asks the client by requests of our own, which the handshake era has; `None` where nobody wants an answer any more.
    pub(crate) async fn ask(&self, questions: &[Question]) -> Option<Vec<Said>> {
        self.call.ask(questions, None).await.ok()
    }

    /// Whether other clients may be in the same conversation, as all those of stateless HTTP are.
    pub(crate) fn is_shared(&self) -> bool {
        self.asked.terms.era() == Era::Modern && self.call.channel != Channel::MAIN
    }

    /// The conversation that the request belongs to.
    pub(crate) fn standing(&self) -> Standing {
        Standing(Arc::downgrade(&self.call.session))
    }
}

impl Session {
    /// Since 2026-07-28 changes are told to those who listen, and nothing else is.
    fn tell_listeners(&self, method: &Method, params: &Value) {
        if let Some(change) = Change::told(method, params) {
            self.server.news.tell(News::Changed(change));
        }
    }
}

/// A conversation in which something may be said beside any request.
#[derive(Clone, Debug)]
pub(crate) struct Standing(Weak<Session>);

impl Standing {
    /// Whether the two are one.
    pub(crate) fn is(&self, other: &Standing) -> bool {
        Weak::ptr_eq(&self.0, &other.0)
    }

    /// Whether nobody is there any more.
    pub(crate) fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Tells the client something beside any request.
    pub(crate) async fn tell(&self, era: Era, method: Method, params: &Value) {
        let Some(session) = self.0.upgrade() else { return };
        match era {
            Era::Legacy => session.notify(Channel::MAIN, method, params).await,
            Era::Modern => session.tell_listeners(&method, params),
        }
    }

    /// Asks the client; `None` where the conversation came to an end.
    pub(crate) async fn ask(&self, question: &Question) -> Option<Reply> {
        let session = self.0.upgrade()?;
        let asked = session.question();
        session.send(Channel::MAIN, question.request(asked.id, None)).await;
        tokio::select! {
            biased;
            reply = asked.reply => reply.ok(),
            () = session.closing() => None,
        }
    }
}

impl Source {
    /// The terms of a request, or why it cannot be answered in any version.
    pub(super) fn terms(&self, method: &Method, params: &Value, memory: &Memory) -> Result<Terms, ErrorReply> {
        match self {
            Source::Mock(mock) => Terms::of(method, params, memory, mock.revisions()),
            Source::Other(other) => other.terms(method, params, memory),
        }
    }

    /// Whether answers depend on HTTP headers.
    pub(super) fn reads_headers(&self) -> bool {
        match self {
            Source::Mock(mock) => mock.reads_headers(),
            Source::Other(_) => false,
        }
    }

    /// Begins to answer a request.
    pub(super) fn begin(&self, asked: Asked, memory: &mut Memory, state: &mut State, world: &World<'_>) -> Begun {
        match self {
            Source::Mock(mock) => mock.begin(asked, memory, state, world),
            Source::Other(other) => other.begin(asked, memory, world),
        }
    }

    /// A request was refused before it could begin.
    pub(super) fn refused(&self, method: &Method, params: Option<&RawJson>, error: &ErrorReply) {
        match self {
            Source::Mock(_) => {}
            Source::Other(other) => other.refused(method, params, error),
        }
    }

    /// What was played from a recording is answered like this now.
    pub(super) fn answered(&self, play: &RecordedPlay, answer: &Answer) {
        match self {
            Source::Mock(_) => {}
            Source::Other(other) => other.answered(play, answer),
        }
    }

    /// A conversation is over.
    pub(super) fn ended(&self, conversation: u64) {
        match self {
            Source::Mock(_) => {}
            Source::Other(other) => other.ended(conversation),
        }
    }

    /// Who is asked about what is unknown.
    pub(super) fn forwards(&self) -> Option<Arc<dyn Forwards>> {
        match self {
            Source::Mock(_) => None,
            Source::Other(other) => other.forwards(),
        }
    }
}
