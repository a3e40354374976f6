//! What a plan can do, what its values become, and that a run is deterministic.

use rehearsal_sandbox::{Deliver, Idle, PlanError, RunOptions, ToolNames};
use serde_json::{Value, json};

use crate::kit::{POOL, answer, compiled, run, run_in, run_with};

#[test]
fn the_value_of_a_plan() {
    let values = [
        ("return { a: [1, 'x', null, true] }", json!({ "a": [1, "x", null, true] })),
        ("1; 2 + 3", json!(5)),
        ("const a = 4; a;", json!(4)),
        ("await mcp.fs.echo({ n: 1 });", json!({ "n": 1 })),
        ("({ a: 1 })", json!({ "a": 1 })),
        ("(async () => 7)()", json!(7)),
        ("'use strict'", json!("use strict")),
        ("if (true) { 1 }", Value::Null),
        ("const a = 1;", Value::Null),
        ("", Value::Null),
        ("1 // the last\n;;\ninterface A {}", json!(1)),
        ("return", Value::Null),
        ("let x = 1, y = 1; x<!--y", json!(false)),
        ("\u{feff}const a = 1;\na", json!(1)),
        ("const re = /[\\p{L}--[a-z]]/v; re.test('é')", json!(true)),
        ("label: for (const a of [1, 2]) { continue label }\n`${1 + 1}`", json!("2")),
    ];
    for (source, value) in values {
        assert_eq!(run(source).value(), value, "{source}");
    }
}

#[test]
fn a_value_that_json_cannot_hold_is_named_with_its_path() {
    let source = "
        const n = NaN, u = undefined, p = Promise.resolve(1);
        class Point { x = 1 }
        await mcp.fs.echo({
            n, u, a: [u, () => 1, -Infinity], m: new Map([[1, 2]]), s: new Set([1]), p, d: new Date(NaN), ok: new Date(0),
            bytes: new Uint8Array(2), point: new Point(), big: 2 ** 60, 'odd key': [Symbol.iterator], r: /a/,
            e: new TypeError('x'), half: '\\ud800',
        }, 'second')";
    let ran = run(source);
    let expected = [
        "$: only the first of 2 arguments is sent",
        "$.n: NaN becomes null",
        "$.u: undefined: member dropped",
        "$.a[0]: undefined: becomes null",
        "$.a[1]: function: becomes null",
        "$.a[2]: -Infinity becomes null",
        "$.m: Map becomes {}",
        "$.s: Set becomes {}",
        "$.p: a Promise: await is missing",
        "$.d: an invalid Date becomes null",
        "$.bytes: Uint8Array becomes an object with numbers as keys",
        "$.point: an instance of Point becomes a plain object",
        "$.big: an integer beyond 2^53 may have lost digits",
        "$[\"odd key\"][0]: symbol: becomes null",
        "$.r: RegExp becomes {}",
        "$.e: TypeError loses its message and stack",
        "$.half: a lone surrogate becomes U+FFFD",
    ];
    assert_eq!(ran.lossy(), expected);
    assert_eq!(ran.arguments(1)["ok"], "1970-01-01T00:00:00.000Z");
    assert_eq!(ran.arguments(1)["half"], "\u{fffd}");
    let result = run("return { a: [undefined] }").outcome.result_lossy;
    assert_eq!((result[0].path.as_str(), result[0].message.as_str()), ("$.a[0]", "undefined: becomes null"));
}

#[test]
fn a_value_that_cannot_be_sent_is_a_type_error_with_its_line() {
    let plans = [
        (
            "const a = { b: [1n] };\nawait mcp.fs.read({ a });",
            "TypeError: BigInt at $.a.b[0] cannot be sent as JSON",
            2,
        ),
        (
            "const a: any = {};\na.b = { c: a };\nawait mcp.fs.read(a);",
            "TypeError: a cycle at $.b.c cannot be sent as JSON",
            3,
        ),
    ];
    for (source, message, line) in plans {
        let ran = run(source);
        let PlanError::Exception(exception) = ran.error() else { panic!("{}", ran.error()) };
        assert_eq!(exception.to_string(), message);
        assert_eq!(exception.place.as_ref().unwrap().line, line);
        assert!(ran.calls.is_empty());
    }
}

#[test]
fn getters_and_to_json_run_once() {
    let source = "
        let reads = 0;
        const shared = [1];
        const value = { get a() { return ++reads; }, b: { toJSON() { return ++reads; } }, c: shared, d: shared };
        await mcp.fs.echo(value)";
    assert_eq!(run(source).value(), json!({ "a": 1, "b": 2, "c": [1], "d": [1] }));
}

