//! What is different in a run with other values.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rehearsal_core::json::Path;
use rehearsal_sandbox::ProbeRecord;
use serde_json::Value;

use super::call::{AnsweredCall, CallEnd};
use super::run::{CallKey, CallSite, DecisionSite, RunRecord, SiteKind};

/// The shortest value that identifies its source inside a longer text.
const MIN_PART_LENGTH: usize = 4;
/// Maximum number of values of answers that are looked for in arguments.
const MAX_SOURCES: usize = 2000;

/// A part of the base run that other values change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DependentPart {
    /// A value in the arguments of a call, by the index of the call and the path.
    Argument(usize, Path),
    /// Whether a call is made, by its index.
    Call(usize),
    /// How often a tool is called from a place. Without callers: from any caller of the function around it.
    Count(CallSite),
    /// A decision, by the index of its site.
    Decision(usize),
    /// The value of the plan.
    Result,
}

/// How a run differs from the base run.
#[derive(Debug, Default)]
pub(super) struct Differences {
    pub(super) parts: BTreeSet<DependentPart>,
    /// The calls of the other run that are made from places from which the base run makes none.
    pub(super) added: Vec<usize>,
}

impl Differences {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.added.is_empty()
    }
}

/// Compares a run with the base run. In a forced run, the plan's own errors belong to the side that was forced.
pub(super) fn compare(base: &RunRecord, other: &RunRecord, sites: &[DecisionSite], is_forced: bool) -> Differences {
    let mut differences = Differences::default();
    let others: HashMap<&CallKey, &AnsweredCall> = other.calls.iter().map(|call| (&call.call.key, call)).collect();
    // A run that fails has no calls behind the failure.
    let ends_early = other.failure.is_some() && base.failure.is_none() && !is_forced;
    for (index, call) in base.calls.iter().enumerate() {
        match others.get(&call.call.key) {
            Some(same) => {
                let mut paths = Vec::new();
                changed_paths(&call.call.arguments, &same.call.arguments, &Path::root(), &mut paths);
                differences.parts.extend(paths.into_iter().map(|path| DependentPart::Argument(index, path)));
            }
            None if ends_early => {}
            None => {
                differences.parts.insert(DependentPart::Call(index));
            }
        }
    }
    let known: HashSet<&CallKey> = base.calls.iter().map(|call| &call.call.key).collect();
    let known_sites: HashSet<&CallSite> = base.calls.iter().map(|call| &call.call.key.site).collect();
    let known_places: HashSet<CallSite> = base.calls.iter().map(|call| call.call.key.site.without_callers()).collect();
    for (index, call) in other.calls.iter().enumerate().filter(|(_, call)| !known.contains(&call.call.key)) {
        let (site, place) = (&call.call.key.site, call.call.key.site.without_callers());
        if known_sites.contains(site) {
            differences.parts.insert(DependentPart::Count(site.clone()));
        } else if known_places.contains(&place) {
            differences.parts.insert(DependentPart::Count(place));
        } else {
            differences.added.push(index);
        }
    }
    for (index, ((before, after), site)) in base.decisions.iter().zip(&other.decisions).zip(sites).enumerate() {
        if decides_otherwise(before, after, site) {
            differences.parts.insert(DependentPart::Decision(index));
        }
    }
    if base.failure.is_none() && other.failure.is_none() && base.value != other.value {
        differences.parts.insert(DependentPart::Result);
    }
    differences
}

/// Whether a decision has other values or another outcome.
fn decides_otherwise(before: &ProbeRecord, after: &ProbeRecord, site: &DecisionSite) -> bool {
    match site.kind {
        SiteKind::Loop => before.yes > 0 && before.yes == after.yes && before.no != after.no,
        SiteKind::Derivation => {
            before.yes > 0
                && after.yes > 0
                && (before.first_operands != after.first_operands
                    || before.yes == after.yes && before.operands != after.operands)
        }
        SiteKind::Catch => before.yes != after.yes || before.no != after.no,
        SiteKind::Condition | SiteKind::Switch => {
            let count = |record: &ProbeRecord| u64::from(record.yes) + u64::from(record.no);
            if count(before) == 0 || count(after) == 0 {
                false
            } else if count(before) == count(after) {
                before.decisions != after.decisions || before.operands != after.operands
            } else {
                // An outer decision may be the reason. What can be compared is the first value.
                has_other_outcome(before, after) || before.first_operands != after.first_operands
            }
        }
    }
}

