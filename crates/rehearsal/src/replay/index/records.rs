//! The records of an index, byte by byte. Each ends with a checksum of the record and its place.

use std::io;

use rehearsal_core::protocol::Revision;
use rehearsal_core::trace::FileSpan;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The first bytes of the file; they change with the layout.
pub(super) const MAGIC: [u8; 16] = *b"rehearse index K";
/// No exchange, no request.
pub(super) const NONE: u32 = u32::MAX;

/// The length of each record in bytes, with its checksum.
pub(super) const HEAD: usize = 120 + CHECKSUM_LENGTH;
pub(super) const SLOT: usize = 28 + CHECKSUM_LENGTH;
pub(super) const MEMBER: usize = 4 + CHECKSUM_LENGTH;
pub(super) const EXCHANGE: usize = 35 + 1 + CHECKSUM_LENGTH;
pub(super) const EVENT_LENGTH: usize = 23 + CHECKSUM_LENGTH;
pub(super) const SESSION: usize = 20 + CHECKSUM_LENGTH;

/// The trace that an index is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceFingerprint {
    pub(super) length: u64,
    /// When it last changed, in nanoseconds since 1970.
    pub(super) changed: u128,
    /// A digest of its beginning and its end.
    pub(super) sample: u128,
    /// A fingerprint of the rule by which requests are equal.
    pub(super) likeness: u128,
}

/// The number of records of each kind, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexHead {
    pub(super) origin: TraceFingerprint,
    /// A power of two.
    pub(super) slots: u64,
    pub(super) groups: u64,
    pub(super) exchanges: u64,
    pub(super) events: u64,
    pub(super) sessions: u64,
    /// How long the whole file is.
    pub(super) length: u64,
}

impl IndexHead {
    pub(super) fn slots_at(&self) -> u64 {
        HEAD as u64
    }

    pub(super) fn groups_at(&self) -> u64 {
        self.slots_at().saturating_add(self.slots.saturating_mul(SLOT as u64))
    }

    pub(super) fn exchanges_at(&self) -> u64 {
        self.groups_at().saturating_add(self.groups.saturating_mul(MEMBER as u64))
    }

    pub(super) fn events_at(&self) -> u64 {
        self.exchanges_at().saturating_add(self.exchanges.saturating_mul(EXCHANGE as u64))
    }

    pub(super) fn sessions_at(&self) -> u64 {
        self.events_at().saturating_add(self.events.saturating_mul(EVENT_LENGTH as u64))
    }

    pub(super) fn facts_at(&self) -> u64 {
        self.sessions_at().saturating_add(self.sessions.saturating_mul(SESSION as u64))
    }

    /// The whole record, with its checksum.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.origin.length.to_le_bytes());
        for number in [self.origin.changed, self.origin.sample, self.origin.likeness] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.slots, self.groups, self.exchanges, self.events, self.sessions, self.length] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        append_checksum(&mut out, 0);
        out
    }

    /// `None` if this is no index, an index of another layout, or a damaged one.
    pub(super) fn read(bytes: &[u8; HEAD]) -> Option<IndexHead> {
        let mut from = Bytes(verify_checksum(bytes, 0).ok()?.strip_prefix(&MAGIC)?);
        let length = from.u64();
        let origin = TraceFingerprint { length, changed: from.u128(), sample: from.u128(), likeness: from.u128() };
        let [slots, groups, exchanges] = [from.u64(), from.u64(), from.u64()];
        let [events, sessions, length] = [from.u64(), from.u64(), from.u64()];
        let head = IndexHead { origin, slots, groups, exchanges, events, sessions, length };
        (slots.is_power_of_two() && head.facts_at() <= length).then_some(head)
    }
}

/// The place of the exchanges of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HashSlot {
    pub(super) key: u128,
    pub(super) first: u64,
    /// 0 in a slot that is free.
    pub(super) count: u32,
}

impl HashSlot {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
    }

    pub(super) fn read(bytes: &[u8]) -> HashSlot {
        let mut from = Bytes(bytes);
        HashSlot { key: from.u128(), first: from.u64(), count: from.u32() }
    }
}

/// Properties of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::replay) struct Flags(pub(super) u8);

impl Flags {
    /// A later round of another exchange.
    pub(super) const ROUND: Flags = Flags(2);
    /// The client library sends it, as with handshakes and lists, so that not every client does.
    pub(super) const PROTOCOL: Flags = Flags(4);

    /// The recording has no answer to it.
    pub(super) const UNANSWERED: Flags = Flags(8);

    /// A subscription that was refused.
    pub(super) const LISTEN_REFUSED: Flags = Flags(16);

    /// Whether a subscription was acknowledged; true for any other request.
    pub(in crate::replay) fn is_listen_accepted(self) -> bool {
        self.0 & Flags::LISTEN_REFUSED.0 == 0
    }

    /// Whether it was answered.
    pub(in crate::replay) fn is_answered(self) -> bool {
        self.0 & Flags::UNANSWERED.0 == 0
    }

    /// Whether it is reported as unused if no client requests it.
    pub(in crate::replay) fn counts(self) -> bool {
        self.0 & (Flags::ROUND.0 | Flags::PROTOCOL.0) == 0
    }

    pub(super) fn add(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// The place of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) struct ExchangeRecord {
    pub(in crate::replay) span: FileSpan,
    pub(in crate::replay) session: u32,
    pub(super) events: u64,
    pub(super) event_count: u32,
    /// The next round, or [`NONE`].
    pub(super) next: u32,
    pub(super) revision: u8,
    pub(in crate::replay) flags: Flags,
}

impl ExchangeRecord {
    /// The next round.
    pub(in crate::replay) fn next_round(&self) -> Option<u32> {
        Some(self.next).filter(|next| *next != NONE)
    }

