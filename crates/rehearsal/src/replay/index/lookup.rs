//! Finds exchanges in an index, with a few small reads each.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rehearsal_core::trace::RequestKey;

use super::layout::{EXCHANGE, Exchange, Facts, HEAD, Head, SESSION, SLOT, Slot, THING, ThingRecord};

/// How many slots are read at once.
const AT_ONCE: u64 = 8;
/// How many things one exchange may have.
const THINGS: u32 = 1_000_000;
/// How long what is known about a session may be.
const FACTS: u64 = 16 << 20;

/// An index in its file.
#[derive(Debug)]
pub(in crate::replay) struct Index {
    file: File,
    head: Head,
}

/// Exchanges that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) struct Group {
    /// Unique to it.
    pub(in crate::replay) first: u64,
    pub(in crate::replay) count: u32,
}

impl Index {
    /// The index in this file; `None` where there is none of this layout in it.
    pub(super) fn read(file: File) -> io::Result<Option<Index>> {
        let mut bytes = [0; HEAD];
        if let Err(error) = file.read_exact_at(&mut bytes, 0) {
            return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
        }
        let head = Head::read(&bytes).filter(|head| file.metadata().is_ok_and(|it| it.len() == head.length));
        Ok(head.map(|head| Index { file, head }))
    }

    pub(super) fn head(&self) -> &Head {
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
    pub(in crate::replay) fn group(&self, key: RequestKey) -> io::Result<Option<Group>> {
        let mask = self.head.slots - 1;
        let mut at = key.0 as u64 & mask;
        let mut seen = 0;
        while seen < self.head.slots {
            let count = AT_ONCE.min(self.head.slots - at);
            let bytes = self.bytes(self.head.slots_at() + at * SLOT as u64, count as usize * SLOT)?;
            for slot in bytes.chunks_exact(SLOT).map(Slot::read) {
                if slot.count == 0 {
                    return Ok(None);
                }
                if slot.key == key.0 {
                    return Ok(Some(Group { first: slot.first, count: slot.count }));
                }
            }
            (at, seen) = ((at + count) & mask, seen + count);
        }
        Ok(None)
    }

    /// One of a group, from 0.
    pub(in crate::replay) fn member(&self, group: Group, at: u32) -> io::Result<u32> {
        let place = group.first.saturating_add(u64::from(at.min(group.count))).saturating_mul(4);
        let place = self.head.groups_at().saturating_add(place);
        self.holds(place, 4)?;
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, place)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// An exchange by its number.
    pub(in crate::replay) fn exchange(&self, number: u32) -> io::Result<Exchange> {
        if u64::from(number) >= self.head.exchanges {
            return Err(damaged());
        }
        let bytes = self.bytes(self.head.exchanges_at() + u64::from(number) * EXCHANGE as u64, EXCHANGE)?;
        Ok(Exchange::read(&bytes))
    }

    pub(in crate::replay) fn things(&self, exchange: &Exchange) -> io::Result<Vec<ThingRecord>> {
        let count = exchange.thing_count.min(THINGS) as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        let place = exchange.things.saturating_mul(THING as u64);
        let bytes = self.bytes(self.head.things_at().saturating_add(place), count * THING)?;
        Ok(bytes.chunks_exact(THING).map(ThingRecord::read).collect())
    }

    /// What is known about a session.
    pub(in crate::replay) fn facts(&self, session: u32) -> io::Result<Facts> {
        let bytes = self.bytes(self.head.sessions_at() + u64::from(session) * SESSION as u64, SESSION)?;
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        let text = self.bytes(number(0), usize::try_from(number(8).min(FACTS)).unwrap_or_default())?;
        serde_json::from_slice(&text).map_err(|_| damaged())
    }

    fn bytes(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        self.holds(at, length)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Whether there is that much, so that no damage makes us take memory for it.
    fn holds(&self, at: u64, length: usize) -> io::Result<()> {
        if at.saturating_add(length as u64) > self.head.length { Err(damaged()) } else { Ok(()) }
    }
}

/// What an index says that cannot be.
pub(in crate::replay) fn damaged() -> io::Error {
    let why = "the index of the trace is damaged; delete the file that ends in .index and start again";
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::replay::{Options, Replay};
    use crate::store::Input;

    const TRACE: &str = r#"{"format":1,"session_id":"s","server_info":{},"started_at":null,"metadata":{},"calls":[{"request":{"seq":0,"at_ms":0,"id":1,"method":"tools/call","params":{"name":"echo"}},"response":{"seq":2,"at_ms":2,"success":true,"result":{}},"duration_ms":2}],"messages":[{"seq":1,"at_ms":1,"from":"server","type":"notification","method":"notifications/message","params":{"level":"info","data":"x"}}],"ended_at":null,"end":null}
"#;

    /// Opens the trace and looks at everything that is in it.
    fn look(trace: &Path) -> io::Result<u64> {
        let replay = Replay::open(&Input::File(trace.to_owned()), Options::default()).map_err(io::Error::other)?;
        replay.ledger().map(|ledger| ledger.unused)
    }

    #[test]
    fn a_damaged_index_is_built_again_or_told_about() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.jsonl");
        std::fs::write(&trace, TRACE).unwrap();
        assert_eq!(look(&trace).unwrap(), 1);
        let index = folder.path().join("trace.jsonl.index");
        let whole = std::fs::read(&index).unwrap();
        for at in (0..whole.len()).step_by(13) {
            for byte in [0xff, whole[at] ^ 1] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                std::fs::write(&index, &damaged).unwrap();
                if let Err(error) = look(&trace) {
                    let told = error.to_string();
                    assert!(told.contains("index"), "byte {at} is {byte}: {told}");
                }
            }
        }
    }
}
