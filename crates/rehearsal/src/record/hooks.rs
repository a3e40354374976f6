//! The hooks of an application that see the requests and responses of a recorded connection.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rehearsal_core::exchange::{
    Channel, Exchange, ExchangeKey, ExchangeLimit, OpenChannels, Pairing, PairingEvent, Side,
};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Body, Message, Method, Reply};
use rehearsal_core::trace::EntryBody;

use super::notice::{Notice, NoticeListener};

/// Receives the method and the params of every request, of either side.
pub type RequestHook = Arc<dyn Fn(&Method, Option<&RawJson>) + Send + Sync>;
/// Receives the method and the reply of every answered request, of either side.
pub type ResponseHook = Arc<dyn Fn(&Method, &Reply) + Send + Sync>;

/// Maximum number of pending requests. Beyond it, the response to the oldest is passed to no hook.
const MAX_OPEN: usize = 10_000;

/// The hooks of a recorder.
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
pub(super) struct HookCaller {
    hooks: Hooks,
    open_requests: Mutex<OpenRequests>,
}

/// The pending requests, by which the method of a response is found.
struct OpenRequests {
    pairing: Pairing<u64>,
    channels: OpenChannels,
    /// The pending requests, oldest first.
    open: BTreeMap<u64, ExchangeKey>,
    next: u64,
}

enum HookEvent {
    Request(Method, Option<RawJson>),
    Response(Method, Reply),
}

impl HookCaller {
    pub(super) fn new(hooks: Hooks) -> HookCaller {
        let pairing = Pairing::new(ExchangeLimit { notifications: 0, bytes: 0 });
        let open_requests = OpenRequests { pairing, channels: OpenChannels::default(), open: BTreeMap::new(), next: 0 };
        HookCaller { hooks, open_requests: Mutex::new(open_requests) }
    }

    /// Calls the hooks for this entry. Nothing is locked during the call: a hook may use the session.
    pub(super) fn call(&self, what: &EntryBody, listener: &NoticeListener) {
        let events = self.open_requests.lock().unwrap_or_else(PoisonError::into_inner).take_events(what);
        events.into_iter().for_each(|event| self.call_hook(&event, listener));
    }

    fn call_hook(&self, event: &HookEvent, listener: &NoticeListener) {
        let guarded = |hook: &'static str, method: &Method, call: &dyn Fn()| {
            if catch_unwind(AssertUnwindSafe(call)).is_err() {
                listener(&Notice::HookPanicked { hook, method: method.to_string() });
            }
        };
        match event {
            HookEvent::Request(method, params) => {
                let hooks = self.hooks.request.iter();
                hooks.for_each(|hook| guarded("request", method, &|| hook(method, params.as_ref())));
            }
            HookEvent::Response(method, reply) => {
                self.hooks.response.iter().for_each(|hook| guarded("response", method, &|| hook(method, reply)));
            }
        }
    }
}

impl OpenRequests {
    fn take_events(&mut self, what: &EntryBody) -> Vec<HookEvent> {
        match what {
            EntryBody::Message { from, channel, message, .. } => match message.body() {
                Body::Batch(messages) => {
                    messages.iter().filter_map(|message| self.hook_event(*from, *channel, message)).collect()
                }
                Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => {
                    self.hook_event(*from, *channel, message).into_iter().collect()
                }
            },
            EntryBody::ChannelEnded { channel, .. } => {
                self.channels.ended(*channel);
                Vec::new()
            }
            EntryBody::Piece { .. }
            | EntryBody::Http { .. }
            | EntryBody::Event { .. }
            | EntryBody::Stderr { .. }
            | EntryBody::Ended(_) => Vec::new(),
        }
    }

    fn hook_event(&mut self, from: Side, channel: Channel, message: &Message) -> Option<HookEvent> {
        let channel = match message.body() {
            Body::Response(response) => self.channels.request_channel(from.other(), channel, response.id.as_ref()),
            Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => channel,
        };
        match self.pairing.step(from, channel, Duration::ZERO, message.clone()) {
            PairingEvent::Opened { key, displaced } => {
                if let Some((exchange, number)) = displaced {
                    self.closed(&exchange, number);
                }
                self.opened(key);
                message.as_request().map(|request| HookEvent::Request(request.method.clone(), request.params.clone()))
            }
            PairingEvent::Completed { exchange, tag } => {
                self.closed(&exchange, tag);
                let method = exchange.request.message.method().cloned()?;
                exchange.reply().cloned().map(|reply| HookEvent::Response(method, reply))
            }
            PairingEvent::Cancelled { expired, .. } => {
                if let Some((exchange, number)) = expired {
                    self.closed(&exchange, number);
                }
                None
            }
            // A batch inside a batch is garbled, so there is none here.
            PairingEvent::Attached { .. } | PairingEvent::Unpaired { .. } | PairingEvent::Batch(_) => None,
        }
    }

    fn opened(&mut self, key: ExchangeKey) {
        if let Some(number) = self.pairing.tag_mut(&key) {
            *number = self.next;
        }
        self.channels.opened(&key);
        self.open.insert(self.next, key);
        self.next += 1;
        if self.open.len() > MAX_OPEN
            && let Some((number, oldest)) = self.open.pop_first()
            && let Some((exchange, _)) = self.pairing.abandon(&oldest)
        {
            self.closed(&exchange, number);
        }
    }

    fn closed(&mut self, exchange: &Exchange, number: u64) {
        self.open.remove(&number);
        self.channels.closed(&exchange.key);
    }
}
