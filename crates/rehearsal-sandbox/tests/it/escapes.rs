//! Attempts to escape: from the plan, through the protocol, and by a worker that was taken over.

use std::time::{Duration, Instant};

use rehearsal_sandbox::{
    CallOutcome, Deliver, Idle, Level, PlanError, Pool, RunOptions, SandboxError, Worker, WorkerFailure,
};
use serde_json::json;

use crate::kit::{POOL, compiled, program, raw, run, run_in};

/// The pool and a new worker run the next plan.
fn still_works() {
    assert_eq!(run("return (await mcp.fs.echo({ a: 1 })).a + 1").value(), json!(2));
}

#[test]
fn every_part_of_the_isolation_is_in_force() {
    let worker = POOL.take().unwrap();
    let levels = worker.levels();
    assert_eq!((&levels.rlimits, &levels.seccomp), (&Level::Enforced, &Level::Enforced));
    // An older kernel may know less of landlock; seccomp forbids the same system calls.
    assert!(!matches!(levels.landlock, Level::Unavailable(_)) || cfg!(not(target_os = "linux")), "{levels:?}");
}

#[test]
fn polluted_prototypes_reach_nothing_outside_the_plan() {
    let pollutions = [
        "Object.prototype.toJSON = () => 'pwn';",
        "Object.prototype.then = function (f) { f('pwn') };",
        "Array.prototype.toJSON = String.prototype.toJSON = () => 'pwn';",
        "Object.defineProperty(Object.prototype, 'value', { get: () => 'pwn', set() { throw 1 } });",
        "Object.defineProperty(Array.prototype, '0', { set() { throw 1 }, get: () => 'pwn' });",
        "Object.defineProperty(Object.prototype, 'get', { get: () => () => 'pwn' });",
        "JSON.parse = JSON.stringify = () => 'pwn';",
        "Map.prototype.get = WeakMap.prototype.get = () => 1; WeakMap.prototype.set = () => { throw 1 };",
        "Promise.prototype.then = () => 'pwn'; Promise.resolve = () => 'pwn';",
        "Function.prototype.bind = Function.prototype.call = Function.prototype.apply = () => 'pwn';",
        "Reflect.apply = Reflect.construct = () => 'pwn'; String.prototype.toWellFormed = () => 'pwn';",
        "Array.prototype[Symbol.iterator] = function* () { yield 'pwn' };",
        "globalThis.Error = globalThis.Promise = globalThis.JSON = globalThis.Object = undefined;",
        "RegExp.prototype.exec = RegExp.prototype.test = () => { throw 1 };",
        "Function.prototype[Symbol.hasInstance];",
        "Object.defineProperty(Promise.prototype, 'constructor', { get() { return class { constructor(f) { f(() => {}, () => {}) } } } });",
        "Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Promise.prototype);",
    ];
    for pollution in pollutions {
        let ran = run(&format!(
            "{pollution}\nconst call = mcp.fs.read({{ path: '/a' }});\nawait null;\nreturn 'own result';"
        ));
        // A plan may change its own arguments and its own result; ids, names and frames stay those of the host.
        for call in &ran.calls {
            assert_eq!((call.id, call.server.as_str(), call.tool.as_str()), (1, "fs", "read"), "{pollution}");
        }
        if let Err(error) = &ran.outcome.result {
            assert!(matches!(error, PlanError::Exception(_) | PlanError::Stuck), "{pollution}: {error}");
        } else {
            assert_eq!(ran.calls.len(), 1, "{pollution}");
        }
    }
    still_works();
}

#[test]
fn code_made_of_text_stays_in_the_sandbox() {
    let source = "
        const AsyncFunction = (async () => {}).constructor, GeneratorFunction = (function* () {}).constructor;
        const indirect = eval;
        const found = [];
        for (const make of [Function, AsyncFunction, GeneratorFunction]) {
            const made = make('return [typeof host, typeof process, typeof require, typeof std, typeof os, typeof scriptArgs]');
            const value = made();
            found.push(typeof value.next === 'function' ? value.next().value : await value);
        }
        found.push(indirect('[typeof host, typeof process, typeof require, typeof std, typeof os, typeof scriptArgs]'));
        found.push([await Function('return mcp.fs.echo({ a: 1 })')()]);
        return found";
    let nothing = vec!["undefined"; 6];
    assert_eq!(run(source).value(), json!([nothing, nothing, nothing, nothing, [{ "a": 1 }]]));
    assert!(run("await Function('return import(\"fs\")')()").outcome.result.is_err());
    assert!(run("return eval('new Worker(\"x\")')").outcome.result.is_err());
    still_works();
}

