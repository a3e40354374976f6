//! The versions that know something.

use std::fmt;

use crate::protocol::Revision;

/// A range of versions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The first.
    pub since: Revision,
    /// The last.
    pub until: Revision,
}

impl Versions {
    /// All of them.
    pub const ALL: Versions = Versions { since: Revision::ALL[0], until: Revision::ALL[Revision::ALL.len() - 1] };

    /// Whether a version is one of them.
    pub fn contain(self, revision: Revision) -> bool {
        (self.since..=self.until).contains(&revision)
    }

    /// Reads `2025-06..`, `..2025-11`, `2025-03..2025-06` or `2025-11`; a version may be cut short while only one begins so.
    pub(super) fn parse(text: &str) -> Option<Versions> {
        let revision = |text: &str, otherwise: Revision| match text {
            "" => Some(otherwise),
            text => {
                let mut found = Revision::ALL.into_iter().filter(|revision| revision.as_str().starts_with(text));
                found.next().filter(|_| found.next().is_none())
            }
        };
        let (since, until) = text.split_once("..").unwrap_or((text, text));
        let until = revision(until, Versions::ALL.until)?;
        Some(Versions { since: revision(since, Versions::ALL.since)?, until })
    }
}

impl fmt::Display for Versions {
    /// `2025-11-25 only`, `2025-06-18 and later`, `versions up to 2025-11-25`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Versions { since, until } = *self;
        match (since == Versions::ALL.since, until == Versions::ALL.until) {
            (true, true) => f.write_str("all versions"),
            (false, true) if since == until => write!(f, "{since}"),
            (false, true) => write!(f, "{since} and later"),
            (true, false) => write!(f, "versions up to {until}"),
            (false, false) if since == until => write!(f, "{since} only"),
            (false, false) => write!(f, "{since} to {until}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_reads_as_people_say_it() {
        for (text, expected) in [
            ("2025-06..", "2025-06-18 and later"),
            ("..2025-11", "versions up to 2025-11-25"),
            ("2025-11", "2025-11-25 only"),
            ("2026..", "2026-07-28"),
            ("2025-03..2025-06", "2025-03-26 to 2025-06-18"),
            ("..", "all versions"),
        ] {
            assert_eq!(Versions::parse(text).unwrap().to_string(), expected, "{text}");
        }
        assert_eq!(Versions::parse("2025.."), None, "three versions begin so");
        assert_eq!(Versions::parse("2027"), None);
    }
}
