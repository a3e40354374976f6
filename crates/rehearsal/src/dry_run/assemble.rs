//! Makes the report of a run.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use rehearsal_core::json::excerpt;
use rehearsal_core::report::Severity;
use serde_json::Value;

use super::call::{AnsweredCall, CallEnd, CallProblem};
use super::dependence::{CallDependence, Dependence, DependentBranch};
use super::effects::ToolEffect;
use super::explore::Exploration;
use super::plan::Plan;
use super::report::{
    AnswerOrigin, BranchKind, ConfidenceLoss, DryRunReport, DurationEstimate, Effect, FindingCode, PlanFinding,
    PlanPlace, PlanResult, ReportedAnswer, ReportedBranch, ReportedCall, Runs, SandboxLevels, SideEffect, TypeMismatch,
    UnhandledFailure, UnreachedCall, Validation,
};
use super::run::{DecisionSite, PlanFailure, RunRecord, SiteKind};
use super::static_check::StaticCheck;
use super::violations::Violation;

/// Maximum number of calls that a hint names.
const MAX_NAMED_CALLS: usize = 10;
/// Maximum length of an argument in the text of a side effect.
const SUBJECT_LENGTH: usize = 60;

/// The least loss of confidence if a branch was only forced, or if the budget ended the search.
const MIN_LOSS: f64 = 0.1;

/// Everything that a report is made of.
pub(super) struct Assembly<'a> {
    pub(super) plan: &'a Plan,
    pub(super) intent: Option<String>,
    pub(super) record: RunRecord,
    /// The duration with the 95th percentile of every latency.
    pub(super) p95_ms: Option<f64>,
    pub(super) unreached: Vec<StaticCheck>,
    /// Findings that are not about a run.
    pub(super) findings: Vec<PlanFinding>,
    pub(super) sandbox: Option<SandboxLevels>,
    /// What depends on values that are not known.
    pub(super) dependence: Dependence,
    /// The failures that the plan does not handle, if they were explored.
    pub(super) explored: Option<Exploration>,
    pub(super) elapsed_ms: f64,
}

/// The report of a plan that could not be compiled.
pub(super) fn invalid(plan: &Plan, intent: Option<String>, findings: Vec<PlanFinding>) -> DryRunReport {
    let (record, dependence, elapsed_ms) = (RunRecord::default(), Dependence::default(), 0.0);
    let unreached = Vec::new();
    let assembly = Assembly {
        plan,
        intent,
        record,
        p95_ms: None,
        unreached,
        findings,
        sandbox: None,
        dependence,
        explored: None,
        elapsed_ms,
    };
    let mut report = assembly.report(&[]);
    report.validation.syntax_valid = false;
    report.confidence = 0.0;
    report.confidence_reasons =
        vec![ConfidenceLoss { calls: Vec::new(), lost: 1.0, reason: "the plan is not valid".to_owned() }];
    report
}

/// A finding without a call.
pub(crate) fn finding(code: FindingCode, severity: Severity, message: impl Into<String>) -> PlanFinding {
    let message = message.into();
    PlanFinding { code, severity, call: None, place: None, message, hint: None, source_line: None }
}

