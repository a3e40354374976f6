//! The requests of one client socket that are not over, in their order.

use std::collections::VecDeque;

use super::http_proxy::{Forward, Over, Sight, Watcher};
use super::request_head::Facts;

/// The requests of one client socket that are not over, in their order; responses come in the same order.
#[derive(Default)]
pub(super) struct Exchanges {
    queue: VecDeque<Exchange>,
    /// Whether the upstream ever answered anything here.
    pub(super) answered: bool,
    /// The two sides speak another protocol now.
    pub(super) upgraded: bool,
}

/// A request and its response.
pub(super) struct Exchange {
    pub(super) facts: Facts,
    watcher: Box<dyn Watcher>,
    request: Part,
    response: Part,
    /// Whether the response is a stream of events, which may never end.
    pub(super) is_stream: bool,
    is_over: bool,
}

/// How much of a request or a response there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Nothing,
    Begun,
    Whole,
}

impl Exchanges {
    /// A request begins.
    pub(super) fn begin(&mut self, facts: Facts, watcher: Box<dyn Watcher>) {
        let (request, response) = (Part::Begun, Part::Nothing);
        self.queue.push_back(Exchange { facts, watcher, request, response, is_stream: false, is_over: false });
    }

    /// How many are not over.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing is waited for but streams that may never end.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.iter().all(|exchange| exchange.is_stream)
    }

    /// Whether an answer to the last request may make another protocol of the connection.
    pub(super) fn may_upgrade(&self) -> bool {
        self.queue.back().is_some_and(|exchange| exchange.facts.upgrade && exchange.response != Part::Whole)
    }

    /// The one whose request is on its way.
    pub(super) fn asking(&mut self) -> Option<&mut Exchange> {
        self.queue.back_mut().filter(|exchange| exchange.request == Part::Begun)
    }

    /// The one whose response comes next, or is on its way.
    pub(super) fn answering(&mut self) -> Option<&mut Exchange> {
        self.queue.iter_mut().find(|exchange| exchange.response != Part::Whole)
    }

    /// The request on its way is whole.
    pub(super) fn asked(&mut self) {
        if let Some(exchange) = self.asking() {
            exchange.request = Part::Whole;
            exchange.watcher.saw(Sight::RequestEnd);
            exchange.settle();
        }
        self.sweep();
    }

    /// The response on its way is whole.
    pub(super) fn responded(&mut self) {
        self.answered = true;
        if let Some(exchange) = self.answering() {
            exchange.response = Part::Whole;
            exchange.watcher.saw(Sight::ResponseEnd);
            exchange.settle();
        }
        self.sweep();
    }

    /// The request on its way is not forwarded any further.
    pub(super) fn refuse(&mut self, why: &str) {
        if let Some(exchange) = self.asking() {
            exchange.end(Over::Refused(why.to_owned()));
            self.queue.pop_back();
        }
    }

    /// Nothing more comes for any of them.
    pub(super) fn end(&mut self, over: &Over) {
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

impl Exchange {
    /// Tells whoever watches.
    pub(super) fn saw(&mut self, sight: Sight<'_>) {
        self.watcher.saw(sight);
    }

    /// What was seen is about to be forwarded.
    pub(super) fn forwarding(&mut self) -> Forward {
        self.watcher.forwarding()
    }

    /// What was held back is forwarded now.
    pub(super) fn released(&mut self) {
        self.watcher.released();
    }

    /// The response begins.
    pub(super) fn answer_begins(&mut self) {
        self.response = Part::Begun;
    }

    fn settle(&mut self) {
        match (self.request, self.response) {
            (Part::Whole, Part::Whole) => self.end(Over::Done),
            (Part::Nothing | Part::Begun | Part::Whole, _) => drop(self.watcher.forwarding()),
        }
    }

    fn end(&mut self, over: Over) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.watcher.saw(Sight::Over(over));
            let _ = self.watcher.forwarding();
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end(Over::Stopped);
    }
}
