//! Writes an index.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use super::builder::IndexBuilder;
use super::records::{HashSlot, IndexHead, SessionRecord, TraceFingerprint};
use super::records::{append_checksum, sum};

/// Writes an index.
pub(super) fn write(
    out: &mut (impl Write + Seek),
    mut all: IndexBuilder,
    origin: TraceFingerprint,
) -> io::Result<IndexHead> {
    // Exchanges of one key stay in order, because the numbers are.
    all.keys.sort_unstable();
    let same = || all.keys.chunk_by(|(one, _), (other, _)| one == other);
    let mut table = HashTable::with_keys(same().count() + all.similar.len());
    for same in same() {
        if let [(key, _), ..] = same {
            table.put(*key, same.iter().map(|(_, number)| *number));
        }
    }
    for (key, members) in &all.similar {
        table.put(*key, members.iter().copied());
    }
    all.keys = Vec::new();
    let HashTable { slots, groups } = table;
    assign(&mut all);
    let facts: Vec<Vec<u8>> = all.sessions.iter().map(serde_json::to_vec).collect::<Result<_, _>>()?;
    let mut head = IndexHead {
        origin,
        slots: slots.len() as u64,
        groups: groups.len() as u64,
        exchanges: all.exchanges.len() as u64,
        events: all.events.len() as u64,
        sessions: facts.len() as u64,
        length: 0,
    };
    head.length = head.facts_at() + facts.iter().map(|fact| fact.len() as u64).sum::<u64>();
    let mut out = BufWriter::with_capacity(1 << 20, out);
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&head.write())?;
    let mut records = RecordWriter { out, at: head.slots_at(), record: Vec::with_capacity(64) };
    slots.iter().try_for_each(|slot| records.put(|record| slot.write(record)))?;
    groups.iter().try_for_each(|number| records.put(|record| record.extend_from_slice(&number.to_le_bytes())))?;
    all.exchanges.iter().try_for_each(|exchange| records.put(|record| exchange.write(record)))?;
    all.events.iter().try_for_each(|(_, event)| records.put(|record| event.write(record)))?;
    let mut at = head.facts_at();
    for fact in &facts {
        let place = SessionRecord { at, length: fact.len() as u64, sum: sum(fact, at) };
        records.put(|record| place.write(record))?;
        at += place.length;
    }
    let mut out = records.out;
    facts.iter().try_for_each(|fact| out.write_all(fact))?;
    out.flush()?;
    Ok(head)
}

/// Writes records to the file, one after the other.
struct RecordWriter<W> {
    out: W,
    /// Where the next one will be.
    at: u64,
    record: Vec<u8>,
}

impl<W: Write> RecordWriter<W> {
    fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.record.clear();
        write(&mut self.record);
        append_checksum(&mut self.record, self.at);
        self.at += self.record.len() as u64;
        self.out.write_all(&self.record)
    }
}

/// The hash table of the keys.
struct HashTable {
    /// Each slot at the index of its key, or in the next free one after that; at most half of them are used.
    slots: Vec<HashSlot>,
    groups: Vec<u32>,
}

impl HashTable {
    fn with_keys(keys: usize) -> HashTable {
        HashTable { slots: vec![HashSlot::default(); (keys.max(1) * 2).next_power_of_two()], groups: Vec::new() }
    }

    fn put(&mut self, key: u128, members: impl ExactSizeIterator<Item = u32>) {
        let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let mask = self.slots.len() - 1;
        let mut at = key as usize & mask;
        while self.slots[at].count > 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = HashSlot { key, first: self.groups.len() as u64, count };
        self.groups.extend(members);
    }
}

/// Stores in each exchange where its related events are.
fn assign(all: &mut IndexBuilder) {
    all.events.sort_by_key(|(number, event)| (*number, event.seq));
    for (at, (number, _)) in all.events.iter().enumerate() {
        if let Some(exchange) = all.exchanges.get_mut(*number as usize) {
            if exchange.event_count == 0 {
                exchange.events = at as u64;
            }
            exchange.event_count += 1;
        }
    }
}
