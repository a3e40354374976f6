//! Finds exchanges in an index, with a few small reads each.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rehearsal_core::message::Method;
use rehearsal_core::trace::RequestKey;
use serde_json::json;

use super::records::{
    EVENT_LENGTH, EXCHANGE, EventRecord, ExchangeRecord, HEAD, HashSlot, IndexHead, MEMBER, SESSION, SLOT,
    SessionFacts, SessionRecord, damaged, sum, verify_checksum,
};

/// How many slots are read at once.
const AT_ONCE: u64 = 8;
/// At most this many related events of one exchange.
const MAX_EVENTS: u32 = 1_000_000;
/// Maximum number of bytes of the facts about a session.
const FACTS_LIMIT: u64 = 16 << 20;

/// An index in its file.
#[derive(Debug)]
pub(in crate::replay) struct Index {
    file: File,
    head: IndexHead,
}

/// The exchanges of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) struct ExchangeGroup {
    /// Unique to it.
    pub(in crate::replay) first: u64,
    pub(in crate::replay) count: u32,
}

impl Index {
    /// Reads the index in this file; `None` if the file has another layout.
    pub(super) fn read(file: File) -> io::Result<Option<Index>> {
        let mut bytes = [0; HEAD];
        if let Err(error) = file.read_exact_at(&mut bytes, 0) {
            return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
        }
        let head = IndexHead::read(&bytes).filter(|head| file.metadata().is_ok_and(|it| it.len() == head.length));
        Ok(head.map(|head| Index { file, head }))
    }

    pub(super) fn head(&self) -> &IndexHead {
        &self.head
    }

    /// How many exchanges there are.
    pub(in crate::replay) fn exchanges(&self) -> u32 {
        u32::try_from(self.head.exchanges).unwrap_or(u32::MAX)
    }

    /// How many sessions there are.
    pub(in crate::replay) fn sessions(&self) -> u32 {
        u32::try_from(self.head.sessions).unwrap_or(u32::MAX)
    }

    /// The exchanges of a key.
    pub(in crate::replay) fn group(&self, key: RequestKey) -> io::Result<Option<ExchangeGroup>> {
        let mask = self.head.slots - 1;
        let mut at = key.0 as u64 & mask;
        let mut seen = 0;
        while seen < self.head.slots {
            let count = AT_ONCE.min(self.head.slots - at);
            let place = self.head.slots_at() + at * SLOT as u64;
            let bytes = self.bytes(place, count as usize * SLOT)?;
            for (place, slot) in (place..).step_by(SLOT).zip(bytes.chunks_exact(SLOT)) {
                let slot = HashSlot::read(verify_checksum(slot, place)?);
                if slot.count == 0 {
                    return Ok(None);
                }
                if slot.key == key.0 {
                    return Ok(Some(ExchangeGroup { first: slot.first, count: slot.count }));
                }
            }
            (at, seen) = ((at + count) & mask, seen + count);
        }
        Ok(None)
    }

    /// One of a group, from 0.
    pub(in crate::replay) fn member(&self, group: ExchangeGroup, at: u32) -> io::Result<u32> {
        if at >= group.count {
            return Err(damaged());
        }
        let place = group.first.saturating_add(u64::from(at)).saturating_mul(MEMBER as u64);
        let mut number = [0; 4];
        self.record::<MEMBER, _>(self.head.groups_at().saturating_add(place), |bytes| number.copy_from_slice(bytes))?;
        Ok(u32::from_le_bytes(number))
    }

    /// An exchange by its number.
    pub(in crate::replay) fn exchange(&self, number: u32) -> io::Result<ExchangeRecord> {
        if u64::from(number) >= self.head.exchanges {
            return Err(damaged());
        }
        let place = self.head.exchanges_at() + u64::from(number) * EXCHANGE as u64;
        self.record::<EXCHANGE, _>(place, ExchangeRecord::read)
    }

    pub(in crate::replay) fn events(&self, exchange: &ExchangeRecord) -> io::Result<Vec<EventRecord>> {
        let count = exchange.event_count.min(MAX_EVENTS) as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        let place = self.head.events_at().saturating_add(exchange.events.saturating_mul(EVENT_LENGTH as u64));
        let bytes = self.bytes(place, count * EVENT_LENGTH)?;
        let records = (place..).step_by(EVENT_LENGTH).zip(bytes.chunks_exact(EVENT_LENGTH));
        records.map(|(place, event)| verify_checksum(event, place).map(EventRecord::read)).collect()
    }

