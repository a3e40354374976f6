//! Makes the report of what a real run has left behind.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rehearsal_core::report::Severity;
use rehearsal_core::script::ScriptError;
use rehearsal_core::script::workflow::Workflow;
use rehearsal_sandbox::ErrorKind;
use serde_json::Value;

use super::live_servers::{LiveCall, LiveCallState, LiveRun, RunStop};
use super::report::{
    CacheOutcome, ExecCache, ExecReport, ExecStatus, ExecutedCall, ExecutedOutcome, SkippedTask, StoppedCall,
};
use crate::dry_run::assemble::{finding, problem_messages, rounded, source_line};
use crate::dry_run::call::{CallEnd, CallProblem};
use crate::dry_run::live::now_ms;
use crate::dry_run::run::{PlanFailure, RunRecord};
use crate::dry_run::tasks::place;
use crate::dry_run::{FindingCode, Plan, PlanFinding, SandboxLevels};

/// A run and what the report states besides.
pub(super) struct ExecAssembly<'a> {
    pub(super) plan: &'a Plan,
    pub(super) intent: Option<String>,
    /// When the run began, in milliseconds since 1970.
    pub(super) started_ms: u64,
    pub(super) run: LiveRun,
    /// What the run leaves behind, without its calls.
    pub(super) record: RunRecord,
    /// The tasks of a workflow, without reasons.
    pub(super) tasks: Vec<SkippedTask>,
    pub(super) sandbox: Option<SandboxLevels>,
}

/// The report of a plan that cannot run.
pub(super) fn invalid(plan: &Plan, intent: Option<String>, findings: Vec<PlanFinding>) -> ExecReport {
    ExecReport {
        dry_run: false,
        plan: plan.file().to_owned(),
        plan_hash: plan.hash(),
        intent,
        saved_at: None,
        status: ExecStatus::Invalid,
        error: findings.first().map(|finding| finding.message.clone()),
        findings,
        result: Value::Null,
        console: Vec::new(),
        calls: Vec::new(),
        stopped_before: None,
        not_run: Vec::new(),
        cache: None,
        trace: None,
        is_recorded: true,
        started_at: time(now_ms()),
        duration_ms: 0.0,
        sandbox: None,
    }
}

/// The findings about a workflow that is not valid.
pub(super) fn problems(plan: &Plan, error: ScriptError) -> Vec<PlanFinding> {
    let findings = error.problems.into_iter().map(|problem| {
        let place = place(&plan.file, problem.at);
        PlanFinding {
            source_line: source_line(plan, Some(&place)),
            place: Some(place),
            hint: problem.hint,
            ..finding(FindingCode::Syntax, Severity::Error, problem.message)
        }
    });
    findings.collect()
}

/// The tasks of a workflow, as if none of them ran.
pub(super) fn tasks(plan: &Plan, workflow: &Workflow) -> Vec<SkippedTask> {
    let task = workflow.tasks.iter().map(|task| SkippedTask {
        task: task.id.clone(),
        tool: format!("{}:{}", task.server, task.tool),
        place: place(&plan.file, task.at),
        reason: "the run ended before it".to_owned(),
    });
    task.collect()
}