#[test]
fn a_failed_call_is_a_tool_error_with_its_place() {
    let source = "try {\n  await mcp.fs.fail({ path: '/a' });\n} catch (error) {
        return [error instanceof ToolError, error instanceof Error, error.name, error.server, error.tool, error.kind,
            error.content[0].text, error.place, error.message]; }";
    let values = run(source).value();
    let expected = json!([
        true,
        true,
        "ToolError",
        "fs",
        "fail",
        "tool",
        "no such file",
        "plan.ts:2:9",
        "no such file (plan.ts:2:9)"
    ]);
    assert_eq!(values, expected);
    let ran = run("const a = 1;\nawait mcp.fs.fail({});");
    let PlanError::Exception(exception) = ran.error() else { panic!("{}", ran.error()) };
    assert_eq!(exception.to_string(), "ToolError: no such file (plan.ts:2:7)");
    assert_eq!((exception.call, exception.place.as_ref().unwrap().line), (Some(1), 2));
}

#[test]
fn an_exception_has_the_place_where_it_was_thrown() {
    let source = "interface A {}\nfunction check(n: number) {\n  throw new RangeError('é' + n);\n}\n\ncheck(1);";
    let ran = run(source);
    let PlanError::Exception(exception) = ran.error() else { panic!("{}", ran.error()) };
    assert_eq!(exception.to_string(), "RangeError: é1");
    let place = exception.place.as_ref().unwrap();
    assert_eq!((place.line, &place.via[..]), (3, &[(6, 1)][..]));
    for (source, message) in [("throw 'text'", "the plan threw \"text\""), ("throw { a: 1 }", "the plan threw {a: 1}")]
    {
        assert_eq!(run(source).error().to_string(), message);
    }
}

#[test]
fn calls_that_are_not_awaited_reach_the_host() {
    let source = "async function later() { await mcp.fs.read({}); await mcp.fs.write({}); }\nlater();\nreturn 'early'";
    let ran = run(source);
    assert_eq!(ran.value(), json!("early"));
    assert_eq!((ran.calls.len(), &ran.outcome.unfinished[..]), (2, &[1, 2][..]));
    let ran = run("mcp.fs.read({});\nreturn await Promise.race([mcp.fs.read({}), 'first'])");
    assert_eq!(ran.value(), json!("first"));
    assert_eq!((&ran.outcome.not_awaited[..], &ran.outcome.unfinished[..]), (&[1][..], &[2][..]));
}

#[test]
fn failures_that_the_plan_does_not_notice_are_reported() {
    let source = "mcp.fs.fail({});
async function helper() { await null; throw new TypeError('lost'); }
helper();
const late = Promise.reject(new Error('handled later')); await null; await late.catch(() => {});
try { await mcp.fs.fail({}) } catch { }
await Promise.allSettled([mcp.fs.fail({})]);
await mcp.fs.read({});
return 'fine'";
    let ran = run(source);
    assert_eq!(ran.value(), json!("fine"));
    let line = |exception: &rehearsal_sandbox::PlanException| {
        format!("{exception} {:?} {}", exception.call, exception.place.as_ref().unwrap())
    };
    let unhandled: Vec<String> = ran.outcome.unhandled.iter().map(line).collect();
    let expected = ["TypeError: lost None 2:49", "ToolError: no such file (plan.ts:1:1) Some(1) 1:1"];
    assert_eq!(unhandled, expected);
}

#[test]
fn mcp_is_read_only_and_shows_the_catalogue() {
    let catalogue: ToolNames =
        [("fs".to_owned(), vec!["read".to_owned(), "toString".to_owned()]), ("git".to_owned(), vec![])].into();
    let options = RunOptions { catalogue, ..RunOptions::default() };
    let source = "
        const errors: string[] = [];
        for (const f of [() => { mcp.x = 1 }, () => { delete mcp.fs }, () => Object.defineProperty(mcp.fs, 'a', { value: 1 }),
            () => { mcp.fs.read = 1 }, () => Object.setPrototypeOf(mcp, null), () => Object.freeze(mcp), () => { globalThis.mcp = 1 }])
            try { f(); errors.push('no error') } catch (e) { errors.push(e.constructor.name) }
        return [errors, Object.keys(mcp), Object.keys(mcp.fs), 'fs' in mcp, 'x' in mcp, typeof mcp.then, typeof mcp.fs.toJSON,
            typeof mcp.fs.toString, typeof mcp.git.toString, typeof mcp.git.unknown, typeof mcp[Symbol.iterator],
            String(mcp.git.x), mcp.git.x.name]";
    let expected = json!([
        ["TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError"],
        ["fs", "git"],
        ["read", "toString"],
        true,
        false,
        "undefined",
        "undefined",
        "function",
        "undefined",
        "function",
        "undefined",
        "function x() {\n    [native code]\n}",
        "x"
    ]);
    assert_eq!(run_with(source, &options).value(), expected);
    assert!(run("return `${mcp.fs}`").error().to_string().contains("TypeError"));
}

