//! What the flags say about secrets.

use rehearsal::core::redact::{Redaction, Rule};

/// What is taken out: nothing of our own where `no_redact` says so, and what `--redact` names.
pub(super) fn redaction(no_redact: bool, rules: &[Rule]) -> Redaction {
    let redaction = if no_redact { Redaction::none() } else { Redaction::standard() };
    rules.iter().cloned().fold(redaction, Redaction::with)
}
