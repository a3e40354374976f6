//! The ignored paths of an answer, at which the recorded value is kept.

use rehearsal_core::json::{Path, PathSet, RawJson, Segment};
use rehearsal_core::matcher::{Difference, DifferenceKind, Matcher, Mismatch, differences};
use rehearsal_core::message::{ErrorReply, Reply};
use serde_json::{Value, json};

use super::drift::{is_within, only_ignored_left};

/// The ignored paths of answers, which begin at `result` or `error`, and of server requests, which begin at `params`.
#[derive(Clone, Debug, Default)]
pub(super) struct IgnoredPaths {
    /// All of them.
    places: PathSet,
    /// The paths at which any value is accepted.
    ignored: PathSet,
    matched: Vec<MatchedPaths>,
}

/// Places at which whatever fits a matcher is as good as what was recorded.
#[derive(Clone, Debug)]
struct MatchedPaths {
    places: PathSet,
    matcher: Matcher,
}

impl MatchedPaths {
    /// What of a live answer does not fit, and what is not there any more. An element of an array that went is counted with
    /// its array, unless it is such a place itself.
    fn unfit(&self, before: &Value, after: &Value) -> Vec<Difference> {
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

/// Whether it is a place itself that is missing, or a member on the way to it.
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

    /// What differs between two answers elsewhere, and what does not fit here.
    pub(super) fn drifted(&self, before: &Value, after: &Value) -> Vec<Difference> {
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
        let told: Vec<Path> = found.iter().filter_map(|it| it.was.clone()).collect();
        found.extend(self.unfit(before, after).into_iter().filter(|it| !is_within(it, &told, &[])));
        found
    }

    /// What of an answer does not fit a matcher.
    pub(super) fn unfit(&self, before: &Value, after: &Value) -> Vec<Difference> {
        self.matched.iter().flat_map(|matched| matched.unfit(before, after)).collect()
    }

    /// Makes a live answer have what was recorded, where anything may be or what it has fits.
    fn carry_over(&self, recorded: &Value, live: &mut Value) {
        let fits = |matched: &&MatchedPaths| matched.unfit(recorded, live).is_empty();
        let fitting: Vec<&PathSet> = self.matched.iter().filter(fits).map(|matched| &matched.places).collect();
        fitting.into_iter().chain([&self.ignored]).for_each(|places| places.copy_values(recorded, live));
    }

    /// A live answer with what was recorded at these places.
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

    /// A live result with what was recorded at these places.
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
    fn what_has_nothing_but_what_is_passed_over_may_be_missing() {
        let passed_over = IgnoredPaths::default().and("$..n").unwrap();
        let shown = |before: Value, after: Value| -> Vec<String> {
            passed_over.drifted(&before, &after).iter().map(|it| it.mismatch.to_string()).collect()
        };
        let emptied = json!({"result": {"a": {"n": 1, "b": {"n": 2}}}});
        assert!(shown(emptied.clone(), json!({"result": {}})).is_empty());
        assert!(shown(json!({"result": {}}), emptied.clone()).is_empty());
        assert!(shown(emptied, json!({"result": {"a": {"n": 3}}})).is_empty());
        // What was empty from the start is something, and so is an element of an array.
        let empty = json!({"result": {"a": {"n": 1, "b": {}}}});
        assert_eq!(shown(empty, json!({"result": {}})), ["$.result.a: missing, expected {\"b\":{}}"]);
        let listed = json!({"result": [{"n": 1}]});
        assert_eq!(shown(listed, json!({"result": []})), ["$.result[0]: missing, expected {}"]);
    }

    #[test]
    fn an_error_keeps_what_is_passed_over() {
        let passed_over = IgnoredPaths::default().and("$.error.data.at").unwrap();
        let error = |code, at: u8| Reply::Error(ErrorReply::new(code, "no").with_data(&json!({"at": at, "x": at})));
        let kept = passed_over.keep_recorded(Some(&error(-1, 1)), error(-2, 2));
        assert_eq!(kept, Reply::Error(ErrorReply::new(-2, "no").with_data(&json!({"at": 1, "x": 2}))));
        assert!(IgnoredPaths::default().and("at").is_err());
    }

    #[test]
    fn what_is_matched_must_fit_and_stays_as_it_was_where_it_does() {
        let matcher = |written: Value| Matcher::parse(&written).unwrap();
        let at = IgnoredPaths::default().and_matched("$.result..at", matcher(json!({"matches": "^T"}))).unwrap();
        let shown = |before: Value, after: Value| -> Vec<String> {
            at.drifted(&before, &after).iter().map(|it| format!("{}: {}", it.drift.word(), it.mismatch)).collect()
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
