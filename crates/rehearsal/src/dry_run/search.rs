//! Runs the plan again with other values, as far as the budget allows, and compares each run with the base run.
//!
//! ```text
//! base run ─► other clock and seed ─► other invented values, all at once ─► … of one call site at a time ─► forced decisions
//!                                     what depends on any of them?           on which?                      the other side
//! ```
//! Each kind of run finds what the others miss, and none is complete: see `docs/concepts/dry-run.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rehearsal_core::json::Path;
use rehearsal_sandbox::ForcedDecision;

use super::alternates::Alternate;
use super::call::{AnsweredCall, CallEnd};
use super::compare::{DependentPart, Differences, compare, has_other_outcome};
use super::report::UnknownReason;
use super::run::{CallSite, PlanFailure, PlanRunner, RunRecord, SiteKind, Variation};

/// Maximum number of runs in which invented values are those that the plan compares with.
const MAX_COMPARED_RUNS: usize = 4;
/// Maximum number of cases of a `switch` that are forced.
const MAX_FORCED_CASES: u32 = 4;
/// How often a decision is forced in one run, unless it is the condition of a loop.
const MAX_FORCED_TIMES: u32 = 1000;

/// How often and how long a dry run may run the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBudget {
    /// Maximum number of runs.
    pub runs: usize,
    /// No further run begins after this time.
    pub time: Duration,
}

impl Default for RunBudget {
    /// 24 runs and 40 milliseconds.
    fn default() -> RunBudget {
        RunBudget { runs: 24, time: Duration::from_millis(40) }
    }
}

/// What the runs have shown.
#[derive(Debug, Default)]
pub(super) struct Observations {
    /// The parts that depend on something, with their sources.
    pub(super) sources: BTreeMap<DependentPart, Sources>,
    /// The places of calls with invented answers that the plan uses.
    pub(super) invented: Vec<CallSite>,
    /// The decisions of which a run with other values changed the outcome.
    pub(super) changed: BTreeSet<usize>,
    /// The derivations that had another value in some run.
    varied: BTreeSet<usize>,
    /// Calls from places from which the base run makes none.
    pub(super) added: Vec<AnsweredCall>,
    /// Why the plan failed with other values.
    pub(super) failures: Vec<PlanFailure>,
    /// The run in which all invented values are other ones of the same form.
    pub(super) near: Option<RunRecord>,
    pub(super) forced: Vec<ForcedRun>,
    /// The parts of the search for which the budget did not suffice.
    pub(super) undone: Vec<String>,
    /// The number of runs, with the base run.
    pub(super) runs: usize,
}

/// What a part of the base run depends on.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    pub(super) clock: bool,
    pub(super) random: bool,
    pub(super) answers: BTreeSet<CallSite>,
    /// Whether other invented values changed the part, even if it is not known of which call.
    pub(super) is_invented: bool,
}

impl Sources {
    /// The main reason why the part is not known.
    pub(super) fn reason(&self) -> UnknownReason {
        match (self.is_invented || !self.answers.is_empty(), self.clock) {
            (true, _) => UnknownReason::Answer,
            (false, true) => UnknownReason::Clock,
            (false, false) => UnknownReason::Random,
        }
    }

    fn extend(&mut self, other: &Sources) {
        self.clock |= other.clock;
        self.random |= other.random;
        self.is_invented |= other.is_invented;
        self.answers.extend(other.answers.iter().cloned());
    }
}

/// A run with a forced decision.
#[derive(Debug)]
pub(super) struct ForcedRun {
    /// The index of its site.
    pub(super) site: usize,
    pub(super) choice: u32,
    pub(super) differences: Differences,
    pub(super) record: RunRecord,
}

/// Runs the plan with other values. `compared` is the number of runs in which invented values are those that the plan compares
/// with; `started` is the start of the base run.
pub(super) fn search(
    runner: &mut dyn PlanRunner,
    base: &RunRecord,
    compared: usize,
    (budget, started): (RunBudget, Instant),
) -> Observations {
    let observed = Observations { runs: 1, ..Observations::default() };
    let mut search = Search { runner, base, compared: compared.min(MAX_COMPARED_RUNS), budget, started, observed };
    search.clock();
    search.invented_sites();
    if !search.observed.invented.is_empty() && search.all_values() {
        search.attribute();
    }
    search.derive();
    search.force();
    search.observed
}

