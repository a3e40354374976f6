//! Servers that answered before the handshake, or without one.

use std::collections::HashSet;
use std::io;

use rehearsal_core::answer::{Memory, Terms};
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::Revision;
use rehearsal_core::trace::{Format, Likeness, RequestKey};
use serde_json::Value;

use super::answers::LOOKED_AT;
use super::replay::{Shared, is_selected};
use super::tape::{Tape, request};

/// What a client may ask before the handshake.
#[derive(Debug)]
pub(super) enum Early {
    /// Everything: the server did not wait for one.
    All,
    /// What was refused like that when it was recorded, if anything was.
    Refused(HashSet<RequestKey>),
}

impl Default for Early {
    fn default() -> Early {
        Early::Refused(HashSet::new())
    }
}

impl Early {
    /// Whether somebody was heard.
    pub(super) fn is_heard(&self) -> bool {
        match self {
            Early::All => true,
            Early::Refused(keys) => !keys.is_empty(),
        }
    }
}

impl Shared {
    /// The terms of a request; before the handshake, where the recorded server answered there too, the widest of its era.
    pub(super) fn terms_of(&self, method: &Method, params: &Value, memory: &Memory) -> Result<Terms, ErrorReply> {
        let is_heard = || match &self.early {
            Early::All => true,
            Early::Refused(keys) => keys.contains(&self.options.likeness.key(method, Some(params))),
        };
        match Terms::is_early(method, params, memory) && is_heard() {
            true => Ok(Terms::without_handshake()),
            false => Terms::of(method, params, memory, &Revision::ALL),
        }
    }
}

/// What the sessions that are answered from say about it. Other recorders leave handshakes out.
pub(super) fn early(tape: &Tape, selected: Option<&[bool]>, format: Format, likeness: &Likeness) -> io::Result<Early> {
    if !matches!(format, Format::Trace | Format::Journal) {
        return Ok(Early::default());
    }
    let mut refused = HashSet::new();
    let mut next = 0;
    for _ in 0..LOOKED_AT {
        let number = next;
        if number >= tape.index.exchanges() {
            break;
        }
        let exchange = tape.index.exchange(number)?;
        next += 1;
        // Which version is spoken is known since the handshake, or from the request itself.
        if exchange.revision().is_some() || !is_selected(selected, exchange.session) {
            next = tape.of_session(exchange.session)?.end.max(next);
            continue;
        }
        let recorded = tape.recorded(number)?;
        let message = request(&recorded);
        let (Some(method), Some(reply)) = (message.method(), recorded.reply()) else { continue };
        let needs_none = [Method::INITIALIZE, Method::PING, Method::DISCOVER].contains(method);
        match reply {
            Reply::Result(_) if *method == Method::INITIALIZE => {
                next = tape.of_session(exchange.session)?.end.max(next)
            }
            Reply::Result(_) | Reply::Error(_) if needs_none => {}
            Reply::Result(_) => return Ok(Early::All),
            Reply::Error(_) => {
                let params = message.params().and_then(|params| params.exact().ok());
                refused.insert(likeness.key(method, params.as_ref()));
            }
        }
    }
    Ok(Early::Refused(refused))
}
