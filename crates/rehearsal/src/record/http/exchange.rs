//! One request, its response, and what they say.

use std::sync::Arc;

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{Body as Said, Message, Method};
use rehearsal_core::protocol::{Revision, header as names, meta};
use rehearsal_core::trace::{End, HttpHead, What};
use rehearsal_wire::http::proxy::{Forward, Over, Sight, Watcher};

use super::body::{Body, Place, header};
use super::sessions::{Session, Sessions, Transport};

/// How long we wait for a body to say which session it belongs to.
const UNDECIDED_LIMIT: usize = 60 * 1024;

/// One request and its response.
pub(super) struct Exchange {
    sessions: Arc<Sessions>,
    socket: u64,
    limit: usize,
    state: State,
    /// What was seen and is not on the tape yet.
    whats: Vec<What>,
    request: Option<Body>,
    response: Option<Body>,
    /// What could not be read of it.
    unread: Option<String>,
}

enum State {
    /// The body says which session.
    Undecided(HttpHead),
    Decided {
        session: Arc<Session>,
        channel: Channel,
        role: Role,
    },
    Over,
}

/// What a request means to its session.
enum Role {
    Plain,
    /// It begins the session, if the server wants that.
    Handshake,
    /// It ends the session, if the server wants that.
    Delete,
    /// It is the stream of HTTP+SSE, asked for at this target.
    Stream(String),
}

impl Exchange {
    pub(super) fn new(sessions: Arc<Sessions>, socket: u64, limit: usize, head: HttpHead) -> Exchange {
        let request = Some(Body::new(&head.headers, limit));
        let mut exchange = Exchange {
            state: State::Undecided(head.clone()),
            sessions,
            socket,
            limit,
            whats: Vec::new(),
            request,
            response: None,
            unread: None,
        };
        if let Some((session, role)) = exchange.by_head(&head) {
            exchange.decide(session, role);
        }
        exchange
    }

    /// The session, where the head says it.
    fn by_head(&self, head: &HttpHead) -> Option<(Arc<Session>, Role)> {
        let sessions = &self.sessions;
        let value = |name: &str| header(&head.headers, name);
        let method = head.method.as_deref().unwrap_or_default();
        let target = head.target.as_deref().unwrap_or_default();
        if value(names::PROTOCOL_VERSION).is_some_and(is_stateless) {
            return Some((sessions.run(), Role::Plain));
        }
        if let Some(id) = value(names::SESSION_ID) {
            return Some((sessions.named(id), if method == "DELETE" { Role::Delete } else { Role::Plain }));
        }
        let accepts_events = || value("accept").is_some_and(|accept| accept.contains("text/event-stream"));
        match method {
            "POST" => match sessions.posted_to(target) {
                Some(session) => Some((session, Role::Plain)),
                // Whoever waits to be told to go on must not wait for us.
                None if value("expect").is_some() => Some((self.otherwise(), Role::Plain)),
                None => None,
            },
            "GET" if accepts_events() => Some(match sessions.unnamed(self.socket) {
                Some(session) => (session, Role::Plain),
                None => (sessions.begin(Transport::TwoEndpoints), Role::Stream(target.to_owned())),
            }),
            _ => Some((self.otherwise(), Role::Plain)),
        }
    }

    /// The session, as the message says it.
    fn by_message(&self, message: &Message) -> (Arc<Session>, Role) {
        if any(message, &is_claim) {
            (self.sessions.run(), Role::Plain)
        } else if any(message, &|message| {
            message.as_request().is_some() && message.method() == Some(&Method::INITIALIZE)
        }) {
            (self.sessions.begin(Transport::Streamable), Role::Handshake)
        } else {
            (self.otherwise(), Role::Plain)
        }
    }

    fn otherwise(&self) -> Arc<Session> {
        self.sessions.unnamed(self.socket).unwrap_or_else(|| self.sessions.run())
    }

    fn decide(&mut self, session: Arc<Session>, role: Role) {
        let channel = session.channel();
        let decided = State::Decided { session, channel, role };
        if let State::Undecided(head) = std::mem::replace(&mut self.state, decided) {
            self.whats.push(What::Http { from: Side::Client, channel, head });
        }
    }

    /// The channel; a request that nothing more is known about gets its session now.
    fn channel(&mut self) -> Channel {
        match &self.state {
            State::Decided { channel, .. } => return *channel,
            State::Undecided(_) | State::Over => {}
        }
        let said = self.request.as_ref().map(Body::so_far).unwrap_or_default();
        let (session, role) = self.by_message(&Message::parse(said));
        self.decide(session, role);
        match &self.state {
            State::Decided { channel, .. } => *channel,
            State::Undecided(_) | State::Over => Channel::MAIN,
        }
    }

    fn request_ended(&mut self, is_whole: bool) {
        let place = Place { from: Side::Client, channel: self.channel() };
        if let Some(body) = self.request.take() {
            self.unread = body.end(is_whole, place, &mut self.whats).or(self.unread.take());
        }
    }

