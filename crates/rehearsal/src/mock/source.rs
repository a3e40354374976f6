//! Who answers.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rehearsal_core::answer::{Answer, Asked, Begun, Memory, Mock, State, World};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::Method;
use rehearsal_core::protocol::Revision;
use serde_json::Value;

use super::call::Call;

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
    /// Begins to answer a request, in any version.
    fn begin(&self, asked: Asked, memory: &mut Memory, world: &World<'_>) -> Begun;

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

    /// What is asked for.
    pub(crate) fn method(&self) -> &Method {
        &self.call.method
    }

    /// With what.
    pub(crate) fn params(&self) -> Option<&RawJson> {
        self.call.params.as_ref()
    }

    /// Tells the client something that belongs to the request.
    pub(crate) async fn notify(&self, method: Method, params: &Value) {
        self.call.notify(method, params).await;
    }
}

impl Source {
    /// The versions that are served.
    pub(super) fn revisions(&self) -> &[Revision] {
        match self {
            Source::Mock(mock) => mock.revisions(),
            Source::Other(_) => &Revision::ALL,
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

    /// Who is asked about what is unknown.
    pub(super) fn forwards(&self) -> Option<Arc<dyn Forwards>> {
        match self {
            Source::Mock(_) => None,
            Source::Other(other) => other.forwards(),
        }
    }
}
