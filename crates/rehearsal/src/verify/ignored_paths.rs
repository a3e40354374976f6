//! The ignored paths of an answer, at which the recorded value is kept.

use rehearsal_core::json::{Path, PathSet, RawJson, Segment};
use rehearsal_core::matcher::{Difference, DifferenceKind, Matcher, Mismatch, differences};
use rehearsal_core::message::{ErrorReply, Reply};
use serde_json::{Value, json};

use super::difference_report::{is_within, only_ignored_left};

/// The ignored paths of answers, which begin at `result` or `error`, and of server requests, which begin at `params`.
#[derive(Clone, Debug, Default)]
pub(super) struct IgnoredPaths {
    /// The ignored paths and those with matchers.
    places: PathSet,
    /// The paths at which any value is accepted.
    ignored: PathSet,
    matched: Vec<MatchedPaths>,
}

/// Paths at which a matcher accepts values other than the recorded one.
#[derive(Clone, Debug)]
struct MatchedPaths {
    places: PathSet,
    matcher: Matcher,
}

impl MatchedPaths {
    /// The live values that do not match, and the recorded ones that were removed. A removed array element counts with its
    /// array, unless the path names the element itself.
    fn mismatches(&self, before: &Value, after: &Value) -> Vec<Difference> {
        let (was, is) = (self.places.find_all(before), self.places.find_all(after));
        let gone = was.iter().filter(|path| !is.contains(path) && !self.matcher.matches_optional(None));
        let gone = gone.filter(|path| lacks(after, path)).map(|path| {
            let mismatch = Mismatch { path: path.clone(), expected: self.matcher.to_string(), got: None };
            Difference { drift: DifferenceKind::Removed, mismatch, was: Some(path.clone()), is: None }
        });
        let changed = is.iter().flat_map(|path| {
            let mismatches = self.matcher.check_optional(path.lookup(after));
            mismatches.into_iter().map(|it| {
                let mismatch = Mismatch { path: path.concat(&it.path), ..it };
                Difference { drift: DifferenceKind::Changed, mismatch, was: None, is: Some(path.clone()) }
            })
        });
        gone.chain(changed).collect()
    }
}

/// Whether the value at the path, or an object member on the way to it, is missing.
fn lacks(value: &Value, path: &Path) -> bool {
    let mut way = Path::root();
    for segment in path.segments() {
        way.push(segment.clone());
        if way.lookup(value).is_none() {
            return way == *path || matches!(segment, Segment::Key(_));
        }
    }
    false
}

impl IgnoredPaths {
    /// Adds a path at which any value is accepted. `Err` is what is wrong with the path.
    pub(super) fn and(self, path: &str) -> Result<IgnoredPaths, String> {
        Ok(IgnoredPaths { places: self.places.and(path)?, ignored: self.ignored.and(path)?, ..self })
    }

    /// Adds a path at which a matcher decides. `Err` is what is wrong with the path.
    pub(super) fn and_matched(mut self, path: &str, matcher: Matcher) -> Result<IgnoredPaths, String> {
        self.matched.push(MatchedPaths { places: PathSet::default().and(path)?, matcher });
        Ok(IgnoredPaths { places: self.places.and(path)?, ..self })
    }

    /// Whether a path, as it was written, existed in any answer so far.
    pub(super) fn was_used(&self, path: &str) -> bool {
        !self.places.unmatched().any(|unmet| unmet == path)
    }

    /// The differences between two answers outside of these paths, and the values at them that do not match.
    pub(super) fn differences(&self, before: &Value, after: &Value) -> Vec<Difference> {
        if self.places.is_empty() {
            return differences(before, after);
        }
        // Ignored elements are not removed, because that would change the index of the elements after them.
        let (was, is) = (self.places.find_all(before), self.places.find_all(after));
        let mut left = (before.clone(), after.clone());
        self.places.remove_members_from(&mut left.0);
        self.places.remove_members_from(&mut left.1);
        let mut found = differences(&left.0, &left.1);
        found.retain(|it| !is_within(it, &was, &is) && !only_ignored_left(it, (before, &left.0), (after, &left.1)));
        let known: Vec<Path> = found.iter().filter_map(|it| it.was.clone()).collect();
        found.extend(self.mismatches(before, after).into_iter().filter(|it| !is_within(it, &known, &[])));
        found
    }

    /// The values of an answer that do not match their matcher.
    pub(super) fn mismatches(&self, before: &Value, after: &Value) -> Vec<Difference> {
        self.matched.iter().flat_map(|matched| matched.mismatches(before, after)).collect()
    }

    /// Copies the recorded values into a live answer: at ignored paths, and where the live value matches.
    fn carry_over(&self, recorded: &Value, live: &mut Value) {
        let fits = |matched: &&MatchedPaths| matched.mismatches(recorded, live).is_empty();
        let fitting: Vec<&PathSet> = self.matched.iter().filter(fits).map(|matched| &matched.places).collect();
        fitting.into_iter().chain([&self.ignored]).for_each(|places| places.copy_values(recorded, live));
    }

