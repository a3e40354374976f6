//! Statistics of a trace, counted in a stream.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{CallStatus, EntryBody, Part, subject};
use crate::exchange::Side;
use crate::message::Message;

/// Maximum number of subjects that are counted separately; further ones are counted under their method.
const SUBJECTS: usize = 10_000;
/// Maximum number of durations that are kept exactly.
const EXACT: usize = 1024;

/// The counts of a trace.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of garbled messages.
    pub garbled: u64,
    /// Number of lines of stderr.
    pub stderr: u64,
    /// Number of bytes of all messages.
    pub bytes: u64,
    /// When the first session began.
    pub started_at: Option<Timestamp>,
    /// When the last session ended.
    pub ended_at: Option<Timestamp>,
    /// Counts by sender, method and subject.
    pub groups: BTreeMap<StatKey, CallStats>,
}

/// The key of a group that is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatKey {
    /// Whether it is a call or a notification.
    pub is_call: StatKind,
    /// The side that sent the request or notification.
    pub from: Side,
    /// The method.
    pub method: String,
    /// The subject: the name of the tool, the URI of the resource.
    pub subject: Option<String>,
}

/// Whether a message is a request, which requires a response, or a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatKind {
    /// A request, with its response.
    Call,
    /// A notification.
    Notification,
}

/// The counts of one group.
#[derive(Clone, Debug, Default)]
pub struct CallStats {
    /// Number of calls or notifications.
    pub count: u64,
    /// Number of failed calls.
    pub failed: u64,
    /// Number of bytes of requests and responses.
    pub bytes: u64,
    /// The times between request and response.
    pub latency: Latency,
}

/// The durations of calls. Beyond about a thousand calls, percentiles are exact to about 3 %.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    exact: Vec<u64>,
    buckets: BTreeMap<u32, u64>,
    count: u64,
    max: u64,
}

impl Stats {
    /// Counts a part.
    pub fn add(&mut self, part: &Part) {
        match part {
            Part::Start(start) => {
                self.sessions += 1;
                self.started_at = match (self.started_at, start.started_at) {
                    (Some(known), Some(new)) => Some(known.min(new)),
                    (known, new) => known.or(new),
                };
            }
            Part::Finish { ended_at, .. } => self.ended_at = self.ended_at.max(*ended_at),
            Part::Call(call) => {
                let answer = call.response.as_ref().map_or(0, |answer| answer.message.raw().len());
                let bytes = (call.request.message.raw().len() + answer) as u64;
                let (failed, took) = (CallStatus::from_call(call).is_failure(), call.took());
                let counts = self.group(StatKind::Call, call.asker, &call.request.message);
                counts.failed += u64::from(failed);
                counts.bytes += bytes;
                if let Some(took) = took {
                    counts.latency.add(took);
                }
                self.bytes += bytes;
            }
            Part::Entry(entry) => match &entry.what {
                EntryBody::Message { from, message, .. } => {
                    let bytes = message.raw().len() as u64;
                    self.bytes += bytes;
                    if message.as_garbled().is_some() {
                        self.garbled += 1;
                    } else if message.method().is_some() {
                        self.group(StatKind::Notification, *from, message).bytes += bytes;
                    }
                }
                EntryBody::Stderr { .. } => self.stderr += 1,
                EntryBody::Http { .. }
                | EntryBody::Event { .. }
                | EntryBody::ChannelEnded { .. }
                | EntryBody::Piece { .. }
                | EntryBody::Ended(_) => {}
            },
        }
    }

    /// Number of calls.
    pub fn calls(&self) -> u64 {
        self.of(StatKind::Call).map(|counts| counts.count).sum()
    }

    /// Number of failed calls.
    pub fn failed(&self) -> u64 {
        self.of(StatKind::Call).map(|counts| counts.failed).sum()
    }

    /// Number of notifications.
    pub fn notifications(&self) -> u64 {
        self.of(StatKind::Notification).map(|counts| counts.count).sum()
    }

    fn of(&self, is_call: StatKind) -> impl Iterator<Item = &CallStats> {
        self.groups.iter().filter(move |(group, _)| group.is_call == is_call).map(|(_, counts)| counts)
    }

    fn group(&mut self, is_call: StatKind, from: Side, message: &Message) -> &mut CallStats {
        let method = message.method().map(ToString::to_string).unwrap_or_default();
        let mut group = StatKey { is_call, from, method, subject: subject(message) };
        if self.groups.len() >= SUBJECTS && !self.groups.contains_key(&group) {
            group.subject = None;
        }
        let counts = self.groups.entry(group).or_default();
        counts.count += 1;
        counts
    }
}

impl Latency {
    /// Counts a duration.
    pub fn add(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.count += 1;
        self.max = self.max.max(micros);
        if self.buckets.is_empty() && self.exact.len() < EXACT {
            self.exact.push(micros);
            return;
        }
        for micros in self.exact.drain(..).chain([micros]) {
            *self.buckets.entry(bucket(micros)).or_default() += 1;
        }
    }

    /// The longest duration.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_micros(self.max))
    }

    /// The duration that this percentage of the calls did not exceed.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        if self.count == 0 {
            return None;
        }
        if self.buckets.is_empty() {
            let mut exact = self.exact.clone();
            exact.sort_unstable();
            return exact.get(rank as usize - 1).map(|micros| Duration::from_micros(*micros));
        }
        let mut seen = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        found.map(|(bucket, _)| Duration::from_micros(top(*bucket).min(self.max)))
    }
}

/// Below 64 each number has a bucket of its own; above, each power of two has 32.
fn bucket(micros: u64) -> u32 {
    if micros < 64 {
        return micros as u32;
    }
    let exponent = 63 - micros.leading_zeros();
    64 + (exponent - 6) * 32 + (micros >> (exponent - 5) & 31) as u32
}

/// The greatest number in a bucket.
fn top(bucket: u32) -> u64 {
    if bucket < 64 {
        return bucket.into();
    }
    let (exponent, part) = ((bucket - 64) / 32 + 6, u64::from((bucket - 64) % 32));
    let width = 1_u64 << (exponent - 5);
    (32 + part).saturating_mul(width).saturating_add(width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_durations_are_counted_exactly() {
        let mut latency = Latency::default();
        assert_eq!((latency.percentile(50), latency.max()), (None, None));
        (1..=100).rev().for_each(|millis| latency.add(Duration::from_millis(millis)));
        let millis = |percent| latency.percentile(percent).unwrap().as_millis();
        assert_eq!((millis(50), millis(95), millis(100)), (50, 95, 100));
        assert_eq!(latency.max(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn many_durations_are_counted_almost_exactly() {
        let mut latency = Latency::default();
        (1..=100_000_u64).for_each(|micros| latency.add(Duration::from_micros(micros)));
        for (percent, exact) in [(50, 50_000.0), (95, 95_000.0), (100, 100_000.0)] {
            let found = latency.percentile(percent).unwrap().as_micros() as f64;
            assert!((found / exact - 1.0).abs() < 0.04, "{percent}: {found}");
        }
    }

    proptest! {
        #[test]
        fn a_bucket_holds_only_what_is_close(micros: u64) {
            let top = top(bucket(micros));
            prop_assert!(top >= micros);
            prop_assert!(top as f64 <= micros as f64 * 1.04 + 1.0);
        }
    }
}
