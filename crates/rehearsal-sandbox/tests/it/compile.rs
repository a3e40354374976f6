//! What the compiler rejects, and what it finds without running the plan.

use rehearsal_sandbox::{MAX_SOURCE_BYTES, compile};
use serde_json::{Value, json};

use crate::kit::compiled;

/// The diagnostics of a plan: `line:column: message`.
fn rejected(source: &str) -> Vec<String> {
    let diagnostics = compile("plan.ts", source).err().unwrap_or_default();
    diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn syntax_errors_have_a_place() {
    let plans: [(&str, &[&str]); 14] = [
        ("const a = ;", &["1:11: Unexpected token"]),
        (
            "[1].map(x => { await x; })",
            &["1:16: `await` is only allowed within async functions and at the top levels of modules"],
        ),
        ("let é = 1;\nlet b = 2;\nlet é = 3;", &["3:5: Identifier `é` has already been declared"]),
        ("const x = /(/;", &["1:12: Invalid regular expression: Unterminated capturing group"]),
        ("break;", &["1:1: Illegal break statement"]),
        ("with (mcp) {}", &["1:1: 'with' statements are not allowed"]),
        ("import fs from 'fs';\n1", &["1:1: a plan cannot import modules"]),
        ("import 'fs'", &["1:1: a plan cannot import modules"]),
        ("const a = await import('fs')", &["1:17: a plan cannot import modules"]),
        ("export const a = 1; export default a;", &["1:1: a plan cannot export", "1:21: a plan cannot export"]),
        ("@Object class A {}", &["1:1: a plan cannot use decorators"]),
        ("import.meta.url", &["1:1: `import.meta` is not available in a plan"]),
        (
            "await fetch('x'); process.exit(); new Buffer(1)",
            &[
                "1:7: `fetch` is not available in a plan",
                "1:19: `process` is not available in a plan",
                "1:39: `Buffer` is not available in a plan",
            ],
        ),
        ("é();\nmpc.fs.read({})", &["1:1: `é` is not defined", "2:1: `mpc` is not defined"]),
    ];
    for (source, expected) in plans {
        assert_eq!(rejected(source), expected, "{source}");
    }
}

#[test]
fn a_diagnostic_shows_the_line_and_what_to_use_instead() {
    let diagnostics = compile("plan.ts", "const a = 1;\r\n  const é = require('fs');\r\n").unwrap_err();
    let [diagnostic] = &diagnostics[..] else { panic!("{diagnostics:?}") };
    assert_eq!((diagnostic.place.line, diagnostic.place.column), (2, Some(13)));
    assert_eq!(diagnostic.source_line, "  const é = require('fs');");
    assert!(diagnostic.hint.as_ref().unwrap().contains("call a tool"));
}

#[test]
fn types_and_guards_are_allowed() {
    let plans = [
        "import type { A } from 'a'; export type B = A; export interface C {} const x: Promise<Buffer> | NodeJS.Process = null as any;",
        "typeof process === 'undefined' ? 1 : 2",
        "globalThis.counter = 1; counter",
        "declare const mcp: any; mcp.fs.read({})",
        "function f() { return arguments.length } f()",
        "class A { constructor(private x: number, public readonly y = 1) {} } new A(1)",
        "abstract class A { abstract f(): void; declare x: number } 1",
    ];
    for source in plans {
        assert_eq!(rejected(source), [""; 0], "{source}");
    }
}

#[test]
fn sources_that_are_too_large_are_rejected() {
    let large = format!("'{}'", "x".repeat(MAX_SOURCE_BYTES));
    assert!(rejected(&large)[0].contains("a plan has at most 131072 bytes"));
    assert!(rejected(&"(".repeat(50_000))[0].contains("brackets"));
    assert!(rejected("'\0'")[0].contains("NUL"));
}

/// The static calls of a plan: `line:column server.tool arguments`.
fn known(source: &str) -> Vec<String> {
    let plan = compiled(source);
    let line = |call: &rehearsal_sandbox::StaticCall| {
        format!("{} {}.{} {}", call.place, call.server, call.tool, call.arguments.value)
    };
    plan.static_calls.iter().map(line).collect()
}

#[test]
fn calls_are_found_without_running_them() {
    let source = r#"
const { fs, "git-hub": gh } = mcp;
const read = fs.read, name = "list", s = `fs`;
if (false) { await read({ path: "/a", n: -1.5, deep: [true, null, { x: name }] }); }
await gh?.["issue.get"]!({ n: 1 }); await (mcp as any)[s][name]();
await mcp.fs["wr" + "ite"]({ text: 1 as number, path: "/b" });
"#;
    let expected = [
        r#"4:20 fs.read {"path":"/a","n":-1.5,"deep":[true,null,{"x":"list"}]}"#,
        r#"5:7 git-hub.issue.get {"n":1}"#,
        "5:43 fs.list {}",
        r#"6:7 fs.write {"text":1,"path":"/b"}"#,
    ];
    assert_eq!(known(source), expected);
}

#[test]
fn unknown_parts_of_arguments_are_listed() {
    let source = r#"
const path = "/a", o = { x: 1 }, rest = {};
await mcp.fs.write({ path, text: String(1), o, list: [1, Date.now()], gone: undefined, "a/b~c": f(), deep: { y: Math.PI } });
await mcp.fs.write({ a: 1, ...rest, b: 2, [path]: 3, [String(1)]: 4, c: 5 });
await mcp.fs.write(rest);
await mcp.fs.write({ list: [...[1]], a: f(), a: 1 });
function f() { return 1 }
"#;
    let plan = compiled(source);
    let arguments: Vec<Value> =
        plan.static_calls.iter().map(|call| serde_json::to_value(&call.arguments).unwrap()).collect();
    let expected = json!([
        {
            "value": { "path": "/a", "text": null, "o": null, "list": [1, null], "a/b~c": null, "deep": { "y": null } },
            "unknown": ["/text", "/o", "/list/1", "/a~1b~0c", "/deep/y"], "open": []
        },
        { "value": { "a": null, "b": null, "/a": null, "c": 5 }, "unknown": ["/a", "/b", "/~1a"], "open": [""] },
        { "value": null, "unknown": [""], "open": [] },
        { "value": { "list": null, "a": 1 }, "unknown": ["/list"], "open": [] },
    ]);
    assert_eq!(Value::from(arguments), expected);
}

#[test]
fn calls_with_computed_names_are_listed() {
    let source = "for (const tool of ['a', 'b']) await mcp.fs[tool]({});\nlet s = 'fs'; s = 'git';\nmcp[s].log({});";
    let plan = compiled(source);
    let places: Vec<String> = plan.computed_calls.iter().map(ToString::to_string).collect();
    assert_eq!((places, plan.static_calls.len()), (vec!["1:38".to_owned(), "3:1".to_owned()], 0));
}

#[test]
fn reassigned_and_shadowed_names_are_not_resolved() {
    let source = "
        let fs = mcp.fs; fs = other(); fs.read({});
        function other(): any { return {} }
        function inner(mcp: any) { mcp.fs.read({}) }
        { const mcp = { fs: { read(_: any) {} } }; mcp.fs.read({}) }
        const a = b, b = a; (a as any).read({});
        inner({});";
    assert_eq!(known(source), [""; 0]);
}

#[test]
fn damaged_plans_end_in_diagnostics_with_a_place() {
    let table = include_str!("places.txt");
    let plans: Vec<&str> = table.split("\n=== ").skip(1).filter_map(|part| part.split("\n---").next()).collect();
    let insertions = [
        "(", ")", "{", "}", "`", "${", "\"", "/", "=>", "async ", "await ", "...", "é", "\\", "#", "@", "enum ", "<",
        ">",
    ];
    let mut state = 7_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for round in 0..1500 {
        let (_, source) = plans[round % plans.len()].split_once('\n').unwrap();
        let mut characters: Vec<char> = source.chars().collect();
        for _ in 0..1 + below(3) {
            let at = below(characters.len().max(1)).min(characters.len());
            match below(3) {
                0 => drop(characters.drain(at..(at + 1 + below(4)).min(characters.len()))),
                1 => drop(characters.splice(at..at, insertions[below(insertions.len())].chars())),
                _ => characters.truncate(at),
            }
        }
        let damaged: String = characters.into_iter().collect();
        let Err(diagnostics) = compile("plan.ts", &damaged) else { continue };
        assert!(!diagnostics.is_empty());
        for diagnostic in diagnostics {
            assert!(!diagnostic.message.contains("the compiler"), "{diagnostic}\n{damaged}");
            let columns = diagnostic.source_line.chars().count() as u32;
            assert!(diagnostic.place.column.unwrap() <= columns + 1, "{diagnostic}\n{damaged}");
        }
    }
}
