//! What a run has done so far, and whether it may go on.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::memory::MemoryGauge;
use super::random::Random;
use crate::limits::Limit;
use crate::protocol::{CallFrame, ConsoleLine, Exception, Lossy, ProbeRecord, RecordedShape, Start, WorkerOutcome};

/// A timer of the plan.
#[derive(Debug, Clone, Copy)]
struct Timer {
    id: u32,
    due_ms: f64,
    /// Orders timers that are due at the same time.
    sequence: u64,
    interval_ms: Option<f64>,
}

/// The state that host functions change.
#[derive(Debug, Default)]
pub(super) struct RunState {
    pub(super) start: Start,
    pub(super) now_ms: f64,
    pub(super) random: Random,
    pub(super) calls: u32,
    /// The calls without a result.
    pub(super) open: std::collections::BTreeSet<u32>,
    /// The calls whose promise nothing has used.
    pub(super) unused: std::collections::BTreeSet<u32>,
    pub(super) new_calls: Vec<CallFrame>,
    /// Bytes of the arguments in `new_calls`.
    pub(super) new_bytes: usize,
    /// The findings about the value that is being encoded.
    pub(super) lossy: Vec<Lossy>,
    /// The JSONPaths of recorders in the value that is being encoded.
    pub(super) unknown: Vec<String>,
    pub(super) console: Vec<ConsoleLine>,
    pub(super) console_bytes: usize,
    timers: Vec<Timer>,
    sequence: u64,
    pub(super) outcome: Option<WorkerOutcome>,
    pub(super) outcome_lossy: Vec<Lossy>,
    /// Rejections that nothing handled.
    pub(super) unhandled: Vec<Exception>,
    pub(super) shapes: Vec<RecordedShape>,
    /// What the probes recorded, by site.
    pub(super) sites: Vec<ProbeRecord>,
    /// How often the forced decision was made.
    forced: u32,
}

/// The most sites that are recorded: more than a plan has.
const MAX_SITES: usize = 4096;

impl RunState {
    /// The choice that this run forces at a site, or -1.
    pub(super) fn forced(&mut self, id: u32) -> i64 {
        match self.start.force.filter(|force| force.site == id && self.forced < force.times) {
            Some(force) => {
                self.forced += 1;
                i64::from(force.choice)
            }
            None => -1,
        }
    }

    /// The outcome of a decision.
    pub(super) fn outcome_of(&mut self, id: u32, yes: bool) -> bool {
        match self.forced(id) {
            -1 => {}
            choice => return choice == 1,
        }
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        let made = self.sites.get(index).map_or(0, |record| record.sequence.len());
        match self.start.follow.get(index).and_then(|followed| followed.as_bytes().get(made)) {
            Some(followed) => *followed == b'1',
            None => yes,
        }
    }

    /// The record of a site.
    pub(super) fn site(&mut self, id: u32) -> Option<&mut ProbeRecord> {
        let index = usize::try_from(id).ok().filter(|index| *index < MAX_SITES)?;
        if self.sites.len() <= index {
            self.sites.resize(index + 1, ProbeRecord::default());
        }
        self.sites.get_mut(index)
    }

    /// Adds a timer and returns its id.
    pub(super) fn add_timer(&mut self, delay_ms: f64, repeats: bool) -> u32 {
        // Longer delays do not fit the 31 bits of other runtimes either.
        let delay_ms = if delay_ms >= 1.0 { delay_ms.min(2_147_483_647.0) } else { 1.0 };
        self.sequence += 1;
        let id = self.sequence as u32;
        let interval_ms = repeats.then_some(delay_ms);
        self.timers.push(Timer { id, due_ms: self.now_ms + delay_ms, sequence: self.sequence, interval_ms });
        id
    }

    /// Removes a timer.
    pub(super) fn clear_timer(&mut self, id: u32) {
        self.timers.retain(|timer| timer.id != id);
    }

    /// When the next timer is due. A plan with a result needs no timer any more.
    pub(super) fn next_timer(&self) -> Option<f64> {
        if self.outcome.is_some() {
            return None;
        }
        self.timers.iter().map(|timer| timer.due_ms).min_by(f64::total_cmp)
    }

    /// Moves the clock to the next timer, removes or repeats it, and returns its id.
    pub(super) fn fire(&mut self) -> Option<u32> {
        let order = |timer: &(usize, &Timer)| (timer.1.due_ms, timer.1.sequence);
        let compare = |a: &(f64, u64), b: &(f64, u64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let next = self.timers.iter().enumerate().min_by(|a, b| compare(&order(a), &order(b)));
        let (index, timer) = next.map(|(index, timer)| (index, *timer))?;
        self.now_ms = self.now_ms.max(timer.due_ms);
        self.timers.swap_remove(index);
        if let Some(interval_ms) = timer.interval_ms {
            self.sequence += 1;
            self.timers.push(Timer { due_ms: timer.due_ms + interval_ms, sequence: self.sequence, ..timer });
        }
        Some(timer.id)
    }
}

/// One run: its state, and the flag that ends it.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) state: RefCell<RunState>,
    limit: Cell<Option<Limit>>,
    gauge: Rc<MemoryGauge>,
    cpu_start: Cell<Duration>,
    cpu_limit: Cell<Duration>,
}

impl Run {
    /// A run that has not begun: host functions can be made for it.
    pub(super) fn prepared(gauge: Rc<MemoryGauge>) -> Run {
        let cpu = || Cell::new(Duration::ZERO);
        Run { state: RefCell::default(), limit: Cell::new(None), gauge, cpu_start: cpu(), cpu_limit: cpu() }
    }

    /// Begins the run: from here on its limits hold.
    pub(super) fn begin(&self, start: Start) {
        self.gauge.limit.set(start.limits.memory_bytes);
        self.gauge.exceeded.set(false);
        self.cpu_limit.set(Duration::from_millis(start.limits.cpu_ms));
        self.cpu_start.set(cpu_time());
        *self.state.borrow_mut() = RunState { random: Random::new(start.seed), start, ..RunState::default() };
    }

    /// Ends the run; the first limit counts.
    pub(super) fn exceed(&self, limit: Limit) {
        if self.limit.get().is_none() {
            self.limit.set(Some(limit));
        }
    }

    /// The limit that ends the run. The engine calls this regularly, and the loop between jobs.
    ///
    /// No message of the engine is used: an interrupted job has no exception.
    pub(super) fn exceeded(&self) -> Option<Limit> {
        if self.limit.get().is_none() {
            if self.gauge.exceeded.get() {
                self.exceed(Limit::Memory(self.gauge.limit.get()));
            } else if cpu_time().saturating_sub(self.cpu_start.get()) > self.cpu_limit.get() {
                self.exceed(Limit::Cpu(self.cpu_limit.get().as_millis() as u64));
            }
        }
        self.limit.get()
    }
}

/// The CPU time of this thread, which is the only one.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
