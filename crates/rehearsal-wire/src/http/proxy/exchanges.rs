//! The active requests of one client socket, in order.

use std::collections::VecDeque;

use super::http_proxy::{ExchangeEnd, ExchangeObserver, Forward, Observed};
use super::request_head::RequestFacts;

/// The active requests of one client socket, in order. Responses arrive in the same order.
#[derive(Default)]
pub(super) struct Exchanges {
    queue: VecDeque<HttpExchange>,
    /// True if the upstream has sent a response on this connection.
    pub(super) answered: bool,
    /// True if both sides have switched to another protocol.
    pub(super) upgraded: bool,
}

/// A request and its response.
pub(super) struct HttpExchange {
    pub(super) facts: RequestFacts,
    observer: Box<dyn ExchangeObserver>,
    request: Completeness,
    response: Completeness,
    /// True if the response is a stream of events, which may never end.
    pub(super) is_stream: bool,
    is_over: bool,
}

/// How much of a request or a response has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completeness {
    Nothing,
    Begun,
    Whole,
}

impl Exchanges {
    /// Adds a request.
    pub(super) fn begin(&mut self, facts: RequestFacts, observer: Box<dyn ExchangeObserver>) {
        let (request, response) = (Completeness::Begun, Completeness::Nothing);
        self.queue.push_back(HttpExchange { facts, observer, request, response, is_stream: false, is_over: false });
    }

    /// Returns the number of active requests.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if all pending responses are streams, which may never end.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.iter().all(|exchange| exchange.is_stream)
    }

    /// True if the response to the last request may switch the protocol.
    pub(super) fn may_upgrade(&self) -> bool {
        self.queue.back().is_some_and(|exchange| exchange.facts.upgrade && exchange.response != Completeness::Whole)
    }

    /// Returns the exchange whose request is being forwarded.
    pub(super) fn sending(&mut self) -> Option<&mut HttpExchange> {
        self.queue.back_mut().filter(|exchange| exchange.request == Completeness::Begun)
    }

    /// Returns the exchange whose response is next, or is being forwarded.
    pub(super) fn responding(&mut self) -> Option<&mut HttpExchange> {
        self.queue.iter_mut().find(|exchange| exchange.response != Completeness::Whole)
    }

    /// Notes that the request is complete.
    pub(super) fn finish_request(&mut self) {
        if let Some(exchange) = self.sending() {
            exchange.request = Completeness::Whole;
            exchange.observer.observe(Observed::RequestEnd);
            exchange.end_if_complete();
        }
        self.sweep();
    }

    /// Notes that the response is complete.
    pub(super) fn finish_response(&mut self) {
        self.answered = true;
        if let Some(exchange) = self.responding() {
            exchange.response = Completeness::Whole;
            exchange.observer.observe(Observed::ResponseEnd);
            exchange.end_if_complete();
        }
        self.sweep();
    }

    /// Stops forwarding the current request.
    pub(super) fn refuse(&mut self, why: &str) {
        if let Some(exchange) = self.sending() {
            exchange.end(ExchangeEnd::Refused(why.to_owned()));
            self.queue.pop_back();
        }
    }

    /// Ends all exchanges.
    pub(super) fn end(&mut self, over: &ExchangeEnd) {
        for exchange in &mut self.queue {
            exchange.end(over.clone());
        }
        self.queue.clear();
    }

    fn sweep(&mut self) {
        while self.queue.front().is_some_and(|exchange| exchange.is_over) {
            self.queue.pop_front();
        }
    }
}

impl HttpExchange {
    /// Reports an event to the observer.
    pub(super) fn observe(&mut self, observed: Observed<'_>) {
        self.observer.observe(observed);
    }

    /// Returns the observer's decision whether to forward what it has seen.
    pub(super) fn forwarding(&mut self) -> Forward {
        self.observer.forwarding()
    }

    /// Reports to the observer that the held bytes are forwarded now.
    pub(super) fn hold_expired(&mut self) {
        self.observer.hold_expired();
    }

    /// Notes that the response has started.
    pub(super) fn start_response(&mut self) {
        self.response = Completeness::Begun;
    }

    fn end_if_complete(&mut self) {
        match (self.request, self.response) {
            (Completeness::Whole, Completeness::Whole) => self.end(ExchangeEnd::Done),
            (Completeness::Nothing | Completeness::Begun | Completeness::Whole, _) => drop(self.observer.forwarding()),
        }
    }

    fn end(&mut self, over: ExchangeEnd) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.observer.observe(Observed::Over(over));
            let _ = self.observer.forwarding();
        }
    }
}

impl Drop for HttpExchange {
    fn drop(&mut self) {
        self.end(ExchangeEnd::Stopped);
    }
}
