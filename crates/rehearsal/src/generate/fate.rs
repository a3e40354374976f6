//! What becomes of each thing that was recorded: it is in what is generated, or it is told that it is not.

use std::collections::BTreeMap;

use rehearsal_core::exchange::Side;
use rehearsal_core::message::{Body, Message, Method};
use rehearsal_core::trace::{Call, End, Inside, What};

/// What becomes of one recorded thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in what is generated, or every server does it by itself.
    Used,
    /// It is not, in words.
    LeftOut(String),
}

impl Fate {
    pub(super) fn left_out(words: impl Into<String>) -> Fate {
        Fate::LeftOut(words.into())
    }
}

/// Keeps account of everything that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// How many things are in what is generated.
    pub(super) used: usize,
    /// How often something is not, by the words for it.
    pub(super) left_out: BTreeMap<String, usize>,
}

impl Account {
    /// Enters so many things of one fate.
    pub(super) fn enter(&mut self, fate: Fate, things: usize) {
        match fate {
            Fate::Used => self.used += things,
            Fate::LeftOut(_) if things == 0 => {}
            Fate::LeftOut(words) => *self.left_out.entry(words).or_default() += things,
        }
    }

    /// ```text
    /// 3 × notifications/message, told during resources/subscribe
    /// ```
    pub(super) fn words(self) -> Vec<String> {
        let words = |(what, count): (String, usize)| if count == 1 { what } else { format!("{count} × {what}") };
        self.left_out.into_iter().map(words).collect()
    }
}

/// What becomes of something that comes before no answer of a rule. `during` is the request that was open meanwhile, if one
/// was.
pub(super) fn beside(thing: &Inside, during: Option<&Method>) -> Fate {
    let when = during.map_or_else(
        || "outside of any call, or while several were in flight".to_owned(),
        |method| format!("during {method}"),
    );
    match thing {
        Inside::Call(call) => match call.request.message.method() {
            Some(method) if *method == Method::PING => Fate::Used,
            Some(method) => Fate::left_out(format!("{method}, asked {when}")),
            None => Fate::left_out(format!("something that was asked {when}")),
        },
        Inside::Entry(entry) => match &entry.what {
            What::Message { from, message, .. } => said(*from, message, &when),
            What::Http { head, .. } => match head.status.filter(|status| *status >= 400) {
                Some(status) => Fate::left_out(format!("HTTP status {status}")),
                None => Fate::Used,
            },
            What::ChannelEnded { why: Some(_), .. } => Fate::left_out("a stream that broke"),
            // However it is served, it has a transport.
            What::Event { .. } | What::ChannelEnded { why: None, .. } => Fate::Used,
            What::Stderr { .. } => Fate::left_out("a line on stderr"),
            What::Piece { .. } => Fate::left_out("half a line"),
            What::Ended(end) => ended(end),
        },
    }
}

/// Why a call has no answer, in words.
pub(super) fn unanswered(call: &Call, inside: &[Inside]) -> &'static str {
    match &call.response {
        Some(_) => "without an answer that could be understood",
        None if inside.iter().any(Inside::cancels) => "which the client cancelled",
        None => "which was never answered",
    }
}

fn said(from: Side, message: &Message, when: &str) -> Fate {
    let who = match from {
        Side::Client => "client",
        Side::Server => "server",
    };
    match (message.body(), from) {
        // Every server takes note of what its client tells.
        (Body::Notification(_), Side::Client) => Fate::Used,
        // Whoever listens is told so.
        (Body::Notification(told), Side::Server) if told.method == Method::SUBSCRIPTION_ACKNOWLEDGED => Fate::Used,
        (Body::Notification(told), Side::Server) => Fate::left_out(format!("{}, told {when}", told.method)),
        (Body::Request(asked), _) => Fate::left_out(format!("{}, asked {when}", asked.method)),
        (Body::Response(_), _) => Fate::left_out(format!("an answer of the {who}'s to no question")),
        (Body::Batch(_), _) => Fate::left_out(format!("a batch of the {who}'s")),
        (Body::Garbled(_), _) => Fate::left_out(format!("what the {who} said that is no message")),
    }
}

/// What becomes of how a session ended.
pub(super) fn ended(end: &End) -> Fate {
    match end {
        End::ServerExited { .. } => Fate::left_out("that the server ended by itself"),
        End::ClientClosed { .. } | End::Stopped | End::Failed { .. } | End::Recovered => Fate::Used,
    }
}
