//! One run of a plan in a worker, driven by its host.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::calls::{CallOutcome, Deliver, Host, Idle, PlanCall};
use super::outcome::{PlanError, PlanException, RunOutcome, WorkerFailure};
use super::process::{Budget, Lost, Process};
use super::start::{Worker, failure};
use crate::compile::CompiledPlan;
use crate::limits::{Limit, PlanLimits};
use crate::place::{SourcePlace, read_positions, read_stack};
use crate::protocol::{
    CallFrame, ConsoleLine, DeliveredResult, Deliveries, Delivery, Done, Exception, ForcedDecision, IdleFrame,
    ProbeRecord, Start, ToHost, ToWorker, ToolNames, WorkerOutcome,
};

/// What a run depends on, apart from the plan and its results. Equal options and results give an equal run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The seed of `Math.random`.
    pub seed: u64,
    /// The virtual time of the start, in milliseconds since 1970.
    pub epoch_ms: i64,
    /// The servers and tools that `Object.keys(mcp)` and `in` show. Other names can be called as well.
    pub catalogue: ToolNames,
    /// The limits of the run.
    pub limits: PlanLimits,
    /// A decision of the plan that this run forces.
    pub force: Option<ForcedDecision>,
    /// For each site of the plan, the [`ProbeRecord::sequence`] that this run follows; empty to follow none.
    pub follow: Vec<String>,
}

impl Worker {
    /// Runs a plan and blocks until its end.
    ///
    /// The worker stays usable unless the result is [`PlanError::Worker`], [`PlanError::Host`] or a wall limit: these
    /// kill it.
    pub fn run(&mut self, plan: &CompiledPlan, options: &RunOptions, host: &mut dyn Host) -> RunOutcome {
        self.runs += 1;
        let mut run = Run::new(self.runs, plan, options);
        let result = match self.process.as_mut() {
            None => Err(Stop::Failed(WorkerFailure::Killed)),
            Some(process) => run.drive(process, host),
        };
        let result = match result {
            Ok(result) => result,
            Err(stop) => {
                let error = match (stop, self.process.as_mut()) {
                    (Stop::Lost(Lost::TimedOut), _) => PlanError::Limit(Limit::Wall(options.limits.wall_ms)),
                    (Stop::Lost(lost), Some(process)) => PlanError::Worker(failure(lost, process)),
                    (Stop::Lost(_), None) => PlanError::Worker(WorkerFailure::Killed),
                    (Stop::Failed(failure), _) => PlanError::Worker(failure),
                    (Stop::Host(reason), _) => PlanError::Host(reason),
                    (Stop::Frame, _) => PlanError::Limit(Limit::Frame(options.limits.frame_bytes)),
                };
                // Dropping the process kills its group.
                self.process = None;
                Err(error)
            }
        };
        run.outcome(result)
    }

    /// True if the process waits for a plan.
    pub(super) fn is_alive(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| !process.has_unrequested_output())
    }
}

/// Why a run ended before the worker ended it.
enum Stop {
    Lost(Lost),
    Failed(WorkerFailure),
    Host(String),
    Frame,
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Stop {
        Stop::Lost(lost)
    }
}

fn broken(reason: impl Into<String>) -> Stop {
    Stop::Failed(WorkerFailure::Protocol(reason.into()))
}

/// The host's view of a run.
struct Run<'a> {
    number: u32,
    plan: &'a CompiledPlan,
    options: &'a RunOptions,
    /// The place of each call; the call with id 1 is the first.
    places: Vec<Option<SourcePlace>>,
    open: BTreeSet<u32>,
    /// The calls that had no result when the plan ended.
    unfinished: BTreeSet<u32>,
    console: Vec<ConsoleLine>,
    console_bytes: usize,
    now_ms: f64,
    done: Option<Done>,
}

