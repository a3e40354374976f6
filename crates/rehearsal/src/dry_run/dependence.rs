//! What depends on values that are not known, as far as runs with other values have shown it.

use std::collections::{BTreeMap, BTreeSet};

use rehearsal_core::json::Path;
use serde_json::Value;

use super::call::AnsweredCall;
use super::catalogue::Servers;
use super::compare::{DependentPart, InventedValues, has_other_outcome};
use super::report::{KnownAfterRun, OnlyIf, PlanPlace, UnknownReason, ValueSource};
use super::run::{CallSite, PlanFailure, PlanRunner, RunRecord, SiteKind};
use super::search::{ForcedRun, Observations, Sources};
use super::static_check::StaticCheck;
use super::violations::KnownArguments;

/// Maximum number of calls that are named as sources of a value.
const MAX_NAMED_SOURCES: usize = 10;

/// What depends on values that are not known.
#[derive(Debug, Default)]
pub(super) struct Dependence {
    /// One entry for each call of the base run.
    pub(super) calls: Vec<CallDependence>,
    pub(super) branches: Vec<DependentBranch>,
    /// Calls that only other runs make.
    pub(super) possible: Vec<PossibleCall>,
    /// Why the plan fails with other values.
    pub(super) failures: Vec<PlanFailure>,
    /// The calls on which the value of the plan depends.
    pub(super) result: Vec<usize>,
    /// The parts of the search for which the budget did not suffice.
    pub(super) undone: Vec<String>,
    /// The number of runs, with the base run.
    pub(super) runs: usize,
}

/// What is not known about a call.
#[derive(Clone, Debug, Default)]
pub(super) struct CallDependence {
    pub(super) known_after_run: Vec<KnownAfterRun>,
    /// The branches on which it depends whether the call is made, by index.
    pub(super) conditional_on: Vec<usize>,
    /// Whether it is not known how often calls are made from this place.
    pub(super) repeats: bool,
}

impl CallDependence {
    /// Whether the call may be another one in a real run, or none, because of invented answers.
    pub(super) fn is_uncertain(&self) -> bool {
        let depends = |known: &KnownAfterRun| known.reason == UnknownReason::Answer;
        self.repeats || !self.conditional_on.is_empty() || self.known_after_run.iter().any(depends)
    }
}

/// A decision that depends on values that are not known.
#[derive(Clone, Debug)]
pub(super) struct DependentBranch {
    /// The index of its site.
    pub(super) site: usize,
    pub(super) reason: UnknownReason,
    /// The indexes of the calls whose answers decide.
    pub(super) from: Vec<usize>,
    /// The outcome in the base run, if it was always the same.
    pub(super) taken: Option<bool>,
    /// The calls of the base run that are only on the side which it took.
    pub(super) calls: Vec<usize>,
    /// The tools that are called only on another side.
    pub(super) other_calls: Vec<String>,
    /// Whether no value led to another side, so that a run was forced to take it.
    pub(super) is_forced: bool,
    /// Whether every run that was forced to take the other side failed there.
    pub(super) is_unrehearsed: bool,
}

/// A call that only another run makes.
#[derive(Clone, Debug)]
pub(super) struct PossibleCall {
    pub(super) call: AnsweredCall,
    pub(super) only_if: Option<BranchSide>,
}

/// A side of a branch that the base run did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BranchSide {
    /// The index of the branch.
    pub(super) branch: usize,
    /// The outcome of its condition; none for another case of a `switch`.
    pub(super) value: Option<bool>,
}

/// Draws the conclusions from the runs with other values.
pub(super) fn conclude(runner: &dyn PlanRunner, base: &RunRecord, observed: Observations) -> Dependence {
    Conclusion { runner, base, observed }.result()
}

struct Conclusion<'a> {
    runner: &'a dyn PlanRunner,
    base: &'a RunRecord,
    observed: Observations,
}

