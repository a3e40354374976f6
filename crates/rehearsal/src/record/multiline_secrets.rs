//! Secrets that span several lines, each of which is harmless alone: private keys, and values on the line after their
//! name.

use rehearsal_core::exchange::Side;
use rehearsal_core::message::{GarbledReason, Message};
use rehearsal_core::redact::{Edge, PRIVATE_KEY, last_edge};
use rehearsal_core::trace::EntryBody;

/// Maximum number of lines of a private key. A longer text without an end is not a key.
const MAX_KEY_LINES: u16 = 200;
/// Maximum number of bytes of a line that are redacted together with the next one.
const LEAD_LIMIT: usize = 128;

/// Counts how many more lines of a stream may be inside a private key; 0 outside of one.
#[derive(Debug, Default)]
pub(super) struct OpenPrivateKey(u16);

impl OpenPrivateKey {
    /// Adds the next lines. Returns whether they continue a key that began before them.
    pub(super) fn continues(&mut self, lines: &[u8]) -> bool {
        let is_inside = self.is_open();
        self.0 = match last_edge(lines) {
            Some(Edge::Begins) => MAX_KEY_LINES,
            Some(Edge::Ends) => 0,
            None => self.0.saturating_sub(1),
        };
        is_inside
    }

    pub(super) fn is_open(&self) -> bool {
        self.0 > 0
    }
}

/// The state after the lines of one stream.
#[derive(Debug, Default)]
struct Stream {
    key: OpenPrivateKey,
    /// The redacted end of the last line if it is a name, such as `password:`; otherwise empty.
    lead: Vec<u8>,
}

impl Stream {
    /// The text that the next line is redacted with.
    fn before(&self) -> Vec<u8> {
        match self.key.is_open() {
            true => PRIVATE_KEY.into(),
            false => self.lead.clone(),
        }
    }

    /// Continues after a line; `kept` is the redacted line.
    fn pass(&mut self, line: &[u8], kept: &[u8]) {
        self.key.continues(line);
        let end = kept.trim_ascii_end();
        // The value after a name may come after empty lines.
        if !end.is_empty() {
            self.lead = match end.ends_with(b":") || end.ends_with(b"=") {
                true => [last(end), b" "].concat(),
                false => Vec::new(),
            };
        }
    }
}

/// The last characters of a text.
fn last(text: &[u8]) -> &[u8] {
    let cut = text.len().saturating_sub(LEAD_LIMIT);
    let inside = text[cut..].iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
    &text[cut + inside..]
}

/// The state of all streams of a session.
#[derive(Debug, Default)]
pub(super) struct MultilineSecrets {
    stderr: Stream,
    client: Stream,
    server: Stream,
}

impl MultilineSecrets {
    /// Redacts an entry with `redact`, together with the lines before it: a line inside a private key, or after a name,
    /// is redacted as if it were on one line with them.
    ///
    /// ```text
    /// password:        ──►  password:
    /// hunter2          ──►  password: hunter2   ──►  password: [redacted:…]   ──►  [redacted:…]
    /// ```
    pub(super) fn redact_entry<T>(
        &mut self,
        what: EntryBody,
        redact: impl Fn(EntryBody) -> (EntryBody, T),
    ) -> (EntryBody, T) {
        let Some((stream, line)) = self.stream(&what) else { return redact(what) };
        let before = stream.before();
        let (what, found) = match before.is_empty() || line.trim_ascii().is_empty() {
            true => redact(what),
            false => {
                let (redacted, found) = redact(changed(what.clone(), |text| [&before, text].concat()));
                match text(&redacted).is_some_and(|text| text.starts_with(&before)) {
                    true => (changed(redacted, |text| text[before.len()..].to_vec()), found),
                    // The text before it became part of a secret and was redacted with it.
                    false => (redacted, found),
                }
            }
        };
        // A partial message is not a whole line.
        if !matches!(what, EntryBody::Piece { .. }) {
            stream.pass(&line, text(&what).unwrap_or_default());
        }
        (what, found)
    }

