//! Prints what a run costs: `cargo run --release -p rehearsal-sandbox --example plan-speed`.
//!
//! ```text
//! run, 10 calls, same worker           0.42 ms
//! run, 10,000 calls in turn          251.83 ms
//! ```

use std::time::{Duration, Instant};

use rehearsal_sandbox::{
    CallOutcome, Deliver, Idle, PlanLimits, Pool, Program, RunOptions, Worker, compile, worker_main,
};
use serde_json::value::RawValue;

const WORKER: &str = "__plan-worker";

const TEN: &str = "
interface File { name: string; size: number }
const files: File[] = [];
for (let i = 0; i < 10; i++) {
  const file = await mcp.fs.read({ path: `/srv/${i}.txt`, encoding: 'utf8' }) as File;
  if (file.size > 100) files.push(file);
}
return { files: files.length };";

const SEQUENTIAL: &str = "for (let i = 0; i < 10000; i++) await mcp.fs.read({ path: `/srv/${i}.txt` });";

const CONCURRENT: &str =
    "await Promise.all(Array.from({ length: 10000 }, (_, i) => mcp.fs.read({ path: `/srv/${i}.txt` })));";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some(WORKER) {
        worker_main();
    }
    let program = Program::current(WORKER)?;
    let compiled = |source| compile("plan.ts", source).map_err(|diagnostics| format!("{diagnostics:?}"));
    let ten = compiled(TEN)?;
    print("compile, 10 calls", 50, || drop(compiled(TEN)));

    let mut worker = Worker::start(&program)?;
    println!("{:?}", worker.levels());
    print("run, 10 calls, same worker", 50, || run(&mut worker, &ten));
    print("start of a worker", 20, || drop(Worker::start(&program)));
    print("run, 10 calls, new process", 20, || {
        if let Ok(mut worker) = Worker::start(&program) {
            run(&mut worker, &ten);
        }
    });
    let pool = Pool::new(program);
    while pool.ready() < 2 {
        std::thread::yield_now();
    }
    print("run, 10 calls, from the pool", 20, || {
        if let Ok(mut worker) = pool.take() {
            run(&mut worker, &ten);
        }
    });
    let (sequential, concurrent) = (compiled(SEQUENTIAL)?, compiled(CONCURRENT)?);
    print("run, 10,000 calls in turn", 5, || run(&mut worker, &sequential));
    print("run, 10,000 calls at once", 5, || run(&mut worker, &concurrent));
    Ok(())
}

/// Runs a plan whose calls are answered at once.
fn run(worker: &mut Worker, plan: &rehearsal_sandbox::CompiledPlan) {
    let limits = PlanLimits { open_calls: 10_000, cpu_ms: 20_000, ..PlanLimits::default() };
    let options = RunOptions { limits, ..RunOptions::default() };
    let mut now_ms = 0.0;
    let mut host = |batch: Idle| {
        now_ms += 1.0;
        let value = || RawValue::from_string(r#"{"name":"a.txt","size":120,"text":"hello"}"#.to_owned());
        let results = batch.calls.iter().filter_map(|call| Some((call.id, CallOutcome::Value(value().ok()?))));
        Deliver::Results { now_ms, results: results.collect() }
    };
    let outcome = worker.run(plan, &options, &mut host);
    if let Err(error) = outcome.result {
        println!("failed: {error}");
    }
}

/// Prints the median of several runs, with a pause before each, in which a worker prepares its next context.
fn print(name: &str, runs: usize, mut what: impl FnMut()) {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..runs {
        std::thread::sleep(Duration::from_millis(10));
        let start = Instant::now();
        what();
        times.push(start.elapsed());
    }
    times.sort();
    println!("{name:32} {:8.2} ms", times[runs / 2].as_secs_f64() * 1000.0);
}