impl ExecAssembly<'_> {
    /// Makes the report. `weak` is the finding about a sandbox that is not fully enforced.
    pub(super) fn report(self, weak: Option<PlanFinding>) -> ExecReport {
        let is_made = |call: &&LiveCall| call.state != LiveCallState::Unsent;
        let made: Vec<&LiveCall> = self.run.calls.iter().filter(is_made).collect();
        let calls: Vec<ExecutedCall> = made.iter().enumerate().map(|(index, call)| executed(index, call)).collect();
        let stopped_before = self.stopped_before();
        let (status, error) = self.status(stopped_before.as_ref());
        let mut findings = self.findings(&made, stopped_before.as_ref(), weak);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        for found in &mut findings {
            found.source_line = source_line(self.plan, found.place.as_ref());
        }
        let settings = &self.run.settings;
        ExecReport {
            dry_run: false,
            plan: self.plan.file().to_owned(),
            plan_hash: self.plan.hash(),
            intent: self.intent.clone(),
            saved_at: self.run.contract.as_ref().map(|contract| contract.saved_at().to_owned()),
            status,
            result: if error.is_none() { self.record.value.clone() } else { Value::Null },
            error,
            console: self.record.console.clone(),
            not_run: self.not_run(&calls, stopped_before.as_ref()),
            cache: settings.cache.as_ref().map(|cache| cached(cache.path().display().to_string(), &calls)),
            is_recorded: self.run.is_traced
                && self.run.warnings.is_empty()
                && !calls.iter().any(|call| matches!(call.cache, CacheOutcome::Failed(_))),
            calls,
            stopped_before,
            trace: settings.trace.as_ref().map(|path| path.display().to_string()),
            started_at: time(self.started_ms),
            duration_ms: rounded(self.run.duration_ms),
            sandbox: self.sandbox.clone(),
            findings,
        }
    }

    fn status(&self, stopped: Option<&StoppedCall>) -> (ExecStatus, Option<String>) {
        let reason = || stopped.map(|call| call.reason.clone());
        match (&self.run.stop, &self.record.failure) {
            (Some(RunStop::Deviated(..)), _) => (ExecStatus::Deviated, reason()),
            (Some(RunStop::SideEffect(_)), _) => (ExecStatus::Refused, reason()),
            (Some(RunStop::Cancelled), _) => (ExecStatus::Cancelled, Some("the run was cancelled".to_owned())),
            (None, Some(failure)) => (ExecStatus::Failed, Some(failure.message.clone())),
            (None, None) => (ExecStatus::Completed, None),
        }
    }

    fn stopped_before(&self) -> Option<StoppedCall> {
        let (index, reason) = match self.run.stop.as_ref()? {
            RunStop::Cancelled => return None,
            RunStop::Deviated(index, reason) => (*index, reason.clone()),
            RunStop::SideEffect(index) => {
                let call = &self.run.calls[*index].call;
                let message = format!("{} {}, and only reading is expected", call.name(), call.effect.effect.verb());
                (*index, message)
            }
        };
        let call = &self.run.calls[index].call;
        Some(StoppedCall {
            tool: call.name(),
            arguments: call.call.arguments.clone(),
            task: call.call.task.clone(),
            place: call.call.place.clone(),
            reason,
        })
    }

    fn findings(
        &self,
        made: &[&LiveCall],
        stopped: Option<&StoppedCall>,
        weak: Option<PlanFinding>,
    ) -> Vec<PlanFinding> {
        let mut found: Vec<PlanFinding> = Vec::new();
        if let Some(stopped) = stopped {
            let code = match &self.run.stop {
                Some(RunStop::SideEffect(_)) => FindingCode::SideEffect,
                Some(RunStop::Deviated(..) | RunStop::Cancelled) | None => FindingCode::CallChanged,
            };
            let hint = match code {
                FindingCode::SideEffect => None,
                _ => Some("save a new rehearsal: rehearse dry-run PLAN --out FILE".to_owned()),
            };
            let message = format!("the run was stopped before this call: {}", stopped.reason);
            let place = stopped.place.clone();
            found.push(PlanFinding { place, hint, ..finding(code, Severity::Error, message) });
        } else if let Some(failure) = self.record.failure.as_ref().filter(|_| self.run.stop.is_none()) {
            found.push(self.failure(failure, Severity::Error, failure.message.clone()));
        }
        for failure in self.record.unhandled.iter().filter(|_| self.run.stop.is_none()) {
            let message = format!("the plan does not handle an error: {}", failure.message);
            found.push(self.failure(failure, Severity::Warning, message));
        }
        let mut unreachable = BTreeSet::new();
        for (index, live) in made.iter().enumerate() {
            let call = &live.call;
            let mut add = |code, severity, message, hint| {
                let place = call.call.place.clone();
                found.push(PlanFinding { call: Some(index + 1), place, hint, ..finding(code, severity, message) });
            };
            match &call.problem {
                Some(CallProblem::UnknownCatalogue { reason }) if unreachable.insert(&call.call.server) => {
                    let message = format!("cannot connect to {}: {reason}", call.call.server);
                    add(FindingCode::UnknownCatalogue, Severity::Error, message, None);
                }
                Some(CallProblem::UnknownCatalogue { .. }) | None => {}
                Some(problem) => {
                    for (code, message, hint) in problem_messages(&call.call.server, &call.name(), problem) {
                        add(code, Severity::Warning, message, hint);
                    }
                }
            }
            for lossy in &call.call.lossy {
                add(FindingCode::LossyValue, Severity::Warning, format!("{}: {lossy}", call.name()), None);
            }
            if self.record.not_awaited.contains(&index) {
                let message = format!("the result of {} is not awaited", call.name());
                let hint = Some("write `await` before the call".to_owned());
                add(FindingCode::NotAwaited, Severity::Warning, message, hint);
            }
            if let LiveCallState::Ended(CacheOutcome::Failed(reason)) = &live.state {
                let message = format!("the result of {} is not stored: {reason}", call.name());
                add(FindingCode::Answer, Severity::Warning, message, None);
            }
            let contract = self.run.contract.as_ref().zip(live.rehearsed);
            let has_answer = matches!(live.state, LiveCallState::Ended(_));
            if let Some((contract, rehearsed)) = contract.filter(|_| has_answer) {
                let deviated = matches!(self.run.stop, Some(RunStop::Deviated(..)));
                if let Some(change) = contract.changed_answer(rehearsed, call, deviated) {
                    add(change.code, change.severity, change.message, None);
                }
            }
        }
        for lossy in &self.record.lossy {
            found.push(finding(FindingCode::LossyValue, Severity::Warning, format!("the plan's result: {lossy}")));
        }
        if let Some(contract) = &self.run.contract {
            found.extend(contract.changed_tools(&self.run.catalogue));
        }
        let warnings = self.run.warnings.iter();
        found.extend(warnings.map(|warning| finding(FindingCode::Answer, Severity::Warning, warning.clone())));
        if !self.run.is_traced {
            let message = "the trace is not complete: it could not be written";
            found.push(finding(FindingCode::Answer, Severity::Warning, message));
        }
        found.extend(self.run.findings.iter().cloned());
        found.extend(weak);
        found
    }

    fn failure(&self, failure: &PlanFailure, severity: Severity, message: String) -> PlanFinding {
        let (place, call) = (failure.place.clone(), failure.call.map(|index| index + 1));
        PlanFinding { place, call, ..finding(failure.code, severity, message) }
    }

    /// The tasks without a call, with the reasons of those that were skipped.
    fn not_run(&self, calls: &[ExecutedCall], stopped: Option<&StoppedCall>) -> Vec<SkippedTask> {
        let stopped = stopped.and_then(|call| call.task.as_ref());
        let mut skipped = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            if stopped == Some(&task.task) || calls.iter().any(|call| call.task.as_ref() == Some(&task.task)) {
                continue;
            }
            let reason = self.record.skipped.iter().find(|(other, _)| *other == index);
            let reason = reason.map_or_else(|| task.reason.clone(), |(_, reason)| reason.clone());
            skipped.push(SkippedTask { reason, ..task.clone() });
        }
        skipped
    }
}

