//! One engine for all runs of a worker, and the loop of a run.

use std::io;
use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime};

use super::Pipes;
use super::memory::{CountingAllocator, MemoryGauge};
use super::natives;
use super::rejections::Rejections;
use super::state::Run;
use crate::protocol::{
    self, DeliveredResult, Deliveries, Delivery, Done, IdleFrame, PLAN_FILE, Start, ToHost, ToWorker, WorkerOutcome,
};

const PRELUDE: &str = include_str!("prelude.js");

/// The JavaScript engine.
pub(super) struct PlanEngine {
    /// The context of the next run.
    prepared: Prepared,
    runtime: Runtime,
    gauge: Rc<MemoryGauge>,
}

/// A context in which the prelude has run. It is made before it is needed, while the host does something else.
struct Prepared {
    run: Rc<Run>,
    control: Persistent<Object<'static>>,
    context: Context,
}

impl Prepared {
    fn new(runtime: &Runtime, gauge: &Rc<MemoryGauge>) -> rquickjs::Result<Prepared> {
        let run = Rc::new(Run::prepared(gauge.clone()));
        let context = Context::full(runtime)?;
        let control = context.with(|ctx| {
            let prelude: Function<'_> = ctx.eval_with_options(PRELUDE, options("prelude.js"))?;
            let control: Object<'_> = prelude.call((natives::host(&ctx, &run)?,))?;
            Ok::<_, rquickjs::Error>(Persistent::save(&ctx, control))
        })?;
        Ok(Prepared { run, control, context })
    }
}

impl PlanEngine {
    /// Creates the engine and the context of the first run.
    pub(super) fn new() -> rquickjs::Result<PlanEngine> {
        let gauge = Rc::new(MemoryGauge::default());
        gauge.limit.set(usize::MAX);
        let runtime = Runtime::new_with_alloc(CountingAllocator(gauge.clone()))?;
        let prepared = Prepared::new(&runtime, &gauge)?;
        Ok(PlanEngine { prepared, runtime, gauge })
    }

    /// Runs a plan in the prepared context, reports how it ended, and returns the engine for the next run.
    pub(super) fn run(self, start: Start, pipes: &mut Pipes) -> io::Result<PlanEngine> {
        let PlanEngine { prepared, runtime, gauge } = self;
        let Prepared { run, control, context } = prepared;
        pipes.limit = start.limits.frame_bytes;
        runtime.set_max_stack_size(start.limits.stack_bytes);
        run.begin(start);
        let interrupt = run.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || interrupt.exceeded().is_some())));
        let rejections = Rc::new(Rejections::default());
        let tracked = rejections.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
            tracked.track(&ctx, promise, reason, is_handled);
        })));
        let outcome = match context.with(|ctx| drive(&ctx, control, &run, &rejections, pipes)) {
            Ok(outcome) => outcome,
            Err(End::Disconnected(error)) => return Err(error),
            Err(End::Failed(error)) => internal(&error),
        };
        let outcome = run.exceeded().map_or(outcome, WorkerOutcome::Limit);
        let is_limited = matches!(outcome, WorkerOutcome::Limit(_));
        let mut state = run.state.borrow_mut();
        let done = Done {
            run: state.start.run,
            outcome,
            lossy: std::mem::take(&mut state.outcome_lossy),
            unhandled: std::mem::take(&mut state.unhandled),
            console: std::mem::take(&mut state.console),
            unused: state.unused.iter().copied().collect(),
            shapes: std::mem::take(&mut state.shapes),
            sites: std::mem::take(&mut state.sites),
            now_ms: state.now_ms,
        };
        drop(state);
        pipes.write(&ToHost::Done(done))?;
        runtime.set_interrupt_handler(None);
        runtime.set_host_promise_rejection_tracker(None);
        rejections.clear();
        drop(context);
        gauge.limit.set(usize::MAX);
        runtime.run_gc();
        // Jobs that are left would run in the next plan.
        if is_limited || runtime.is_job_pending() {
            return PlanEngine::new().map_err(io::Error::other);
        }
        let prepared = Prepared::new(&runtime, &gauge).map_err(io::Error::other)?;
        Ok(PlanEngine { prepared, runtime, gauge })
    }
}

/// Why the loop of a run ended without an outcome.
enum End {
    /// The host is gone, or sent something else than the protocol allows.
    Disconnected(io::Error),
    /// The engine failed, in most cases because a limit was reached.
    Failed(rquickjs::Error),
}

impl From<rquickjs::Error> for End {
    fn from(error: rquickjs::Error) -> End {
        End::Failed(error)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Disconnected(error)
    }
}

/// The functions of the prelude that the loop calls.
struct Control<'js> {
    run: Function<'js>,
    deliver: Function<'js>,
    fire: Function<'js>,
    unhandled: Function<'js>,
    shapes: Function<'js>,
}

