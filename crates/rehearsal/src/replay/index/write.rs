//! Writes an index.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use super::collect::Collection;
use super::layout::{Head, Origin, Slot};

/// Writes everything that was collected.
pub(super) fn write(out: &mut (impl Write + Seek), mut all: Collection, origin: Origin) -> io::Result<Head> {
    let mut groups: Vec<u32> = Vec::with_capacity(all.keys.len());
    let mut slots: Vec<Slot> = Vec::new();
    let mut group = |key: u128, members: &[u32], slots: &mut Vec<Slot>| {
        let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
        slots.push(Slot { key, first: groups.len() as u64, count });
        groups.extend_from_slice(members);
    };
    // Exchanges of one key stay in order, because the numbers are.
    all.keys.sort_unstable();
    for same in all.keys.chunk_by(|(one, _), (other, _)| one == other) {
        let members: Vec<u32> = same.iter().map(|(_, number)| *number).collect();
        if let Some((key, _)) = same.first() {
            group(*key, &members, &mut slots);
        }
    }
    for (key, members) in &all.alike {
        group(*key, members, &mut slots);
    }
    let table = placed(&slots);
    assign(&mut all);
    let facts: Vec<Vec<u8>> = all.sessions.iter().map(serde_json::to_vec).collect::<Result<_, _>>()?;
    let mut head = Head {
        origin,
        slots: table.len() as u64,
        groups: groups.len() as u64,
        exchanges: all.exchanges.len() as u64,
        things: all.things.len() as u64,
        sessions: facts.len() as u64,
        length: 0,
    };
    head.length = head.facts_at() + facts.iter().map(|fact| fact.len() as u64).sum::<u64>();
    let mut out = BufWriter::with_capacity(1 << 20, out);
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&head.write())?;
    let mut buffer = Vec::with_capacity(64);
    let mut put = |write: &dyn Fn(&mut Vec<u8>)| {
        buffer.clear();
        write(&mut buffer);
        out.write_all(&buffer)
    };
    table.iter().try_for_each(|slot| put(&|buffer| slot.write(buffer)))?;
    groups.iter().try_for_each(|number| put(&|buffer| buffer.extend_from_slice(&number.to_le_bytes())))?;
    all.exchanges.iter().try_for_each(|exchange| put(&|buffer| exchange.write(buffer)))?;
    all.things.iter().try_for_each(|(_, thing)| put(&|buffer| thing.write(buffer)))?;
    let mut at = head.facts_at();
    for fact in &facts {
        let length = fact.len() as u64;
        put(&|buffer| {
            buffer.extend_from_slice(&at.to_le_bytes());
            buffer.extend_from_slice(&length.to_le_bytes());
        })?;
        at += length;
    }
    facts.iter().try_for_each(|fact| put(&|buffer| buffer.extend_from_slice(fact)))?;
    out.flush()?;
    Ok(head)
}

/// The slots where their keys say, or the next free place after that; at most half of them are taken.
fn placed(slots: &[Slot]) -> Vec<Slot> {
    let size = (slots.len().max(1) * 2).next_power_of_two();
    let mut table = vec![Slot::default(); size];
    for slot in slots {
        let mut at = slot.key as usize & (size - 1);
        while table[at].count > 0 {
            at = (at + 1) & (size - 1);
        }
        table[at] = *slot;
    }
    table
}

/// Tells each exchange where its things are.
fn assign(all: &mut Collection) {
    all.things.sort_by_key(|(number, thing)| (*number, thing.seq));
    for (at, (number, _)) in all.things.iter().enumerate() {
        if let Some(exchange) = all.exchanges.get_mut(*number as usize) {
            if exchange.thing_count == 0 {
                exchange.things = at as u64;
            }
            exchange.thing_count += 1;
        }
    }
}
