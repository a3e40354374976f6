//! Private keys that are printed over several lines, each of which looks harmless.

use memchr::memmem::find;
use rehearsal_core::exchange::Side;
use rehearsal_core::message::{Message, Reason};
use rehearsal_core::trace::What;

/// After so many lines a key that has not ended is none.
const LINES: u16 = 200;
/// What a line of a key is put under, so that it is taken for what it is.
const BEGIN: &[u8] = b"-----BEGIN PRIVATE KEY-----\n";

/// Whether the lines of one stream are inside of a key, and how many may still be.
#[derive(Debug, Default)]
pub(super) struct OpenKey(u16);

impl OpenKey {
    /// Takes the next lines; whether they are inside of a key that began before them.
    pub(super) fn takes(&mut self, lines: &[u8]) -> bool {
        let is_inside = self.0 > 0;
        let begins = find(lines, b"-----BEGIN ").is_some_and(|at| find(&lines[at..], b"PRIVATE KEY").is_some());
        self.0 = match (begins, find(lines, b"-----END ").is_some()) {
            (_, true) => 0,
            (true, false) => LINES,
            (false, false) => self.0.saturating_sub(1),
        };
        is_inside
    }

    pub(super) fn is_open(&self) -> bool {
        self.0 > 0
    }
}

/// The keys of all the streams of a session.
#[derive(Debug, Default)]
pub(super) struct OpenKeys {
    stderr: OpenKey,
    client: OpenKey,
    server: OpenKey,
}

impl OpenKeys {
    /// Takes out the secrets of what happened, with `redact`: what is inside of a key is put under its beginning for that.
    pub(super) fn judged<T>(&mut self, what: What, redact: impl FnOnce(What) -> (What, T)) -> (What, T) {
        if !self.take(&what) {
            return redact(what);
        }
        let (what, found) = redact(changed(what, |text| [BEGIN, text].concat()));
        (changed(what, |text| [text.strip_prefix(BEGIN).unwrap_or(text)].concat()), found)
    }

    /// Whether this is inside of a key.
    fn take(&mut self, what: &What) -> bool {
        match what {
            What::Stderr { line } => self.stderr.takes(line.as_bytes()),
            What::Message { from, message, .. } if message.as_garbled().is_some() => match from {
                Side::Client => self.client.takes(message.raw()),
                Side::Server => self.server.takes(message.raw()),
            },
            _ => false,
        }
    }
}

/// The same with another text.
fn changed(what: What, change: impl FnOnce(&[u8]) -> Vec<u8>) -> What {
    match what {
        What::Stderr { line } => What::Stderr { line: String::from_utf8_lossy(&change(line.as_bytes())).into_owned() },
        What::Message { from, channel, message, event_id } => {
            let reason = message.as_garbled().map_or(Reason::Purposeless, |garbled| garbled.reason.clone());
            let message = Message::garbled(change(message.raw()), reason);
            What::Message { from, channel, message, event_id }
        }
        what => what,
    }
}