    /// A live answer with the recorded values at these paths.
    pub(super) fn keep_recorded(&self, recorded: Option<&Reply>, live: Reply) -> Reply {
        match (recorded, live) {
            (Some(Reply::Result(recorded)), Reply::Result(live)) if !self.places.is_empty() => {
                match (recorded.value(), live.value()) {
                    (Ok(recorded), Ok(value)) => Reply::Result(RawJson::from_value(&self.result(recorded, value))),
                    (Err(_), _) | (_, Err(_)) => Reply::Result(live),
                }
            }
            (Some(Reply::Error(recorded)), Reply::Error(live)) if !self.places.is_empty() => {
                Reply::Error(self.error(recorded, live))
            }
            (_, live) => live,
        }
    }

    /// A live result with the recorded values at these paths.
    pub(super) fn result(&self, recorded: Value, live: Value) -> Value {
        let mut live = json!({"result": live});
        self.carry_over(&json!({"result": recorded}), &mut live);
        live["result"].take()
    }

    /// Live params of a server request, with the recorded values at the ignored paths.
    pub(super) fn params(&self, recorded: Value, live: Value) -> Value {
        let mut live = json!({"params": live});
        self.carry_over(&json!({"params": recorded}), &mut live);
        live["params"].take()
    }

    fn error(&self, recorded: &ErrorReply, live: ErrorReply) -> ErrorReply {
        let mut kept = json!({"error": live.object()});
        self.carry_over(&json!({"error": recorded.object()}), &mut kept);
        match kept["error"].take() {
            Value::Object(kept) => live.with_object(kept),
            _ => live,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_only_ignored_values_may_be_missing() {
        let ignored_paths = IgnoredPaths::default().and("$..n").unwrap();
        let shown = |before: Value, after: Value| -> Vec<String> {
            ignored_paths.differences(&before, &after).iter().map(|it| it.mismatch.to_string()).collect()
        };
        let emptied = json!({"result": {"a": {"n": 1, "b": {"n": 2}}}});
        assert!(shown(emptied.clone(), json!({"result": {}})).is_empty());
        assert!(shown(json!({"result": {}}), emptied.clone()).is_empty());
        assert!(shown(emptied, json!({"result": {"a": {"n": 3}}})).is_empty());
        // A value that was empty in the recording counts, and so does an element of an array.
        let empty = json!({"result": {"a": {"n": 1, "b": {}}}});
        assert_eq!(shown(empty, json!({"result": {}})), ["$.result.a: missing, expected {\"b\":{}}"]);
        let listed = json!({"result": [{"n": 1}]});
        assert_eq!(shown(listed, json!({"result": []})), ["$.result[0]: missing, expected {}"]);
    }

    #[test]
    fn an_error_keeps_the_recorded_values_at_ignored_paths() {
        let ignored_paths = IgnoredPaths::default().and("$.error.data.at").unwrap();
        let error = |code, at: u8| Reply::Error(ErrorReply::new(code, "no").with_data(&json!({"at": at, "x": at})));
        let kept = ignored_paths.keep_recorded(Some(&error(-1, 1)), error(-2, 2));
        assert_eq!(kept, Reply::Error(ErrorReply::new(-2, "no").with_data(&json!({"at": 1, "x": 2}))));
        assert!(IgnoredPaths::default().and("at").is_err());
    }

    #[test]
    fn a_matched_value_must_match_and_then_the_recorded_one_is_kept() {
        let matcher = |written: Value| Matcher::parse(&written).unwrap();
        let at = IgnoredPaths::default().and_matched("$.result..at", matcher(json!({"matches": "^T"}))).unwrap();
        let shown = |before: Value, after: Value| -> Vec<String> {
            at.differences(&before, &after).iter().map(|it| format!("{}: {}", it.drift.word(), it.mismatch)).collect()
        };
        let was = json!({"result": {"at": "T1", "list": [{"at": "T2"}, {"at": "T3"}]}});
        assert!(shown(was.clone(), json!({"result": {"at": "T4", "list": [{"at": "T5"}, {"at": "T6"}]}})).is_empty());
        assert!(shown(json!({"result": {}}), json!({"result": {}})).is_empty());
        assert_eq!(
            shown(was.clone(), json!({"result": {"list": [{"at": 5}, {"at": "T"}]}})),
            [
                "removed: $.result.at: missing, expected a string matching /^T/",
                "changed: $.result.list[0].at: expected a string matching /^T/, got 5",
            ]
        );
        // A difference of an element or of the whole answer is reported without the differences of its contents.
        assert_eq!(shown(was.clone(), json!({"result": {"at": "T", "list": [{"at": "T"}]}})).len(), 1);
        assert_eq!(shown(was.clone(), json!({"garbled": ""})).len(), 2);
        let result = |value: Value| at.result(was["result"].clone(), value);
        assert_eq!(result(json!({"at": "T9", "new": 1, "list": []}))["at"], "T1");
        assert_eq!(result(json!({"at": 9, "list": []}))["at"], 9);
    }
}
