//! Counts the requests of a replay, and the recordings that were not requested.

use std::fmt;

use serde::Serialize;

/// How many requests, and how many recordings, are listed one by one.
pub(super) const LISTED: usize = 1000;

/// Counts the requests that a replay received, and the recorded exchanges that no client requested.
///
/// ```text
/// 12 matched, 1 repeated, 2 unmatched, 1 unused
///   unmatched: 2 × tools/call rain
///   unused: session a, call 7: tools/call sun
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// Requests that were answered from the recording.
    pub matched: u64,
    /// The number of these that got an answer for the second time or later.
    pub repeated: u64,
    /// Requests that were not recorded, or not with an answer.
    pub unmatched: u64,
    /// The number of these that the upstream answered.
    pub forwarded: u64,
    /// The number of these that were forwarded and not answered.
    pub failed: u64,
    /// Recorded exchanges that no client requested. Handshakes and lists do not count.
    pub unused: u64,
    /// Server messages in sessions without a request or a response. They are never replayed.
    pub undelivered: u64,
    /// The requests that were not recorded.
    pub unmatched_requests: Vec<LedgerLine>,
    /// The exchanges that no client requested.
    pub unused_recordings: Vec<LedgerLine>,
}

/// One request of a ledger, or several equal ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LedgerLine {
    /// The method of the request.
    pub method: String,
    /// The name or the URI of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// How often.
    pub count: u64,
}

impl Ledger {
    /// Whether every request was recorded, and every recorded exchange was requested.
    pub fn is_complete(&self) -> bool {
        self.unmatched == 0 && self.unused == 0
    }

    /// Notes a request that was not recorded, or not with an answer.
    pub(super) fn unmatched(&mut self, method: &str, name: Option<String>) {
        self.unmatched += 1;
        let same = |line: &LedgerLine| line.method == method && line.name == name;
        match self.unmatched_requests.iter().position(same) {
            Some(at) => self.unmatched_requests[at].count += 1,
            None if self.unmatched_requests.len() < LISTED => {
                self.unmatched_requests.push(LedgerLine { method: method.to_owned(), name, recording: None, count: 1 });
            }
            None => {}
        }
    }
}

impl fmt::Display for LedgerLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(recording) = &self.recording {
            write!(f, "{recording}: ")?;
        }
        if self.count > 1 {
            write!(f, "{} × ", self.count)?;
        }
        f.write_str(&self.method)?;
        self.name.iter().try_for_each(|name| write!(f, " {name}"))
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ledger { matched, repeated, unmatched, forwarded, failed, unused, undelivered, .. } = self;
        write!(f, "{matched} matched, {repeated} repeated, {unmatched} unmatched")?;
        match (forwarded, failed) {
            (0, 0) => {}
            (_, 0) => write!(f, " ({forwarded} forwarded)")?,
            (_, _) => write!(f, " ({forwarded} forwarded, {failed} that the server did not answer)")?,
        }
        write!(f, ", {unused} unused")?;
        if *undelivered > 0 {
            write!(f, ", {undelivered} undelivered")?;
        }
        Ok(())
    }
}