impl Conclusion<'_> {
    fn result(self) -> Dependence {
        let mut dependence =
            Dependence { calls: vec![CallDependence::default(); self.base.calls.len()], ..Dependence::default() };
        self.branches(&mut dependence);
        let near = self.observed.near.as_ref().map(|near| (near, InventedValues::new(self.base, near)));
        for (part, sources) in &self.observed.sources {
            match part {
                DependentPart::Argument(call, path) => {
                    let known = self.known_after_run(*call, path, sources, near.as_ref());
                    dependence.calls[*call].known_after_run.push(known);
                }
                DependentPart::Count(place) => {
                    for (index, call) in self.base.calls.iter().enumerate() {
                        let site = &call.call.key.site;
                        dependence.calls[index].repeats |= site == place || site.without_callers() == *place;
                    }
                }
                DependentPart::Call(call) => {
                    let found = &mut dependence.calls[*call];
                    found.repeats |= found.conditional_on.is_empty();
                }
                DependentPart::Decision(_) => {}
                DependentPart::Result => dependence.result = self.calls_of(&sources.answers, None),
            }
        }
        for (call, found) in self.base.calls.iter().zip(&mut dependence.calls) {
            let keys: Vec<String> = match &call.call.arguments {
                Value::Object(members) => {
                    members.keys().map(|key| Path::root().join(key.as_str()).to_string()).collect()
                }
                _ => Vec::new(),
            };
            let order = |known: &KnownAfterRun| keys.iter().position(|key| known.path.starts_with(key.as_str()));
            found.known_after_run.sort_by_key(order);
        }
        self.possible(&mut dependence);
        dependence.failures = self.observed.failures;
        dependence.undone = self.observed.undone;
        dependence.runs = self.observed.runs;
        dependence
    }

    /// The calls of the base run from some places, with invented answers, before another call.
    fn calls_of(&self, sites: &BTreeSet<CallSite>, before: Option<usize>) -> Vec<usize> {
        let calls = self.base.calls.iter().enumerate().take(before.unwrap_or(usize::MAX));
        let calls = calls.filter(|(_, call)| call.is_invented() && sites.contains(&call.call.key.site));
        calls.map(|(index, _)| index).take(MAX_NAMED_SOURCES).collect()
    }

    fn known_after_run(
        &self,
        call: usize,
        path: &Path,
        sources: &Sources,
        near: Option<&(&RunRecord, InventedValues)>,
    ) -> KnownAfterRun {
        let reason = sources.reason();
        let mut from: Vec<ValueSource> = Vec::new();
        if reason == UnknownReason::Answer {
            let value = near.and_then(|(near, values)| {
                let same = near.calls.iter().find(|other| other.call.key == self.base.calls[call].call.key)?;
                Some((path.lookup(&same.call.arguments)?, values))
            });
            let found = value.map(|(value, values)| values.sources(value, call)).unwrap_or_default();
            let sites: BTreeSet<&CallSite> = found.keys().map(|call| &self.base.calls[*call].call.key.site).collect();
            let others: BTreeSet<CallSite> =
                sources.answers.iter().filter(|site| !sites.contains(site)).cloned().collect();
            let others = self.calls_of(&others, Some(call)).into_iter().map(|source| (source, None));
            let all: BTreeMap<usize, Option<Path>> = others.chain(found).collect();
            let source = |(call, path): (usize, Option<Path>)| ValueSource {
                call: call + 1,
                path: path.map(|path| path.to_string()),
            };
            from.extend(all.into_iter().map(source).take(MAX_NAMED_SOURCES));
        }
        KnownAfterRun { path: path.to_string(), from, reason }
    }

    /// Adds the decisions that depend on something, and the calls that depend on them.
    fn branches(&self, dependence: &mut Dependence) {
        let invented = &self.observed.invented;
        let sites = self.runner.sites();
        let mut found: BTreeMap<usize, (UnknownReason, BTreeSet<CallSite>)> = BTreeMap::new();
        for (part, sources) in &self.observed.sources {
            if let DependentPart::Decision(site) = part
                && sites[*site].kind != SiteKind::Derivation
            {
                found.insert(*site, (sources.reason(), sources.answers.clone()));
            }
        }
        for (index, site) in sites.iter().enumerate() {
            // Another exception than the error of a tool: an invented value may be its reason.
            let is_caught = site.kind == SiteKind::Catch && self.base.decisions.get(index).is_some_and(|r| r.no > 0);
            if is_caught && !invented.is_empty() {
                let all = || (UnknownReason::Answer, invented.iter().cloned().collect());
                found.entry(index).or_insert_with(all);
            }
        }
        for (site, (reason, answers)) in found {
            let record = &self.base.decisions[site];
            let taken = match (sites[site].kind, record.yes > 0, record.no > 0) {
                (SiteKind::Condition, true, false) => Some(true),
                (SiteKind::Condition, false, true) => Some(false),
                _ => None,
            };
            let mut forced = self.observed.forced.iter().filter(|forced| forced.site == site).peekable();
            let is_tried = forced.peek().is_some();
            let branch = DependentBranch {
                is_unrehearsed: is_tried && forced.all(|forced| forced.record.is_impossible()),
                site,
                reason,
                from: self.calls_of(&answers, None),
                taken,
                calls: self.calls_on_side(site, taken),
                other_calls: Vec::new(),
                is_forced: !self.observed.changed.contains(&site) && is_tried,
            };
            let number = dependence.branches.len();
            for call in &branch.calls {
                match sites[site].kind {
                    SiteKind::Condition if sites[site].is_loop => dependence.calls[*call].repeats = true,
                    SiteKind::Loop => dependence.calls[*call].repeats = true,
                    SiteKind::Condition | SiteKind::Switch | SiteKind::Catch | SiteKind::Derivation => {
                        dependence.calls[*call].conditional_on.push(number);
                    }
                }
            }
            dependence.branches.push(branch);
        }
    }

    /// The calls of the base run that depend on a decision: they are in its part of the source, or missing in a run that
    /// decided otherwise.
    fn calls_on_side(&self, site: usize, taken: Option<bool>) -> Vec<usize> {
        let kind = self.runner.sites()[site].kind;
        let mut calls = BTreeSet::new();
        for (index, call) in self.base.calls.iter().enumerate() {
            let side = call.call.place.as_ref().and_then(|place| self.runner.side_of(site, place));
            let is_there = match kind {
                SiteKind::Condition => side.is_some() && (taken.is_none() || side == taken),
                SiteKind::Switch | SiteKind::Loop | SiteKind::Catch | SiteKind::Derivation => side.is_some(),
            };
            if is_there {
                calls.insert(index);
            }
        }
        for forced in self.observed.forced.iter().filter(|forced| forced.site == site && !forced.record.is_impossible())
        {
            calls.extend(forced.differences.parts.iter().filter_map(|part| match part {
                DependentPart::Call(call) if self.later_decision(forced, &self.base.calls[*call]).is_none() => {
                    Some(*call)
                }
                DependentPart::Call(_)
                | DependentPart::Argument(..)
                | DependentPart::Count(_)
                | DependentPart::Decision(_)
                | DependentPart::Result => None,
            }));
        }
        calls.into_iter().collect()
    }

    /// The innermost decision around a call that has another outcome in a forced run, other than the forced one: the call
    /// depends on it, and only through it on the forced one.
    fn later_decision(&self, forced: &ForcedRun, call: &AnsweredCall) -> Option<usize> {
        let place = call.call.place.as_ref()?;
        let is_later = |site: &usize| {
            *site != forced.site
                && self.runner.sites()[*site].kind == SiteKind::Condition
                && self.observed.sources.contains_key(&DependentPart::Decision(*site))
                && has_other_outcome(&self.base.decisions[*site], &forced.record.decisions[*site])
                && self.runner.side_of(*site, place).is_some()
        };
        (0..self.runner.sites().len()).rfind(is_later)
    }

    /// Adds the calls that only other runs make, with the decision that leads to them.
    fn possible(&self, dependence: &mut Dependence) {
        let branch_of = |site: usize| dependence.branches.iter().position(|branch| branch.site == site);
        let mut possible: Vec<PossibleCall> = Vec::new();
        for forced in &self.observed.forced {
            for call in forced.differences.added.iter().map(|index| &forced.record.calls[*index]) {
                let only_if = match self.later_decision(forced, call) {
                    Some(site) => branch_of(site).map(|branch| {
                        let place = call.call.place.as_ref();
                        BranchSide { branch, value: place.and_then(|place| self.runner.side_of(site, place)) }
                    }),
                    None => branch_of(forced.site).map(|branch| {
                        let is_switch = self.runner.sites()[forced.site].kind == SiteKind::Switch;
                        BranchSide { branch, value: (!is_switch).then_some(forced.choice == 1) }
                    }),
                };
                possible.push(PossibleCall { call: call.clone(), only_if });
            }
        }
        for call in self.observed.added.iter().cloned() {
            let only_if = call.call.place.as_ref().and_then(|place| dependence.side_of(self.runner, place));
            possible.push(PossibleCall { call, only_if });
        }
        // The last decision before a call is the one that leads to it.
        possible.sort_by_key(|call| std::cmp::Reverse(call.only_if.map(|side| side.branch)));
        for call in possible {
            let place = call.call.call.key.site.without_callers();
            if dependence.possible.iter().any(|other| other.call.call.key.site.without_callers() == place) {
                continue;
            }
            if let Some(side) = call.only_if {
                let names = &mut dependence.branches[side.branch].other_calls;
                let name = call.call.name();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            dependence.possible.push(call);
        }
    }
}

