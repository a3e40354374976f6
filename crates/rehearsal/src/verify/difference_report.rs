//! Turns the differences between a recorded and a live answer into findings.

use rehearsal_core::json::{Path, RawJson, Segment};
use rehearsal_core::matcher::{Difference, DifferenceKind, Mismatch};
use rehearsal_core::report::{ChangedValues, Finding, Location};
use serde_json::Value;

/// Whether a difference is at or below one of these paths of the recorded value or of the live value.
pub(super) fn is_within(difference: &Difference, before: &[Path], after: &[Path]) -> bool {
    let within = |path: &Option<Path>, places: &[Path]| {
        path.as_ref().is_some_and(|path| places.iter().any(|place| path.is_within(place)))
    };
    within(&difference.was, before) || within(&difference.is, after)
}

/// Whether the added or removed value is a member of an object that contains only ignored values: such a member may be
/// missing. The number of elements in an array is compared. The pairs are each value as a whole, and without ignored
/// values.
pub(super) fn only_ignored_left(difference: &Difference, before: (&Value, &Value), after: (&Value, &Value)) -> bool {
    fn nothing_left(whole: &Value, left: &Value) -> bool {
        let (Value::Object(whole), Value::Object(left)) = (whole, left) else { return false };
        let inside = |(key, left): (&String, &Value)| whole.get(key).is_some_and(|whole| nothing_left(whole, left));
        (whole.len() > left.len() || !left.is_empty()) && left.iter().all(inside)
    }
    let (path, (whole, left)) = match difference.drift {
        DifferenceKind::Removed => (&difference.was, before),
        DifferenceKind::Added => (&difference.is, after),
        DifferenceKind::TypeChanged | DifferenceKind::Changed => return false,
    };
    path.as_ref().is_some_and(|path| {
        let is_member = matches!(path.segments().last(), Some(Segment::Key(_)));
        is_member && path.lookup(whole).zip(path.lookup(left)).is_some_and(|(whole, left)| nothing_left(whole, left))
    })
}

/// Maximum length of a value in a report, as JSON text.
const MAX_VALUE_BYTES: usize = 64 * 1024;

/// A difference, with the recorded and the live value.
#[derive(Clone, Debug)]
pub(super) struct ReportedDifference {
    pub(super) difference: Difference,
    values: ChangedValues,
}

impl ReportedDifference {
    /// Adds the recorded and the live value to each difference.
    pub(super) fn from_differences(
        differences: Vec<Difference>,
        before: &Value,
        after: &Value,
    ) -> Vec<ReportedDifference> {
        let whole = |path: &Option<Path>, value: &Value| {
            let found = path.as_ref().and_then(|path| path.lookup(value)).map(RawJson::from_value);
            found.filter(|json| json.as_str().len() <= MAX_VALUE_BYTES)
        };
        let reported = differences.into_iter().map(|difference| {
            let (was, is) = (whole(&difference.was, before), whole(&difference.is, after));
            ReportedDifference { values: ChangedValues { path: difference.mismatch.path.clone(), was, is }, difference }
        });
        reported.collect()
    }

    /// Replaces the path of the difference by a relative path.
    pub(super) fn within(mut self, path: Path) -> ReportedDifference {
        self.values.path = path.clone();
        self.difference.mismatch.path = path;
        self
    }
}

/// One finding for each kind of difference. `about` names the compared value, if the rest of the report does not.
pub(super) fn findings_of(
    reported: &[ReportedDifference],
    about: Option<&str>,
    place: Option<&Location>,
) -> Vec<Finding> {
    let of = |drift: DifferenceKind| {
        let of_kind = reported.iter().filter(|it| it.difference.drift == drift);
        let such: Vec<Mismatch> = of_kind.clone().map(|it| it.difference.mismatch.clone()).collect();
        (!such.is_empty()).then(|| {
            let message = match (about, drift) {
                // The compared value still exists, and a part of it was removed.
                (Some(about), DifferenceKind::Removed) => format!("changed: {about} no longer has {}", places(&such)),
                (Some(about), DifferenceKind::Added) => format!("changed: {about} has {} now", places(&such)),
                (Some(about), DifferenceKind::TypeChanged | DifferenceKind::Changed) => {
                    format!("{}: {about}", drift.word())
                }
                (None, _) => drift.word().to_owned(),
            };
            let mut finding = Finding::error(message).because(such).of_kind(drift);
            finding.values = of_kind.map(|it| it.values.clone()).collect();
            place.cloned().map_or(finding.clone(), |place| finding.at(place))
        })
    };
    DifferenceKind::ALL.into_iter().filter_map(of).collect()
}

/// At most this many paths are named in a finding.
const MAX_NAMED: usize = 3;

/// The paths of mismatches: `$.a, $.b, $.c and 2 more`.
fn places(mismatches: &[Mismatch]) -> String {
    let named: Vec<String> = mismatches.iter().take(MAX_NAMED).map(|it| it.path.to_string()).collect();
    match mismatches.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::matcher::differences;
    use serde_json::json;

    #[test]
    fn each_kind_of_difference_is_a_finding() {
        let before = json!({"gone": 1, "kind": 1, "same": [1.0], "value": "a"});
        let after = json!({"new": true, "kind": "1", "same": [1], "value": "b"});
        let shown: Vec<_> = findings_of(
            &ReportedDifference::from_differences(differences(&before, &after), &before, &after),
            None,
            None,
        )
        .iter()
        .map(ToString::to_string)
        .collect();
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
