//! When and where a broken stream goes on.

use std::time::Duration;

use crate::http::sse;

/// However often a stream breaks, the next try is not further away than this, unless the server says so.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server that says `retry: 0` and ends every stream at once is not asked more often than this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// When and where a broken stream goes on: after the last event that was seen, and not before the server's `retry`.
#[derive(Clone, Debug)]
pub(super) struct Resumption {
    last_event: Option<String>,
    retry: Duration,
    tries: u32,
    /// Tries since the last event.
    tried: u32,
}

impl Resumption {
    /// Nothing was seen yet.
    pub(super) fn new(retry: Duration, tries: u32) -> Resumption {
        Resumption { last_event: None, retry, tries, tried: 0 }
    }

    /// An event came.
    pub(super) fn note(&mut self, event: &sse::Event) {
        self.tried = 0;
        self.retry = event.retry.unwrap_or(self.retry);
        if let Some(id) = &event.id {
            self.last_event = Some(id.clone()).filter(|id| !id.is_empty());
        }
    }

    /// The server let us in again. It may have nothing to say yet and let us poll; how long is for the caller to decide.
    pub(super) fn reached(&mut self) {
        self.tried = 0;
    }

    /// The last event that has an id.
    pub(super) fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// How often the stream was opened again since the last event.
    pub(super) fn tried(&self) -> u32 {
        self.tried
    }

    /// How long to wait before the next try; `None` after too many of them in vain.
    ///
    /// The server's `retry` is the least; every try in vain doubles it.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        if self.tried == self.tries {
            return None;
        }
        let doubled = self.retry.saturating_mul(1 << self.tried.min(16));
        self.tried += 1;
        Some(doubled.min(LONGEST_PAUSE).max(self.retry).max(SHORTEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, retry: Option<u64>) -> sse::Event {
        sse::Event { id: id.map(str::to_owned), retry: retry.map(Duration::from_millis), ..sse::Event::default() }
    }

    fn pauses(resumption: &mut Resumption) -> Vec<u64> {
        std::iter::from_fn(|| resumption.pause()).map(|pause| pause.as_millis() as u64).collect()
    }

    #[test]
    fn the_server_says_how_long_to_wait_and_tries_in_vain_wait_longer() {
        let mut resumption = Resumption::new(Duration::from_secs(1), 3);
        assert_eq!(pauses(&mut resumption), [1000, 2000, 4000]);
        resumption.note(&event(Some("a"), Some(10)));
        assert_eq!(pauses(&mut resumption), [50, 50, 50], "never more often than that");
        resumption.note(&event(Some("a"), Some(100)));
        assert_eq!(pauses(&mut resumption), [100, 200, 400]);
        resumption.note(&event(None, Some(60_000)));
        assert_eq!(pauses(&mut resumption), [60_000; 3], "longer than our longest, but the server said so");
        resumption.note(&event(None, Some(20_000)));
        assert_eq!(pauses(&mut resumption), [20_000, 30_000, 30_000]);
    }

    #[test]
    fn a_server_that_lets_us_poll_is_polled_at_its_own_pace() {
        let mut resumption = Resumption::new(Duration::from_millis(200), 2);
        for _ in 0..10 {
            assert_eq!(resumption.pause(), Some(Duration::from_millis(200)));
            resumption.reached();
        }
    }

    #[test]
    fn the_last_id_counts_until_it_is_taken_back() {
        let mut resumption = Resumption::new(Duration::ZERO, 1);
        assert_eq!(resumption.last_event(), None);
        resumption.note(&event(Some("a"), None));
        resumption.note(&event(None, None));
        assert_eq!(resumption.last_event(), Some("a"));
        resumption.note(&event(Some(""), None));
        assert_eq!(resumption.last_event(), None);
    }
}