fn executed(index: usize, live: &LiveCall) -> ExecutedCall {
    let call = &live.call;
    let (kind, value) = match &call.end {
        CallEnd::Value(value) => (ExecutedOutcome::Value, value.clone()),
        CallEnd::Recorder => (ExecutedOutcome::Value, Value::Null),
        CallEnd::Error { kind, message, .. } => {
            let outcome = match kind {
                ErrorKind::Tool => ExecutedOutcome::ToolError,
                ErrorKind::Protocol => ExecutedOutcome::ProtocolError,
                ErrorKind::Timeout => ExecutedOutcome::Timeout,
            };
            (outcome, Value::String(message.clone()))
        }
    };
    let (outcome, cache) = match &live.state {
        LiveCallState::Ended(cache) => (kind, cache.clone()),
        LiveCallState::Cancelled | LiveCallState::Open => (ExecutedOutcome::Cancelled, CacheOutcome::NoReply),
        LiveCallState::Refused | LiveCallState::Unsent => (ExecutedOutcome::NotSent, CacheOutcome::NoReply),
    };
    ExecutedCall {
        call: index + 1,
        tool: call.name(),
        arguments: call.call.arguments.clone(),
        task: call.call.task.clone(),
        place: call.call.place.clone(),
        effect: call.effect.effect,
        effect_from: call.effect.from,
        reversible: call.effect.is_reversible,
        outcome,
        value,
        lossy: call.call.lossy.clone(),
        rehearsed: live.rehearsed.map(|index| index + 1),
        cache,
        started_ms: rounded(call.started_ms),
        ended_ms: rounded(call.ended_ms),
        took_ms: call.latency_ms.map(rounded),
        waits_for: call.waits_for.iter().map(|index| index + 1).collect(),
    }
}

fn cached(file: String, calls: &[ExecutedCall]) -> ExecCache {
    let count = |outcome: &CacheOutcome| calls.iter().filter(|call| call.cache == *outcome).count();
    let errors = count(&CacheOutcome::StoredError);
    let excluded = calls.iter().filter(|call| call.cache == CacheOutcome::Excluded).map(|call| call.tool.clone());
    ExecCache {
        file,
        stored: count(&CacheOutcome::Stored) + errors,
        errors,
        excluded: excluded.collect::<BTreeSet<_>>().into_iter().collect(),
        failed: calls.iter().filter(|call| matches!(call.cache, CacheOutcome::Failed(_))).count(),
    }
}

fn time(ms: u64) -> String {
    i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default().to_string()
}