/// Whether a condition was true in one run only, or false in one run only.
pub(super) fn has_other_outcome(before: &ProbeRecord, after: &ProbeRecord) -> bool {
    let is_decided = |record: &ProbeRecord| record.yes > 0 || record.no > 0;
    is_decided(before) && is_decided(after) && (before.yes == 0) != (after.yes == 0)
        || is_decided(before) && is_decided(after) && (before.no == 0) != (after.no == 0)
}

/// The deepest paths at which two values differ.
fn changed_paths(one: &Value, other: &Value, path: &Path, found: &mut Vec<Path>) {
    match (one, other) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                match after.get(key) {
                    Some(changed) => changed_paths(value, changed, &path.join(key.as_str()), found),
                    None => found.push(path.join(key.as_str())),
                }
            }
            let added = after.keys().filter(|key| !before.contains_key(*key));
            found.extend(added.map(|key| path.join(key.as_str())));
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (value, changed)) in before.iter().zip(after).enumerate() {
                changed_paths(value, changed, &path.join(index), found);
            }
        }
        (one, other) if one != other => found.push(path.clone()),
        _ => {}
    }
}

/// The values of invented answers that are different in a run, with their calls and paths.
pub(super) struct InventedValues {
    values: Vec<(usize, Path, Value)>,
}

impl InventedValues {
    /// The values of `other`, by the calls of the base run.
    pub(super) fn new(base: &RunRecord, other: &RunRecord) -> InventedValues {
        let others: HashMap<&CallKey, &AnsweredCall> = other.calls.iter().map(|call| (&call.call.key, call)).collect();
        let mut values = Vec::new();
        for (index, call) in base.calls.iter().enumerate().filter(|(_, call)| call.is_invented()) {
            let Some(changed) = others.get(&call.call.key) else { continue };
            if let (CallEnd::Value(before), CallEnd::Value(after)) = (&call.end, &changed.end) {
                changed_leaves(before, after, &Path::root(), index, &mut values);
            }
        }
        values.truncate(MAX_SOURCES);
        InventedValues { values }
    }

    /// The calls whose answers have this value, or a part of it, each with the path if there is only one. Only calls before
    /// `before`.
    pub(super) fn sources(&self, value: &Value, before: usize) -> BTreeMap<usize, Option<Path>> {
        let part = |source: &Value| match source {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let is_part = |source: &Value| match (part(source), value) {
            (Some(part), Value::String(text)) => part.len() >= MIN_PART_LENGTH && text.contains(&part),
            _ => false,
        };
        let is_value = |source: &Value| source == value && part(source).is_some();
        let earlier = || self.values.iter().filter(|(call, ..)| *call < before);
        let mut found: Vec<_> = earlier().filter(|(.., source)| is_value(source)).collect();
        if found.is_empty() {
            found = earlier().filter(|(.., source)| is_part(source)).collect();
        }
        let mut sources: BTreeMap<usize, Option<Path>> = BTreeMap::new();
        for (call, path, _) in found {
            let known = sources.entry(*call).or_insert_with(|| Some(path.clone()));
            if known.as_ref() != Some(path) {
                *known = None;
            }
        }
        sources
    }
}

fn changed_leaves(before: &Value, after: &Value, path: &Path, call: usize, found: &mut Vec<(usize, Path, Value)>) {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in other {
                if let Some(before) = one.get(key) {
                    changed_leaves(before, value, &path.join(key.as_str()), call, found);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for (index, (before, value)) in one.iter().zip(other).enumerate() {
                changed_leaves(before, value, &path.join(index), call, found);
            }
        }
        (one, other) if one != other && found.len() < MAX_SOURCES => found.push((call, path.clone(), other.clone())),
        _ => {}
    }
}
