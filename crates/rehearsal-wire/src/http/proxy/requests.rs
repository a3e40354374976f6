//! The direction from the client to the upstream: parses the bytes, forwards them, and builds the proxy's own
//! responses.

use std::sync::Arc;

use super::body::BodyParser;
use super::exchanges::Exchanges;
use super::http_proxy::{Forward, Observed, ProxyTap};
use super::request_head;
use super::request_head::{ForwardRules, RequestHead};
use super::rewrite::Origin;

/// The most bytes that are held at an observer's request.
const HOLD_LIMIT: usize = 64 * 1024;

/// The requests of one client socket.
pub(super) struct Requests {
    rules: Arc<ForwardRules>,
    tap: Arc<dyn ProxyTap>,
    socket: u64,
    state: State,
    /// The length of the input that was searched for the end of a head.
    searched: usize,
    /// The proxy's origin in the client's previous request.
    here: Option<Arc<Origin>>,
    pipelined: usize,
    /// True if the current request was held long enough.
    released: bool,
}

enum State {
    Head,
    Body(BodyParser),
    /// After a request for another protocol. The response decides how the next bytes are parsed.
    Proposed,
    Raw,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Send the output, and continue reading.
    Read,
    /// Continue reading, and send nothing yet.
    ReadFirst,
    /// Send the output, and wait for a response.
    Wait,
}

impl Requests {
    pub(super) fn new(rules: Arc<ForwardRules>, tap: Arc<dyn ProxyTap>, socket: u64, pipelined: usize) -> Requests {
        Requests { rules, tap, socket, state: State::Head, searched: 0, here: None, pipelined, released: false }
    }

    /// Parses as much of the input as possible, reports it to the observer, and appends to `out` the bytes for the
    /// upstream.
    pub(super) fn advance(
        &mut self,
        input: &mut Vec<u8>,
        exchanges: &mut Exchanges,
        out: &mut Vec<u8>,
    ) -> Result<NextStep, ErrorResponse> {
        let mut at = 0;
        let next = self.take(input, &mut at, exchanges, out);
        input.drain(..at);
        let hold = exchanges.sending().map_or(Forward::Now, |exchange| exchange.forwarding());
        match next {
            Ok(NextStep::Read) if hold == Forward::Wait && !self.released => {
                self.released = out.len() >= HOLD_LIMIT;
                Ok(if self.released { NextStep::Read } else { NextStep::ReadFirst })
            }
            next => next,
        }
    }

    /// Releases the held bytes: the client may be waiting for a response before it sends the rest.
    pub(super) fn release(&mut self, exchanges: &mut Exchanges) {
        self.released = true;
        if let Some(exchange) = exchanges.sending() {
            exchange.hold_expired();
        }
    }