impl Assembly<'_> {
    /// Makes the report. `sites` are the places at which the plan decides.
    pub(super) fn report(mut self, sites: &[DecisionSite]) -> DryRunReport {
        let mut findings = std::mem::take(&mut self.findings);
        self.find_problems(&mut findings);
        self.find_dependence(sites, &mut findings);
        let validation = self.validation(&findings);
        let record = &self.record;
        let (confidence, confidence_reasons) = confidence(&record.calls, &self.dependence);
        let calls = record.calls.iter().enumerate();
        let tools_called: Vec<ReportedCall> =
            calls.map(|(index, call)| reported(index, call, self.dependence.calls.get(index))).collect();
        let side_effects = self.side_effects();
        let fails = |call: &ReportedCall| call.fails && !record.calls[call.call - 1].call.is_caught;
        let problem = tools_called.iter().find(|call| fails(call) && record.calls[call.call - 1].problem.is_some());
        let uncaught = record.failure.as_ref().and_then(|failure| failure.call).map(|index| index + 1);
        let not_run: Vec<UnreachedCall> = self.unreached.iter().map(|check| check.call.clone()).collect();
        DryRunReport {
            dry_run: true,
            plan: self.plan.file().to_owned(),
            plan_hash: self.plan.hash(),
            intent: self.intent.clone(),
            validation,
            simulated_result: record.value.clone(),
            result: PlanResult {
                error: record.failure.as_ref().map(|failure| failure.message.clone()),
                console: record.console.clone(),
                depends_on: self.dependence.result.iter().map(|index| index + 1).collect(),
            },
            stops_at: problem.map(|call| call.call).into_iter().chain(uncaught).min(),
            estimated_duration_ms: self.duration(),
            reversible: record.calls.iter().all(|call| call.effect.is_reversible)
                && self.unreached.iter().all(|check| check.is_reversible),
            side_effects,
            tools_called,
            not_run,
            branches: self.dependence.branches.iter().map(|branch| reported_branch(branch, sites)).collect(),
            confidence,
            confidence_reasons,
            findings: merged(findings, self.plan),
            sandbox: self.sandbox.clone(),
            unhandled_failures: self.explored.as_ref().map(|explored| explored.unhandled.clone()),
            runs: Runs {
                count: self.dependence.runs
                    + usize::from(self.p95_ms.is_some())
                    + self.explored.as_ref().map_or(0, |explored| explored.runs),
                elapsed_ms: self.elapsed_ms,
                budget_hit: !self.dependence.undone.is_empty(),
                not_done: self.dependence.undone.clone(),
            },
        }
    }

    fn find_problems(&self, findings: &mut Vec<PlanFinding>) {
        let (mut noted, mut unchecked) = (BTreeSet::new(), BTreeSet::new());
        for (index, call) in self.record.calls.iter().enumerate() {
            let (number, name) = (index + 1, call.name());
            let mut add = |code, severity, message: String, hint: Option<String>| {
                let place = call.call.place.clone();
                findings.push(PlanFinding {
                    code,
                    severity,
                    call: Some(number),
                    place,
                    message,
                    hint,
                    source_line: None,
                });
            };
            if let Some(problem) = &call.problem {
                for (code, message, hint) in problem_messages(&call.call.server, &name, problem) {
                    add(code, Severity::Error, message, hint);
                }
            }
            if let Some(reason) = call.unchecked.as_ref().filter(|_| unchecked.insert(name.clone())) {
                let message =
                    format!("the arguments of {name} are not checked, its input schema cannot be used: {reason}");
                add(FindingCode::BadSchema, Severity::Warning, message, None);
            }
            for lossy in &call.call.lossy {
                add(FindingCode::LossyValue, Severity::Warning, format!("{name}: {lossy}"), None);
            }
            if self.record.not_awaited.contains(&index) {
                let hint = Some("write `await` before the call".to_owned());
                add(FindingCode::NotAwaited, Severity::Warning, format!("the result of {name} is not awaited"), hint);
            }
            // A plan that fails does not wait for its other calls.
            if self.record.failure.is_none() && self.record.unfinished.contains(&index) {
                let hint =
                    Some("await the function that makes the call, if its result or its error matters".to_owned());
                add(
                    FindingCode::NotAwaited,
                    Severity::Warning,
                    format!("the plan ends before the result of {name}"),
                    hint,
                );
            }
            if let Some(stale) = &call.stale {
                let message = format!("{name}: {stale}, so it is not used");
                add(FindingCode::StaleAnswer, Severity::Warning, message, Some(stale.hint(&name)));
            }
            if call.origin == AnswerOrigin::Placeholder && call.problem.is_none() {
                let recording = if call.stale.is_some() { "no usable recording" } else { "no recording" };
                let message = format!("{name} has {recording} and no output schema: its result is a placeholder");
                add(FindingCode::Placeholder, Severity::Warning, message, None);
            }
            if call.effect.is_contradictory && noted.insert(name.clone()) {
                let message = format!("the annotations of {name} contradict each other: it counts as destructive");
                add(FindingCode::Annotations, Severity::Warning, message, None);
            }
            for remark in &call.remarks {
                add(FindingCode::Answer, Severity::Note, format!("{name}: {remark}"), None);
            }
        }
        for check in &self.unreached {
            let (Some(problem), Some(name)) = (&check.problem, &check.call.tool) else { continue };
            let server = name.split(':').next().unwrap_or_default();
            for (code, message, hint) in problem_messages(server, name, problem) {
                let place = Some(check.call.place.clone());
                let severity = Severity::Error;
                findings.push(PlanFinding { code, severity, call: None, place, message, hint, source_line: None });
            }
        }
        for lossy in &self.record.lossy {
            findings.push(finding(FindingCode::LossyValue, Severity::Warning, format!("the plan's result: {lossy}")));
        }
        let mut add_failure = |failure: &PlanFailure, severity, message| {
            let (place, call) = (failure.place.clone(), failure.call.map(|index| index + 1));
            findings.push(PlanFinding { place, call, ..finding(failure.code, severity, message) });
        };
        for failure in &self.record.unhandled {
            let message = format!("the plan does not handle an error: {}", failure.message);
            add_failure(failure, Severity::Warning, message);
        }
        if let Some(failure) = &self.record.failure {
            add_failure(failure, Severity::Error, failure.message.clone());
            if let Some(added) = findings.last_mut().filter(|_| failure.call.is_none()) {
                added.hint = self.invented_hint();
            }
        }
    }

    /// Adds what the runs with other values have shown.
    fn find_dependence(&self, sites: &[DecisionSite], findings: &mut Vec<PlanFinding>) {
        for failure in &self.dependence.failures {
            let message =
                format!("with other values in place of invented answers, the plan fails: {}", failure.message);
            let (place, call) = (failure.place.clone(), None);
            findings.push(PlanFinding { place, call, ..finding(FindingCode::MayFail, Severity::Warning, message) });
        }
        let caught = self.dependence.branches.iter().filter(|branch| sites[branch.site].kind == SiteKind::Catch);
        for branch in caught {
            let message = "this `catch` handles an error that an invented answer may cause; the plan without this error was \
                           not rehearsed";
            let place = Some(sites[branch.site].place.clone());
            findings.push(PlanFinding { place, ..finding(FindingCode::InventedCatch, Severity::Warning, message) });
        }
        for failure in self.explored.iter().flat_map(|explored| &explored.unhandled) {
            findings.push(unhandled_finding(failure));
        }
        if let Some(left) = self.explored.as_ref().map(|explored| explored.left).filter(|left| *left > 0) {
            let message = format!("the failures of {left} further calls were not explored");
            findings.push(finding(FindingCode::UnhandledFailure, Severity::Warning, message));
        }
        if !self.dependence.undone.is_empty() {
            let message = format!(
                "what depends on invented answers was not searched completely; not tried: {}",
                self.dependence.undone.join("; ")
            );
            let hint = Some("allow more runs: --max-runs 100 --max-run-time 2s".to_owned());
            findings.push(PlanFinding { hint, ..finding(FindingCode::Budget, Severity::Warning, message) });
        }
    }

    /// A plan may fail because of an invented answer.
    fn invented_hint(&self) -> Option<String> {
        let calls = self.record.calls.iter().enumerate().filter(|(_, call)| call.is_invented());
        let mut numbers: Vec<String> = calls.map(|(index, _)| (index + 1).to_string()).collect();
        if numbers.len() > MAX_NAMED_CALLS {
            numbers.truncate(MAX_NAMED_CALLS);
            numbers.push("…".to_owned());
        }
        let subject = match &numbers[..] {
            [] => return None,
            [number] => format!("the answer of call {number} is"),
            numbers => format!("the answers of calls {} are", numbers.join(", ")),
        };
        Some(format!("{subject} invented; with the real one the plan may not fail here"))
    }

    fn validation(&self, findings: &[PlanFinding]) -> Validation {
        let calls = &self.record.calls;
        let with_origin = |origin| calls.iter().filter(|call| call.origin == origin).count();
        let exists = |call: &&AnsweredCall| {
            matches!(call.problem, None | Some(CallProblem::Arguments(_)))
                && !matches!(call.origin, AnswerOrigin::Override | AnswerOrigin::Live)
        };
        let hits = with_origin(AnswerOrigin::CapabilityCache);
        let mut missing: Vec<String> = Vec::new();
        let unreached = self.unreached.iter().map(|check| (check.call.tool.clone(), &check.problem));
        for (name, problem) in calls.iter().map(|call| (Some(call.name()), &call.problem)).chain(unreached) {
            let is_missing =
                matches!(problem, Some(CallProblem::MissingServer { .. } | CallProblem::MissingTool { .. }));
            missing.extend(name.filter(|name| is_missing && !missing.contains(name)));
        }
        let mut warnings: Vec<String> = Vec::new();
        for found in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
            warnings.push(found.warning());
        }
        let mut mocked = BTreeSet::new();
        for call in calls.iter().filter(|call| call.origin == AnswerOrigin::SchemaMock) {
            if mocked.insert(call.name()) {
                let found = if call.stale.is_some() { "no usable cached result" } else { "no cached result" };
                warnings.push(format!("{} has {found}, using schema mock", call.name()));
            }
        }
        Validation {
            syntax_valid: true,
            type_errors: self.type_errors(),
            missing_tools: missing,
            cache_hits: hits,
            cache_misses: calls.iter().filter(exists).count() - hits,
            overrides: with_origin(AnswerOrigin::Override),
            warnings,
        }
    }

    fn type_errors(&self) -> Vec<TypeMismatch> {
        let mut errors = Vec::new();
        let mut add = |tool: &str, problem: &Option<CallProblem>, call: Option<usize>, place: Option<&PlanPlace>| {
            let Some(CallProblem::Arguments(violations)) = problem else { return };
            errors.extend(violations.iter().map(|violation| TypeMismatch {
                tool: tool.to_owned(),
                arg: violation.argument(),
                expected: violation.expected.clone(),
                got: violation.got.clone(),
                path: violation.path.to_string(),
                call,
                place: place.cloned(),
                source_line: source_line(self.plan, place),
            }));
        };
        for (index, call) in self.record.calls.iter().enumerate() {
            add(&call.name(), &call.problem, Some(index + 1), call.call.place.as_ref());
        }
        for check in &self.unreached {
            add(check.call.tool.as_deref().unwrap_or_default(), &check.problem, None, Some(&check.call.place));
        }
        errors
    }

    fn duration(&self) -> DurationEstimate {
        let calls = &self.record.calls;
        let p50 = rounded(self.record.duration_ms);
        let last = (0..calls.len()).max_by(|one, other| calls[*one].ended_ms.total_cmp(&calls[*other].ended_ms));
        let mut critical_path = Vec::new();
        let mut next = last;
        while let Some(index) = next {
            critical_path.push(index + 1);
            let before = calls[index].waits_for.iter().copied();
            next = before.max_by(|one, other| calls[*one].ended_ms.total_cmp(&calls[*other].ended_ms));
        }
        critical_path.reverse();
        DurationEstimate {
            p50,
            p95: self.p95_ms.map_or(p50, rounded).max(p50),
            known: calls.iter().filter(|call| call.latency_ms.is_some()).count(),
            of: calls.len(),
            critical_path,
        }
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        let of_calls = self.record.calls.iter().enumerate().filter(|(_, call)| call.effect.effect != Effect::Read);
        let of_calls = of_calls.map(|(index, call)| {
            let (tool, effect) = (call.name(), call.effect.effect);
            let subject = subject(&call.call.arguments).map(|subject| format!(" ({subject})")).unwrap_or_default();
            SideEffect { call: Some(index + 1), text: format!("{tool} {}{subject}", effect.verb()), tool, effect }
        });
        let unreached = self.unreached.iter().filter(|check| check.call.effect != Effect::Read);
        let possible = unreached.map(|check| {
            let effect = check.call.effect;
            let tool = check.call.tool.clone().unwrap_or_else(|| "a computed tool".to_owned());
            let text = format!("possible: {tool} {}, {}", effect.verb(), check.call.reason);
            SideEffect { call: None, tool, effect, text }
        });
        of_calls.chain(possible).collect()
    }
}

