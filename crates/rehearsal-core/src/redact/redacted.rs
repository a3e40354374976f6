//! What was redacted, without the secrets.

use std::collections::BTreeMap;
use std::fmt;

/// One secret that was replaced: its type and its place, never the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RedactedSecret {
    /// The type of the secret.
    pub kind: SecretKind,
    /// The place: `$.params.arguments.password`, `header authorization`, `stderr`. Indexes are shown as `[*]`.
    pub place: String,
}

/// The type of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretKind {
    /// A password, passphrase or PIN.
    Password,
    /// A value whose name contains "secret" or "credentials".
    Secret,
    /// A key to an API or an account.
    ApiKey,
    /// An access, session or personal token.
    Token,
    /// The credentials of an `Authorization` header.
    Authorization,
    /// A cookie.
    Cookie,
    /// A private key.
    PrivateKey,
    /// A password or signature in a URL.
    Url,
    /// A match of a user's rule.
    Rule,
}

impl SecretKind {
    /// The name for users: `API key`.
    pub fn name(self) -> &'static str {
        match self {
            SecretKind::Password => "password",
            SecretKind::Secret => "secret",
            SecretKind::ApiKey => "API key",
            SecretKind::Token => "token",
            SecretKind::Authorization => "authorization",
            SecretKind::Cookie => "cookie",
            SecretKind::PrivateKey => "private key",
            SecretKind::Url => "URL credential",
            SecretKind::Rule => "by rule",
        }
    }
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Maximum number of places in a summary; it bounds the memory for a server that sends many different keys.
const PLACES: usize = 256;

/// The redacted secrets of a whole recording: a count for each type and place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactionSummary {
    counts: BTreeMap<RedactedSecret, u64>,
    elsewhere: BTreeMap<SecretKind, u64>,
}

impl RedactionSummary {
    /// Adds secrets to the counts.
    pub fn add(&mut self, hits: impl IntoIterator<Item = RedactedSecret>) {
        for hit in hits {
            if let Some(count) = self.counts.get_mut(&hit) {
                *count += 1;
            } else if self.counts.len() < PLACES {
                self.counts.insert(hit, 1);
            } else {
                *self.elsewhere.entry(hit.kind).or_default() += 1;
            }
        }
    }

    /// The number of all secrets.
    pub fn total(&self) -> u64 {
        self.counts.values().chain(self.elsewhere.values()).sum()
    }

    /// Whether nothing was redacted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The type, place and count of each; secrets beyond the limit have the place `elsewhere`.
    pub fn iter(&self) -> impl Iterator<Item = (SecretKind, &str, u64)> {
        let places = self.counts.iter().map(|(hit, count)| (hit.kind, hit.place.as_str(), *count));
        places.chain(self.elsewhere.iter().map(|(kind, count)| (*kind, "elsewhere", *count)))
    }
}

impl fmt::Display for RedactionSummary {
    /// One line each, without a line break at the end:
    ///
    /// ```text
    /// 3 × password in $.params.arguments.password
    /// 1 × authorization in header authorization
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, place, count)) in self.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{count} × {kind} in {place}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_and_stays_small() {
        let mut summary = RedactionSummary::default();
        let hit = |place: String| RedactedSecret { kind: SecretKind::Token, place };
        summary.add([hit("stderr".into()), hit("stderr".into())]);
        assert_eq!(summary.to_string(), "2 × token in stderr");
        summary.add((0..1000).map(|at| hit(format!("$.k{at}"))));
        assert_eq!(summary.total(), 1002);
        assert_eq!(summary.iter().count(), PLACES + 1);
        assert!(summary.to_string().ends_with("× token in elsewhere"));
    }
}
