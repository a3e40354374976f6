//! Finds the differences between two values.

use serde::Serialize;
use serde_json::{Map, Value};

use super::align::{ElementChange, pieces};
use super::check::{walk_exact, words};
use super::mismatch_sink::{Mismatch, MismatchSink, MismatchText, PathTrail};
use crate::json::{DEFAULT_EXCERPT, JsonType, Path, Segment, excerpt};

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The value was removed.
    Removed,
    /// The value was added.
    Added,
    /// The value has another JSON type.
    TypeChanged,
    /// The value is another one of the same type.
    Changed,
}

impl DifferenceKind {
    /// All kinds.
    pub const ALL: [DifferenceKind; 4] =
        [DifferenceKind::Removed, DifferenceKind::Added, DifferenceKind::TypeChanged, DifferenceKind::Changed];

    /// The name for users: `type changed`.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceKind::Removed => "removed",
            DifferenceKind::Added => "added",
            DifferenceKind::TypeChanged => "type changed",
            DifferenceKind::Changed => "changed",
        }
    }
}

/// One difference between two values.
///
/// A removed value is reported at its old path, any other at its new path. The paths differ in an array to which
/// elements were added or from which elements were removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The kind of the difference.
    pub drift: DifferenceKind,
    /// The path, the old value and the new value.
    pub mismatch: Mismatch,
    /// The old path; `None` for an added value.
    pub was: Option<Path>,
    /// The new path; `None` for a removed value.
    pub is: Option<Path>,
}

/// Maximum number of reported elements that were added to one array, and of those that were removed.
const MAX_REPORTED_ELEMENTS: usize = 20;

/// Finds all differences between two values. Elements of arrays are compared with the elements that they most likely
/// were, so an added or removed element does not affect the others.
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut walk = DiffWalk { was: Path::root(), is: Path::root(), found: Vec::new() };
    walk.value(before, after);
    walk.found
}

/// A walk over two values at the same time.
struct DiffWalk {
    was: Path,
    is: Path,
    found: Vec<Difference>,
}

impl DiffWalk {
    fn value(&mut self, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => self.members(before, after),
            (Value::Array(before), Value::Array(after)) => self.elements(before, after),
            (before, after) => {
                let mut sink = MismatchSink::Collect(Vec::new());
                // This sink never stops the walk.
                let _ = walk_exact(before, after, &PathTrail::Root, &mut sink);
                let MismatchSink::Collect(mismatches) = sink else { return };
                let drift =
                    if kind(before) == kind(after) { DifferenceKind::Changed } else { DifferenceKind::TypeChanged };
                for Mismatch { expected, got, .. } in mismatches {
                    self.record(drift, MismatchText { expected, got });
                }
            }
        }
    }

    fn members(&mut self, before: &Map<String, Value>, after: &Map<String, Value>) {
        for (key, before) in before {
            self.at(key.as_str(), key.as_str(), |inner| match after.get(key) {
                Some(after) => inner.value(before, after),
                None => inner.record(DifferenceKind::Removed, words(excerpt(before, DEFAULT_EXCERPT), None)),
            });
        }
        for (key, after) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
            self.at(key.as_str(), key.as_str(), |inner| {
                inner.record(DifferenceKind::Added, words("nothing", Some(after)))
            });
        }
    }

    fn elements(&mut self, before: &[Value], after: &[Value]) {
        let (mut removed, mut added) = (0, 0);
        for piece in pieces(before, after) {
            match piece {
                ElementChange::Changed(was, is) => self.at(was, is, |inner| inner.value(&before[was], &after[is])),
                ElementChange::Removed(was) => {
                    removed += 1;
                    if removed <= MAX_REPORTED_ELEMENTS {
                        let what = words(excerpt(&before[was], DEFAULT_EXCERPT), None);
                        self.at(was, was, |inner| inner.record(DifferenceKind::Removed, what));
                    }
                }
                ElementChange::Added(is) => {
                    added += 1;
                    if added <= MAX_REPORTED_ELEMENTS {
                        let what = words("nothing", Some(&after[is]));
                        self.at(is, is, |inner| inner.record(DifferenceKind::Added, what));
                    }
                }
            }
        }
        if removed.max(added) > MAX_REPORTED_ELEMENTS {
            self.record(DifferenceKind::Changed, counted(before.len(), after.len(), added));
        }
    }

    /// Continues the walk inside a member.
    fn at(&mut self, was: impl Into<Segment>, is: impl Into<Segment>, inner: impl FnOnce(&mut Self)) {
        self.was.push(was);
        self.is.push(is);
        inner(self);
        self.was.pop();
        self.is.pop();
    }

    fn record(&mut self, drift: DifferenceKind, MismatchText { expected, got }: MismatchText) {
        let (was, is) = match drift {
            DifferenceKind::Removed => (Some(self.was.clone()), None),
            DifferenceKind::Added => (None, Some(self.is.clone())),
            DifferenceKind::TypeChanged | DifferenceKind::Changed => (Some(self.was.clone()), Some(self.is.clone())),
        };
        let path = if drift == DifferenceKind::Removed { self.was.clone() } else { self.is.clone() };
        self.found.push(Difference { drift, mismatch: Mismatch { path, expected, got }, was, is });
    }
}

/// ```text
/// $.items: expected 3 elements, got 200
/// $.items: expected 200 elements, got 200, of which 30 are new
/// ```
fn counted(before: usize, after: usize, added: usize) -> MismatchText {
    let elements = if before == 1 { "element" } else { "elements" };
    let got = if before == after { format!("{after}, of which {added} are new") } else { after.to_string() };
    MismatchText { expected: format!("{before} {elements}"), got: Some(got) }
}