struct Search<'a> {
    runner: &'a mut dyn PlanRunner,
    base: &'a RunRecord,
    compared: usize,
    budget: RunBudget,
    started: Instant,
    observed: Observations,
}

impl Search<'_> {
    fn may_run(&self) -> bool {
        self.observed.runs < self.budget.runs && self.started.elapsed() < self.budget.time
    }

    fn run(&mut self, variation: &Variation, name: &str) -> Option<(RunRecord, Differences)> {
        self.observed.runs += 1;
        let record = self.runner.run(variation);
        if record.is_limited() && !self.base.is_limited() {
            let message = record.failure.as_ref().map(|failure| failure.message.as_str()).unwrap_or_default();
            self.observed.undone.push(format!("{name}, because {message}"));
            return None;
        }
        let differences = compare(self.base, &record, self.runner.sites(), variation.force.is_some());
        Some((record, differences))
    }

    /// A run with another clock and another seed, and if something changes, one with the clock alone.
    fn clock(&mut self) {
        if !self.may_run() {
            self.observed.undone.push("another clock and seed".to_owned());
            return;
        }
        let both = Variation { other_clock: true, other_seed: true, ..Variation::default() };
        let Some((record, both)) = self.run(&both, "another clock") else { return };
        both.added.iter().for_each(|index| self.add(&record.calls[*index]));
        if both.parts.is_empty() {
            return;
        }
        let clock = Variation { other_clock: true, ..Variation::default() };
        let clock = if self.may_run() { self.run(&clock, "another clock").map(|(_, found)| found) } else { None };
        for part in both.parts {
            let is_clock = clock.as_ref().is_none_or(|clock| clock.parts.contains(&part));
            let sources = self.observed.sources.entry(part).or_default();
            sources.clock |= is_clock;
            sources.random |= !is_clock;
        }
    }

    /// Notes the places of calls with invented answers that the plan uses.
    fn invented_sites(&mut self) {
        for call in &self.base.calls {
            let is_used = call.call.place.as_ref().is_none_or(|place| !self.runner.is_discarded(place));
            let is_value = matches!(call.end, CallEnd::Value(_));
            if call.is_invented() && is_used && is_value && !self.observed.invented.contains(&call.call.key.site) {
                self.observed.invented.push(call.call.key.site.clone());
            }
        }
    }

    /// Runs with other values for all invented answers at once, and returns whether anything changed.
    fn all_values(&mut self) -> bool {
        let mut is_changed = false;
        for (index, (alternate, name)) in alternates(self.compared).into_iter().enumerate() {
            // The first run is always made: without it nothing at all is known.
            if index > 0 && !self.may_run() {
                if !self.observed.undone.iter().any(|undone| undone == name) {
                    self.observed.undone.push(name.to_owned());
                }
                continue;
            }
            let Some((record, differences)) = self.run(&Variation::answers(alternate, None), name) else { continue };
            is_changed |= !differences.is_empty();
            self.note_outcomes(&record);
            self.merge(&record, differences, None);
            // The calls of the first run may be other ones; then the values are those of the run that follows.
            if alternate == Alternate::Near {
                is_changed |= self.follow();
            }
        }
        is_changed || !self.observed.failures.is_empty()
    }

    /// A run with near values and the decisions of the base run: its calls are the same, so that their arguments can be compared.
    fn follow(&mut self) -> bool {
        let variation = Variation { follow: self.decisions(), ..Variation::answers(Alternate::Near, None) };
        let Some((record, mut differences)) = self.run(&variation, "other values with the same decisions") else {
            return false;
        };
        let sites = self.runner.sites();
        differences.parts.retain(|part| match part {
            DependentPart::Argument(..) => true,
            DependentPart::Decision(site) => sites[*site].kind == SiteKind::Derivation,
            DependentPart::Call(_) | DependentPart::Count(_) | DependentPart::Result => false,
        });
        differences.added.clear();
        let is_changed = !differences.is_empty();
        self.note_values(&record);
        self.merge(&record, differences, None);
        self.observed.near = Some(record);
        is_changed
    }

    /// The decisions of the base run.
    fn decisions(&self) -> Vec<String> {
        self.base.decisions.iter().map(|record| record.sequence.clone()).collect()
    }

    /// Notes which derivations had another value.
    fn note_values(&mut self, record: &RunRecord) {
        for (index, (before, after)) in self.base.decisions.iter().zip(&record.decisions).enumerate() {
            if before.yes == after.yes && before.decisions != after.decisions {
                self.observed.varied.insert(index);
            }
        }
    }

    /// A derivation whose operands are not known, and whose value was the same in every run, hides what depends on them: a text
    /// that never contains what is searched for. The decisions and arguments that may use its value depend on the same.
    fn derive(&mut self) {
        let sites = self.runner.sites();
        let masked: BTreeMap<u32, Sources> = (0..sites.len())
            .filter(|site| sites[*site].kind == SiteKind::Derivation && !self.observed.varied.contains(site))
            .filter_map(|site| {
                let sources = self.observed.sources.get(&DependentPart::Decision(site))?;
                Some((u32::try_from(site).ok()?, sources.clone()))
            })
            .collect();
        let of = |from: &[u32]| {
            let mut sources = Sources::default();
            from.iter().filter_map(|site| masked.get(site)).for_each(|masked| sources.extend(masked));
            (sources.reason() != UnknownReason::Random || sources.random).then_some(sources)
        };
        let mut found: Vec<(DependentPart, Sources)> = Vec::new();
        for (index, site) in sites.iter().enumerate().filter(|(_, site)| site.kind != SiteKind::Derivation) {
            found.extend(of(&site.derived_from).map(|sources| (DependentPart::Decision(index), sources)));
        }
        for (index, call) in self.base.calls.iter().enumerate() {
            let Some(place) = &call.call.place else { continue };
            for (name, from) in self.runner.derived_arguments(place) {
                let path = Path::root().join(name);
                let is_inside = |part: &DependentPart| matches!(part, DependentPart::Argument(call, other) if *call == index && other.is_within(&path));
                if !self.observed.sources.keys().any(is_inside) && path.lookup(&call.call.arguments).is_some() {
                    found.extend(of(from).map(|sources| (DependentPart::Argument(index, path.clone()), sources)));
                }
            }
        }
        for (part, sources) in found {
            self.observed.sources.entry(part).or_insert(sources);
        }
    }

    /// Notes which decisions had another outcome, and why the plan failed.
    fn note_outcomes(&mut self, record: &RunRecord) {
        for (index, (before, after)) in self.base.decisions.iter().zip(&record.decisions).enumerate() {
            if has_other_outcome(before, after) {
                self.observed.changed.insert(index);
            }
        }
        self.note_values(record);
        if let (None, Some(failure)) = (&self.base.failure, &record.failure) {
            let is_known = |other: &PlanFailure| other.place == failure.place;
            if !self.observed.failures.iter().any(is_known) {
                self.observed.failures.push(failure.clone());
            }
        }
    }

    fn merge(&mut self, record: &RunRecord, differences: Differences, source: Option<&CallSite>) {
        for part in differences.parts {
            let sources = self.observed.sources.entry(part).or_default();
            sources.is_invented = true;
            sources.answers.extend(source.cloned());
        }
        for index in differences.added {
            self.add(&record.calls[index]);
        }
    }

    fn add(&mut self, call: &AnsweredCall) {
        let is_same = |other: &AnsweredCall| other.name() == call.name() && other.call.place == call.call.place;
        if !self.observed.added.iter().any(is_same) {
            self.observed.added.push(call.clone());
        }
    }

    /// Whether the source of a value is not known yet.
    fn is_open(&self) -> bool {
        let is_open = |(part, sources): (&DependentPart, &Sources)| {
            let is_value = !matches!(part, DependentPart::Call(_) | DependentPart::Count(_));
            is_value && sources.is_invented && sources.answers.is_empty()
        };
        self.observed.sources.iter().any(is_open)
    }

    /// Finds out on which call each part depends: runs with other values for the answers from one place at a time.
    fn attribute(&mut self) {
        let sites = self.observed.invented.clone();
        if let [site] = &sites[..] {
            for sources in self.observed.sources.values_mut().filter(|sources| sources.is_invented) {
                sources.answers.insert(site.clone());
            }
            return;
        }
        for (alternate, _) in alternates(self.compared) {
            // The near values are tried for every place: a part can depend on several.
            if alternate != Alternate::Near && !self.is_open() {
                return;
            }
            for (index, site) in sites.iter().enumerate() {
                if !self.may_run() {
                    let rest = sites.len() - index;
                    self.observed.undone.push(format!("the source of each value, for {rest} of {} calls", sites.len()));
                    return;
                }
                let mut variation = Variation::answers(alternate, Some(site.clone()));
                if alternate == Alternate::Near {
                    variation.follow = self.decisions();
                }
                if let Some((record, differences)) = self.run(&variation, "other values of one call") {
                    self.note_outcomes(&record);
                    self.merge(&record, differences, Some(site));
                }
            }
        }
    }

    /// Runs with the other side of each decision that depends on something; first of those that never changed. A decision that
    /// changes in such a run depends on the same.
    fn force(&mut self) {
        let (mut tried, mut undone) = (BTreeSet::new(), 0);
        loop {
            let is_open = |part: &DependentPart| match part {
                DependentPart::Decision(site) if !tried.contains(site) => Some(*site),
                _ => None,
            };
            let open = self.observed.sources.keys().filter_map(is_open);
            let Some(site) = open.min_by_key(|site| self.observed.changed.contains(site)) else { break };
            tried.insert(site);
            for forced in self.choices(site) {
                if !self.may_run() {
                    undone += 1;
                    break;
                }
                let choice = forced.choice;
                let variation = Variation { force: Some(forced), ..Variation::default() };
                if let Some((record, differences)) = self.run(&variation, "the other side of a condition") {
                    self.note_consequences(site, &differences, &record);
                    self.observed.forced.push(ForcedRun { site, choice, differences, record });
                }
            }
        }
        if undone > 0 {
            let conditions = if undone == 1 { "condition" } else { "conditions" };
            self.observed.undone.push(format!("the other side of {undone} {conditions}"));
        }
    }

    /// A decision with another outcome depends on what the forced one depends on, and so does the number of calls.
    fn note_consequences(&mut self, site: usize, differences: &Differences, record: &RunRecord) {
        let sources = self.observed.sources.get(&DependentPart::Decision(site)).cloned().unwrap_or_default();
        for part in &differences.parts {
            let is_consequence = match part {
                DependentPart::Decision(other) => {
                    *other != site && has_other_outcome(&self.base.decisions[*other], &record.decisions[*other])
                }
                DependentPart::Count(_) => true,
                // An argument may be chosen by the decision.
                DependentPart::Argument(..) | DependentPart::Result => !record.is_impossible(),
                DependentPart::Call(_) => false,
            };
            if is_consequence {
                self.observed.sources.entry(part.clone()).or_insert_with(|| sources.clone());
            }
        }
    }

    /// The choices of a decision that the base run did not make.
    fn choices(&self, site: usize) -> Vec<ForcedDecision> {
        let (decision, record) = (&self.runner.sites()[site], &self.base.decisions[site]);
        let times = if decision.is_loop { 1 } else { MAX_FORCED_TIMES };
        let id = u32::try_from(site).unwrap_or(u32::MAX);
        let forced = |choice| ForcedDecision { site: id, choice, times };
        match (decision.kind, record.yes > 0, record.no > 0) {
            (SiteKind::Condition, true, false) => vec![forced(0)],
            (SiteKind::Condition, false, true) if decision.choices > 1 => vec![forced(1)],
            (SiteKind::Switch, ..) => (0..decision.choices.min(MAX_FORCED_CASES)).map(forced).collect(),
            (SiteKind::Condition | SiteKind::Loop | SiteKind::Catch | SiteKind::Derivation, ..) => Vec::new(),
        }
    }
}

/// The ways in which invented values are replaced, in the order of the runs, with their names for users.
fn alternates(compared: usize) -> Vec<(Alternate, &'static str)> {
    let mut alternates = vec![
        (Alternate::Near, "other values"),
        (Alternate::More, "longer lists and larger numbers"),
        (Alternate::Less, "empty lists and texts"),
    ];
    let compared = (0..compared).map(Alternate::Compared);
    alternates.extend(compared.map(|alternate| (alternate, "values that the plan compares with")));
    alternates
}
