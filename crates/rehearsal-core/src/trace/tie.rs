//! What belongs to a call, and how one can tell.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU64;
use std::sync::Arc;

use super::asker::Claim;
use super::evidence::{Evidence, Shared};
use super::{Call, Entry, What};
use crate::exchange::{Channel, Side};
use crate::message::{Message, Method};
use crate::protocol::meta;

/// All that must be known of something to tell what belongs to it, or to what it belongs: a few numbers, however long it
/// is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// Its place in the session, and in its batch.
    pub(super) place: (u64, u32),
    /// The place of its answer, where it has one.
    pub(super) end: Option<(u64, u32)>,
    channel: Channel,
    /// The stream that it was answered on; over HTTP+SSE that is never its own.
    answered_on: Channel,
    kind: Kind,
    /// The task that it is about, or says that it belongs to.
    task: Option<Mark>,
    /// What it is about, where that matters.
    evidence: Option<Arc<Evidence>>,
}

/// Makes the ties of one session, whose things come in the order in which they were settled.
#[derive(Debug, Default)]
pub struct Ties {
    /// The last place at which the server asked something.
    asked: Option<u64>,
    /// The subscriptions that it acknowledged, by stream and id.
    acknowledged: HashSet<(Channel, Mark)>,
}

impl Ties {
    /// That of a call.
    pub fn of_call(&mut self, call: &Call) -> Tie {
        let place = call.request.seq;
        let matters = match call.asker {
            Side::Server => {
                self.asked = self.asked.max(Some(place));
                true
            }
            // Only of what was open when something was asked.
            Side::Client => self.asked.is_some_and(|asked| asked > place),
        };
        let evidence = matters.then(|| Arc::new(Evidence::of(call)));
        Tie { evidence, ..Tie::of_call(call) }
    }

    /// That of anything else.
    pub fn of_entry(&mut self, entry: &Entry) -> Tie {
        let tie = Tie::of_entry(entry);
        if let Kind::Acknowledged { id: Some(id) } = tie.kind {
            self.acknowledged.insert((tie.channel, id));
        }
        tie
    }

    /// Whether a call is a subscription that was acknowledged, by what was seen so far.
    pub fn lets_in(&self, call: &Tie) -> bool {
        matches!(call.kind, Kind::Request { id: Some(id), listens: true, .. } if self.acknowledged.contains(&(call.channel, id)))
    }
}

/// Where a message says to which task it belongs.
const RELATED_TASK: [&str; 3] = ["_meta", "io.modelcontextprotocol/related-task", "taskId"];

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A request of the client's. What listens for the whole session has no questions of its own, and since 2026-07-28 what does
    /// not ask for log messages has none.
    Request {
        id: Option<Mark>,
        token: Option<Mark>,
        listens: bool,
        logs: bool,
    },
    /// A request of the server's.
    Question,
    Progress {
        token: Option<Mark>,
    },
    Cancelled {
        id: Option<Mark>,
    },
    Log,
    /// That a subscription was let in.
    Acknowledged {
        id: Option<Mark>,
    },
    /// Any other notification.
    Told {
        by: Side,
    },
    /// HTTP around messages; its first is the head of a POST.
    Http {
        is_head: bool,
    },
    /// What belongs to nothing.
    Free,
}

/// The text of an id, a token or a name, in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark(NonZeroU64);

impl Mark {
    pub(super) fn of(text: &str) -> Mark {
        let mut hasher = DefaultHasher::new();
        hasher.write(text.as_bytes());
        Mark(NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MAX))
    }
}

/// Whether something belongs to a call that was open when it happened.
pub(super) enum Bond {
    None,
    /// Unless another one was open too.
    Possible,
    /// It has its token or its id, unless another one has that too and the stream that it came on.
    Named,
    Sure,
}

impl Tie {
    fn of_call(call: &Call) -> Tie {
        let Call { asker, request, response } = call;
        let message = &request.message;
        let kind = match asker {
            Side::Client => Kind::Request {
                id: message.as_request().map(|request| Mark::of(&request.id.to_string())),
                token: param(message, &["_meta", meta::PROGRESS_TOKEN]),
                listens: message.method() == Some(&Method::SUBSCRIPTIONS_LISTEN),
                logs: param(message, &["_meta", meta::PROTOCOL_VERSION]).is_none()
                    || param(message, &["_meta", meta::LOG_LEVEL]).is_some(),
            },
            Side::Server => Kind::Question,
        };
        let end = response.as_ref().map(|answer| (answer.seq, answer.item.unwrap_or(0)));
        let (place, channel) = ((request.seq, request.item.unwrap_or(0)), request.channel);
        let answered_on = response.as_ref().map_or(channel, |answer| answer.channel);
        let task = match asker {
            Side::Client => param(message, &["taskId"]),
            Side::Server => param(message, &RELATED_TASK),
        };
        Tie { place, end, channel, answered_on, kind, task, evidence: None }
    }

    /// That of anything else.
    pub fn of_entry(entry: &Entry) -> Tie {
        let task = match &entry.what {
            What::Message { from: Side::Server, message, .. } => param(message, &RELATED_TASK),
            _ => None,
        };
        let (channel, kind) = match &entry.what {
            What::Message { from, channel, message, .. } => (*channel, kind(*from, message)),
            What::Http { from, channel, .. } => (*channel, Kind::Http { is_head: *from == Side::Client }),
            What::Event { channel, .. } | What::ChannelEnded { channel, .. } => {
                (*channel, Kind::Http { is_head: false })
            }
            What::Stderr { .. } | What::Piece { .. } | What::Ended(_) => (Channel::MAIN, Kind::Free),
        };
        let place = (entry.seq, entry.item.unwrap_or(0));
        Tie { place, end: None, channel, answered_on: channel, kind, task, evidence: None }
    }

