//! One request, its response, and the entries in both.

use std::sync::Arc;

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{Body as Said, Message, Method};
use rehearsal_core::protocol::{Revision, header as names, meta};
use rehearsal_core::trace::{EntryBody, HttpHead, SessionEnd};
use rehearsal_wire::http::proxy::{ExchangeEnd, ExchangeObserver, Forward, Observed};

use super::body::{BodyOrigin, BodyReader};
use super::sessions::{ActiveSession, Sessions, Transport};
use crate::record::tape::RecordedInput;

/// At most this many bytes of a body are buffered until its session is known.
const SESSION_LOOKUP_LIMIT: usize = 60 * 1024;

/// One request and its response.
pub(super) struct ExchangeRecorder {
    sessions: Arc<Sessions>,
    socket: u64,
    limit: usize,
    state: State,
    /// What was seen and is not on the tape yet.
    passed: Vec<RecordedInput<'static>>,
    /// The entries of the body that were not recorded yet.
    whats: Vec<EntryBody>,
    request: Option<BodyReader>,
    response: Option<BodyReader>,
    /// 202: there is no message, and the body of many servers is `Accepted`.
    accepted: bool,
    /// What could not be read of it.
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
    /// It begins the session, if the server accepts it.
    Handshake,
    /// It ends the session, if the server accepts it.
    Delete,
    /// It is the stream of HTTP+SSE, requested at this target.
    Stream(String),
}

impl ExchangeRecorder {
    pub(super) fn new(sessions: Arc<Sessions>, socket: u64, limit: usize, head: HttpHead) -> ExchangeRecorder {
        let request = Some(BodyReader::new(&head.headers, limit));
        // Most have a head, a message and an end in one go.
        let passed = Vec::with_capacity(4);
        let mut exchange = ExchangeRecorder {
            sessions,
            socket,
            limit,
            state: State::Over,
            passed,
            whats: Vec::new(),
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
            self.passed.push(RecordedInput::What(EntryBody::Http { from: Side::Client, channel, head }));
        }
    }

    /// Appends what the bodies contained to the entries.
    fn pass_on(&mut self) {
        self.passed.extend(self.whats.drain(..).map(RecordedInput::What));
    }

    /// Records the end of a body. A whole body that is one message without secrets is kept verbatim.
    fn body_ended(&mut self, body: Option<BodyReader>, is_whole: bool, from: Side) {
        let channel = self.channel();
        let Some(mut body) = body else { return };
        let tape = match &self.state {
            State::Decided { session, .. } if is_whole && !self.accepted => session.tape.line_redaction(),
            State::Decided { .. } | State::Undecided(_) | State::Over => None,
        };
        match tape.and_then(|redaction| body.line(redaction)) {
            Some(line) => self.passed.push(RecordedInput::Lines { from, channel, bytes: line.into() }),
            None => {
                let unread = body.end(is_whole, BodyOrigin { from, channel }, &mut self.whats);
                self.unread = unread.or(self.unread.take());
            }
        }
    }

    /// The channel; a request that nothing more is known about gets its session now.
    fn channel(&mut self) -> Channel {
        match &self.state {
            State::Decided { channel, .. } => return *channel,
            State::Undecided(_) | State::Over => {}
        }
        let said = self.request.as_ref().map(BodyReader::so_far).unwrap_or_default();
        let (session, role) = self.by_message(&Message::parse(said));
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
        self.passed.push(RecordedInput::What(EntryBody::Http { from: Side::Server, channel, head }));
    }