/// `the plan does not handle a tool error or time-out of fs:write_file; calls 1, 2 have changed something before`
fn unhandled_finding(failure: &UnhandledFailure) -> PlanFinding {
    let changed: Vec<String> = failure.changed_before.iter().map(usize::to_string).collect();
    let before = match &changed[..] {
        [] => String::new(),
        [call] => format!("; call {call} has changed something before"),
        calls => format!("; calls {} have changed something before", calls.join(", ")),
    };
    let message = format!("the plan does not handle a {} of {}{before}", failure.kinds_text(), failure.tool);
    let is_elsewhere = failure.error_place.is_some() && failure.error_place != failure.place;
    let hint = is_elsewhere.then(|| format!("it ends with: {}", failure.error));
    PlanFinding {
        call: Some(failure.call),
        place: failure.place.clone(),
        hint,
        ..finding(FindingCode::UnhandledFailure, Severity::Error, message)
    }
}

/// The findings about a call that the server would refuse.
pub(crate) fn problem_messages(
    server: &str,
    name: &str,
    problem: &CallProblem,
) -> Vec<(FindingCode, String, Option<String>)> {
    match problem {
        CallProblem::MissingServer { hint } => {
            vec![(FindingCode::MissingServer, format!("no server {server}, called as {name}"), hint.clone())]
        }
        CallProblem::MissingTool { hint } => {
            vec![(FindingCode::MissingTool, format!("no tool {name}"), hint.clone())]
        }
        CallProblem::UnknownCatalogue { reason } => {
            let message = format!("the tools of {server} are not known, so its calls are not checked: {reason}");
            vec![(FindingCode::UnknownCatalogue, message, None)]
        }
        CallProblem::Arguments(violations) => {
            let message = |violation: &Violation| format!("{name}: {}", violation.message());
            violations.iter().map(|violation| (FindingCode::TypeError, message(violation), None)).collect()
        }
    }
}