    /// True if a head is next, or is being received.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Head)
    }

    /// True if a head was ever started.
    pub(super) fn has_begun(&self) -> bool {
        self.here.is_some()
    }

    fn take(
        &mut self,
        input: &[u8],
        at: &mut usize,
        exchanges: &mut Exchanges,
        out: &mut Vec<u8>,
    ) -> Result<NextStep, ErrorResponse> {
        loop {
            let bytes = &input[*at..];
            match &mut self.state {
                State::Head if exchanges.len() >= self.pipelined => return Ok(NextStep::Wait),
                State::Head => match self.head(bytes, out)? {
                    Some((length, RequestHead { head, framing, facts })) => {
                        *at += length;
                        exchanges.begin(facts, self.tap.begin(self.socket, head));
                        self.body(BodyParser::new(framing), exchanges);
                    }
                    None => return Ok(NextStep::Read),
                },
                State::Body(_) if bytes.is_empty() => return Ok(NextStep::Read),
                State::Body(body) => {
                    let piece = body.advance(bytes).map_err(|error| ErrorResponse::bad_request(error.to_string()))?;
                    let end = piece.framing + piece.data;
                    if let Some(exchange) = exchanges.sending().filter(|_| piece.data > 0) {
                        exchange.observe(Observed::RequestData(&bytes[piece.framing..end]));
                    }
                    out.extend_from_slice(&bytes[..end]);
                    *at += end;
                    let body = *body;
                    self.body(body, exchanges);
                }
                State::Proposed if exchanges.upgraded => self.state = State::Raw,
                State::Proposed if exchanges.may_upgrade() => return Ok(NextStep::Wait),
                State::Proposed => self.state = State::Head,
                State::Raw => {
                    out.extend_from_slice(bytes);
                    *at = input.len();
                    return Ok(NextStep::Read);
                }
            }
        }
    }

    /// Parses a head only when its end has arrived, so that a head in small pieces is not parsed repeatedly.
    fn head(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<(usize, RequestHead)>, ErrorResponse> {
        let limit = self.rules.head_limit;
        let request = match head_end(&bytes[..bytes.len().min(limit)], self.searched) {
            true => request_head::read(bytes, &self.rules, self.here.as_ref(), out)?,
            false => None,
        };
        match request {
            Some((length, request)) => {
                (self.searched, self.released) = (0, false);
                self.here = Some(request.facts.here.clone());
                Ok(Some((length, request)))
            }
            None if bytes.len() < limit => {
                self.searched = bytes.len();
                Ok(None)
            }
            None => Err(ErrorResponse::head_too_large(format!("a head of more than {limit} bytes"))),
        }
    }

    fn body(&mut self, body: BodyParser, exchanges: &mut Exchanges) {
        self.state = if !body.is_done() {
            State::Body(body)
        } else {
            let proposed = exchanges.may_upgrade();
            exchanges.finish_request();
            if proposed { State::Proposed } else { State::Head }
        };
    }
}

/// True if the bytes contain an empty line. The bytes before `searched` are known to contain none.
pub(super) fn head_end(bytes: &[u8], searched: usize) -> bool {
    let mut from = searched.saturating_sub(3).min(bytes.len());
    while let Some(feed) = memchr::memchr(b'\n', &bytes[from..]) {
        let after = &bytes[from + feed + 1..];
        if after.starts_with(b"\n") || after.starts_with(b"\r\n") {
            return true;
        }
        from += feed + 1;
    }
    false
}

/// A response of the proxy itself; the connection is closed after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ErrorResponse {
    /// The status line, such as `400 Bad Request`.
    status: &'static str,
    /// The reason, as text.
    pub(super) why: String,
}

impl ErrorResponse {
    /// The request is not HTTP, or its length is ambiguous.
    pub(super) fn bad_request(why: impl Into<String>) -> ErrorResponse {
        ErrorResponse { status: "400 Bad Request", why: why.into() }
    }

    /// The request comes from a foreign web page, or may come from one.
    pub(super) fn forbidden(what: &str) -> ErrorResponse {
        ErrorResponse { status: "403 Forbidden", why: format!("Forbidden: {what}") }
    }

    /// The method is not supported by a reverse proxy.
    pub(super) fn method(method: &str) -> ErrorResponse {
        ErrorResponse { status: "405 Method Not Allowed", why: format!("a reverse proxy does not support {method}") }
    }

    /// The head was not completed in time.
    pub(super) fn timeout() -> ErrorResponse {
        ErrorResponse {
            status: "408 Request Timeout",
            why: "the head of the request was not completed in time".to_owned(),
        }
    }

    /// The head is longer than the limit.
    pub(super) fn head_too_large(what: impl Into<String>) -> ErrorResponse {
        ErrorResponse { status: "431 Request Header Fields Too Large", why: what.into() }
    }

    /// The upstream cannot be reached.
    pub(super) fn bad_gateway(why: impl Into<String>) -> ErrorResponse {
        ErrorResponse { status: "502 Bad Gateway", why: why.into() }
    }

    /// Builds the response: `rehearse: cannot connect to …` as plain text.
    pub(super) fn response(&self) -> Vec<u8> {
        let body = format!("rehearse: {}\n", self.why);
        let ErrorResponse { status, .. } = self;
        let kind = "content-type: text/plain; charset=utf-8";
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        (head + &body).into_bytes()
    }
}