    /// The stream of an entry and its text, if it is a line of free text.
    fn stream(&mut self, what: &EntryBody) -> Option<(&mut Stream, Vec<u8>)> {
        let stream = match what {
            EntryBody::Stderr { .. } => &mut self.stderr,
            EntryBody::Message { from, message, .. } if message.as_garbled().is_some() => self.of(*from),
            EntryBody::Piece { from, .. } => self.of(*from),
            _ => return None,
        };
        Some((stream, text(what)?.to_vec()))
    }

    fn of(&mut self, side: Side) -> &mut Stream {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

/// The text of a line.
fn text(what: &EntryBody) -> Option<&[u8]> {
    match what {
        EntryBody::Stderr { line } => Some(line.as_bytes()),
        EntryBody::Message { message, .. } => Some(message.raw()),
        EntryBody::Piece { bytes, .. } => Some(bytes),
        EntryBody::Http { .. } | EntryBody::Event { .. } | EntryBody::ChannelEnded { .. } | EntryBody::Ended(_) => None,
    }
}

/// The entry with another text.
fn changed(what: EntryBody, change: impl FnOnce(&[u8]) -> Vec<u8>) -> EntryBody {
    match what {
        EntryBody::Stderr { line } => {
            EntryBody::Stderr { line: String::from_utf8_lossy(&change(line.as_bytes())).into_owned() }
        }
        EntryBody::Message { from, channel, message, event_id } => {
            let reason = message.as_garbled().map_or(GarbledReason::NoMethodOrResult, |garbled| garbled.reason.clone());
            let message = Message::garbled(change(message.raw()), reason);
            EntryBody::Message { from, channel, message, event_id }
        }
        EntryBody::Piece { from, channel, offset, bytes } => {
            EntryBody::Piece { from, channel, offset, bytes: change(&bytes).into() }
        }
        what => what,
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_core::redact::Redaction;

    use super::*;

    fn kept(lines: &[&str]) -> String {
        let redaction = Redaction::standard();
        let mut across = MultilineSecrets::default();
        let kept = lines.iter().map(|line| {
            let (what, _) = across
                .redact_entry(EntryBody::Stderr { line: (*line).to_owned() }, |what| redaction.redact_entry_body(what));
            String::from_utf8_lossy(text(&what).unwrap()).into_owned()
        });
        kept.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn a_value_on_the_line_after_its_name_is_redacted() {
        let hidden = [
            &["password:", "hunter2"][..],
            &["Enter the API_KEY =", "", "  hunter2"],
            &["token=9aF2kQ71xVb0LmZe4tRw password:", "hunter2"],
            &[&*format!("{}x password:", "ä".repeat(200)), "hunter2"],
        ];
        for lines in hidden {
            let kept = kept(lines);
            assert!(!kept.contains("hunter2") && kept.contains("[redacted:"), "{kept}");
            assert!(!kept.contains("9aF2"), "{kept}");
        }
        let open = [
            &["options:", "hunter2"][..],
            &["password:", "waiting for the client to enter it"],
            &["password:", "", "Server is up", "hunter2"],
            &["the password", "hunter2"],
        ];
        for lines in open {
            assert_eq!(kept(lines), lines.join("|"));
        }
    }

    #[test]
    fn a_private_key_ends_at_its_end_line_or_the_line_limit() {
        let end = ["-----BEGIN PRIVATE KEY-----", "MIIE", "-----END PRIVATE KEY-----", "after"];
        let shown = kept(&end);
        assert!(!shown.contains("MIIE") && shown.ends_with("|after"), "{shown}");
        let mut endless = vec!["-----BEGIN PRIVATE KEY-----"];
        endless.extend(["abcd"; MAX_KEY_LINES as usize]);
        endless.push("after");
        let shown = kept(&endless);
        assert!(!shown.contains("abcd") && shown.ends_with("|after"), "{shown}");
    }
}
