//! Places in plans that are combined at random: `@` marks where a call begins.

use rehearsal_sandbox::RunOptions;

use crate::kit::{POOL, compiled, run_in};

/// Statements that run each marked call once; `§` is a number of its own for each use.
const STATEMENTS: &[&str] = &[
    r#"await @mcp.fs.read({ path: "/a" });"#,
    "const v§: any = await @mcp.fs.read({\n  path: \"ü\",\n  n: §,\n});",
    "{ const { fs } = mcp; await @fs.read({ n: § }); }",
    r#"{ const read: any = mcp.fs.read; await @read({ n: §, f: ((x: string) => x)("q") }); }"#,
    "await Promise.all([@mcp.fs.read({}), @mcp.fs.stat({ a: 1 })]);",
    r#"for (const t of ["read"]) await @mcp.fs[t]({});"#,
    "type T§ = { a: string }; interface I§ { b: number }",
    "/* é😀 */ enum E§ { A = 1, B } await @mcp.fs.open({ mode: E§.B });",
    r#"if (Number("1") as number) { await @mcp.fs.read({}); } else { await mcp.fs.never({}); }"#,
    "try { await @mcp.fs.fail({}); } catch (e: unknown) { await @mcp.log.write({ m: String(e) }); }",
    r#"await (async (p: string) => { await @mcp.fs.read({ p }); })("x");"#,
    "const f§ = (a: number): Promise<any> => @mcp.fs.read({ a }); await f§(1);",
    "await @mcp.fs.write({ text: (await @mcp.fs.read({})).text });",
    r#"const s§ = "日本"; await @mcp.fs.read({ [s§]: 1 });"#,
    "class C§ { constructor(public p: number = 1) {} async m(x?: string) { return await @mcp.fs.read({ x }); } } await new C§().m();",
    "switch (1 as number) { case 1: await @mcp.fs.read({}); }",
    "await @mcp\n    .fs\n    .read({ path: `a${1 + 1}b` });",
    r#"await @mcp["fs"]!["read"]({ path: "ß" as const });"#,
    "namespace N§ { export const root = 1; } await @mcp.fs.read({ r: N§.root });",
    "async function h§<T>(server: any, t: T): Promise<T> { await @server.read({ t }); return t; } await h§(mcp.fs, 1);",
    "const o§ = { get g(): any { return @mcp.fs.read({}); } }; await o§.g;",
    "// a comment with @ and é",
    "await @mcp.fs.maybe({})?.then((v: any) => @mcp.fs.read({ v }));",
];

const AROUND: &[(&str, &str)] = &[
    ("", ""),
    ("{\n\t", "\n}"),
    ("await (async () => {\n  ", "\n})();"),
    ("const é§: string = '😀'; ", ""),
    ("do { ", " } while (false);"),
];

const BETWEEN: &[&str] = &["\n", " ", "\n\n    ", "\r\n"];

/// A small generator of numbers below a bound.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A plan with marks.
fn marked(numbers: &mut Numbers) -> String {
    let mut plan = String::new();
    for _ in 0..2 + numbers.below(6) {
        let (before, after) = AROUND[numbers.below(AROUND.len())];
        let statement = STATEMENTS[numbers.below(STATEMENTS.len())];
        let between = if statement.starts_with("//") { "\n" } else { BETWEEN[numbers.below(BETWEEN.len())] };
        let only_at_top = statement.starts_with("//") || statement.starts_with("namespace");
        let (before, after) = if only_at_top { ("", "") } else { (before, after) };
        let unique = plan.len().to_string();
        plan += &format!("{before}{statement}{after}").replace('§', &unique);
        plan += between;
    }
    plan
}

/// The plan without marks, and the places of the marks in ascending order.
fn unmarked(marked: &str) -> (String, Vec<(u32, u32)>) {
    let (mut plan, mut places, mut line, mut column, mut is_comment) = (String::new(), Vec::new(), 1, 1, false);
    let mut characters = marked.chars().peekable();
    while let Some(character) = characters.next() {
        is_comment |= character == '/' && characters.peek() == Some(&'/');
        if character == '@' && !is_comment {
            places.push((line, column));
            continue;
        }
        plan.push(character);
        column += 1;
        if character == '\n' {
            (line, column, is_comment) = (line + 1, 1, false);
        }
    }
    (plan, places)
}

#[test]
fn calls_in_combined_plans_have_exact_places() {
    let mut numbers = Numbers(31);
    let mut worker = POOL.take().unwrap();
    for _ in 0..300 {
        let (source, expected) = unmarked(&marked(&mut numbers));
        let ran = run_in(&mut worker, &compiled(&source), &RunOptions::default());
        if let Err(error) = &ran.outcome.result {
            panic!("{error}\n{source}");
        }
        let place = |call: &rehearsal_sandbox::PlanCall| {
            let place = call.place.as_ref().unwrap_or_else(|| panic!("no place for {call:?}\n{source}"));
            (place.line, place.column.unwrap_or(0))
        };
        let mut found: Vec<_> = ran.calls.iter().map(place).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{source}");
    }
}
