//! The direction from the upstream to the client: parses and forwards the bytes.

use std::sync::Arc;

use super::body::{BodyParser, BodyPiece};
use super::exchanges::Exchanges;
use super::http_proxy::{ExchangeEnd, Observed};
use super::request_head::ForwardRules;
use super::requests::head_end;
use super::response_head::{self, AfterHead, ResponseHead};
use super::rewrite::{FirstEvent, HeldEvent};

/// The responses of one upstream socket.
pub(super) struct Responses {
    rules: Arc<ForwardRules>,
    state: State,
    /// The length of the input that was searched for the end of a head.
    searched: usize,
}

enum State {
    Head,
    Body {
        body: BodyParser,
        first_event: Option<FirstEvent>,
    },
    /// Not HTTP, without a request, or another protocol: forwarded and not watched.
    Raw,
}

impl Responses {
    pub(super) fn new(rules: Arc<ForwardRules>) -> Responses {
        Responses { rules, state: State::Head, searched: 0 }
    }

    /// Parses as much of the input as possible, reports it to the observer, and appends to `out` the bytes for the
    /// client.
    pub(super) fn advance(&mut self, input: &mut Vec<u8>, exchanges: &mut Exchanges, out: &mut Vec<u8>) {
        let mut at = 0;
        while self.take(&input[at..], &mut at, exchanges, out) {}
        input.drain(..at);
        if let Some(exchange) = exchanges.responding() {
            let _ = exchange.forwarding();
        }
    }

    /// Handles the end of the upstream connection: the rest of the input is forwarded unchanged. Returns true if a
    /// response is incomplete.
    pub(super) fn finish(&mut self, input: &mut Vec<u8>, exchanges: &mut Exchanges, out: &mut Vec<u8>) -> bool {
        match std::mem::replace(&mut self.state, State::Raw) {
            State::Head => {
                out.append(input);
                !out.is_empty()
            }
            State::Body { body, first_event } => {
                if let Some(first_event) = first_event {
                    out.extend(first_event.into_raw());
                }
                out.append(input);
                let is_whole = body.ends_with_connection();
                if is_whole {
                    exchanges.finish_response();
                }
                !is_whole
            }
            State::Raw => {
                out.append(input);
                false
            }
        }
    }

    /// Takes one step, and returns whether another may follow.
    fn take(&mut self, bytes: &[u8], at: &mut usize, exchanges: &mut Exchanges, out: &mut Vec<u8>) -> bool {
        if bytes.is_empty() {
            return false;
        }
        match &mut self.state {
            State::Head => self.head(bytes, at, exchanges, out),
            State::Body { body, first_event } => {
                let Ok(piece) = body.advance(bytes) else {
                    exchanges.end(&ExchangeEnd::UpstreamFailed("the response is not validly chunked".to_owned()));
                    out.extend(first_event.take().map(FirstEvent::into_raw).unwrap_or_default());
                    self.state = State::Raw;
                    return true;
                };
                let BodyPiece { framing, data } = piece;
                let (framing, rest) = bytes.split_at(framing);
                let data = &rest[..data];
                *at += framing.len() + data.len();
                let Some(exchange) = exchanges.responding() else { return false };
                if !data.is_empty() {
                    exchange.observe(Observed::ResponseData(data));
                }
                let verdict = first_event
                    .as_mut()
                    .map(|first| first.push(framing, data, &self.rules.upstream, &exchange.facts.here));
                match verdict {
                    None => out.extend_from_slice(&bytes[..framing.len() + data.len()]),
                    Some(HeldEvent::Hold) if !body.is_done() => {}
                    Some(HeldEvent::Hold) => {
                        out.extend(first_event.take().map(FirstEvent::into_raw).unwrap_or_default())
                    }
                    Some(HeldEvent::Release(raw)) => {
                        out.extend(raw);
                        *first_event = None;
                    }
                    Some(HeldEvent::Changed(event)) => {
                        if let Some(left) = body.left_of_chunk() {
                            out.extend_from_slice(format!("{:x}\r\n", event.len() as u64 + left).as_bytes());
                        }
                        out.extend(event);
                        *first_event = None;
                    }
                }
                if body.is_done() {
                    exchanges.finish_response();
                    self.state = State::Head;
                }
                true
            }
            State::Raw => {
                out.extend_from_slice(bytes);
                *at += bytes.len();
                false
            }
        }
    }

    fn head(&mut self, bytes: &[u8], at: &mut usize, exchanges: &mut Exchanges, out: &mut Vec<u8>) -> bool {
        let Some(exchange) = exchanges.responding() else {
            // There is no pending request: the server sends a last response to an idle client.
            self.state = State::Raw;
            return true;
        };
        let read = match head_end(bytes, self.searched) {
            true => response_head::read(bytes, &self.rules.upstream, &exchange.facts, out),
            false => Ok(None),
        };
        let limit = self.rules.head_limit;
        let why = match read {
            Ok(Some((length, answered))) => {
                *at += length;
                self.searched = 0;
                self.begin(answered, exchanges);
                return true;
            }
            Ok(None) if bytes.len() <= limit => {
                self.searched = bytes.len();
                return false;
            }
            Ok(None) => format!("the response has a head of more than {limit} bytes"),
            Err(why) => why,
        };
        // The client receives it unchanged, and has to interpret it.
        exchanges.answered = true;
        exchanges.end(&ExchangeEnd::UpstreamFailed(why));
        self.state = State::Raw;
        true
    }

    fn begin(&mut self, answered: ResponseHead, exchanges: &mut Exchanges) {
        let ResponseHead { head, then } = answered;
        exchanges.answered = true;
        let Some(exchange) = exchanges.responding() else { return };
        exchange.observe(Observed::Response(head));
        match then {
            AfterHead::AnotherHead => {}
            AfterHead::AnotherProtocol => {
                exchanges.upgraded = true;
                exchanges.end(&ExchangeEnd::Upgraded);
                self.state = State::Raw;
            }
            AfterHead::Body { framing, endpoint, is_stream } => {
                exchange.start_response();
                exchange.is_stream = is_stream;
                let body = BodyParser::new(framing);
                if body.is_done() {
                    exchanges.finish_response();
                } else {
                    self.state = State::Body { body, first_event: endpoint.then(FirstEvent::default) };
                }
            }
        }
    }
}