#[test]
fn a_plan_cannot_close_the_wrapper_around_it() {
    for source in ["}); mcp.fs.read({}); (async () => {", "}", "*/ 1", "`", "return 1 }"] {
        assert!(rehearsal_sandbox::compile("plan.ts", source).is_err(), "{source}");
    }
    assert_eq!(run("1 //").value(), json!(1));
    assert_eq!(run("1 /* } */").value(), json!(1));
    assert_eq!(run("#!/usr/bin/env node\n2").value(), json!(2));
}

#[test]
fn callers_and_arguments_lead_to_no_function_of_the_prelude() {
    let source = "
        const seen = [];
        function spy() { try { seen.push(typeof spy.caller) } catch (e) { seen.push(e.name) } try { seen.push(typeof arguments.callee) } catch (e) { seen.push(e.name) } }
        await mcp.fs.echo({ toJSON() { spy(); return {} } });
        Error.prepareStackTrace = (_, sites) => sites.map((site) => typeof site.getFunction());
        const frames = mcp.fs.echo({ get a() { seen.push(String(new Error().stack)); return 1 } });
        await frames;
        return seen";
    let ran = run(source);
    // The engine gives out no functions of strict code.
    let value = ran.value();
    assert_eq!(&value.as_array().unwrap()[..2], json!(["TypeError", "TypeError"]).as_array().unwrap());
    still_works();
}

#[test]
fn functions_of_the_prelude_that_a_stack_shows_are_useless() {
    let source = "
        let found: any[] = [];
        Error.prepareStackTrace = (_, sites) => { for (const s of sites) { const f = s.getFunction(); if (f) found.push(f) } };
        await mcp.fs.echo({ get a() { new Error().stack; return 1 } });
        const results = [];
        for (const f of found) { try { results.push(typeof f('x', 'y', 'z', {}, {})) } catch (e) { results.push('threw') } }
        return results.length";
    let ran = run(source);
    for call in &ran.calls {
        // Whatever it calls, it is a call that the host sees.
        assert!(call.id as usize <= ran.calls.len());
    }
    still_works();
}

/// Runs a plan in a worker with an attack after its isolation.
fn attacked(attack: &str) -> Result<Worker, SandboxError> {
    Worker::start(&program(attack))
}

#[test]
fn a_worker_that_was_taken_over_reaches_nothing() {
    let attacks =
        ["fork", "exec", "open", "create", "list", "tcp", "udp", "unix", "thread", "kill", "executable-memory"];
    for attack in attacks {
        // Without the isolation the attack works, so this test shows something.
        let mut free = std::process::Command::new(env!("CARGO_BIN_EXE_sandbox-test-worker"));
        assert_eq!(free.arg(format!("free-{attack}")).status().unwrap().code(), Some(99), "{attack}");
        drop(std::fs::remove_file("/tmp/rehearsal-sandbox-test"));
        match attacked(attack) {
            // The system call failed, and the worker still runs plans.
            Ok(mut worker) => {
                let ran = run_in(&mut worker, &compiled("return 1"), &RunOptions::default());
                assert_eq!(ran.value(), json!(1), "{attack}");
            }
            // Or it killed the worker. Status 99 would be a success of the attack.
            Err(SandboxError::NotReady(WorkerFailure::Exited { status, stderr })) => {
                assert!(status.unwrap().code() != Some(99), "{attack} succeeded: {stderr}");
            }
            Err(error) => panic!("{attack}: {error:?}"),
        }
    }
    assert!(!std::path::Path::new("/tmp/rehearsal-sandbox-test").exists());
    still_works();
}

