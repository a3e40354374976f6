//! The events that a session keeps for a client that comes back.

use std::collections::VecDeque;

use bytes::Bytes;
use rehearsal_core::exchange::Channel;

use super::frame::EventId;

/// The latest events of all streams of a session, oldest first.
#[derive(Debug)]
pub(super) struct History {
    kept: VecDeque<(EventId, Bytes)>,
    bytes: usize,
    events_limit: usize,
    bytes_limit: usize,
}

impl History {
    /// Keeps at most this many events and bytes.
    pub(super) fn new(events_limit: usize, bytes_limit: usize) -> History {
        History { kept: VecDeque::new(), bytes: 0, events_limit, bytes_limit }
    }

    /// Keeps an event, at the expense of the oldest ones.
    pub(super) fn keep(&mut self, id: EventId, message: Bytes) {
        self.bytes += message.len();
        self.kept.push_back((id, message));
        while self.kept.len() > self.events_limit || self.bytes > self.bytes_limit {
            match self.kept.pop_front() {
                Some((_, message)) => self.bytes -= message.len(),
                None => break,
            }
        }
    }

    /// The later events of the same stream.
    pub(super) fn after(&self, last: EventId) -> Vec<(EventId, Bytes)> {
        let later = |id: &EventId| id.channel == last.channel && id.position > last.position;
        self.kept.iter().filter(|(id, _)| later(id)).cloned().collect()
    }

    /// The newest position of a stream, if anything of it is still kept.
    pub(super) fn newest(&self, channel: Channel) -> Option<u64> {
        self.kept.iter().rev().find(|(id, _)| id.channel == channel).map(|(id, _)| id.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(history: &History, channel: u64, position: u64) -> Vec<u64> {
        let last = EventId { channel: Channel(channel), position };
        history.after(last).into_iter().map(|(id, _)| id.position).collect()
    }

    #[test]
    fn only_the_later_events_of_the_same_stream_come_back() {
        let mut history = History::new(10, 1000);
        for (channel, position) in [(1, 1), (2, 1), (1, 2), (1, 3)] {
            history.keep(EventId { channel: Channel(channel), position }, Bytes::from_static(b"{}"));
        }
        assert_eq!(positions(&history, 1, 1), [2, 3]);
        assert_eq!(positions(&history, 2, 0), [1]);
        assert_eq!(history.newest(Channel(1)), Some(3));
        assert_eq!(history.newest(Channel(9)), None);
    }

    #[test]
    fn the_oldest_events_make_room() {
        let mut by_count = History::new(2, 1000);
        let mut by_bytes = History::new(10, 4);
        for position in 1..=5 {
            let id = EventId { channel: Channel(1), position };
            by_count.keep(id, Bytes::from_static(b"{}"));
            by_bytes.keep(id, Bytes::from_static(b"{}"));
        }
        assert_eq!(positions(&by_count, 1, 0), [4, 5]);
        assert_eq!(positions(&by_bytes, 1, 0), [4, 5]);
    }
}