/// Findings of one place with one message become one, which counts the calls; errors come first, else the order stays. A
/// server whose tools are not known is one finding, wherever the plan calls it.
fn merged(findings: Vec<PlanFinding>, plan: &Plan) -> Vec<PlanFinding> {
    let mut merged: Vec<(PlanFinding, usize)> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    for found in findings {
        let place = found.place.as_ref().filter(|_| found.code != FindingCode::UnknownCatalogue);
        let place = place.map(|place| (place.line, place.column));
        match positions.entry(format!("{place:?} {}", found.message)) {
            Entry::Occupied(position) => merged[*position.get()].1 += 1,
            Entry::Vacant(position) => {
                position.insert(merged.len());
                merged.push((found, 1));
            }
        }
    }
    merged.sort_by_key(|(found, _)| std::cmp::Reverse(found.severity));
    let finish = |(mut found, count): (PlanFinding, usize)| {
        if count > 1 {
            // The lines below the first one are what a server printed.
            let end = found.message.find('\n').unwrap_or(found.message.len());
            found.message.insert_str(end, &format!(" (in {count} calls)"));
        }
        found.source_line = source_line(plan, found.place.as_ref());
        found
    };
    merged.into_iter().map(finish).collect()
}

pub(crate) fn source_line(plan: &Plan, place: Option<&PlanPlace>) -> Option<String> {
    place.and_then(|place| plan.line(place.line)).map(str::to_owned)
}

