//! In which way an answer is not what it was.

use rehearsal_core::json::{DEFAULT_EXCERPT, Kind, Path, excerpt};
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
}

/// One way in which something is not what it was, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drifted {
    drift: Drift,
    mismatch: Mismatch,
}

impl Drifted {
    /// Whether it is at or below one of these places: of what it was, or of what it is.
    pub(super) fn is_within(&self, before: &[Path], after: &[Path]) -> bool {
        let within = |places: &[Path]| places.iter().any(|place| self.mismatch.path.is_within(place));
        match self.drift {
            Drift::Removed => within(before),
            Drift::Added => within(after),
            Drift::TypeChanged | Drift::Changed => within(before) || within(after),
        }
    }

    /// The same, seen from further up.
    fn below(self, path: &Path) -> Drifted {
        let path = path.concat(&self.mismatch.path);
        Drifted { mismatch: Mismatch { path, ..self.mismatch }, ..self }
    }
}

/// The JSON type, in which all numbers are one.
fn kind(value: &Value) -> Kind {
    match Kind::of(value) {
        Kind::Integer => Kind::Number,
        other => other,
    }
}

/// How many elements of one array are told that came, or that went.
const TOLD: usize = 20;

/// All that differs between two values.
pub(super) fn drifted(before: &Value, after: &Value) -> Vec<Drifted> {
    let mut found = Vec::new();
    let mut aligned_at: Option<Path> = None;
    for mismatch in Matcher::exact(before.clone()).check(after) {
        if aligned_at.as_ref().is_some_and(|path| mismatch.path.is_within(path)) {
            continue;
        }
        let drift = match (mismatch.path.lookup(before), mismatch.path.lookup(after)) {
            (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() != after.len() => {
                let path = mismatch.path.clone();
                found.extend(aligned(before, after, mismatch).into_iter().map(|drifted| drifted.below(&path)));
                aligned_at = Some(path);
                continue;
            }
            (_, None) => Drift::Removed,
            (None, Some(_)) => Drift::Added,
            (Some(before), Some(after)) if kind(before) != kind(after) => Drift::TypeChanged,
            (Some(_), Some(_)) => Drift::Changed,
        };
        found.push(Drifted { drift, mismatch });
    }
    found
}

/// What differs between two arrays that are not of the same length: what is the same at both ends is left aside, and what
/// has nothing to stand against has come or gone. What went is told where it was, everything else where it is. `count` says how many
/// there are, for where they are too many to be told.
fn aligned(before: &[Value], after: &[Value], count: Mismatch) -> Vec<Drifted> {
    let same = |(before, after): &(&Value, &Value)| Matcher::exact((*before).clone()).matches(after);
    let start = before.iter().zip(after).take_while(same).count();
    let (before_rest, after_rest) = (&before[start..], &after[start..]);
    let end = before_rest.iter().rev().zip(after_rest.iter().rev()).take_while(same).count();
    let (before, after) = (&before_rest[..before_rest.len() - end], &after_rest[..after_rest.len() - end]);
    let at = |index: usize| Path::root().join(start + index);
    let pairs = before.iter().zip(after).enumerate();
    let changed = pairs.flat_map(|(index, (before, after))| {
        drifted(before, after).into_iter().map(move |drifted| drifted.below(&at(index)))
    });
    let gone = before.iter().enumerate().skip(after.len()).map(|(index, value)| {
        let mismatch = Mismatch { path: at(index), expected: excerpt(value, DEFAULT_EXCERPT), got: None };
        Drifted { drift: Drift::Removed, mismatch }
    });
    let come = after.iter().enumerate().skip(before.len()).map(|(index, value)| {
        let got = Some(excerpt(value, DEFAULT_EXCERPT));
        Drifted { drift: Drift::Added, mismatch: Mismatch { path: at(index), expected: "nothing".to_owned(), got } }
    });
    let too_many = before.len().abs_diff(after.len()) > TOLD;
    let count = Drifted { drift: Drift::Changed, mismatch: Mismatch { path: Path::root(), ..count } };
    changed.chain(gone.take(TOLD)).chain(come.take(TOLD)).chain(too_many.then_some(count)).collect()
}

/// What differs between two values: a finding for each way in which something does. `about` names what was compared, if
/// that is not plain from the rest of the report.
pub(super) fn differences(before: &Value, after: &Value, about: Option<&str>, place: Option<&Place>) -> Vec<Finding> {
    told(&drifted(before, after), about, place)
}

/// A finding for each way in which something differs.
pub(super) fn told(drifted: &[Drifted], about: Option<&str>, place: Option<&Place>) -> Vec<Finding> {
    let of = |drift: Drift| {
        let such = drifted.iter().filter(|it| it.drift == drift).map(|it| it.mismatch.clone());
        let such: Vec<Mismatch> = such.collect();
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

    fn shown(before: Value, after: Value) -> Vec<String> {
        let drifted = drifted(&before, &after);
        drifted.iter().map(|it| format!("{} {}", it.drift.word(), it.mismatch)).collect()
    }

    #[test]
    fn elements_come_and_go_wherever_they_are() {
        assert_eq!(shown(json!({"l": [1, 2]}), json!({"l": [1, 2, 3]})), ["added $.l[2]: expected nothing, got 3"]);
        assert_eq!(shown(json!([1, 2]), json!([0, 1.0, 2])), ["added $[0]: expected nothing, got 0"]);
        assert_eq!(shown(json!([0, 1, 2]), json!([0, 2])), ["removed $[1]: missing, expected 1"]);
        assert_eq!(
            shown(json!([{"t": "a", "l": [1]}, 9]), json!([{"t": "b", "l": []}, {}, 8, 9])),
            [
                "changed $[0].t: expected \"a\", got \"b\"",
                "removed $[0].l[0]: missing, expected 1",
                "added $[1]: expected nothing, got {}",
                "added $[2]: expected nothing, got 8",
            ]
        );
    }

    #[test]
    fn too_many_elements_are_counted() {
        let found = shown(json!([]), (0..1000).collect());
        assert_eq!(found.len(), TOLD + 1);
        assert_eq!(found[TOLD], "changed $: expected 0 elements, got 1000");
    }
}
