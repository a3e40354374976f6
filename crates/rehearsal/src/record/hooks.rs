//! What an application wants to see of a recorded conversation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rehearsal_core::exchange::{Limit, Pairing, Step};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::trace::What;

use super::notice::{Listener, Notice};

/// Sees the method and the params of every request, of either side.
pub type RequestHook = Arc<dyn Fn(&Method, Option<&RawJson>) + Send + Sync>;
/// Sees the method of every request that was answered, of either side, and the answer.
pub type ResponseHook = Arc<dyn Fn(&Method, &Reply) + Send + Sync>;

/// All of them.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) request: Vec<RequestHook>,
    pub(super) response: Vec<ResponseHook>,
}

impl Hooks {
    pub(super) fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }
}

/// Calls the hooks of one session.
pub(super) struct Caller {
    hooks: Hooks,
    /// An answer does not say what was asked.
    pairing: Mutex<Pairing>,
}

impl Caller {
    pub(super) fn new(hooks: Hooks) -> Caller {
        let none = Limit { notifications: 0, bytes: 0 };
        Caller { hooks, pairing: Mutex::new(Pairing::new(none)) }
    }

    /// Calls whoever wants to see this. Nothing is locked meanwhile: a hook may use the tape itself.
    pub(super) fn call(&self, what: &What, listener: &Listener) {
        let What::Message { from, channel, message, .. } = what else { return };
        let step = {
            let mut pairing = self.pairing.lock().unwrap_or_else(PoisonError::into_inner);
            let step = pairing.step(*from, *channel, Duration::ZERO, message.clone());
            opened(&pairing, step)
        };
        step.into_iter().for_each(|seen| self.tell(&seen, listener));
    }

    fn tell(&self, seen: &Seen, listener: &Listener) {
        let guarded = |hook: &'static str, method: &Method, call: &dyn Fn()| {
            if catch_unwind(AssertUnwindSafe(call)).is_err() {
                listener(&Notice::HookPanicked { hook, method: method.to_string() });
            }
        };
        match seen {
            Seen::Request(method, params) => {
                let hooks = self.hooks.request.iter();
                hooks.for_each(|hook| guarded("request", method, &|| hook(method, params.as_ref())));
            }
            Seen::Response(method, reply) => {
                self.hooks.response.iter().for_each(|hook| guarded("response", method, &|| hook(method, reply)));
            }
        }
    }
}

enum Seen {
    Request(Method, Option<RawJson>),
    Response(Method, Reply),
}

fn opened(pairing: &Pairing, step: Step<()>) -> Vec<Seen> {
    match step {
        Step::Opened { key, displaced: _ } => {
            let request = pairing.request(&key).and_then(|stamped| stamped.message.as_request());
            request.map(|request| Seen::Request(request.method.clone(), request.params.clone())).into_iter().collect()
        }
        Step::Settled { exchange, tag: () } => {
            let method = exchange.request.message.method().cloned();
            let seen = method.zip(exchange.reply().cloned()).map(|(method, reply)| Seen::Response(method, reply));
            seen.into_iter().collect()
        }
        Step::Batch(steps) => steps.into_iter().flat_map(|step| opened(pairing, step)).collect(),
        Step::Attached { .. } | Step::Cancelled { .. } | Step::Loose { .. } => Vec::new(),
    }
}