impl<'js> Control<'js> {
    fn new(control: &Object<'js>) -> rquickjs::Result<Control<'js>> {
        Ok(Control {
            run: control.get("run")?,
            deliver: control.get("deliver")?,
            fire: control.get("fire")?,
            unhandled: control.get("unhandled")?,
            shapes: control.get("shapes")?,
        })
    }
}

fn options(file: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.global = true;
    options.strict = true;
    options.filename = Some(file.to_owned());
    options
}

fn internal(error: &rquickjs::Error) -> WorkerOutcome {
    let message = format!("the engine failed: {error}");
    let name = "InternalError".to_owned();
    WorkerOutcome::Exception(protocol::Exception { name, message, stack: String::new(), call: None })
}

/// Runs the plan and reports what it did not notice.
fn drive<'js>(
    ctx: &Ctx<'js>,
    control: Persistent<Object<'static>>,
    run: &Run,
    rejections: &Rejections,
    pipes: &mut Pipes,
) -> Result<WorkerOutcome, End> {
    let control = Control::new(&control.restore(ctx)?)?;
    let outcome = settle(ctx, run, &control, pipes)?;
    control.shapes.call::<_, ()>(())?;
    for reason in rejections.take(ctx) {
        control.unhandled.call::<_, ()>((reason,))?;
    }
    Ok(outcome)
}

/// Runs the plan until it has an outcome and no open call, and returns the outcome.
fn settle<'js>(ctx: &Ctx<'js>, run: &Run, control: &Control<'js>, pipes: &mut Pipes) -> Result<WorkerOutcome, End> {
    let code = std::mem::take(&mut run.state.borrow_mut().start.code);
    match ctx.eval_with_options::<Function<'js>, _>(code, options(PLAN_FILE)) {
        Ok(plan) => control.run.call::<_, ()>((plan,))?,
        Err(rquickjs::Error::Exception) => return Ok(syntax_error(ctx)),
        Err(error) => return Err(error.into()),
    }
    loop {
        drain(ctx, run);
        if let Some(limit) = run.exceeded() {
            return Ok(WorkerOutcome::Limit(limit));
        }
        let idle = {
            let mut state = run.state.borrow_mut();
            let (timer, ended) = (state.next_timer(), state.outcome.is_some());
            if state.open.is_empty() && timer.is_none() {
                return Ok(state.outcome.take().unwrap_or(WorkerOutcome::Stuck {}));
            }
            state.new_bytes = 0;
            IdleFrame {
                run: state.start.run,
                calls: std::mem::take(&mut state.new_calls),
                timer,
                open: state.open.len() as u32,
                ended,
                console: std::mem::take(&mut state.console),
            }
        };
        pipes.write(&ToHost::Idle(idle))?;
        match pipes.read::<ToWorker>()? {
            Some(ToWorker::Deliver(deliveries)) => deliver(ctx, run, control, deliveries)?,
            Some(ToWorker::FireTimer {}) => {
                let id = run.state.borrow_mut().fire();
                if let Some(id) = id {
                    control.fire.call::<_, ()>((id,))?;
                }
            }
            Some(ToWorker::Cancel {}) => return Ok(WorkerOutcome::Cancelled {}),
            Some(ToWorker::Start(_)) => return Err(io::Error::other("`start` arrived during a run").into()),
            None => std::process::exit(0),
        }
    }
}

/// Runs jobs until none is left or a limit is reached.
fn drain(ctx: &Ctx<'_>, run: &Run) {
    while run.exceeded().is_none() && ctx.execute_pending_job() {}
}

/// Settles calls in the given order; the jobs of one run before the next is settled.
fn deliver(ctx: &Ctx<'_>, run: &Run, control: &Control<'_>, deliveries: Deliveries) -> Result<(), End> {
    {
        let mut state = run.state.borrow_mut();
        state.now_ms = state.now_ms.max(deliveries.now_ms);
    }
    for Delivery { id, result } in deliveries.results {
        if !run.state.borrow_mut().open.remove(&id) {
            continue;
        }
        match &result {
            DeliveredResult::Value(value) => control.deliver.call::<_, ()>((id, value.get(), "", "", ""))?,
            DeliveredResult::Recorder {} => control.deliver.call::<_, ()>((id, "", "recorder", "", ""))?,
            DeliveredResult::Error { kind, message, content, place } => {
                let place = place.as_deref().unwrap_or_default();
                control.deliver.call::<_, ()>((id, content.get(), kind.as_str(), message.as_str(), place))?;
            }
        }
        drain(ctx, run);
    }
    Ok(())
}

/// What the engine rejects although the compiler accepted it.
fn syntax_error(ctx: &Ctx<'_>) -> WorkerOutcome {
    let caught = ctx.catch();
    let exception = caught.as_exception();
    WorkerOutcome::Exception(protocol::Exception {
        name: "SyntaxError".to_owned(),
        message: exception.and_then(|exception| exception.message()).unwrap_or_else(|| "invalid code".to_owned()),
        stack: exception.and_then(|exception| exception.stack()).unwrap_or_default(),
        call: None,
    })
}
