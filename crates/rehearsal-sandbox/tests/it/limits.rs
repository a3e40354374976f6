//! Each limit with its own error, and the pool works afterwards.

use rehearsal_sandbox::{Deliver, Idle, Limit, PlanError, PlanLimits, RunOptions};
use serde_json::json;

use crate::kit::{POOL, compiled, run, run_with};

/// Runs a plan that must exceed a limit, then one that must work, in the same worker if that is alive and in another.
fn limit(source: &str, limits: PlanLimits) -> Limit {
    let ran = run_with(source, &RunOptions { limits, ..RunOptions::default() });
    let PlanError::Limit(limit) = ran.error() else { panic!("{source}: {}", ran.error()) };
    assert_eq!(run("return 1 + 1").value(), json!(2));
    *limit
}

#[test]
fn memory() {
    let megabytes = 64 * 1024 * 1024;
    let bombs = [
        "let s = 'x'; for (;;) { s += s; s.indexOf('y'); }",
        "const a = []; for (;;) a.push(new ArrayBuffer(1 << 20));",
        "const a = []; for (;;) a.push({ a: 1, b: [1, 2, 3] });",
        "'x'.repeat(2 ** 30 - 1) + 'y'",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, 'x'.repeat(1000) + i);",
    ];
    for bomb in bombs {
        assert_eq!(
            limit(bomb, PlanLimits { cpu_ms: 20_000, ..PlanLimits::default() }),
            Limit::Memory(megabytes),
            "{bomb}"
        );
    }
}

#[test]
fn a_plan_cannot_hide_that_it_exceeded_the_memory() {
    let source = "try { new ArrayBuffer(1 << 28); } catch { } return 'fine'";
    assert_eq!(limit(source, PlanLimits::default()), Limit::Memory(64 * 1024 * 1024));
}

#[test]
fn cpu() {
    let loops = [
        "for (;;);",
        "for (;;) try { null.x } catch { }",
        "const spin = () => Promise.resolve().then(spin); await spin();",
        "async function spin() { for (;;) await null; } await spin();",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "[1, 2, 3].sort(() => { for (;;); })",
        "setInterval(() => {}, 1); await new Promise(() => {});",
        "JSON.stringify({ get a() { for (;;); } })",
        "await mcp.fs.read({ toJSON() { for (;;); } })",
        "new Proxy({}, { get() { for (;;); } }).x",
    ];
    for source in loops {
        assert_eq!(limit(source, PlanLimits { cpu_ms: 100, ..PlanLimits::default() }), Limit::Cpu(100), "{source}");
    }
}

#[test]
fn wall_time_of_native_code_that_cannot_be_interrupted() {
    let natives = ["new Array(2 ** 32 - 1).join('')", "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })"];
    for source in natives {
        let limits = PlanLimits { wall_ms: 500, ..PlanLimits::default() };
        let ran = run_with(source, &RunOptions { limits, ..RunOptions::default() });
        let error = ran.error();
        assert!(matches!(error, PlanError::Limit(Limit::Wall(500) | Limit::Cpu(_) | Limit::Memory(_))), "{error}");
        assert_eq!(run("return 1 + 1").value(), json!(2));
    }
}

