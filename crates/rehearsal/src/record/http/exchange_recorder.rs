//! Records one HTTP exchange: its request and its response.

use std::sync::Arc;

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{Body, Message, Method};
use rehearsal_core::protocol::{Revision, header as names, meta};
use rehearsal_core::trace::{EntryBody, HttpHead, SessionEnd};
use rehearsal_wire::http::proxy::{ExchangeEnd, ExchangeObserver, Forward, Observed};

use super::body::{BodyOrigin, BodyReader};
use super::sessions::{ActiveSession, Sessions, Transport};
use crate::record::session_recorder::RecordedInput;

/// At most this many bytes of a body are buffered until its session is known.
const SESSION_LOOKUP_LIMIT: usize = 60 * 1024;

/// Records one request and its response.
pub(super) struct ExchangeRecorder {
    sessions: Arc<Sessions>,
    socket: u64,
    limit: usize,
    state: State,
    /// Inputs that were not passed to the session recorder yet.
    inputs: Vec<RecordedInput<'static>>,
    /// The entries of the body that were not recorded yet.
    entries: Vec<EntryBody>,
    request: Option<BodyReader>,
    response: Option<BodyReader>,
    /// Whether the status is 202: there is no message, and many servers send the text `Accepted`.
    accepted: bool,
    /// Why the body could not be read.
    unread: Option<String>,
}

enum State {
    /// The body decides the session.
    Undecided(HttpHead),
    Decided {
        session: Arc<ActiveSession>,
        channel: Channel,
        role: Role,
    },
    Over,
}

/// What a request means to its session.
enum Role {
    Plain,
    /// The request starts the session, if the server accepts it.
    Handshake,
    /// The request ends the session, if the server accepts it.
    Delete,
    /// The request opens the stream of HTTP+SSE, at this target.
    Stream(String),
}

impl ExchangeRecorder {
    pub(super) fn new(sessions: Arc<Sessions>, socket: u64, limit: usize, head: HttpHead) -> ExchangeRecorder {
        let request = Some(BodyReader::new(&head.headers, limit));
        // Most exchanges have a head, a message and an end at once.
        let inputs = Vec::with_capacity(4);
        let mut exchange = ExchangeRecorder {
            sessions,
            socket,
            limit,
            state: State::Over,
            inputs,
            entries: Vec::new(),
            request,
            response: None,
            accepted: false,
            unread: None,
        };
        let decided = exchange.by_head(&head);
        exchange.state = State::Undecided(head);
        if let Some((session, role)) = decided {
            exchange.decide(session, role);
        }
        exchange
    }