    fn response_begins(&mut self, head: HttpHead) {
        let channel = self.channel();
        let status = head.status.unwrap_or_default();
        if let State::Decided { session, role, .. } = &mut self.state
            && status >= 200
        {
            let accepted = (200..300).contains(&status);
            match role {
                Role::Handshake if accepted => match header(&head.headers, names::SESSION_ID) {
                    Some(id) => self.sessions.name(session, id),
                    None => self.sessions.leave_unnamed(session, self.socket),
                },
                // Somebody tried, and that was all.
                Role::Handshake => session.ends(End::ClientClosed { status: None }),
                Role::Delete if accepted => session.ends(End::ClientClosed { status: None }),
                Role::Delete | Role::Stream(_) | Role::Plain => {}
            }
        }
        if status >= 200 {
            self.response = Some(Body::new(&head.headers, self.limit));
        }
        self.whats.push(What::Http { from: Side::Server, channel, head });
    }

    fn response_says(&mut self, data: &[u8]) {
        let place = Place { from: Side::Server, channel: self.channel() };
        let before = self.whats.len();
        if let Some(body) = &mut self.response {
            body.push(data, place, &mut self.whats);
        }
        if let State::Decided { session, role: Role::Stream(target), .. } = &self.state {
            for what in &self.whats[before..] {
                if let What::Event { name: Some(name), data, .. } = what
                    && name == "endpoint"
                {
                    self.sessions.endpoint(session, target, data);
                }
            }
        }
    }

    fn response_ended(&mut self, is_whole: bool) {
        let place = Place { from: Side::Server, channel: self.channel() };
        if let Some(body) = self.response.take() {
            self.unread = body.end(is_whole, place, &mut self.whats).or(self.unread.take());
        }
    }

    fn over(&mut self, over: Over) {
        self.request_ended(false);
        self.response_ended(false);
        let (why, end) = match over {
            Over::Done => (None, End::ServerExited { status: None, signal: None }),
            Over::ClientGone => (Some("the client went away".to_owned()), End::ClientClosed { status: None }),
            Over::UpstreamGone(why) => (Some(why), End::ServerExited { status: None, signal: None }),
            Over::Refused(why) => (Some(format!("refused: {why}")), End::ClientClosed { status: None }),
            Over::Upgraded => (Some("both sides went on in another protocol".to_owned()), End::Stopped),
            Over::Stopped => (Some("the recorder was stopped".to_owned()), End::Stopped),
        };
        let channel = self.channel();
        self.whats.push(What::ChannelEnded { channel, why: why.or(self.unread.take()) });
        self.put();
        if let State::Decided { session, role, .. } = std::mem::replace(&mut self.state, State::Over) {
            if let Role::Stream(_) = role {
                session.ends(end);
            }
            self.sessions.leave(&session);
        }
    }

    fn put(&mut self) {
        if let State::Decided { session, .. } = &self.state
            && !self.whats.is_empty()
        {
            session.tape.put(self.whats.drain(..));
        }
    }
}

impl Watcher for Exchange {
    fn saw(&mut self, sight: Sight<'_>) {
        match sight {
            Sight::RequestData(data) => {
                let channel = match &self.state {
                    State::Decided { channel, .. } => *channel,
                    State::Undecided(_) | State::Over => Channel::MAIN,
                };
                if let Some(body) = &mut self.request {
                    body.push(data, Place { from: Side::Client, channel }, &mut self.whats);
                }
            }
            Sight::RequestEnd => self.request_ended(true),
            Sight::Response(head) => self.response_begins(head),
            Sight::ResponseData(data) => self.response_says(data),
            Sight::ResponseEnd => self.response_ended(true),
            Sight::Over(over) => self.over(over),
        }
    }

    fn forwarding(&mut self) -> Forward {
        if let State::Undecided(_) = self.state {
            if self.request.as_ref().map_or(0, Body::len) < UNDECIDED_LIMIT {
                return Forward::Wait;
            }
            self.channel();
        }
        self.put();
        Forward::Now
    }
}

/// Whether a version is one without sessions; versions are dates.
fn is_stateless(version: &str) -> bool {
    version.len() == Revision::V2026_07_28.as_str().len() && version >= Revision::V2026_07_28.as_str()
}

fn is_claim(message: &Message) -> bool {
    let version = message.params().and_then(|params| params.at(&["_meta", meta::PROTOCOL_VERSION]));
    version.and_then(|version| version.text()).is_some_and(|version| is_stateless(&version))
}

/// Whether the message, or one of a batch, is like this.
fn any(message: &Message, like: &dyn Fn(&Message) -> bool) -> bool {
    match message.body() {
        Said::Batch(messages) => messages.iter().any(like),
        Said::Request(_) | Said::Notification(_) | Said::Response(_) | Said::Garbled(_) => like(message),
    }
}
