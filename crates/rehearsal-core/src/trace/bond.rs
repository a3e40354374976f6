//! What belongs to a call.

use super::timeline::Inside;
use super::{Call, Entry, What};
use crate::exchange::{Channel, Side};
use crate::json::RawJson;
use crate::message::{Message, Method};
use crate::protocol::meta;

/// Whether something belongs to a call that was open when it happened.
pub(super) enum Bond {
    None,
    /// Unless another one was open too.
    Possible,
    Sure,
}

/// How something is bound to a call; `token` is the one by which the call hears of its progress.
pub(super) fn bond(call: &Call, token: Option<&RawJson>, thing: &Inside) -> Bond {
    let channel = |other: Channel| match (call.channel() == other, other == Channel::MAIN) {
        (true, false) => Bond::Sure,
        // What listens for the whole session has no questions of its own.
        (true, true) if call.request.message.method() != Some(&Method::SUBSCRIPTIONS_LISTEN) => Bond::Possible,
        (true, true) | (false, _) => Bond::None,
    };
    match thing {
        Inside::Call(other) if other.asker == Side::Server => channel(other.channel()),
        Inside::Call(_) => Bond::None,
        Inside::Entry(entry) => match &entry.what {
            What::Message { from, channel: on, message, .. } => {
                let param = |key: &str| message.params().and_then(|params| params.field(key));
                let sure = |is: bool| if is { Bond::Sure } else { Bond::None };
                match (message.method().map(Method::as_str), from) {
                    (Some("notifications/progress"), Side::Server) => {
                        sure(token.is_some() && param(meta::PROGRESS_TOKEN).as_ref() == token)
                    }
                    (Some("notifications/cancelled"), Side::Client) => {
                        let id = call.request.message.as_request().map(|request| request.id.to_string());
                        sure(id.is_some() && param("requestId").map(|id| id.to_string()) == id)
                    }
                    (Some("notifications/message"), Side::Server) => channel(*on),
                    (Some(_), _) if *on == call.channel() && *on != Channel::MAIN => Bond::Sure,
                    (Some(_) | None, _) => Bond::None,
                }
            }
            What::Http { channel: on, .. }
            | What::Event { channel: on, .. }
            | What::ChannelEnded { channel: on, .. } => {
                if *on == call.channel() && *on != Channel::MAIN {
                    Bond::Sure
                } else {
                    Bond::None
                }
            }
            What::Stderr { .. } | What::Piece { .. } | What::Ended(_) => Bond::None,
        },
    }
}

/// Whether this is the head of the POST that a call came in.
pub(super) fn is_head(call: &Call, thing: &Inside) -> bool {
    let Inside::Entry(Entry { what: What::Http { from: Side::Client, channel, .. }, .. }) = thing else { return false };
    *channel == call.channel()
}

/// The token by which a request hears of its progress.
pub(super) fn token_of(request: &Message) -> Option<RawJson> {
    request.params()?.at(&["_meta", meta::PROGRESS_TOKEN])
}