/// The JSON type; all numbers have one type.
fn kind(value: &Value) -> JsonType {
    match JsonType::from_value(value) {
        JsonType::Integer => JsonType::Number,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::arbitrary::json_value;
    use super::*;
    use crate::matcher::Matcher;
    use proptest::prelude::*;
    use serde_json::json;

    fn shown(before: Value, after: Value) -> Vec<String> {
        let found = differences(&before, &after);
        found.iter().map(|it| format!("{} {}", it.drift.word(), it.mismatch)).collect()
    }

    #[test]
    fn added_and_removed_elements_are_found_at_any_index() {
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
    fn several_added_removed_and_changed_elements_are_found() {
        assert_eq!(
            shown(json!(["a", "b", "c", "d"]), json!(["new", "a", "b", "newer", "c", "d"])),
            ["added $[0]: expected nothing, got \"new\"", "added $[3]: expected nothing, got \"newer\""]
        );
        assert_eq!(
            shown(json!([1, 2, 3, 4, 5, 6]), json!([0, 1, 3, 4, 7, 6, 8])),
            [
                "added $[0]: expected nothing, got 0",
                "removed $[1]: missing, expected 2",
                "changed $[4]: expected 5, got 7",
                "added $[6]: expected nothing, got 8",
            ]
        );
        let note = |id: u32, text: &str| json!({"id": id, "text": text, "tags": ["x"]});
        assert_eq!(
            shown(
                json!([note(1, "a"), note(2, "b"), note(3, "c")]),
                json!([note(9, "i"), note(1, "a"), note(2, "B"), note(8, "h"), note(3, "c")])
            ),
            [
                r#"added $[0]: expected nothing, got {"id":9,"text":"i","tags":["x"]}"#,
                r#"changed $[2].text: expected "b", got "B""#,
                r#"added $[3]: expected nothing, got {"id":8,"text":"h","tags":["x"]}"#,
            ]
        );
    }

    #[test]
    fn short_arrays_are_compared_by_index() {
        // Both numbers of a point changed; none was removed or added.
        assert_eq!(
            shown(json!([10, 20]), json!([20, 30])),
            ["changed $[0]: expected 10, got 20", "changed $[1]: expected 20, got 30"]
        );
        assert_eq!(
            shown(json!([1, 2, 3, 4]), json!([2, 3, 4, 5])),
            ["removed $[0]: missing, expected 1", "added $[3]: expected nothing, got 5"]
        );
    }

    #[test]
    fn a_removed_value_has_its_old_path() {
        let (before, after) = (json!([1, {"a": 1, "c": 3}, 2]), json!([0, 1, {"a": 1}, 2]));
        let found = differences(&before, &after);
        let places: Vec<_> = found
            .iter()
            .map(|it| (it.was.as_ref().map(Path::to_string), it.is.as_ref().map(Path::to_string)))
            .collect();
        assert_eq!(places, [(None, Some("$[0]".to_owned())), (Some("$[1].c".to_owned()), None)]);
    }

    #[test]
    fn too_many_elements_are_counted() {
        let found = shown(json!([]), (0..1000).collect());
        assert_eq!(found.len(), MAX_REPORTED_ELEMENTS + 1);
        assert_eq!(found[MAX_REPORTED_ELEMENTS], "changed $: expected 0 elements, got 1000");
        let (before, after): (Value, Value) = ((0..100).collect(), (30..130).collect());
        let found = shown(before, after);
        assert_eq!(found.len(), 2 * MAX_REPORTED_ELEMENTS + 1);
        assert_eq!(found[2 * MAX_REPORTED_ELEMENTS], "changed $: expected 100 elements, got 100, of which 30 are new");
    }

    #[test]
    fn long_arrays_are_compared_in_linear_time() {
        // Entirely different arrays, equal elements, and another order: each is slow in its own way.
        let numbers = |range: std::ops::Range<u64>| range.map(Value::from).collect::<Value>();
        let repeated = |by: u64| (0..20_000_u64).map(|at| Value::from(at / by % 7)).collect::<Value>();
        let backwards: Value = (0..20_000_u64).rev().map(Value::from).collect();
        for (before, after) in
            [(numbers(0..20_000), numbers(20_000..45_000)), (repeated(1), repeated(3)), (numbers(0..20_000), backwards)]
        {
            assert!(!differences(&before, &after).is_empty());
        }
        let mut more: Vec<Value> = (0..20_000_u64).map(Value::from).collect();
        more.insert(15_000, json!("late"));
        more.remove(9_000);
        more.insert(10, json!("early"));
        assert_eq!(
            shown(numbers(0..20_000), Value::from(more)),
            [
                "added $[10]: expected nothing, got \"early\"",
                "removed $[9000]: missing, expected 9000",
                "added $[15000]: expected nothing, got \"late\"",
            ]
        );
    }

    proptest! {
        #[test]
        fn values_differ_exactly_if_they_do_not_match(before in json_value(), after in json_value()) {
            prop_assert_eq!(differences(&before, &after).is_empty(), Matcher::exact(before).matches(&after));
        }

        #[test]
        fn every_path_of_a_difference_exists(before in json_value(), after in json_value()) {
            for Difference { drift, mismatch, was, is } in differences(&before, &after) {
                prop_assert_eq!(was.is_none(), drift == DifferenceKind::Added);
                prop_assert_eq!(is.is_none(), drift == DifferenceKind::Removed);
                prop_assert!(was.as_ref().is_none_or(|was| was.lookup(&before).is_some()));
                prop_assert!(is.as_ref().is_none_or(|is| is.lookup(&after).is_some()));
                prop_assert_eq!(Some(mismatch.path), is.or(was));
            }
        }
    }
}