    /// Its place in the session; that of the question, for a call.
    pub fn seq(&self) -> u64 {
        self.place.0
    }

    /// The stream that it was on; that of the question, for a call.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// The place at which it was settled, in whose order a [`Weave`](super::Weave) takes things.
    pub fn settled(&self) -> u64 {
        self.end.unwrap_or(self.place).0
    }

    /// Its place in the session, and in its batch; that of the question, for a call.
    pub fn place(&self) -> (u64, u32) {
        self.place
    }

    /// The place of its answer.
    pub(super) fn end_or_never(&self) -> (u64, u32) {
        self.end.unwrap_or((u64::MAX, 0))
    }

    pub(super) fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request { .. })
    }

    /// Whether the server asked it.
    pub(super) fn is_question(&self) -> bool {
        self.kind == Kind::Question
    }

    /// Whether the client gave up a call by it.
    pub fn gives_up(&self) -> bool {
        matches!(self.kind, Kind::Cancelled { .. })
    }

    /// Whether the server told it on the way to an answer.
    pub(super) fn is_said(&self) -> bool {
        matches!(self.kind, Kind::Progress { .. } | Kind::Log)
    }

    /// What a call uses that may ask back.
    pub(super) fn tool(&self) -> Option<Mark> {
        self.evidence.as_ref()?.tool
    }

    /// Whether it has a stream of its own, as over HTTP.
    pub(super) fn has_channel(&self) -> bool {
        self.channel != Channel::MAIN
    }

    /// Whether this is the head of the POST that a call came in.
    pub(super) fn is_head_of(&self, call: &Tie) -> bool {
        self.kind == Kind::Http { is_head: true } && self.channel == call.channel
    }

    /// How this is bound to a call of the client's.
    pub(super) fn bond(&self, call: &Tie) -> Bond {
        let Kind::Request { id, token, listens, logs } = call.kind else { return Bond::None };
        let sure = |is: bool| if is { Bond::Sure } else { Bond::None };
        let same = self.channel == call.channel;
        // A stream that several calls are answered on, as over stdio and HTTP+SSE.
        let shared = match call.channel == call.answered_on {
            true => same && !self.has_channel(),
            false => self.channel == call.answered_on,
        };
        // Several clients may count from 1, each on streams of its own.
        let named = |ours: Option<Mark>, other| match (ours.is_some() && ours == other, same) {
            (true, true) => Bond::Sure,
            (true, false) => Bond::Named,
            (false, _) => Bond::None,
        };
        if let (Some(task), Kind::Question | Kind::Log) = (self.task, self.kind)
            && shared
        {
            return if call.task == Some(task) { Bond::Sure } else { Bond::None };
        }
        match self.kind {
            Kind::Progress { token: other } => named(token, other),
            Kind::Cancelled { id: other } => named(id, other),
            Kind::Acknowledged { id: other } if listens => named(id, other),
            Kind::Log if shared && !logs => Bond::None,
            Kind::Question | Kind::Log | Kind::Told { by: Side::Server } if shared && !listens => Bond::Possible,
            // The standing stream of HTTP may have questions of any call.
            Kind::Question if !same && !listens => Bond::Possible,
            Kind::Question | Kind::Log | Kind::Told { .. } | Kind::Http { .. } => sure(same && self.has_channel()),
            Kind::Request { .. } | Kind::Acknowledged { .. } | Kind::Free => Bond::None,
        }
    }

    /// Whether it is a log message.
    pub fn is_log(&self) -> bool {
        self.kind == Kind::Log
    }

    /// Whether it may be a call that log messages belong to.
    pub fn wants_logs(&self) -> bool {
        matches!(self.kind, Kind::Request { logs: true, .. })
    }

    /// What speaks for that which may belong to several calls to belong to this one.
    pub(super) fn claim(&self, call: &Tie) -> Claim {
        let waited = match (self.end, call.end) {
            (Some(answered), Some(ended)) => answered < ended,
            (_, _) => true,
        };
        let shared = match (&self.evidence, &call.evidence) {
            (Some(ours), Some(theirs)) => ours.shared(theirs),
            (_, _) => Shared::default(),
        };
        Claim { waited, asks: call.tool().is_some() || !self.is_question(), shared }
    }
}

fn kind(from: Side, message: &Message) -> Kind {
    match (message.method().map(Method::as_str), from) {
        (Some("notifications/progress"), Side::Server) => {
            Kind::Progress { token: param(message, &[meta::PROGRESS_TOKEN]) }
        }
        (Some("notifications/cancelled"), Side::Client) => Kind::Cancelled { id: param(message, &["requestId"]) },
        (Some("notifications/message"), Side::Server) => Kind::Log,
        (Some("notifications/subscriptions/acknowledged"), Side::Server) => {
            Kind::Acknowledged { id: param(message, &["_meta", meta::SUBSCRIPTION_ID]) }
        }
        (Some(_), by) => Kind::Told { by },
        (None, _) => Kind::Free,
    }
}

/// The mark of a param.
fn param(message: &Message, path: &[&str]) -> Option<Mark> {
    Some(Mark::of(message.params()?.at(path)?.as_str()))
}
