//! Makes the report of a run.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use rehearsal_core::json::excerpt;
use rehearsal_core::report::Severity;
use serde_json::Value;

use super::effects::ToolEffect;
use super::plan::Plan;
use super::report::{
    AnswerOrigin, ConfidenceLoss, DryRunReport, DurationEstimate, Effect, FindingCode, PlanFinding, PlanPlace,
    PlanResult, ReportedAnswer, ReportedCall, Runs, SandboxLevels, SideEffect, TypeMismatch, UnreachedCall, Validation,
};
use super::run::{PlanFailure, RunRecord};
use super::simulation::{CallEnd, CallProblem, SimulatedCall};
use super::static_check::StaticCheck;
use super::violations::Violation;

/// Maximum number of calls that a hint names.
const MAX_NAMED_CALLS: usize = 10;
/// Maximum length of an argument in the text of a side effect.
const SUBJECT_LENGTH: usize = 60;

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
    pub(super) runs: Runs,
}

/// The report of a plan that could not be compiled.
pub(super) fn invalid(plan: &Plan, intent: Option<String>, findings: Vec<PlanFinding>) -> DryRunReport {
    let record = RunRecord::default();
    let (unreached, runs) = (Vec::new(), Runs::default());
    let assembly = Assembly { plan, intent, record, p95_ms: None, unreached, findings, sandbox: None, runs };
    let mut report = assembly.report();
    report.validation.syntax_valid = false;
    report.confidence = 0.0;
    report.confidence_reasons =
        vec![ConfidenceLoss { calls: Vec::new(), lost: 1.0, reason: "the plan is not valid".to_owned() }];
    report
}

/// A finding without a call.
pub(super) fn finding(code: FindingCode, severity: Severity, message: impl Into<String>) -> PlanFinding {
    let message = message.into();
    PlanFinding { code, severity, call: None, place: None, message, hint: None, source_line: None }
}

impl Assembly<'_> {
    pub(super) fn report(mut self) -> DryRunReport {
        let mut findings = std::mem::take(&mut self.findings);
        self.find_problems(&mut findings);
        let validation = self.validation(&findings);
        let record = &self.record;
        let (confidence, confidence_reasons) = confidence(&record.calls);
        let tools_called: Vec<ReportedCall> =
            record.calls.iter().enumerate().map(|(index, call)| reported(index, call)).collect();
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
            },
            stops_at: problem.map(|call| call.call).into_iter().chain(uncaught).min(),
            estimated_duration_ms: self.duration(),
            reversible: record.calls.iter().all(|call| call.effect.is_reversible)
                && self.unreached.iter().all(|check| check.is_reversible),
            side_effects,
            tools_called,
            not_run,
            confidence,
            confidence_reasons,
            findings: merged(findings, self.plan),
            sandbox: self.sandbox.clone(),
            runs: self.runs.clone(),
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
            if call.origin == AnswerOrigin::Placeholder && call.problem.is_none() {
                let message = format!("{name} has no recording and no output schema: its result is a placeholder");
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

    /// A plan may fail because of an invented answer.
    fn invented_hint(&self) -> Option<String> {
        let is_invented = |call: &SimulatedCall| {
            matches!(call.origin, AnswerOrigin::SchemaMock | AnswerOrigin::Placeholder | AnswerOrigin::None)
        };
        let calls = self.record.calls.iter().enumerate().filter(|(_, call)| is_invented(call));
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
        let exists = |call: &&SimulatedCall| {
            matches!(call.problem, None | Some(CallProblem::Arguments(_))) && call.origin != AnswerOrigin::Override
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
            let call = found.call.map(|call| format!("call {call}: ")).unwrap_or_default();
            warnings.push(format!("{call}{}", found.message));
        }
        let mut mocked = BTreeSet::new();
        for call in calls.iter().filter(|call| call.origin == AnswerOrigin::SchemaMock) {
            if mocked.insert(call.name()) {
                warnings.push(format!("{} has no cached result, using schema mock", call.name()));
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

/// The findings about a call that a real server would refuse.
fn problem_messages(server: &str, name: &str, problem: &CallProblem) -> Vec<(FindingCode, String, Option<String>)> {
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

fn source_line(plan: &Plan, place: Option<&PlanPlace>) -> Option<String> {
    place.and_then(|place| plan.line(place.line)).map(str::to_owned)
}

fn reported(index: usize, call: &SimulatedCall) -> ReportedCall {
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
        AnswerOrigin::Override | AnswerOrigin::CapabilityCache | AnswerOrigin::SchemaMock => None,
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
        answer: ReportedAnswer {
            mocked: true,
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
fn confidence(calls: &[SimulatedCall]) -> (f64, Vec<ConfidenceLoss>) {
    let mut lost: BTreeMap<&'static str, (f64, Vec<usize>)> = BTreeMap::new();
    for (index, call) in calls.iter().enumerate() {
        let (weight, reason) = match (&call.problem, call.origin) {
            (Some(CallProblem::MissingServer { .. }), _) => (0.0, "no such server"),
            (Some(CallProblem::MissingTool { .. }), _) => (0.0, "no such tool"),
            (Some(CallProblem::Arguments(_)), _) => (0.0, "arguments that do not fit the schema"),
            (Some(CallProblem::UnknownCatalogue { .. }), _) => (0.0, "the tools of the server are not known"),
            (None, AnswerOrigin::SchemaMock) => (0.7, "an example of the schema in place of a real result"),
            (None, AnswerOrigin::Placeholder | AnswerOrigin::None) => (0.3, "a placeholder in place of a real result"),
            (None, AnswerOrigin::Override | AnswerOrigin::CapabilityCache) if call.fails() => (0.0, "the call fails"),
            (None, AnswerOrigin::Override | AnswerOrigin::CapabilityCache) => (1.0, ""),
        };
        if weight < 1.0 {
            let (sum, numbers) = lost.entry(reason).or_default();
            *sum += 1.0 - weight;
            numbers.push(index + 1);
        }
    }
    let count = calls.len().max(1) as f64;
    let total = lost.values().map(|(sum, _)| sum).sum::<f64>() / count;
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

fn rounded(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