    /// The facts about a session.
    pub(in crate::replay) fn facts(&self, session: u32) -> io::Result<SessionFacts> {
        if u64::from(session) >= self.head.sessions {
            return Err(damaged());
        }
        let place = self.head.sessions_at() + u64::from(session) * SESSION as u64;
        let facts = self.record::<SESSION, _>(place, SessionRecord::read)?;
        let text = self.bytes(facts.at, usize::try_from(facts.length.min(FACTS_LIMIT)).unwrap_or_default())?;
        if sum(&text, facts.at) != facts.sum {
            return Err(damaged());
        }
        serde_json::from_slice(&text).map_err(|_| damaged())
    }

    /// One record.
    fn record<const LENGTH: usize, T>(&self, at: u64, read: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        self.holds(at, LENGTH)?;
        let mut bytes = [0; LENGTH];
        self.file.read_exact_at(&mut bytes, at)?;
        verify_checksum(&bytes, at).map(read)
    }

    fn bytes(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        self.holds(at, length)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Checks that the file is this long, so that a damaged index does not cause a large allocation.
    fn holds(&self, at: u64, length: usize) -> io::Result<()> {
        if at.saturating_add(length as u64) > self.head.length { Err(damaged()) } else { Ok(()) }
    }
}

/// The key of all requests about one tool, prompt or resource.
pub(in crate::replay) fn subject_key(method: &Method, subject: Option<&str>) -> RequestKey {
    RequestKey::from_view(&json!({"about": method.as_str(), "subject": subject}))
}

/// The key of a request that a server refused because of its version.
pub(in crate::replay) fn refused_key(key: RequestKey) -> RequestKey {
    RequestKey::from_view(&json!({"refused": key.to_string()}))
}

/// The key of all requests of one method.
pub(in crate::replay) fn method_key(method: &str) -> RequestKey {
    RequestKey::from_view(&json!({"any": method}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Replay, ReplayOptions};
    use crate::store::Input;

    const TRACE: &str = r#"{"format":1,"session_id":"s","server_info":{},"started_at":null,"metadata":{},"calls":[{"request":{"seq":0,"at_ms":0,"id":1,"method":"tools/call","params":{"name":"echo"}},"response":{"seq":2,"at_ms":2,"success":true,"result":{}},"duration_ms":2}],"messages":[{"seq":1,"at_ms":1,"from":"server","type":"notification","method":"notifications/message","params":{"level":"info","data":"x"}}],"ended_at":null,"end":null}
{"format":1,"session_id":"t","server_info":{},"started_at":null,"metadata":{},"calls":[{"request":{"seq":0,"at_ms":0,"id":1,"method":"tools/call","params":{"name":"echo"}},"response":{"seq":1,"at_ms":1,"success":true,"result":{}},"duration_ms":1}],"messages":[],"ended_at":null,"end":null}
"#;

    /// Reads everything that is in an index.
    fn read_all(index: &Index) -> io::Result<()> {
        for at in 0..index.head.slots {
            let place = index.head.slots_at() + at * SLOT as u64;
            let HashSlot { first, count, .. } = index.record::<SLOT, _>(place, HashSlot::read)?;
            for at in 0..count {
                index.member(ExchangeGroup { first, count }, at)?;
            }
        }
        for number in 0..index.exchanges() {
            index.events(&index.exchange(number)?)?;
        }
        (0..index.sessions()).try_for_each(|session| index.facts(session).map(drop))
    }

    #[test]
    fn a_damaged_byte_is_always_detected() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.jsonl");
        std::fs::write(&trace, TRACE).unwrap();
        Replay::open(&Input::File(trace), ReplayOptions::default()).unwrap();
        let path = folder.path().join("trace.jsonl.index");
        let whole = std::fs::read(&path).unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            match Index::read(File::open(&path).unwrap()).unwrap() {
                Some(index) => read_all(&index).is_ok(),
                None => false,
            }
        };
        assert!(read(&whole));
        for at in 0..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= change;
                assert!(!read(&damaged), "byte {at} of {}, changed by {change:#x}", whole.len());
            }
        }
        assert!(!read(&whole[..whole.len() - 1]) && !read(&[&whole[..], b"x"].concat()));
    }
}
