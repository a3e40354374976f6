//! The time, and names for sessions.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// The time since a moment: one reading of the wall clock, and a clock that never jumps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    began: Instant,
    /// The date and time of that moment.
    pub(super) began_at: Timestamp,
}

impl Clock {
    /// Begins now.
    pub(super) fn start() -> Clock {
        Clock { began: Instant::now(), began_at: now() }
    }

    /// How long ago it began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// The wall clock.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let nanoseconds = i32::try_from(since.subsec_nanos()).unwrap_or_default();
    Timestamp::new(seconds, nanoseconds).unwrap_or_default()
}

/// A name that no other session has: 128 random bits, written as a UUID (version 4).
pub(super) fn session_id() -> String {
    let mut bits = [0; 16];
    if getrandom::fill(&mut bits).is_err() {
        // Without randomness the time and the process have to do.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        bits = (since.as_nanos() ^ (u128::from(std::process::id()) << 96)).to_be_bytes();
    }
    bits[6] = bits[6] & 0x0f | 0x40;
    bits[8] = bits[8] & 0x3f | 0x80;
    let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_a_uuid_of_version_4() {
        let id = session_id();
        assert_eq!(id.len(), 36);
        assert_eq!((&id[14..15], &id[8..9]), ("4", "-"));
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        assert_ne!(id, session_id());
    }
}
