//! Damage to an index, noticed when it is read.
//!
//! Every record ends with a few bits of all that is before them and of its place in the file. A look-up reads a handful of records and
//! tests those; nothing else is ever read for it.

use std::io;

/// How much a seal takes.
pub(super) const SEAL: usize = 4;

/// Seals a record that is to stand at this place of the file.
pub(super) fn seal(record: &mut Vec<u8>, at: u64) {
    let sum = sum(record, at);
    record.extend_from_slice(&sum.to_le_bytes());
}

/// A record from this place of the file, without its seal; `Err` where it is not what was written there.
pub(super) fn unseal(record: &[u8], at: u64) -> io::Result<&[u8]> {
    let (record, seal) = record.split_last_chunk::<SEAL>().ok_or_else(damaged)?;
    if sum(record, at) == u32::from_le_bytes(*seal) { Ok(record) } else { Err(damaged()) }
}

/// 32 bits that are others as soon as any four bytes are: each step can be undone, so what differs once differs to the end.
pub(super) fn sum(bytes: &[u8], at: u64) -> u32 {
    let step = |sum: u32, word: u32| (sum ^ word).wrapping_mul(0x9e37_79b1).rotate_left(15);
    let [low, high] = [at as u32, (at >> 32) as u32];
    let start = step(step(step(0x5eed, bytes.len() as u32), low), high);
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words.iter().fold(start, |sum, word| step(sum, u32::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| step(sum, u32::from(*byte)))
}

/// What an index says that cannot be.
pub(in crate::replay) fn damaged() -> io::Error {
    let why = "the index of the trace is damaged; delete the file that ends in .index and start again";
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_other_byte_breaks_a_seal() {
        for length in [0, 1, 4, 27, 28, 44] {
            let mut sealed: Vec<u8> = (0..length).map(|at| at ^ 0x55).collect();
            seal(&mut sealed, 96);
            assert_eq!(unseal(&sealed, 96).unwrap().len(), usize::from(length));
            assert!(unseal(&sealed, 97).is_err(), "it has its place");
            for at in 0..sealed.len() {
                for change in 1..=u8::MAX {
                    let mut damaged = sealed.clone();
                    damaged[at] ^= change;
                    assert!(unseal(&damaged, 96).is_err(), "byte {at} of {length}, changed by {change}");
                }
            }
            assert!(unseal(&sealed[..sealed.len() - 1], 96).is_err());
        }
        assert!(unseal(&[], 0).is_err());
    }
}