impl Dependence {
    /// The calls that the base run did not make: those of the source, each with the decision that leads to it, and those
    /// that only other runs make.
    pub(super) fn unreached(
        &self,
        found: Vec<StaticCheck>,
        runner: &dyn PlanRunner,
        servers: &Servers,
    ) -> Vec<StaticCheck> {
        let mut unreached = Vec::new();
        for mut check in found {
            let place = (check.call.place.line, check.call.place.column);
            let is_same = |possible: &PossibleCall| {
                possible.call.call.place.as_ref().is_some_and(|other| (other.line, other.column) == place)
            };
            if !self.possible.iter().any(is_same) {
                if let Some(side) = self.side_of(runner, &check.call.place) {
                    self.add_condition(&mut check, Some(side), runner);
                }
                unreached.push(check);
            }
        }
        for PossibleCall { call, only_if } in &self.possible {
            let Some(place) = call.call.place.clone() else { continue };
            let known = KnownArguments { value: &call.call.arguments, unknown: &call.call.guessed, open: &[] };
            let name = (call.call.server.as_str(), call.call.tool.as_str());
            let mut check = StaticCheck::new(servers, name, place, &known, String::new());
            self.add_condition(&mut check, *only_if, runner);
            unreached.push(check);
        }
        unreached.sort_by_key(|check| (check.call.place.line, check.call.place.column));
        unreached
    }