#[test]
fn time_and_chance_are_those_of_the_host() {
    let options = RunOptions { seed: 7, epoch_ms: 1_700_000_000_000, ..RunOptions::default() };
    let source = "
        const before = Date.now();
        await new Promise((resolve) => setTimeout(resolve, 5000, 'x'));
        await mcp.fs.read({});
        let ticks = 0;
        await new Promise<void>((resolve) => { const t = setInterval(() => { if (++ticks === 3) { clearInterval(t); resolve() } }, 100) });
        const cleared = setTimeout(() => { throw 1 }, 1); clearTimeout(cleared);
        return [before, Date.now() - before, new Date().toISOString(), new Date(0).getTime(), new Date(2020, 1, 1).toISOString(),
            typeof Date(), new Date() instanceof Date, new Date().constructor === Date, Date.UTC(1970, 0), Date.length,
            new (Object.getPrototypeOf(new Date()).constructor)().getTime() - before, Math.random(), class extends Date {}.name]";
    let first = run_with(source, &options);
    let value = first.value();
    assert_eq!(value[0], json!(1_700_000_000_000_i64));
    assert_eq!(value[1], json!(5310));
    assert_eq!(value[2], "2023-11-14T22:13:25.310Z");
    assert_eq!(value[4], "2020-02-01T00:00:00.000Z");
    assert_eq!(value[10], json!(5310));
    assert_eq!((value, first.outcome.ended_ms), (run_with(source, &options).value(), 5310.0));
    let other = run_with("return Math.random()", &RunOptions { seed: 8, ..RunOptions::default() });
    assert_ne!(other.value(), run_with("return Math.random()", &options).value());
}

#[test]
fn timers_fire_in_the_order_of_their_time() {
    let source = "
        const order: string[] = [];
        setTimeout(() => order.push('20'), 20); setTimeout(() => order.push('10a'), 10); setTimeout(() => order.push('10b'), 10);
        queueMicrotask(() => order.push('job'));
        await new Promise((resolve) => setTimeout(resolve, 30));
        return order.join()";
    assert_eq!(run(source).value(), json!("job,10a,10b,20"));
    assert!(
        run("setTimeout(() => { throw new TypeError('late') }, 1); await new Promise(() => {})")
            .error()
            .to_string()
            .contains("late")
    );
}