    fn response_says(&mut self, data: &[u8]) {
        let place = BodyOrigin { from: Side::Server, channel: self.channel() };
        if let Some(body) = &mut self.response {
            body.push(data, place, &mut self.whats);
        }
        if let State::Decided { session, role: Role::Stream(target), .. } = &self.state {
            for what in &self.whats {
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
        if self.accepted && self.whats.iter().all(is_garbled) {
            self.whats.clear();
        }
        self.pass_on();
    }

    fn over(&mut self, over: ExchangeEnd) {
        self.request_ended(false);
        self.response_ended(false);
        let (why, end) = match over {
            ExchangeEnd::Done => (None, SessionEnd::ServerExited { status: None, signal: None }),
            ExchangeEnd::ClientClosed => {
                (Some("the client went away".to_owned()), SessionEnd::ClientClosed { status: None })
            }
            ExchangeEnd::UpstreamFailed(why) => (Some(why), SessionEnd::ServerExited { status: None, signal: None }),
            ExchangeEnd::Refused(why) => (Some(format!("refused: {why}")), SessionEnd::ClientClosed { status: None }),
            ExchangeEnd::Upgraded => (Some("both sides went on in another protocol".to_owned()), SessionEnd::Stopped),
            ExchangeEnd::Stopped => (Some("the recorder was stopped".to_owned()), SessionEnd::Stopped),
        };
        let channel = self.channel();
        self.passed.push(RecordedInput::What(EntryBody::ChannelEnded { channel, why: why.or(self.unread.take()) }));
        self.put();
        if let State::Decided { session, role, .. } = std::mem::replace(&mut self.state, State::Over) {
            if let Role::Stream(_) = role {
                session.ends(end);
            }
            self.sessions.leave(&session);
        }
    }

    /// What is about to be forwarded of messages that have not ended.
    fn keep_pieces(&mut self) {
        let State::Decided { session, channel, .. } = &self.state else { return };
        for (from, body) in [(Side::Client, &mut self.request), (Side::Server, &mut self.response)] {
            if let Some((offset, bytes)) = body.as_mut().and_then(|body| body.piece(session.tape.pieces())) {
                self.passed.push(RecordedInput::What(EntryBody::Piece { from, channel: *channel, offset, bytes }));
            }
        }
    }

    fn put(&mut self) {
        if let State::Decided { session, .. } = &self.state
            && !self.passed.is_empty()
        {
            session.tape.record_lines(self.passed.drain(..));
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
                    body.push(data, BodyOrigin { from: Side::Client, channel }, &mut self.whats);
                }
                self.pass_on();
            }
            Observed::RequestEnd => self.request_ended(true),
            Observed::Response(head) => self.response_begins(head),
            Observed::ResponseData(data) => self.response_says(data),
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
        // Where it belongs has to be guessed from what there is.
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
        Said::Batch(messages) => messages.iter().any(like),
        Said::Request(_) | Said::Notification(_) | Said::Response(_) | Said::Garbled(_) => like(message),
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_core::trace::{JournalLine, JournalReader};

    use super::*;
    use crate::record::Recorder;

    type Headers<'a> = &'a [(&'a str, &'a str)];

    /// A recorder into a log, and the requests that pass it.
    struct Stage {
        directory: tempfile::TempDir,
        sessions: Arc<Sessions>,
    }

    impl Stage {
        fn new() -> Stage {
            let directory = tempfile::tempdir().unwrap();
            let recorder = Recorder::builder().log(directory.path().join("log")).build();
            let url = "http://mcp.example/mcp".parse().unwrap();
            Stage { directory, sessions: Arc::new(Sessions::new(recorder, url)) }
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
        fn ask(&self, socket: u64, line: &str, headers: Headers, body: &str) -> ExchangeRecorder {
            let mut exchange = self.begin(socket, line, headers);
            exchange.observe(Observed::RequestData(body.as_bytes()));
            exchange.observe(Observed::RequestEnd);
            assert_eq!(exchange.forwarding(), Forward::Now);
            exchange
        }

        /// A whole request that is answered and over.
        fn asked(&self, socket: u64, line: &str, headers: Headers, body: &str) {
            self.ask(socket, line, headers, body).answered(202, &[], "");
        }

        /// The methods that were used in each session, in the order in which the sessions began, and which of them ended.
        fn seen(&self) -> Vec<String> {
            let log = std::fs::read(self.directory.path().join("log")).unwrap();
            let mut seen: Vec<(String, String)> = Vec::new();
            for line in JournalReader::new(log.as_slice()) {
                match line.unwrap() {
                    JournalLine::Start(start) => seen.push((start.session_id, String::new())),
                    JournalLine::Entry { session_id, entry } => {
                        let session = seen.iter_mut().find(|(id, _)| Some(id) == session_id.as_ref()).unwrap();
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
            seen.into_iter().map(|(_, methods)| methods.trim_end().to_owned()).collect()
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
        let stage = Stage::new();
        let named: Headers = &[("Mcp-Session-Id", "x")];
        stage.ask(1, "POST /mcp", named, &request("first")).answered(202, &[], "Accepted");
        stage.ask(1, "POST /mcp", named, &request("second")).answered(
            202,
            &[],
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        );
        stage.ask(1, "POST /mcp", named, &request("third")).answered(400, &[], "no");
        assert_eq!(stage.seen(), ["first second answer third answer"]);
    }

    const EVENTS: Headers<'static> = &[("Content-Type", "text/event-stream")];

    #[test]
    fn a_session_has_the_name_that_the_server_gave_it_and_ends_when_a_delete_was_answered() {
        let stage = Stage::new();
        for name in ["one", "two"] {
            stage.ask(1, "POST /mcp", &[], &request("initialize")).answered(200, &[("mcp-session-id", name)], "");
        }
        stage.asked(2, "POST /mcp", &[("Mcp-Session-Id", "one")], &request("first"));
        stage.asked(2, "POST /mcp", &[("Mcp-Session-Id", "two")], &request("second"));
        let stream = stage.ask(3, "GET /mcp", &[("Mcp-Session-Id", "one"), ("Accept", "text/event-stream")], "");
        stage.asked(2, "DELETE /mcp", &[("Mcp-Session-Id", "one")], "");
        stage.ask(2, "DELETE /mcp", &[("Mcp-Session-Id", "two")], "").answered(405, &[], "");
        assert_eq!(stage.seen(), ["initialize first", "initialize second"], "a stream of the first is still open");
        stream.answered(200, EVENTS, "");
        stage.sessions.finish(&SessionEnd::Stopped);
        assert_eq!(stage.seen(), ["initialize first ended", "initialize second ended"]);
    }

    #[test]
    fn a_session_that_nobody_saw_begin_begins_with_its_first_request() {
        let stage = Stage::new();
        stage.asked(1, "POST /mcp", &[("Mcp-Session-Id", "old")], &request("first"));
        stage.asked(2, "POST /mcp", &[("Mcp-Session-Id", "old")], &request("second"));
        assert_eq!(stage.seen(), ["first second"]);
    }

    #[test]
    fn handshakes_without_a_name_are_told_apart_by_their_sockets() {
        let stage = Stage::new();
        for socket in [1, 2] {
            stage.ask(socket, "POST /mcp", &[], &request("initialize")).answered(200, &[], "");
        }
        stage.asked(1, "POST /mcp", &[], &request("first"));
        stage.asked(2, "POST /mcp", &[], &request("second"));
        stage.asked(3, "POST /mcp", &[], &request("last"));
        stage.asked(1, "GET /mcp", &[("Accept", "text/event-stream")], "");
        assert_eq!(stage.seen(), ["initialize first", "initialize second last"]);
    }

    #[test]
    fn a_handshake_that_was_refused_is_over() {
        let stage = Stage::new();
        stage.ask(1, "POST /mcp", &[], &request("initialize")).answered(404, &[], "");
        stage.asked(1, "POST /mcp", &[], &request("next"));
        stage.sessions.finish(&SessionEnd::Stopped);
        assert_eq!(stage.seen(), ["initialize ended", "next ended"]);
    }

    #[test]
    fn without_sessions_there_is_one_for_the_whole_run() {
        let stage = Stage::new();
        let claim = r#"{"jsonrpc":"2.0","id":1,"method":"claimed","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        stage.asked(1, "POST /mcp", &[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Session-Id", "x")], &request("a"));
        stage.asked(2, "POST /mcp", &[], claim);
        stage.asked(3, "GET /.well-known/oauth-protected-resource", &[], "");
        stage.asked(4, "POST /mcp", &[], "not JSON");
        assert_eq!(stage.seen(), ["a claimed answer"]);
    }

    #[test]
    fn what_is_posted_to_an_endpoint_belongs_to_its_stream() {
        let stage = Stage::new();
        let accept: Headers = &[("accept", "text/event-stream")];
        let mut streams = Vec::new();
        for (socket, endpoint) in [(1, "messages?s=1"), (2, "http://mcp.example/api/messages?s=2")] {
            let mut stream = stage.ask(socket, "GET /api/sse", accept, "");
            let head = HttpHead { method: None, target: None, status: Some(200), headers: owned(EVENTS) };
            stream.observe(Observed::Response(head));
            stream.observe(Observed::ResponseData(format!("event: endpoint\ndata: {endpoint}\n\n").as_bytes()));
            stream.forwarding();
            streams.push(stream);
        }
        stage.asked(3, "POST /api/messages?s=2", &[], &request("second"));
        stage.asked(3, "POST /api/messages?s=1", &[], &request("first"));
        let late = stage.ask(3, "POST /api/messages?s=1", &[], &request("late"));
        for mut stream in streams {
            stream.observe(Observed::ResponseData(b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"));
            stream.observe(Observed::Over(ExchangeEnd::ClientClosed));
        }
        late.answered(202, &[], "");
        stage.sessions.finish(&SessionEnd::Stopped);
        assert_eq!(stage.seen(), ["first late answer ended", "second answer ended"]);
    }

    #[test]
    fn a_request_waits_until_it_says_where_it_belongs_but_not_for_ever() {
        let stage = Stage::new();
        let mut initialize = stage.begin(1, "POST /mcp", &[]);
        assert_eq!(initialize.forwarding(), Forward::Wait);
        initialize.observe(Observed::RequestData(b"{"));
        assert_eq!(initialize.forwarding(), Forward::Wait);
        initialize.observe(Observed::RequestData(&[b' '; SESSION_LOOKUP_LIMIT]));
        assert_eq!(initialize.forwarding(), Forward::Now);
        let mut slow = stage.begin(1, "POST /mcp", &[]);
        slow.observe(Observed::RequestData(b"{\"jsonrpc"));
        assert_eq!(slow.forwarding(), Forward::Wait);
        slow.hold_expired();
        assert_eq!(slow.forwarding(), Forward::Now);
        assert!(std::fs::read_to_string(stage.directory.path().join("log")).unwrap().contains("POST"));
        assert_eq!(stage.begin(1, "POST /mcp", &[("Expect", "100-continue")]).forwarding(), Forward::Now);
        assert_eq!(stage.begin(1, "POST /mcp", &[("Mcp-Session-Id", "x")]).forwarding(), Forward::Now);
    }

    #[test]
    fn only_so_many_sessions_are_held_open() {
        let stage = Stage::new();
        for number in 0..260 {
            let name = number.to_string();
            stage.asked(1, "POST /mcp", &[("Mcp-Session-Id", name.as_str())], &request("ping"));
        }
        stage.sessions.finish(&SessionEnd::Stopped);
        let seen = stage.seen();
        assert_eq!((seen.len(), seen.iter().filter(|methods| *methods == "ping ended").count()), (260, 260));
    }
}