fn reported_branch(branch: &DependentBranch, sites: &[DecisionSite]) -> ReportedBranch {
    let site = &sites[branch.site];
    let kind = match site.kind {
        SiteKind::Condition | SiteKind::Derivation => BranchKind::Condition,
        SiteKind::Switch => BranchKind::Switch,
        SiteKind::Loop => BranchKind::Loop,
        SiteKind::Catch => BranchKind::Catch,
    };
    let numbers = |calls: &[usize]| calls.iter().map(|index| index + 1).collect();
    ReportedBranch {
        place: site.place.clone(),
        text: site.text.clone(),
        kind,
        from: numbers(&branch.from),
        reason: branch.reason,
        taken: branch.taken,
        calls: numbers(&branch.calls),
        other_calls: branch.other_calls.clone(),
        forced: branch.is_forced,
        unrehearsed: branch.is_unrehearsed && branch.other_calls.is_empty(),
    }
}

fn reported(index: usize, call: &AnsweredCall, dependence: Option<&CallDependence>) -> ReportedCall {
    let CallDependence { known_after_run, conditional_on, repeats } = dependence.cloned().unwrap_or_default();
    let ToolEffect { effect, from, is_reversible, notes, .. } = &call.effect;
    let (value, is_error) = match &call.end {
        CallEnd::Value(value) => (value.clone(), false),
        CallEnd::Recorder => (Value::Null, false),
        CallEnd::Error { message, .. } => (Value::String(message.clone()), true),
    };
    let cached_at = call.cached_ms.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
    let warning = match call.origin {
        AnswerOrigin::Placeholder => Some("No cached data or schema available for realistic mock".to_owned()),
        AnswerOrigin::None => Some("The tool is not known".to_owned()),
        AnswerOrigin::Override | AnswerOrigin::CapabilityCache | AnswerOrigin::SchemaMock | AnswerOrigin::Live => None,
    };
    ReportedCall {
        call: index + 1,
        tool: call.name(),
        arguments: call.call.arguments.clone(),
        task: call.call.task.clone(),
        place: call.call.place.clone(),
        effect: *effect,
        effect_from: *from,
        reversible: *is_reversible,
        effect_notes: notes.clone(),
        fails: call.fails(),
        lossy: call.call.lossy.clone(),
        known_after_run,
        conditional_on,
        repeats,
        answer: ReportedAnswer {
            mocked: call.origin != AnswerOrigin::Live,
            source: call.origin,
            cached_at: cached_at.map(|time| time.to_string()),
            warning,
            value,
            is_error,
        },
        started_ms: rounded(call.started_ms),
        ended_ms: rounded(call.ended_ms),
        waits_for: call.waits_for.iter().map(|index| index + 1).collect(),
    }
}