#[test]
fn forged_frames_are_a_clear_error() {
    let attacks = [
        ("garbage", "a frame is no message"),
        ("unknown-message", "unknown variant `escape`"),
        ("unknown-member", "unknown field `loosy`"),
        ("unknown-id", "call 7 instead of 1"),
        ("wrong-count", "it counts 5 open calls instead of 1"),
        ("waits-for-nothing", "it waits for nothing"),
        ("ready-again", "`ready` during a run"),
        ("done-with-open-call", "it ended with open calls"),
        ("large-result", "its result is longer than allowed"),
        ("long", "a frame is longer than allowed"),
        ("half", "it ended with"),
        ("unrequested", " message"),
        ("leave", "it "),
        ("stderr", "the end of stderr"),
    ];
    for (attack, message) in attacks {
        let mut worker = attacked(attack).unwrap();
        let mut host = |batch: Idle| {
            let results = vec![(batch.calls[0].id, CallOutcome::Value(raw(&json!({}))))];
            Deliver::Results { now_ms: 0.0, results }
        };
        // The frame `done` that follows a call must not be taken for the answer's consequence.
        let mut cancel = |_: Idle| Deliver::Cancel;
        let host: &mut dyn rehearsal_sandbox::Host =
            if attack == "done-with-open-call" { &mut cancel } else { &mut host };
        let outcome = worker.run(&compiled("return 1"), &RunOptions::default(), host);
        let error = outcome.result.unwrap_err();
        assert!(matches!(error, PlanError::Worker(_)), "{attack}: {error}");
        assert!(error.to_string().contains(message), "{attack}: {error}");
    }
    still_works();
}

#[test]
fn a_second_done_is_no_result_of_the_next_run() {
    let mut worker = attacked("done-twice").unwrap();
    let plan = compiled("return 0");
    assert_eq!(run_in(&mut worker, &plan, &RunOptions::default()).value(), json!(1));
    let second = run_in(&mut worker, &plan, &RunOptions::default());
    // The frame arrives before the second run, or in it.
    let error = second.error().to_string();
    assert!(error.contains("before the run") || error.contains("a message of run 1 in run 2"), "{error}");
    still_works();
}

#[test]
fn a_worker_that_does_not_get_ready_is_an_error() {
    for (attack, message) in
        [("garbage-first", "longer than allowed"), ("done-first", "before `ready`"), ("panic", "a worker that panics")]
    {
        let error = attacked(attack).unwrap_err();
        let SandboxError::NotReady(failure) = &error else { panic!("{attack}: {error}") };
        assert!(failure.to_string().contains(message), "{attack}: {failure}");
    }
    let missing = Pool::new(rehearsal_sandbox::Program::new("/nonexistent", ["x"]));
    assert!(matches!(missing.take(), Err(SandboxError::Spawn { .. })));
}

/// The processes that run the test worker with this argument.
#[cfg(target_os = "linux")]
fn workers(argument: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| line.ends_with(format!("sandbox-test-worker\0{argument}\0").as_bytes())).count()
}

#[cfg(target_os = "linux")]
#[test]
fn no_worker_outlives_its_owner() {
    // An argument of its own, so that workers of other tests do not count.
    let pool = Pool::new(program("plain "));
    let worker = pool.take().unwrap();
    assert!(workers("plain ") >= 1);
    drop(worker);
    drop(pool);
    // A worker that was still starting ends when its thread finds no pool.
    let deadline = Instant::now() + Duration::from_secs(20);
    while workers("plain ") > 0 {
        assert!(Instant::now() < deadline, "{} workers are left", workers("plain "));
        std::thread::yield_now();
    }
}

#[test]
fn a_worker_ends_with_its_stdin() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sandbox-test-worker"));
    command.arg("plain").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_pool_keeps_two_unused_workers() {
    let pool = Pool::new(program("plain"));
    let deadline = Instant::now() + Duration::from_secs(20);
    while pool.ready() < 2 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let first = pool.take().unwrap();
    let second = pool.take().unwrap();
    let third = pool.take().unwrap();
    drop((first, second, third));
}