#[test]
fn console_output_is_kept_in_order() {
    let source = "
        console.log('a', 1, null, undefined, [1, 'x'], { b: { c: 2n } }, new Map([[1, new Set(['y'])]]));
        await mcp.fs.read({});
        console.error(new TypeError('bad')); console.warn(console, mcp); console.assert(1 === 1); console.assert(false, 'why');
        const cycle: any = {}; cycle.self = cycle; console.info(cycle, () => 1, Symbol('s'), '\\ud800');
        console.debug(new Date(0), new Date(NaN), /a+/g, Object.create(Date.prototype) instanceof Date);";
    let lines: Vec<String> =
        run(source).outcome.console.iter().map(|line| format!("{}: {}", line.level, line.text)).collect();
    let expected = [
        "log: a 1 null undefined [1, \"x\"] {b: {c: 2n}} Map {1 => Set {\"y\"}}",
        "error: TypeError: bad",
        "warn: {} [mcp]",
        "error: assertion failed why",
        "info: {self: [Circular]} [Function] Symbol(s) \u{fffd}",
        "debug: 1970-01-01T00:00:00.000Z Invalid Date /a+/g true",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn results_are_delivered_in_the_order_of_the_host() {
    let source = "const order: number[] = []; await Promise.all([1, 2, 3].map(async (n) => { await mcp.fs.read({ n }); order.push(n) })); return order";
    let mut host = |batch: Idle| {
        let results = batch.calls.iter().rev().map(|call| (call.id, answer(call))).collect();
        Deliver::Results { now_ms: 1.0, results }
    };
    let outcome = POOL.take().unwrap().run(&compiled(source), &RunOptions::default(), &mut host);
    assert_eq!(outcome.result.unwrap().get(), "[3,2,1]");
}

#[test]
fn a_wrong_delivery_is_the_mistake_of_the_host() {
    let wrong: [fn(Idle) -> Deliver; 3] = [
        |_| Deliver::FireTimer,
        |_| Deliver::Results { now_ms: 0.0, results: vec![] },
        |batch| Deliver::Results { now_ms: 0.0, results: vec![(9, answer(&batch.calls[0]))] },
    ];
    for mut host in wrong {
        let mut worker = POOL.take().unwrap();
        let outcome = worker.run(&compiled("await mcp.fs.read({})"), &RunOptions::default(), &mut host);
        assert!(matches!(outcome.result, Err(PlanError::Host(_))));
        let again = run_in(&mut worker, &compiled("1"), &RunOptions::default());
        assert!(again.error().to_string().contains("killed after an earlier run"));
    }
}

#[test]
fn one_worker_runs_a_plan_many_times_with_equal_results() {
    let mut worker = POOL.take().unwrap();
    let plan = compiled(
        "globalThis.seen = (globalThis.seen ?? 0) + 1; Object.prototype.x = 1;
        const names = (value: any) => value == null ? [] : Reflect.ownKeys(Object(value)).map(String);
        const known = names(globalThis).filter((name) => name !== 'mcp');
        const all = known.map((name) => [name, ...names(globalThis[name]), ...names(globalThis[name]?.prototype)]);
        return [globalThis.seen, Math.random(), all]",
    );
    let first = run_in(&mut worker, &plan, &RunOptions::default()).value();
    assert_eq!(first[0], json!(1));
    for _ in 0..20 {
        assert_eq!(run_in(&mut worker, &plan, &RunOptions::default()).value(), first);
    }
}

#[test]
fn tool_results_keep_odd_names() {
    let source = r#"const v = await mcp.fs.echo(JSON.parse('{"__proto__":{"a":1},"then":1,"constructor":2}')); return [Object.keys(v), v.a === undefined]"#;
    assert_eq!(run(source).value(), json!([["__proto__", "then", "constructor"], true]));
}

#[test]
fn the_globals_are_those_that_the_compiler_accepts() {
    let names = run("return Object.getOwnPropertyNames(globalThis).sort()").value();
    let names: Vec<&str> = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let source = include_str!("../../src/compile/globals.rs");
    let listed = source.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","));
    let listed: Vec<&str> = listed.filter(|name| !name.contains('"')).collect();
    assert_eq!(names, listed);
}

#[test]
fn a_recorder_gets_the_shape_that_the_plan_uses() {
    for (source, example) in [
        ("await mcp.a.unknown()", json!(null)),
        ("const r = await mcp.a.unknown(); r.user.login + '!'", json!({"user": {"login": "login"}})),
        ("const r = await mcp.a.unknown(); await mcp.a.echo({ n: r.count })", json!({"count": "count"})),
        ("const r = await mcp.a.unknown(); r.total * 2", json!({"total": 1})),
        (
            "const r = await mcp.a.unknown(); for (const f of r.files) await mcp.a.echo({ p: f.path })",
            json!({"files": [{"path": "path"}]}),
        ),
        ("const r = await mcp.a.unknown(); r.map((x) => x.id).join()", json!([{"id": "id"}])),
        ("const r = await mcp.a.unknown(); r.split('\\n')[0].trim()", json!("text")),
        ("const r = await mcp.a.unknown(); r[0].name.toUpperCase()", json!([{"name": "name"}])),
        ("const { link, at } = await mcp.a.unknown(); `${link} ${at}`", json!({"link": "link", "at": "at"})),
        ("const r = await mcp.a.unknown(); r.price.toFixed(2)", json!({"price": 1})),
        ("const [first] = await mcp.a.unknown(); first.x.y", json!([{"x": {"y": "y"}}])),
        ("const r = await mcp.a.unknown(); if ('id' in r) r.id; Object.keys(r)", json!({"id": "id"})),
    ] {
        let ran = run(source);
        ran.value();
        assert_eq!(ran.outcome.shapes[0].example, example, "{source}");
    }
}

#[test]
fn arguments_from_a_recorder_are_named_as_guesses() {
    let ran = run("const r = await mcp.a.unknown(); await mcp.a.echo({ n: r.count, list: [1, r.x], s: `${r.y}` })");
    assert_eq!(ran.calls[1].unknown, ["$.n", "$.list[1]"]);
    assert_eq!(ran.arguments(2), json!({"n": "count", "list": [1, "x"], "s": "y"}));
}