    /// The session, if the head decides it.
    fn by_head(&self, head: &HttpHead) -> Option<(Arc<ActiveSession>, Role)> {
        let sessions = &self.sessions;
        let value = |name: &str| head.headers.get(name);
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
                // A client that waits for `100 Continue` must not wait for the recorder.
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

    /// The session, decided by the message.
    fn by_message(&self, message: &Message) -> (Arc<ActiveSession>, Role) {
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

    fn otherwise(&self) -> Arc<ActiveSession> {
        self.sessions.unnamed(self.socket).unwrap_or_else(|| self.sessions.run())
    }

    fn decide(&mut self, session: Arc<ActiveSession>, role: Role) {
        let channel = session.channel();
        let decided = State::Decided { session, channel, role };
        if let State::Undecided(head) = std::mem::replace(&mut self.state, decided) {
            self.inputs.push(RecordedInput::Entry(EntryBody::Http { from: Side::Client, channel, head }));
        }
    }

    /// Appends what the bodies contained to the entries.
    fn pass_on(&mut self) {
        self.inputs.extend(self.entries.drain(..).map(RecordedInput::Entry));
    }

    /// Records the end of a body. A whole body that is one message without secrets is kept verbatim.
    fn body_ended(&mut self, body: Option<BodyReader>, is_whole: bool, from: Side) {
        let channel = self.channel();
        let Some(mut body) = body else { return };
        let redaction = match &self.state {
            State::Decided { session, .. } if is_whole && !self.accepted => session.recorder.line_redaction(),
            State::Decided { .. } | State::Undecided(_) | State::Over => None,
        };
        match redaction.and_then(|redaction| body.line(redaction)) {
            Some(line) => self.inputs.push(RecordedInput::Lines { from, channel, bytes: line.into() }),
            None => {
                let unread = body.end(is_whole, BodyOrigin { from, channel }, &mut self.entries);
                self.unread = unread.or(self.unread.take());
            }
        }
    }

    /// The channel. If the session is not decided yet, it is decided now from what has arrived.
    fn channel(&mut self) -> Channel {
        match &self.state {
            State::Decided { channel, .. } => return *channel,
            State::Undecided(_) | State::Over => {}
        }
        let body = self.request.as_ref().map(BodyReader::so_far).unwrap_or_default();
        let (session, role) = self.by_message(&Message::parse(body));
        self.decide(session, role);
        match &self.state {
            State::Decided { channel, .. } => *channel,
            State::Undecided(_) | State::Over => Channel::MAIN,
        }
    }

    fn request_ended(&mut self, is_whole: bool) {
        // If the body decides the session, it must still be there.
        self.channel();
        let body = self.request.take();
        self.body_ended(body, is_whole, Side::Client);
        self.pass_on();
    }

    fn response_begins(&mut self, head: HttpHead) {
        let channel = self.channel();
        let status = head.status.unwrap_or_default();
        if let State::Decided { session, role, .. } = &mut self.state
            && status >= 200
        {
            let accepted = (200..300).contains(&status);
            match role {
                Role::Handshake if accepted => match head.headers.get(names::SESSION_ID) {
                    Some(id) => self.sessions.name(session, id),
                    None => self.sessions.add_unnamed(session, self.socket),
                },
                // A refused handshake ends its session.
                Role::Handshake => session.ends(SessionEnd::ClientClosed { status: None }),
                Role::Delete if accepted => session.ends(SessionEnd::ClientClosed { status: None }),
                Role::Delete | Role::Stream(_) | Role::Plain => {}
            }
        }
        if status >= 200 {
            self.response = Some(BodyReader::new(&head.headers, self.limit));
            self.accepted = status == 202;
        }
        self.inputs.push(RecordedInput::Entry(EntryBody::Http { from: Side::Server, channel, head }));
    }

    fn response_data(&mut self, data: &[u8]) {
        let place = BodyOrigin { from: Side::Server, channel: self.channel() };
        if let Some(body) = &mut self.response {
            body.push(data, place, &mut self.entries);
        }
        if let State::Decided { session, role: Role::Stream(target), .. } = &self.state {
            for what in &self.entries {
                if let EntryBody::Event { name: Some(name), data, .. } = what
                    && name == "endpoint"
                {
                    self.sessions.endpoint(session, target, data);
                }
            }
        }
        self.pass_on();
    }

    fn response_ended(&mut self, is_whole: bool) {
        let body = self.response.take();
        self.body_ended(body, is_whole, Side::Server);
        let is_garbled =
            |what: &EntryBody| matches!(what, EntryBody::Message { message, .. } if message.as_garbled().is_some());
        if self.accepted && self.entries.iter().all(is_garbled) {
            self.entries.clear();
        }
        self.pass_on();
    }

    fn over(&mut self, over: ExchangeEnd) {
        self.request_ended(false);
        self.response_ended(false);
        let (why, end) = match over {
            ExchangeEnd::Done => (None, SessionEnd::ServerExited { status: None, signal: None }),
            ExchangeEnd::ClientClosed => {
                (Some("the client disconnected".to_owned()), SessionEnd::ClientClosed { status: None })
            }
            ExchangeEnd::UpstreamFailed(why) => (Some(why), SessionEnd::ServerExited { status: None, signal: None }),
            ExchangeEnd::Refused(why) => (Some(format!("refused: {why}")), SessionEnd::ClientClosed { status: None }),
            ExchangeEnd::Upgraded => {
                (Some("the connection was upgraded to another protocol".to_owned()), SessionEnd::Stopped)
            }
            ExchangeEnd::Stopped => (Some("the recorder was stopped".to_owned()), SessionEnd::Stopped),
        };
        let channel = self.channel();
        self.inputs.push(RecordedInput::Entry(EntryBody::ChannelEnded { channel, why: why.or(self.unread.take()) }));
        self.put();
        if let State::Decided { session, role, .. } = std::mem::replace(&mut self.state, State::Over) {
            if let Role::Stream(_) = role {
                session.ends(end);
            }
            self.sessions.leave(&session);
        }
    }

    /// Adds the parts of partial messages that are about to be forwarded.
    fn keep_pieces(&mut self) {
        let State::Decided { session, channel, .. } = &self.state else { return };
        for (from, body) in [(Side::Client, &mut self.request), (Side::Server, &mut self.response)] {
            if let Some((offset, bytes)) = body.as_mut().and_then(|body| body.piece(session.recorder.pieces())) {
                self.inputs.push(RecordedInput::Entry(EntryBody::Piece { from, channel: *channel, offset, bytes }));
            }
        }
    }

    fn put(&mut self) {
        if let State::Decided { session, .. } = &self.state
            && !self.inputs.is_empty()
        {
            session.recorder.record_lines(self.inputs.drain(..));
        }
    }
}

impl ExchangeObserver for ExchangeRecorder {
    fn observe(&mut self, sight: Observed<'_>) {
        match sight {
            Observed::RequestData(data) => {
                let channel = match &self.state {
                    State::Decided { channel, .. } => *channel,
                    State::Undecided(_) | State::Over => Channel::MAIN,
                };
                if let Some(body) = &mut self.request {
                    body.push(data, BodyOrigin { from: Side::Client, channel }, &mut self.entries);
                }
                self.pass_on();
            }
            Observed::RequestEnd => self.request_ended(true),
            Observed::Response(head) => self.response_begins(head),
            Observed::ResponseData(data) => self.response_data(data),
            Observed::ResponseEnd => self.response_ended(true),
            Observed::Over(over) => self.over(over),
        }
    }

    fn forwarding(&mut self) -> Forward {
        if let State::Undecided(_) = self.state {
            if self.request.as_ref().map_or(0, BodyReader::len) < SESSION_LOOKUP_LIMIT {
                return Forward::Wait;
            }
            self.channel();
        }
        self.keep_pieces();
        self.put();
        Forward::Now
    }

    fn hold_expired(&mut self) {
        // The session must be decided from the part that has arrived.
        self.channel();
        self.keep_pieces();
        self.put();
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
        Body::Batch(messages) => messages.iter().any(like),
        Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => like(message),
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_core::trace::{JournalLine, JournalReader};

    use super::*;
    use crate::record::Recorder;

    type Headers<'a> = &'a [(&'a str, &'a str)];

    /// A recorder with a log, and exchanges through it.
    struct Fixture {
        directory: tempfile::TempDir,
        sessions: Arc<Sessions>,
    }

    impl Fixture {
        fn new() -> Fixture {
            let directory = tempfile::tempdir().unwrap();
            let recorder = Recorder::builder().log(directory.path().join("log")).build();
            let url = "http://mcp.example/mcp".parse().unwrap();
            Fixture { directory, sessions: Arc::new(Sessions::new(recorder, url)) }
        }

        fn begin(&self, socket: u64, line: &str, headers: Headers) -> ExchangeRecorder {
            let (method, target) = line.split_once(' ').unwrap();
            let head = HttpHead {
                method: Some(method.to_owned()),
                target: Some(target.to_owned()),
                status: None,
                headers: owned(headers),
            };
            ExchangeRecorder::new(self.sessions.clone(), socket, 1 << 20, head)
        }

        /// A whole request.
        fn request(&self, socket: u64, line: &str, headers: Headers, body: &str) -> ExchangeRecorder {
            let mut exchange = self.begin(socket, line, headers);
            exchange.observe(Observed::RequestData(body.as_bytes()));
            exchange.observe(Observed::RequestEnd);
            assert_eq!(exchange.forwarding(), Forward::Now);
            exchange
        }

        /// A whole request that is answered and over.
        fn exchange(&self, socket: u64, line: &str, headers: Headers, body: &str) {
            self.request(socket, line, headers, body).answered(202, &[], "");
        }

        /// The methods that were used in each session, in the order in which the sessions began, and which of them ended.
        fn recorded(&self) -> Vec<String> {
            let log = std::fs::read(self.directory.path().join("log")).unwrap();
            let mut recorded: Vec<(String, String)> = Vec::new();
            for line in JournalReader::new(log.as_slice()) {
                match line.unwrap() {
                    JournalLine::Start(start) => recorded.push((start.session_id, String::new())),
                    JournalLine::Entry { session_id, entry } => {
                        let session = recorded.iter_mut().find(|(id, _)| Some(id) == session_id.as_ref()).unwrap();
                        match entry.what {
                            EntryBody::Message { message, .. } => {
                                session.1.push_str(message.method().map_or("answer", Method::as_str));
                                session.1.push(' ');
                            }
                            EntryBody::Ended(_) => session.1.push_str("ended"),
                            _ => {}
                        }
                    }
                }
            }
            recorded.into_iter().map(|(_, methods)| methods.trim_end().to_owned()).collect()
        }
    }

    impl ExchangeRecorder {
        fn answered(mut self, status: u16, headers: Headers, body: &str) {
            self.observe(Observed::Response(HttpHead {
                method: None,
                target: None,
                status: Some(status),
                headers: owned(headers),
            }));
            self.observe(Observed::ResponseData(body.as_bytes()));
            self.observe(Observed::ResponseEnd);
            self.observe(Observed::Over(ExchangeEnd::Done));
            self.forwarding();
        }
    }

    fn owned(headers: Headers) -> rehearsal_core::trace::Headers {
        headers.iter().copied().collect()
    }

    fn request(method: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)
    }

    #[test]
    fn the_word_of_a_server_that_accepts_is_no_message() {
        let fixture = Fixture::new();
        let named: Headers = &[("Mcp-Session-Id", "x")];
        fixture.request(1, "POST /mcp", named, &request("first")).answered(202, &[], "Accepted");
        fixture.request(1, "POST /mcp", named, &request("second")).answered(
            202,
            &[],
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        );
        fixture.request(1, "POST /mcp", named, &request("third")).answered(400, &[], "no");
        assert_eq!(fixture.recorded(), ["first second answer third answer"]);
    }

    const EVENTS: Headers<'static> = &[("Content-Type", "text/event-stream")];

    #[test]
    fn a_session_has_the_server_id_and_ends_after_delete() {
        let fixture = Fixture::new();
        for name in ["one", "two"] {
            fixture.request(1, "POST /mcp", &[], &request("initialize")).answered(200, &[("mcp-session-id", name)], "");
        }
        fixture.exchange(2, "POST /mcp", &[("Mcp-Session-Id", "one")], &request("first"));
        fixture.exchange(2, "POST /mcp", &[("Mcp-Session-Id", "two")], &request("second"));
        let stream = fixture.request(3, "GET /mcp", &[("Mcp-Session-Id", "one"), ("Accept", "text/event-stream")], "");
        fixture.exchange(2, "DELETE /mcp", &[("Mcp-Session-Id", "one")], "");
        fixture.request(2, "DELETE /mcp", &[("Mcp-Session-Id", "two")], "").answered(405, &[], "");
        assert_eq!(
            fixture.recorded(),
            ["initialize first", "initialize second"],
            "a stream of the first is still open"
        );
        stream.answered(200, EVENTS, "");
        fixture.sessions.finish(&SessionEnd::Stopped);
        assert_eq!(fixture.recorded(), ["initialize first ended", "initialize second ended"]);
    }

    #[test]
    fn an_unknown_session_id_starts_a_session_with_its_first_request() {
        let fixture = Fixture::new();
        fixture.exchange(1, "POST /mcp", &[("Mcp-Session-Id", "old")], &request("first"));
        fixture.exchange(2, "POST /mcp", &[("Mcp-Session-Id", "old")], &request("second"));
        assert_eq!(fixture.recorded(), ["first second"]);
    }

    #[test]
    fn handshakes_without_a_session_id_are_distinguished_by_their_sockets() {
        let fixture = Fixture::new();
        for socket in [1, 2] {
            fixture.request(socket, "POST /mcp", &[], &request("initialize")).answered(200, &[], "");
        }
        fixture.exchange(1, "POST /mcp", &[], &request("first"));
        fixture.exchange(2, "POST /mcp", &[], &request("second"));
        fixture.exchange(3, "POST /mcp", &[], &request("last"));
        fixture.exchange(1, "GET /mcp", &[("Accept", "text/event-stream")], "");
        assert_eq!(fixture.recorded(), ["initialize first", "initialize second last"]);
    }

    #[test]
    fn a_refused_handshake_ends_its_session() {
        let fixture = Fixture::new();
        fixture.request(1, "POST /mcp", &[], &request("initialize")).answered(404, &[], "");
        fixture.exchange(1, "POST /mcp", &[], &request("next"));
        fixture.sessions.finish(&SessionEnd::Stopped);
        assert_eq!(fixture.recorded(), ["initialize ended", "next ended"]);
    }

    #[test]
    fn without_sessions_there_is_one_for_the_whole_run() {
        let fixture = Fixture::new();
        let claim = r#"{"jsonrpc":"2.0","id":1,"method":"claimed","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        fixture.exchange(
            1,
            "POST /mcp",
            &[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Session-Id", "x")],
            &request("a"),
        );
        fixture.exchange(2, "POST /mcp", &[], claim);
        fixture.exchange(3, "GET /.well-known/oauth-protected-resource", &[], "");
        fixture.exchange(4, "POST /mcp", &[], "not JSON");
        assert_eq!(fixture.recorded(), ["a claimed answer"]);
    }

    #[test]
    fn a_post_to_an_endpoint_belongs_to_its_stream() {
        let fixture = Fixture::new();
        let accept: Headers = &[("accept", "text/event-stream")];
        let mut streams = Vec::new();
        for (socket, endpoint) in [(1, "messages?s=1"), (2, "http://mcp.example/api/messages?s=2")] {
            let mut stream = fixture.request(socket, "GET /api/sse", accept, "");
            let head = HttpHead { method: None, target: None, status: Some(200), headers: owned(EVENTS) };
            stream.observe(Observed::Response(head));
            stream.observe(Observed::ResponseData(format!("event: endpoint\ndata: {endpoint}\n\n").as_bytes()));
            stream.forwarding();
            streams.push(stream);
        }
        fixture.exchange(3, "POST /api/messages?s=2", &[], &request("second"));
        fixture.exchange(3, "POST /api/messages?s=1", &[], &request("first"));
        let late = fixture.request(3, "POST /api/messages?s=1", &[], &request("late"));
        for mut stream in streams {
            stream.observe(Observed::ResponseData(b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"));
            stream.observe(Observed::Over(ExchangeEnd::ClientClosed));
        }
        late.answered(202, &[], "");
        fixture.sessions.finish(&SessionEnd::Stopped);
        assert_eq!(fixture.recorded(), ["first late answer ended", "second answer ended"]);
    }

    #[test]
    fn a_request_waits_for_its_session_until_the_limit() {
        let fixture = Fixture::new();
        let mut initialize = fixture.begin(1, "POST /mcp", &[]);
        assert_eq!(initialize.forwarding(), Forward::Wait);
        initialize.observe(Observed::RequestData(b"{"));
        assert_eq!(initialize.forwarding(), Forward::Wait);
        initialize.observe(Observed::RequestData(&[b' '; SESSION_LOOKUP_LIMIT]));
        assert_eq!(initialize.forwarding(), Forward::Now);
        let mut slow = fixture.begin(1, "POST /mcp", &[]);
        slow.observe(Observed::RequestData(b"{\"jsonrpc"));
        assert_eq!(slow.forwarding(), Forward::Wait);
        slow.hold_expired();
        assert_eq!(slow.forwarding(), Forward::Now);
        assert!(std::fs::read_to_string(fixture.directory.path().join("log")).unwrap().contains("POST"));
        assert_eq!(fixture.begin(1, "POST /mcp", &[("Expect", "100-continue")]).forwarding(), Forward::Now);
        assert_eq!(fixture.begin(1, "POST /mcp", &[("Mcp-Session-Id", "x")]).forwarding(), Forward::Now);
    }

    #[test]
    fn the_number_of_open_sessions_is_limited() {
        let fixture = Fixture::new();
        for number in 0..260 {
            let name = number.to_string();
            fixture.exchange(1, "POST /mcp", &[("Mcp-Session-Id", name.as_str())], &request("ping"));
        }
        fixture.sessions.finish(&SessionEnd::Stopped);
        let recorded = fixture.recorded();
        assert_eq!((recorded.len(), recorded.iter().filter(|methods| *methods == "ping ended").count()), (260, 260));
    }
}