#[test]
fn the_time_of_the_host_does_not_count() {
    let plan = compiled("return await mcp.fs.echo({ a: 1 })");
    let options = RunOptions { limits: PlanLimits { wall_ms: 300, ..PlanLimits::default() }, ..RunOptions::default() };
    let mut slow = |batch: Idle| {
        // Longer than the limit: what counts is the time that the worker takes.
        let (_sender, receiver) = std::sync::mpsc::channel::<()>();
        let _ = receiver.recv_timeout(std::time::Duration::from_millis(500));
        let call = &batch.calls[0];
        Deliver::Results { now_ms: 500.0, results: vec![(call.id, crate::kit::answer(call))] }
    };
    let outcome = POOL.take().unwrap().run(&plan, &options, &mut slow);
    assert_eq!(outcome.result.unwrap().get(), r#"{"a":1}"#);
}

#[test]
fn stack() {
    let sources = [
        "const f = () => f() + 1; f();",
        "JSON.parse('['.repeat(1e6))",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a;",
        "new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('a')",
    ];
    for source in sources {
        let ran = run(source);
        let text = ran.error().to_string();
        assert!(
            text.contains("stack limit of 512 kB") || text.contains("SyntaxError") || text.contains("RangeError"),
            "{text}"
        );
        assert_eq!(run("return 1 + 1").value(), json!(2));
    }
    assert_eq!(limit(sources[0], PlanLimits::default()), Limit::Stack(512 * 1024));
}

#[test]
fn calls() {
    let source = "for (let i = 0; ; i++) await mcp.fs.read({ i });";
    assert_eq!(limit(source, PlanLimits { calls: 50, ..PlanLimits::default() }), Limit::Calls(50));
    let caught = "for (let i = 0; i < 100; i++) try { await mcp.fs.read({ i }) } catch { }";
    assert_eq!(limit(caught, PlanLimits { calls: 50, ..PlanLimits::default() }), Limit::Calls(50));
}

#[test]
fn open_calls() {
    let source = "await Promise.all(Array.from({ length: 1001 }, (_, i) => mcp.fs.read({ i })));";
    assert_eq!(limit(source, PlanLimits::default()), Limit::OpenCalls(1000));
}

#[test]
fn frames_of_both_directions() {
    let limits = PlanLimits { frame_bytes: 100_000, ..PlanLimits::default() };
    assert_eq!(limit("await mcp.fs.write({ text: 'x'.repeat(100_000) })", limits.clone()), Limit::Frame(100_000));
    let echo = "const text = 'x'.repeat(60_000);
        await Promise.all([mcp.fs.echo({ text }), mcp.fs.echo({ text: text.slice(30_000) })]);
        return 'both fit'";
    assert_eq!(
        run_with(echo, &RunOptions { limits: limits.clone(), ..RunOptions::default() }).value(),
        json!("both fit")
    );
    let mut host = |batch: Idle| {
        let value = crate::kit::raw(&json!("x".repeat(200_000)));
        Deliver::Results { now_ms: 1.0, results: vec![(batch.open[0], rehearsal_sandbox::CallOutcome::Value(value))] }
    };
    let options = RunOptions { limits, ..RunOptions::default() };
    let outcome = POOL.take().unwrap().run(&compiled("await mcp.fs.read({})"), &options, &mut host);
    let error = outcome.result.unwrap_err();
    assert!(matches!(error, PlanError::Limit(Limit::Frame(100_000))), "{error}");
}

#[test]
fn console() {
    let source = "for (let i = 0; i < 2000; i++) console.log('x'.repeat(1000));";
    assert_eq!(limit(source, PlanLimits::default()), Limit::Console(1024 * 1024));
    assert_eq!(
        limit("console.log('x'.repeat(2e6)); await new Promise(() => {})", PlanLimits::default()),
        Limit::Console(1024 * 1024)
    );
}

#[test]
fn result() {
    let found = limit("return 'x'.repeat(5e6)", PlanLimits::default());
    assert_eq!(found, Limit::Result { bytes: 5_000_002, limit: 4 * 1024 * 1024 });
    assert_eq!(found.to_string(), "a result of 4.7 MB exceeds 4 MB");
}

#[test]
fn a_plan_that_waits_for_nothing_ends_at_once() {
    for source in ["await new Promise(() => {})", "await { then() {} }", "mcp.fs.read({}); await new Promise(() => {})"]
    {
        let ran = run(source);
        assert!(matches!(ran.error(), PlanError::Stuck), "{source}: {}", ran.error());
    }
}

#[test]
fn the_host_can_cancel() {
    let outcome =
        POOL.take().unwrap().run(&compiled("await mcp.fs.read({})"), &RunOptions::default(), &mut |_| Deliver::Cancel);
    assert!(matches!(outcome.result, Err(PlanError::Cancelled)));
    assert_eq!(outcome.unfinished, [1]);
}