impl<'a> Run<'a> {
    fn new(number: u32, plan: &'a CompiledPlan, options: &'a RunOptions) -> Run<'a> {
        Run {
            number,
            plan,
            options,
            places: Vec::new(),
            open: BTreeSet::new(),
            unfinished: BTreeSet::new(),
            console: Vec::new(),
            console_bytes: 0,
            now_ms: 0.0,
            done: None,
        }
    }

    fn drive(&mut self, process: &mut Process, host: &mut dyn Host) -> Result<Result<Box<RawValue>, PlanError>, Stop> {
        if process.has_unrequested_output() {
            return Err(broken("it sent a message, or ended, before the run"));
        }
        let RunOptions { seed, epoch_ms, catalogue, limits, force, follow } = self.options;
        let mut budget = Budget::new(limits.wall());
        let start = Start {
            run: self.number,
            code: self.plan.code.clone(),
            seed: *seed,
            epoch_ms: *epoch_ms,
            catalogue: catalogue.clone(),
            limits: limits.clone(),
            force: *force,
            follow: follow.clone(),
        };
        self.send(process, &ToWorker::Start(start), &mut budget)?;
        loop {
            match process.receive::<ToHost>(limits.longest_frame(), &mut budget)? {
                ToHost::Ready { .. } => return Err(broken("`ready` during a run")),
                ToHost::Done(done) => return self.finish(done),
                ToHost::Idle(idle) => {
                    let timer = idle.timer;
                    let idle = self.idle(idle)?;
                    let deliver = host.idle(idle);
                    let message = self.deliver(deliver, timer)?;
                    self.send(process, &message, &mut budget)?;
                }
            }
        }
    }

    fn check_run(&self, run: u32) -> Result<(), Stop> {
        if run == self.number { Ok(()) } else { Err(broken(format!("a message of run {run} in run {}", self.number))) }
    }

    fn send(&self, process: &mut Process, message: &ToWorker, budget: &mut Budget) -> Result<(), Stop> {
        match process.send(message, self.options.limits.frame_bytes, budget) {
            Err(Lost::TooLong) => Err(Stop::Frame),
            other => Ok(other?),
        }
    }

    /// Checks the frame of a waiting plan and finds the places of its calls.
    fn idle(&mut self, idle: IdleFrame) -> Result<Idle, Stop> {
        let IdleFrame { run, calls, timer, open, ended, console } = idle;
        self.check_run(run)?;
        self.add_console(console)?;
        let limits = &self.options.limits;
        let mut new = Vec::with_capacity(calls.len());
        for call in calls {
            let id = self.places.len() as u32 + 1;
            if call.id != id {
                return Err(broken(format!("call {} instead of {id}", call.id)));
            }
            let (site, call_site) = (read_positions(&call.site), read_positions(&call.call_site));
            let place = self.plan.places.call_place(&call.server, &call.tool, &site, &call_site);
            self.places.push(place.clone());
            self.open.insert(id);
            let CallFrame { server, tool, arguments, lossy, unknown, .. } = call;
            new.push(PlanCall { id, server, tool, arguments, place, lossy, unknown, at_ms: self.now_ms });
        }
        if self.places.len() > limits.calls as usize || self.open.len() > limits.open_calls as usize {
            return Err(broken("it issued more calls than allowed"));
        }
        if open as usize != self.open.len() {
            return Err(broken(format!("it counts {open} open calls instead of {}", self.open.len())));
        }
        if self.open.is_empty() && timer.is_none() {
            return Err(broken("it waits for nothing"));
        }
        if timer.is_some_and(|timer| !timer.is_finite()) {
            return Err(broken("a timer is due at no time"));
        }
        if ended {
            self.unfinished.extend(&self.open);
        }
        Ok(Idle { calls: new, timer_ms: timer, open: self.open.iter().copied().collect(), ended })
    }

    /// The frame for what the host delivers.
    fn deliver(&mut self, deliver: Deliver, timer: Option<f64>) -> Result<ToWorker, Stop> {
        match deliver {
            Deliver::Cancel => Ok(ToWorker::Cancel {}),
            Deliver::FireTimer => {
                let due = timer.ok_or_else(|| Stop::Host("no timer is set".to_owned()))?;
                self.now_ms = self.now_ms.max(due);
                Ok(ToWorker::FireTimer {})
            }
            Deliver::Results { now_ms, results } => {
                if results.is_empty() || !now_ms.is_finite() {
                    return Err(Stop::Host("it delivered nothing, or at no time".to_owned()));
                }
                self.now_ms = self.now_ms.max(now_ms);
                let deliveries = results.into_iter().map(|(id, outcome)| {
                    if !self.open.remove(&id) {
                        return Err(Stop::Host(format!("a result for call {id}, which is not open")));
                    }
                    Ok(Delivery { id, result: self.delivered(id, outcome)? })
                });
                let results = deliveries.collect::<Result<_, Stop>>()?;
                Ok(ToWorker::Deliver(Deliveries { now_ms: self.now_ms, results }))
            }
        }
    }

    fn delivered(&self, id: u32, outcome: CallOutcome) -> Result<DeliveredResult, Stop> {
        match outcome {
            CallOutcome::Value(value) => Ok(DeliveredResult::Value(value)),
            CallOutcome::Recorder => Ok(DeliveredResult::Recorder {}),
            CallOutcome::Error { kind, message, content } => {
                let place = self.place(id).map(|place| format!("{}:{place}", self.plan.file));
                let message = match &place {
                    Some(place) => format!("{message} ({place})"),
                    None => message,
                };
                let content =
                    serde_json::value::to_raw_value(&content).map_err(|error| Stop::Host(error.to_string()))?;
                Ok(DeliveredResult::Error { kind: kind.as_str().to_owned(), message, content, place })
            }
        }
    }

    fn place(&self, id: u32) -> Option<&SourcePlace> {
        self.places.get((id as usize).checked_sub(1)?)?.as_ref()
    }

    fn add_console(&mut self, lines: Vec<ConsoleLine>) -> Result<(), Stop> {
        self.console_bytes += lines.iter().map(|line| line.text.len() + line.level.len()).sum::<usize>();
        if self.console_bytes > self.options.limits.console_bytes {
            return Err(broken("its console output is longer than allowed"));
        }
        self.console.extend(lines);
        Ok(())
    }

    /// Checks the last frame and makes a result of it.
    fn finish(&mut self, mut done: Done) -> Result<Result<Box<RawValue>, PlanError>, Stop> {
        self.check_run(done.run)?;
        self.add_console(std::mem::take(&mut done.console))?;
        let limits = &self.options.limits;
        let result = match &done.outcome {
            WorkerOutcome::Value(value) if value.get().len() > limits.result_bytes => {
                return Err(broken("its result is longer than allowed"));
            }
            WorkerOutcome::Value(_) if !self.open.is_empty() => return Err(broken("it ended with open calls")),
            WorkerOutcome::Value(value) => Ok(value.clone()),
            WorkerOutcome::Limit(limit) => Err(PlanError::Limit(*limit)),
            WorkerOutcome::Stuck {} => Err(PlanError::Stuck),
            WorkerOutcome::Cancelled {} => Err(PlanError::Cancelled),
            WorkerOutcome::Exception(exception) => Err(PlanError::Exception(self.exception(exception))),
        };
        self.done = Some(done);
        Ok(result)
    }

    /// The exception with its place: that of the failed call, or where it was created.
    fn exception(&self, exception: &Exception) -> PlanException {
        let called = exception.call.and_then(|call| self.place(call)).cloned();
        let place = called.or_else(|| self.plan.places.stack_place(&read_stack(&exception.stack)));
        let call = exception.call.filter(|call| *call as usize <= self.places.len());
        PlanException { name: exception.name.clone(), message: exception.message.clone(), place, call }
    }

    fn outcome(self, result: Result<Box<RawValue>, PlanError>) -> RunOutcome {
        let unhandled = self.done.iter().flat_map(|done| &done.unhandled);
        let unhandled = unhandled.map(|exception| self.exception(exception)).collect();
        let calls = self.places.len() as u32;
        let unused = self.done.iter().flat_map(|done| &done.unused).filter(|id| (1..=calls).contains(*id));
        let not_awaited: BTreeSet<u32> = unused.copied().collect();
        let mut unfinished = self.unfinished;
        unfinished.extend(&self.open);
        let unfinished = unfinished.difference(&not_awaited).copied().collect();
        let (result_lossy, shapes, mut sites) =
            self.done.map(|done| (done.lossy, done.shapes, done.sites)).unwrap_or_default();
        sites.resize(self.plan.sites.len(), ProbeRecord::default());
        RunOutcome {
            result,
            unhandled,
            result_lossy,
            shapes,
            sites,
            console: self.console,
            calls,
            not_awaited: not_awaited.into_iter().collect(),
            unfinished,
            ended_ms: self.now_ms,
        }
    }
}
