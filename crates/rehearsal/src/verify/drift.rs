//! In which way an answer is not what it was.

use rehearsal_core::json::Kind;
use rehearsal_core::matcher::{Matcher, Mismatch};
use rehearsal_core::report::{Finding, Place};
use serde_json::Value;

/// In which way something is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Drift {
    Removed,
    Added,
    TypeChanged,
    Changed,
}

impl Drift {
    const ALL: [Drift; 4] = [Drift::Removed, Drift::Added, Drift::TypeChanged, Drift::Changed];

    fn word(self) -> &'static str {
        match self {
            Drift::Removed => "removed",
            Drift::Added => "added",
            Drift::TypeChanged => "type changed",
            Drift::Changed => "changed",
        }
    }

    fn of(mismatch: &Mismatch, before: &Value, after: &Value) -> Drift {
        match (mismatch.path.lookup(before), mismatch.path.lookup(after)) {
            (_, None) => Drift::Removed,
            (None, Some(_)) => Drift::Added,
            (Some(before), Some(after)) if kind(before) != kind(after) => Drift::TypeChanged,
            (Some(_), Some(_)) => Drift::Changed,
        }
    }
}

/// The JSON type, in which all numbers are one.
fn kind(value: &Value) -> Kind {
    match Kind::of(value) {
        Kind::Integer => Kind::Number,
        other => other,
    }
}

/// What differs between two values: a finding for each way in which something does. `about` names what was compared, if
/// that is not plain from the rest of the report.
pub(super) fn differences(before: &Value, after: &Value, about: Option<&str>, place: Option<&Place>) -> Vec<Finding> {
    let mismatches = Matcher::exact(before.clone()).check(after);
    let of = |drift: Drift| {
        let such: Vec<_> =
            mismatches.iter().filter(|mismatch| Drift::of(mismatch, before, after) == drift).cloned().collect();
        (!such.is_empty()).then(|| {
            let message = match about {
                Some(about) => format!("{}: {about}", drift.word()),
                None => drift.word().to_owned(),
            };
            let finding = Finding::error(message).because(such);
            place.cloned().map_or(finding.clone(), |place| finding.at(place))
        })
    };
    Drift::ALL.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_way_of_drifting_is_a_finding() {
        let before = json!({"gone": 1, "kind": 1, "same": [1.0], "value": "a"});
        let after = json!({"new": true, "kind": "1", "same": [1], "value": "b"});
        let shown: Vec<_> = differences(&before, &after, None, None).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "error: removed\n  $.gone: missing, expected 1",
                "error: added\n  $.new: expected nothing, got true",
                "error: type changed\n  $.kind: expected 1, got \"1\"",
                "error: changed\n  $.value: expected \"a\", got \"b\"",
            ]
        );
    }
}
