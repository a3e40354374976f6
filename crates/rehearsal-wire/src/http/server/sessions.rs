//! All connections of a server.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use rehearsal_core::protocol::code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::event_stream::HistoryTotal;
use super::options::HttpServerOptions;
use super::rejection::Rejection;
use super::session;
use super::session::{HttpSession, SessionKind};
use crate::{Connection, ConnectionEnd};

/// All connections of a server.
#[derive(Debug)]
pub(super) struct SessionRegistry {
    /// The options of the server.
    pub(super) options: HttpServerOptions,
    sessions: RwLock<HashMap<String, Arc<HttpSession>>>,
    shared_legacy: RwLock<Option<Arc<HttpSession>>>,
    shared_modern: RwLock<Option<Arc<HttpSession>>>,
    new_connections: mpsc::UnboundedSender<Connection>,
    streams: Arc<Semaphore>,
    /// One permit for each byte of the bodies that are being received.
    pub(super) bodies: Arc<Semaphore>,
    pub(super) history_total: Arc<HistoryTotal>,
}

impl SessionRegistry {
    /// Builds a registry that sends new connections to `new_connections`.
    pub(super) fn new(
        options: HttpServerOptions,
        new_connections: mpsc::UnboundedSender<Connection>,
    ) -> SessionRegistry {
        let streams = Arc::new(Semaphore::new(options.limits.streams.min(Semaphore::MAX_PERMITS)));
        let bodies = options.limits.bodies.max(options.limits.body);
        let bodies = Arc::new(Semaphore::new(bodies.min(Semaphore::MAX_PERMITS)));
        let history_total = Arc::new(HistoryTotal::new(options.limits.history_total));
        let (sessions, shared_legacy, shared_modern) = Default::default();
        SessionRegistry {
            options,
            sessions,
            shared_legacy,
            shared_modern,
            new_connections,
            streams,
            bodies,
            history_total,
        }
    }

    /// Finds a connection by its id.
    pub(super) fn find(&self, id: &str, kind: SessionKind) -> Option<Arc<HttpSession>> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.get(id).filter(|session| session.kind == kind).cloned()
    }

    /// Starts a connection with an id of its own.
    pub(super) fn start(self: &Arc<Self>, kind: SessionKind) -> Result<Arc<HttpSession>, Rejection> {
        let id = random_id()?;
        let (session, events) = HttpSession::new(id.clone(), kind, self);
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= self.options.limits.sessions {
            return Err(Rejection::busy("sessions"));
        }
        sessions.insert(id, session.clone());
        drop(sessions);
        self.offer_connection(session::build_connection(session.clone(), events))?;
        Ok(session)
    }

    /// Returns the connection that all requests without a session share. The first of them starts it.
    pub(super) fn shared(self: &Arc<Self>, kind: SessionKind) -> Result<Arc<HttpSession>, Rejection> {
        let slot = self.slot(kind);
        if let Some(session) = &*slot.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(session.clone());
        }
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*slot {
            return Ok(session.clone());
        }
        let (session, events) = HttpSession::new(String::new(), kind, self);
        *slot = Some(session.clone());
        drop(slot);
        self.offer_connection(session::build_connection(session.clone(), events))?;
        Ok(session)
    }

    fn slot(&self, kind: SessionKind) -> &RwLock<Option<Arc<HttpSession>>> {
        match kind {
            SessionKind::SharedModern => &self.shared_modern,
            SessionKind::SharedLegacy | SessionKind::Session | SessionKind::HttpSse => &self.shared_legacy,
        }
    }

    fn offer_connection(&self, connection: Connection) -> Result<(), Rejection> {
        // If the server no longer accepts connections, this one is dropped and thereby closed.
        self.new_connections.send(connection).map_err(|_| Rejection::closing())
    }

    /// Removes a connection that ended.
    pub(super) fn remove(&self, session: &HttpSession) {
        match session.kind {
            SessionKind::Session | SessionKind::HttpSse => {
                self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(&session.id);
            }
            SessionKind::SharedLegacy | SessionKind::SharedModern => {
                let mut slot = self.slot(session.kind).write().unwrap_or_else(PoisonError::into_inner);
                if slot.as_ref().is_some_and(|current| std::ptr::eq(&**current, session)) {
                    *slot = None;
                }
            }
        }
    }

    /// Ends the sessions that were idle for too long.
    pub(super) fn expire(&self) {
        let limit = self.options.session_idle;
        for session in self.all().into_iter().filter(|session| session.kind == SessionKind::Session) {
            if session.idle() >= limit {
                session.end(ConnectionEnd::Failed { why: format!("no activity for {limit:?}") });
            }
        }
    }

    /// Closes the GET and HTTP+SSE streams, which have no end of their own.
    pub(super) fn drain(&self) {
        self.all().iter().for_each(|session| session.drain());
    }

    /// Ends all connections.
    pub(super) fn end_all(&self) {
        self.all().iter().for_each(|session| session.end(ConnectionEnd::Closed));
    }

    fn all(&self) -> Vec<Arc<HttpSession>> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let shared = [&self.shared_legacy, &self.shared_modern];
        let shared = shared.into_iter().filter_map(|slot| slot.read().unwrap_or_else(PoisonError::into_inner).clone());
        sessions.values().cloned().chain(shared).collect()
    }

    /// Reserves one of the active requests; fails at the limit.
    pub(super) fn reserve_stream(&self) -> Result<OwnedSemaphorePermit, Rejection> {
        self.streams.clone().try_acquire_owned().map_err(|_| Rejection::busy("open streams"))
    }
}

/// Builds an unguessable id of visible ASCII characters.
fn random_id() -> Result<String, Rejection> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("no randomness for a session id: {error}");
        Rejection::new(http::StatusCode::INTERNAL_SERVER_ERROR, code::INTERNAL_ERROR, message)
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