    fn add_condition(&self, check: &mut StaticCheck, side: Option<BranchSide>, runner: &dyn PlanRunner) {
        let Some(BranchSide { branch, value }) = side else {
            check.call.reason = "only with other values in place of invented answers".to_owned();
            check.call.with_other_values = true;
            return;
        };
        let place = &runner.sites()[self.branches[branch].site].place;
        let column = place.column.map(|column| format!(":{column}")).unwrap_or_default();
        let outcome = value.map_or("another case".to_owned(), |value| value.to_string());
        check.call.reason = format!("only if {}{column} is {outcome}", place.line);
        check.call.only_if = Some(OnlyIf { branch, value });
    }

    /// The innermost side of a branch that the base run did not take and that contains a place.
    pub(super) fn side_of(&self, runner: &dyn PlanRunner, place: &PlanPlace) -> Option<BranchSide> {
        let sides = self.branches.iter().enumerate().filter_map(|(index, branch)| {
            let side = runner.side_of(branch.site, place)?;
            let kind = runner.sites()[branch.site].kind;
            let value = (kind != SiteKind::Switch).then_some(side);
            let is_other = match kind {
                SiteKind::Condition => branch.taken.is_some_and(|taken| taken != side),
                SiteKind::Switch => true,
                SiteKind::Loop | SiteKind::Catch | SiteKind::Derivation => false,
            };
            is_other.then_some(BranchSide { branch: index, value })
        });
        sides.last()
    }
}