/// The mean over the calls of how real their answers are, and each loss with its reason.
fn confidence(calls: &[AnsweredCall], dependence: &Dependence) -> (f64, Vec<ConfidenceLoss>) {
    let mut lost: BTreeMap<&'static str, (f64, Vec<usize>)> = BTreeMap::new();
    for (index, call) in calls.iter().enumerate() {
        let (weight, reason) = match (&call.problem, call.origin) {
            (Some(CallProblem::MissingServer { .. }), _) => (0.0, "no such server"),
            (Some(CallProblem::MissingTool { .. }), _) => (0.0, "no such tool"),
            (Some(CallProblem::Arguments(_)), _) => (0.0, "arguments that do not fit the schema"),
            (Some(CallProblem::UnknownCatalogue { .. }), _) => (0.0, "the tools of the server are not known"),
            (None, AnswerOrigin::SchemaMock) => (0.7, "an example of the schema in place of a real result"),
            (None, AnswerOrigin::Placeholder | AnswerOrigin::None) => (0.3, "a placeholder in place of a real result"),
            (None, AnswerOrigin::Override | AnswerOrigin::CapabilityCache | AnswerOrigin::Live) => match call.fails() {
                true => (0.0, "the call fails"),
                false => (1.0, ""),
            },
        };
        let mut lose = |loss: f64, reason| {
            if loss > 0.0 {
                let (sum, numbers) = lost.entry(reason).or_default();
                *sum += loss;
                numbers.push(index + 1);
            }
        };
        lose(1.0 - weight, reason);
        if dependence.calls.get(index).is_some_and(CallDependence::is_uncertain) {
            lose(weight / 2.0, "arguments, or whether the call is made, depend on invented answers");
        }
    }
    let count = calls.len().max(1) as f64;
    let mut total = lost.values().map(|(sum, _)| sum).sum::<f64>() / count;
    let is_forced = dependence.branches.iter().any(|branch| branch.is_forced);
    if total < MIN_LOSS && (is_forced || !dependence.undone.is_empty()) {
        let reason =
            if is_forced { "branches that no value led to" } else { "the search for dependences is incomplete" };
        lost.insert(reason, ((MIN_LOSS - total) * count, Vec::new()));
        total = MIN_LOSS;
    }
    let reasons = lost.into_iter().map(|(reason, (sum, calls))| ConfidenceLoss {
        calls,
        lost: hundredths(sum / count),
        reason: reason.to_owned(),
    });
    (hundredths(1.0 - total), reasons.collect())
}

/// The first scalar argument, which mostly is what the call is about.
fn subject(arguments: &Value) -> Option<String> {
    let values = arguments.as_object()?.values();
    let scalar = values.filter(|value| !value.is_object() && !value.is_array() && !value.is_null());
    scalar
        .map(|value| match value {
            Value::String(text) => excerpt(&Value::String(text.clone()), SUBJECT_LENGTH).trim_matches('"').to_owned(),
            other => other.to_string(),
        })
        .next()
}

pub(crate) fn rounded(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
