//! What a server says that is no message, or that nobody asked for.

use rehearsal_core::exchange::Side;
use rehearsal_core::message::Body;
use rehearsal_core::report::Finding;
use rehearsal_core::trace::{Entry, Moment, What};

use crate::client::{Evidence, NoiseOn};

/// Whether there was any in the session when it was recorded: then it is nothing new.
#[derive(Debug, Default)]
pub(super) struct Noise {
    garbled: bool,
    stray: bool,
}

impl Noise {
    /// Takes in what was recorded next.
    pub(super) fn take(&mut self, moment: &Moment) {
        match moment {
            Moment::Start(_) => *self = Noise::default(),
            Moment::Entry(Entry { what: What::Message { from: Side::Server, message, .. }, .. }) => {
                match message.body() {
                    Body::Garbled(_) => self.garbled = true,
                    Body::Response(_) => self.stray = true,
                    Body::Request(_) | Body::Notification(_) | Body::Batch(_) => {}
                }
            }
            Moment::Entry(_) | Moment::Call { .. } | Moment::Finish { .. } => {}
        }
    }

    /// What of it is new.
    ///
    /// ```text
    /// warning: on its stdout, but not a message: Listening on port 3000 (and 2 more)
    ///   hint: only messages belong on a server's stdout; what it logs belongs on its stderr
    /// ```
    pub(super) fn findings(&self, evidence: &Evidence, session: usize) -> Vec<Finding> {
        let (place, hint) = match evidence.noise_on {
            NoiseOn::Stdout => ("on its stdout, but not a message", "only messages belong on a server's stdout"),
            NoiseOn::Http => ("over HTTP, but not a message", "an answer body and each event must be a message"),
        };
        let session = if session > 1 { format!("session {session}: ") } else { String::new() };
        let told = |what: &str, lines: &[String]| {
            let first = lines.first()?;
            let more = if lines.len() > 1 { format!(" (and {} more)", lines.len() - 1) } else { String::new() };
            Some(Finding::warning(format!("{session}{what}: {first}{more}")))
        };
        let garbled = told(place, &evidence.noise).filter(|_| !self.garbled);
        let stray = told("an answer that nobody asked for", &evidence.strays).filter(|_| !self.stray);
        garbled
            .map(|finding| finding.hint(format!("{hint}; what it logs belongs on its stderr")))
            .into_iter()
            .chain(stray)
            .collect()
    }
}
