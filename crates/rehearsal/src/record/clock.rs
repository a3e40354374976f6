//! What time it is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// The time since a moment: one reading of the wall clock, and a clock that never jumps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    began: Instant,
    /// When that was, for people.
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
