//! Turns the differences between a recorded and a live answer into findings.

use rehearsal_core::json::{Path, RawJson, Segment};
use rehearsal_core::matcher::{Difference, DifferenceKind, Mismatch};
use rehearsal_core::report::{ChangedValues, Finding, Location};
use serde_json::Value;

/// Whether something is at or below one of these places: of what it was, or of what it is.
pub(super) fn is_within(drifted: &Difference, before: &[Path], after: &[Path]) -> bool {
    let within = |path: &Option<Path>, places: &[Path]| {
        path.as_ref().is_some_and(|path| places.iter().any(|place| path.is_within(place)))
    };
    within(&drifted.was, before) || within(&drifted.is, after)
}

/// Whether the added or removed value is a member of an object that contains only ignored values: such a member may be
/// missing. The number of elements in an array is compared. The pairs are each value as a whole, and without ignored
/// values.
pub(super) fn only_ignored_left(drifted: &Difference, before: (&Value, &Value), after: (&Value, &Value)) -> bool {
    fn nothing_left(whole: &Value, left: &Value) -> bool {
        let (Value::Object(whole), Value::Object(left)) = (whole, left) else { return false };
        let inside = |(key, left): (&String, &Value)| whole.get(key).is_some_and(|whole| nothing_left(whole, left));
        (whole.len() > left.len() || !left.is_empty()) && left.iter().all(inside)
    }
    let (path, (whole, left)) = match drifted.drift {
        DifferenceKind::Removed => (&drifted.was, before),
        DifferenceKind::Added => (&drifted.is, after),
        DifferenceKind::TypeChanged | DifferenceKind::Changed => return false,
    };
    path.as_ref().is_some_and(|path| {
        let is_member = matches!(path.segments().last(), Some(Segment::Key(_)));
        is_member && path.lookup(whole).zip(path.lookup(left)).is_some_and(|(whole, left)| nothing_left(whole, left))
    })
}

/// How long a value may be, as text, to be in a report whole.
const MAX_VALUE_BYTES: usize = 64 * 1024;

/// A difference, with the recorded and the live value.
#[derive(Clone, Debug)]
pub(super) struct ReportedDifference {
    pub(super) drifted: Difference,
    values: ChangedValues,
}

impl ReportedDifference {
    /// Adds the recorded and the live value to each difference.
    pub(super) fn of(drifted: Vec<Difference>, before: &Value, after: &Value) -> Vec<ReportedDifference> {
        let whole = |path: &Option<Path>, value: &Value| {
            let found = path.as_ref().and_then(|path| path.lookup(value)).map(RawJson::from_value);
            found.filter(|json| json.as_str().len() <= MAX_VALUE_BYTES)
        };
        let told = drifted.into_iter().map(|drifted| {
            let (was, is) = (whole(&drifted.was, before), whole(&drifted.is, after));
            ReportedDifference { values: ChangedValues { path: drifted.mismatch.path.clone(), was, is }, drifted }
        });
        told.collect()
    }

    /// Replaces the path of the difference, by one that begins further in.
    pub(super) fn within(mut self, path: Path) -> ReportedDifference {
        self.values.path = path.clone();
        self.drifted.mismatch.path = path;
        self
    }
}

/// A finding for each way in which something differs. `about` names what was compared, if that is not plain from the rest of the
/// report.
pub(super) fn findings_of(told: &[ReportedDifference], about: Option<&str>, place: Option<&Location>) -> Vec<Finding> {
    let of = |drift: DifferenceKind| {
        let of_kind = told.iter().filter(|it| it.drifted.drift == drift);
        let such: Vec<Mismatch> = of_kind.clone().map(|it| it.drifted.mismatch.clone()).collect();
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

/// How many places are named where there are more.
const NAMED: usize = 3;

/// Where mismatches are: `$.a, $.b, $.c and 2 more`.
fn places(mismatches: &[Mismatch]) -> String {
    let named: Vec<String> = mismatches.iter().take(NAMED).map(|it| it.path.to_string()).collect();
    match mismatches.len().saturating_sub(NAMED) {
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
    fn each_way_of_drifting_is_a_finding() {
        let before = json!({"gone": 1, "kind": 1, "same": [1.0], "value": "a"});
        let after = json!({"new": true, "kind": "1", "same": [1], "value": "b"});
        let shown: Vec<_> =
            findings_of(&ReportedDifference::of(differences(&before, &after), &before, &after), None, None)
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