    /// The version that it was recorded in.
    pub(in crate::replay) fn revision(&self) -> Option<Revision> {
        Revision::ALL.get(usize::from(self.revision)).copied()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.span.offset.to_le_bytes());
        out.extend_from_slice(&self.events.to_le_bytes());
        for number in [self.span.length, self.session, self.event_count, self.next] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&[self.span.format, self.revision, self.flags.0, 0]);
    }

    pub(super) fn read(bytes: &[u8]) -> ExchangeRecord {
        let mut from = Bytes(bytes);
        let (offset, events) = (from.u64(), from.u64());
        let [length, session, event_count, next] = [from.u32(), from.u32(), from.u32(), from.u32()];
        let [format, revision, flags] = from.array();
        let span = FileSpan { offset, length, format };
        ExchangeRecord { span, session, events, event_count, next, revision, flags: Flags(flags) }
    }
}

/// The place of a related event of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) struct EventRecord {
    pub(in crate::replay) span: FileSpan,
    /// Its place in the session.
    pub(in crate::replay) seq: u64,
    pub(in crate::replay) is_call: bool,
    /// Whether it is sent after the answer.
    pub(in crate::replay) is_late: bool,
}

impl EventRecord {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.span.offset.to_le_bytes());
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.span.length.to_le_bytes());
        out.extend_from_slice(&[self.span.format, self.is_call.into(), self.is_late.into()]);
    }

    pub(super) fn read(bytes: &[u8]) -> EventRecord {
        let mut from = Bytes(bytes);
        let (offset, seq, length) = (from.u64(), from.u64(), from.u32());
        let [format, is_call, is_late] = from.array();
        let span = FileSpan { offset, length, format };
        EventRecord { span, seq, is_call: is_call != 0, is_late: is_late != 0 }
    }
}

/// The place of the facts about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionRecord {
    pub(super) at: u64,
    pub(super) length: u64,
    /// The [checksum](sum) of the facts.
    pub(super) sum: u32,
}

impl SessionRecord {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.sum.to_le_bytes());
    }

    pub(super) fn read(bytes: &[u8]) -> SessionRecord {
        let mut from = Bytes(bytes);
        SessionRecord { at: from.u64(), length: from.u64(), sum: from.u32() }
    }
}

/// The facts about a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::replay) struct SessionFacts {
    pub(in crate::replay) id: String,
    pub(in crate::replay) server_info: Map<String, Value>,
    pub(in crate::replay) metadata: Map<String, Value>,
    /// Its first exchange.
    pub(in crate::replay) first: u32,
    /// How many of its requests were answered by a stream of events, over HTTP.
    pub(in crate::replay) streamed: u64,
    /// How many by JSON.
    pub(in crate::replay) plain: u64,
    /// How many milliseconds clients should wait before they reconnect to a closed stream.
    pub(in crate::replay) retry: Option<u64>,
    /// The subscription filter that the server acknowledged, if any.
    pub(in crate::replay) acknowledged: Option<Map<String, Value>>,
    /// How many messages of the server belong to no request, and so are never replayed.
    #[serde(rename = "unsaid")] // words: allow
    pub(in crate::replay) undelivered: u64,
}

/// Reads numbers from the front; 0 after the end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        if let Some((first, rest)) = self.0.split_at_checked(N) {
            taken.copy_from_slice(first);
            self.0 = rest;
        }
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.array())
    }
}

/// The length of a checksum in bytes.
pub(super) const CHECKSUM_LENGTH: usize = 4;

/// Adds the checksum of a record at this offset of the file.
pub(super) fn append_checksum(record: &mut Vec<u8>, at: u64) {
    let sum = sum(record, at);
    record.extend_from_slice(&sum.to_le_bytes());
}

/// A record from this place of the file, without its checksum; `Err` if the checksum does not match.
pub(super) fn verify_checksum(record: &[u8], at: u64) -> io::Result<&[u8]> {
    let (record, checksum) = record.split_last_chunk::<CHECKSUM_LENGTH>().ok_or_else(damaged)?;
    if sum(record, at) == u32::from_le_bytes(*checksum) { Ok(record) } else { Err(damaged()) }
}

/// A checksum of 32 bits that changes if any four bytes change. Each step is a bijection, so a difference is never lost.
pub(super) fn sum(bytes: &[u8], at: u64) -> u32 {
    let step = |sum: u32, word: u32| (sum ^ word).wrapping_mul(0x9e37_79b1).rotate_left(15);
    let [low, high] = [at as u32, (at >> 32) as u32];
    let start = step(step(step(0x5eed, bytes.len() as u32), low), high);
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words.iter().fold(start, |sum, word| step(sum, u32::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| step(sum, u32::from(*byte)))
}

/// The error for an index with an impossible content.
pub(in crate::replay) fn damaged() -> io::Error {
    let why = "the index of the trace is damaged; delete the file that ends in .index and start again";
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_breaks_the_checksum() {
        for length in [0, 1, 4, 27, 28, 44] {
            let mut record: Vec<u8> = (0..length).map(|at| at ^ 0x55).collect();
            append_checksum(&mut record, 96);
            assert_eq!(verify_checksum(&record, 96).unwrap().len(), usize::from(length));
            assert!(verify_checksum(&record, 97).is_err(), "the checksum includes the place");
            for at in 0..record.len() {
                for change in 1..=u8::MAX {
                    let mut damaged = record.clone();
                    damaged[at] ^= change;
                    assert!(verify_checksum(&damaged, 96).is_err(), "byte {at} of {length}, changed by {change}");
                }
            }
            assert!(verify_checksum(&record[..record.len() - 1], 96).is_err());
        }
        assert!(verify_checksum(&[], 0).is_err());
    }
}
