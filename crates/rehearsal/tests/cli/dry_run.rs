//! `rehearse dry-run` and `rehearse cache`

use serde_json::{Value, json};

use crate::fixture::{Fixture, rehearse};

/// The server of the example plans.
pub(crate) const FILES: &str = include_str!("../../../../examples/plans/files.mock.yaml");
const CONFIG: &str = r#"{ "mcpServers": { "files": { "command": "rehearse", "args": ["mock", "files.mock.yaml"] } } }"#;

/// Answers of `files` for `--override`.
const OVERRIDES: &str = r#"
tools:
  - name: read_file
    answers:
      - { when: { path: /text }, text: from the override }
      - { when: { path: /json }, text: '{"size": 7}' }
      - { when: { path: /missing }, text: no such file, is_error: true }
      - { when: { path: /slow }, text: slow, delay: 2s }
      - { when: { path: /silent }, fault: hang }
  - name: count
    input_schema: { type: object, properties: { limit: { type: integer } } }
    annotations: { read_only_hint: true }
    answers: [{ structured_content: { count: 3 } }]
"#;

/// A dry run with its exit status, and values of the report by JSON pointer.
struct Case {
    behaviour: &'static str,
    plan: &'static str,
    flags: &'static str,
    status: i32,
    report: Value,
}

fn case(behaviour: &'static str, plan: &'static str, flags: &'static str, status: i32, report: Value) -> Case {
    Case { behaviour, plan, flags, status, report }
}

pub(crate) fn project() -> Fixture {
    Fixture::new().file(".mcp.json", CONFIG).file("files.mock.yaml", FILES).file("override.mock.yaml", OVERRIDES)
}

/// The exit status of a line of shell, and its stdout as JSON; without any, its stderr.
pub(crate) fn json_of(fixture: &Fixture, line: &str) -> (i32, Value) {
    let output = fixture.shell(line).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let report = if text.is_empty() {
        String::from_utf8(output.stderr).unwrap().into()
    } else {
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
    };
    (output.status.code().unwrap(), report)
}

/// Runs each plan as the file with this name, and lists everything that differs.
fn assert_cases(file: &str, cases: Vec<Case>) {
    let fixture = project();
    let mut differences = Vec::new();
    for Case { behaviour, plan, flags, status, report: expected } in cases {
        std::fs::write(fixture.path().join(file), plan).unwrap();
        let (found, report) = json_of(&fixture, &format!("rehearse dry-run {file} --json {flags}"));
        if found != status {
            differences.push(format!("{behaviour}: exit {found}, not {status}: {}", report["findings"]));
        }
        for (pointer, value) in expected.as_object().unwrap() {
            let found = report.pointer(pointer).unwrap_or(&Value::Null);
            if found != value {
                differences.push(format!("{behaviour}: {pointer} is {found}, not {value}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_clean_plan_has_a_page_with_its_calls_and_their_answers() {
    let fixture = project().file("plan.ts", include_str!("../../../../examples/plans/cleanup.ts"));
    rehearse!(fixture, "rehearse dry-run plan.ts 2>stderr", @r#"
    exit: 0
    ----- stdout -----
    plan.ts  dry run: no call reached a server  (sandbox: landlock, seccomp, rlimits)
      1  ·  read         files:list_folder  path="/reports"                            schema
      2  -  destructive  files:delete_file  path=(known after run: 1 $.files[0].path)  placeholder (if 3:56; count known after run)
    Depends on values that are known after the run:
      3:56    file.size < 100 (answer of call 1): true in this run; call 2 may not be made
      5:20    loop over small (answer of call 1): call 2 may repeat, or not be made
    warning: call 2: files:delete_file has no recording and no output schema: its result is a placeholder
     --> plan.ts:6:9
      |
    6 |   await mcp.files.delete_file({ path: file.path });
      |         ^^^^^^^^^^^^^^^^^^^^^
    Console:
      deleted 1 of 1 reports
    Result: ["path"]
    Plan: 2 calls: 1 read, 1 destructive · answers: 1 schema, 1 placeholder
    0 errors, 1 warning · not reversible · duration unknown · confidence 0.43
    "#);
}

#[test]
fn a_page_has_each_mistake_at_its_line() {
    let fixture = project().file("plan.ts", include_str!("../../../../examples/plans/mistakes.ts"));
    rehearse!(fixture, "rehearse dry-run plan.ts 2>stderr", @r#"
    exit: 1
    ----- stdout -----
    plan.ts  dry run: no call reached a server  (sandbox: landlock, seccomp, rlimits)
      1  ·  read         files:list_folder  folder="/reports"       ✗ type error
      2  +  write        files:write_file   path="path.bak" (known after run: 1 $.files[0].path) content=0 (known after run: 1 $.files[0].size)  ✗ type error
      3  ?  unknown      files:remove_file  path="/reports/old.md"  ✗ no such tool
    Depends on values that are known after the run:
      4:20    loop over files (answer of call 1): call 2 may repeat, or not be made
    error: call 1: files:list_folder: $.folder: the tool has no such argument
     --> plan.ts:2:25
      |
    2 | const { files } = await mcp.files.list_folder({ folder: "/reports" });
      |                         ^^^^^^^^^^^^^^^^^^^^^ a real run stops here
    error: call 1: files:list_folder: $.path: missing, expected string
     --> plan.ts:2:25
      |
    2 | const { files } = await mcp.files.list_folder({ folder: "/reports" });
      |                         ^^^^^^^^^^^^^^^^^^^^^
    error: call 2: files:write_file: $.content: expected string, got number
     --> plan.ts:5:9
      |
    5 |   await mcp.files.write_file({ path: file.path + ".bak", content: file.size });
      |         ^^^^^^^^^^^^^^^^^^^^
    error: call 3: no tool files:remove_file
     --> plan.ts:7:7
      |
    7 | await mcp.files.remove_file({ path: "/reports/old.md" });
      |       ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: the tools of files are delete_file, list_folder, read_file, write_file
    Result: null
    Plan: 3 calls: 1 read, 1 write, 1 unknown · answers: 1 schema, 1 placeholder, 1 not checked
    4 errors, 0 warnings · not reversible · duration unknown · confidence 0.00
    "#);
}

#[test]
fn a_mistake_at_the_end_of_the_file_has_its_place() {
    let fixture = project().file("plan.ts", "const text = `never closed ${1\n").file("plan.yaml", "");
    rehearse!(fixture, "rehearse dry-run plan.ts 2>stderr; rehearse dry-run plan.yaml 2>stderr", @r"
    exit: 1
    ----- stdout -----
    plan.ts  dry run: no call reached a server
    error: Expected `}` but found `EOF`
    --> plan.ts:2:1
    1 error, 0 warnings
    plan.yaml  dry run: no call reached a server
    error: unexpected end of file
    --> plan.yaml:1:1
    1 error, 0 warnings
    ");
}

#[test]
fn each_finding_has_a_code_a_place_and_an_exit_status() {
    assert_cases(
        "plan.ts",
        vec![
            case(
                "a plan that reads is clean",
                "const { files } = await mcp.files.list_folder({ path: '/' });\nfiles.map((file: { path: string }) => file.path).length",
                "--detailed-exitcode --expect-read-only --require-sandbox --intent 'Count files'",
                0,
                json!({
                    "/dry_run": true, "/plan": "plan.ts", "/intent": "Count files", "/findings": [],
                    "/side_effects": [], "/reversible": true, "/simulated_result": 1,
                    "/validation/cache_misses": 1, "/validation/syntax_valid": true,
                    "/tools_called/0/answer/_source": "schema_mock", "/tools_called/0/answer/_mocked": true,
                    "/tools_called/0/place": { "file": "plan.ts", "line": 1, "column": 25, "via": [] },
                    "/tools_called/0/effect": "read", "/tools_called/0/effect_from": "annotations",
                }),
            ),
            case(
                "a syntax error",
                "const a = 1;\nconst a = 2;",
                "",
                1,
                json!({
                    "/validation/syntax_valid": false, "/findings/0/code": "syntax", "/findings/0/place/line": 2,
                    "/findings/0/place/column": 7, "/findings/0/source_line": "const a = 2;", "/tools_called": [],
                }),
            ),
            case(
                "every wrong argument, and the plan continues",
                "await mcp.files.write_file({\n  path: 7, text: 'x' });\nawait mcp.files.read_file({ path: '/' });",
                "",
                1,
                json!({
                    "/validation/type_errors/1/arg": "path", "/validation/type_errors/1/expected": "string",
                    "/validation/type_errors/1/got": "number", "/validation/type_errors/0/place/line": 1,
                    "/validation/type_errors/0/arg": "content", "/validation/type_errors/2/arg": "text", "/stops_at": 1, "/tools_called/1/tool": "files:read_file",
                    "/tools_called/0/fails": true, "/tools_called/1/fails": false,
                }),
            ),
            case(
                "missing tools and servers with the closest name, and a tool of another server",
                "await mcp.files.reed_file({ path: '/' });\nawait mcp.file.read_file({ path: '/' });",
                "",
                1,
                json!({
                    "/validation/missing_tools": ["files:reed_file", "file:read_file"],
                    "/findings/0/code": "missing-tool", "/findings/0/hint": "files:read_file",
                    "/findings/1/code": "missing-server", "/findings/1/hint": "files:read_file",
                    "/tools_called/0/answer/_source": "none", "/tools_called/0/effect": "unknown",
                }),
            ),
            case(
                "a call in a branch that did not run is checked",
                "if (Date.now() < 0) {\n  await mcp.files.delete_file({ path: 7 });\n}",
                "",
                1,
                json!({
                    "/not_run/0/tool": "files:delete_file", "/not_run/0/effect": "destructive",
                    "/validation/type_errors/0/call": null, "/validation/type_errors/0/place/line": 2,
                    "/side_effects/0/call": null, "/reversible": false,
                }),
            ),
            case(
                "a guard that is a string is not a boolean",
                "await mcp.files.read_file({ path: 'false' });\nif ('false') await mcp.files.delete_file({ path: '/' });",
                "--expect-read-only",
                1,
                json!({ "/side_effects/0/tool": "files:delete_file", "/side_effects/0/call": 2, "/findings/0/code": "side-effect" }),
            ),
            case(
                "a plan that writes has status 5 if requested",
                "await mcp.files.write_file({ path: '/a', content: 'a' });",
                "--detailed-exitcode",
                5,
                json!({ "/side_effects/0/effect": "write", "/reversible": false }),
            ),
            case(
                "the operator's effect wins",
                "await mcp.files.write_file({ path: '/a', content: 'a' });\nawait mcp.files.delete_file({ path: '/a' });",
                "--effect files:write_file=read --effect files:delete_file=reversible",
                0,
                json!({
                    "/side_effects/0/tool": "files:delete_file", "/side_effects/1": null, "/reversible": true,
                    "/tools_called/0/effect_from": "operator",
                }),
            ),
            case(
                "a placeholder has the shape that the plan uses",
                "const text = await mcp.files.read_file({ path: '/a' });\ntext.split('\\n').map((line: string) => line.length).length",
                "",
                0,
                json!({
                    "/tools_called/0/answer/_source": "placeholder", "/findings/0/code": "placeholder",
                    "/findings/0/severity": "warning", "/simulated_result": 1,
                }),
            ),
            case(
                "placeholders fail a strict run",
                "await mcp.files.read_file({ path: '/a' });",
                "--no-placeholders",
                1,
                json!({ "/findings/0/code": "placeholder", "/findings/0/severity": "error", "/findings/1/severity": "warning" }),
            ),
            case(
                "a call that is not awaited",
                "mcp.files.write_file({ path: '/a', content: 'a' });\n1",
                "",
                0,
                json!({ "/findings/0/code": "not-awaited", "/findings/0/place/line": 1, "/side_effects/0/call": 1, "/simulated_result": 1 }),
            ),
            case(
                "a call that ends after the plan",
                "['/a'].forEach(async (path) => { await mcp.files.write_file({ path, content: 'a' }) });\n1",
                "",
                0,
                json!({
                    "/findings/0/code": "not-awaited",
                    "/findings/0/message": "the plan ends before the result of files:write_file", "/side_effects/0/call": 1,
                }),
            ),
            case(
                "a declared effect of a tool that does not exist",
                "await mcp.files.read_file({ path: '/a' });",
                "--effect files:read_fil=destructive",
                0,
                json!({ "/findings/0/code": "missing-tool", "/findings/0/severity": "warning", "/findings/0/hint": "files:read_file" }),
            ),
            case(
                "a loop over pages of placeholders",
                "let page = await mcp.files.read_file({ path: '/0' });\nlet count = 1;\nwhile (page.next) page = await mcp.files.read_file({ path: `/${count++}` });\ncount",
                "",
                0,
                json!({ "/simulated_result": 12, "/findings/2/code": "answer", "/findings/2/call": 12, "/findings/2/place/line": 3 }),
            ),
            case(
                "values that JSON loses",
                "await mcp.files.write_file({ path: '/a', content: 'a', more: undefined });\nreturn { map: new Map(), n: NaN }",
                "",
                0,
                json!({
                    "/tools_called/0/lossy/0": "$.more: undefined: member dropped",
                    "/tools_called/0/arguments": { "path": "/a", "content": "a" },
                    "/findings/0/code": "lossy-value", "/simulated_result": { "map": {}, "n": null },
                }),
            ),
            case(
                "an exception of the plan",
                "const path = '/a';\nthrow new RangeError(path);",
                "",
                1,
                json!({
                    "/findings/0/code": "plan-error", "/findings/0/message": "RangeError: /a", "/findings/0/place/line": 2,
                    "/result/error": "RangeError: /a", "/simulated_result": null,
                }),
            ),
            case(
                "a promise that nothing settles",
                "await new Promise(() => {});",
                "",
                1,
                json!({ "/findings/0/code": "plan-error", "/result/error": "the plan waits for a promise that nothing settles" }),
            ),
            case(
                "a plan that does not stop",
                "for (;;);",
                "",
                1,
                json!({ "/findings/0/code": "limit", "/result/error": "the plan exceeded the CPU limit of 1 s" }),
            ),
            case(
                "timers and the clock cost no time",
                "const start = Date.now();\nawait new Promise((resolve) => setTimeout(resolve, 3_600_000));\nDate.now() - start",
                "",
                0,
                json!({ "/simulated_result": 3_600_000, "/estimated_duration_ms/p50": 3_600_000.0 }),
            ),
            case(
                "console output is kept",
                "console.log('one', { two: 2 });",
                "",
                0,
                json!({ "/result/console": ["one {two: 2}"] }),
            ),
        ],
    );
}

#[test]
fn an_override_answers_fails_is_slow_or_silent() {
    let flags = "--override files=override.mock.yaml";
    assert_cases(
        "plan.ts",
        vec![
            case(
                "values",
                "[await mcp.files.read_file({ path: '/text' }), (await mcp.files.read_file({ path: '/json' })).size, (await mcp.files.count({ limit: 1 })).count]",
                flags,
                0,
                json!({
                    "/simulated_result": ["from the override", 7, 3], "/validation/overrides": 3,
                    "/validation/cache_misses": 0, "/tools_called/2/answer/_source": "override", "/confidence": 1.0,
                }),
            ),
            case(
                "a call without a rule has its other answer",
                "await mcp.files.list_folder({ path: '/' }); await mcp.files.read_file({ path: '/other' });",
                flags,
                0,
                json!({
                    "/tools_called/0/answer/_source": "schema_mock", "/tools_called/1/answer/_source": "placeholder",
                    "/validation/overrides": 0,
                }),
            ),
            case(
                "arguments of a tool that only the override has",
                "await mcp.files.count({ limit: 'all' });",
                flags,
                1,
                json!({ "/validation/type_errors/0/arg": "limit" }),
            ),
            case(
                "an error that the plan does not catch",
                "await mcp.files.list_folder({ path: '/' });\nawait mcp.files.read_file({ path: '/missing' });\nawait mcp.files.delete_file({ path: '/' });",
                flags,
                1,
                json!({
                    "/stops_at": 2, "/findings/0/code": "plan-error", "/findings/0/call": 2, "/findings/0/place/line": 2,
                    "/findings/0/message": "ToolError: no such file (plan.ts:2:7)", "/tools_called/2": null,
                    "/not_run/0/tool": "files:delete_file",
                }),
            ),
            case(
                "an error that the plan catches",
                "try {\n  await mcp.files.read_file({ path: '/missing' });\n} catch (error) {\n  [error.name, error.server, error.tool, error.kind, error.message].join();\n}\nreturn 'next'",
                flags,
                0,
                json!({ "/stops_at": null, "/simulated_result": "next", "/tools_called/0/fails": true, "/tools_called/0/answer/is_error": true }),
            ),
            case(
                "the members of an error",
                "return await mcp.files.read_file({ path: '/missing' }).catch((error: any) => [error.name, error.server, error.tool, error.kind, error.message, error.content])",
                flags,
                0,
                json!({
                    "/simulated_result": [
                        "ToolError", "files", "read_file", "tool", "no such file (plan.ts:1:14)",
                        [{ "type": "text", "text": "no such file" }],
                    ],
                }),
            ),
            case(
                "a delay is virtual time, and calls at once wait together",
                "await Promise.all([1, 2, 3].map(() => mcp.files.read_file({ path: '/slow' })));\nawait mcp.files.read_file({ path: '/text' });",
                flags,
                0,
                json!({
                    "/estimated_duration_ms/p50": 2000.0, "/tools_called/2/started_ms": 0.0, "/tools_called/2/ended_ms": 2000.0,
                    "/tools_called/3/started_ms": 2000.0, "/tools_called/3/waits_for": [1, 2, 3],
                }),
            ),
            case(
                "no answer ends after the client's timeout",
                "return await mcp.files.read_file({ path: '/silent' }).catch((error: any) => error.kind)",
                flags,
                0,
                json!({ "/simulated_result": "timeout", "/estimated_duration_ms/p50": 30000.0 }),
            ),
        ],
    );
}

#[test]
fn tasks_of_a_workflow_run_in_the_order_of_their_dependencies() {
    let flags = "--override files=override.mock.yaml";
    assert_cases(
        "tasks.yaml",
        vec![
            case(
                "independent tasks run at the same time, the others after those that they refer to",
                "
tasks:
  - { id: last, tool: files:write_file, arguments: { path: /out, content: '${slow} and ${json.size}' } }
  - { id: slow, tool: files:read_file, arguments: { path: /slow } }
  - { id: json, tool: files:read_file, arguments: { path: /json } }
  - { id: after, tool: files:read_file, arguments: { path: /text }, depends_on: [last] }
result: { text: { $from: after }, size: '${json.size}' }
",
                flags,
                0,
                json!({
                    "/tools_called/0/task": "slow", "/tools_called/1/task": "json", "/tools_called/2/task": "last",
                    "/tools_called/2/arguments/content": "slow and 7", "/tools_called/2/started_ms": 2000.0,
                    "/tools_called/2/waits_for": [1, 2], "/tools_called/1/started_ms": 0.0,
                    "/tools_called/3/task": "after", "/simulated_result": { "text": "from the override", "size": 7 },
                    "/sandbox": null, "/tools_called/0/place/line": 4,
                }),
            ),
            case(
                "one at a time",
                "
concurrency: 1
tasks:
  - { id: one, tool: files:read_file, arguments: { path: /slow } }
  - { id: two, tool: files:read_file, arguments: { path: /slow } }
",
                flags,
                0,
                json!({ "/estimated_duration_ms/p50": 4000.0 }),
            ),
            case(
                "a condition that does not hold skips the task and its dependents",
                "
tasks:
  - { id: size, tool: files:read_file, arguments: { path: /json } }
  - { id: large, tool: files:delete_file, arguments: { path: /a }, when: { $from: size, path: $.size, is: { gt: 7 } } }
  - { id: after, tool: files:read_file, arguments: { path: /text }, depends_on: [large] }
  - { id: small, tool: files:read_file, arguments: { path: /text }, when: { $from: size, path: $.size, is: 7 } }
",
                flags,
                0,
                json!({
                    "/tools_called/1/task": "small", "/tools_called/2": null, "/not_run/0/tool": "files:delete_file",
                    "/not_run/0/reason": "task large: its `when` does not hold", "/not_run/1/tool": "files:read_file",
                    "/side_effects/0/effect": "destructive", "/side_effects/0/call": null,
                }),
            ),
            case(
                "an error stops the workflow",
                "
tasks:
  - { id: bad, tool: files:read_file, arguments: { path: /missing } }
  - { id: after, tool: files:read_file, arguments: { path: /text }, depends_on: [bad] }
",
                flags,
                1,
                json!({ "/stops_at": 1, "/findings/0/code": "plan-error", "/findings/0/place/line": 3, "/not_run/0/tool": "files:read_file" }),
            ),
            case(
                "an error is ignored",
                "
tasks:
  - { id: bad, tool: files:read_file, arguments: { path: /missing }, on_error: continue }
  - { id: after, tool: files:read_file, arguments: { path: /text }, depends_on: [bad] }
",
                flags,
                0,
                json!({ "/simulated_result": { "bad": null, "after": "from the override" }, "/stops_at": null }),
            ),
            case(
                "an error skips the dependents only",
                "
tasks:
  - { id: bad, tool: files:read_file, arguments: { path: /missing }, on_error: skip_dependents }
  - { id: after, tool: files:read_file, arguments: { path: /text }, depends_on: [bad] }
  - { id: other, tool: files:read_file, arguments: { path: /text } }
",
                flags,
                0,
                json!({ "/simulated_result": { "other": "from the override" }, "/not_run/0/tool": "files:read_file" }),
            ),
            case(
                "mistakes have their lines",
                "
tasks:
  - id: one
    tool: files:reed_file
  - id: two
    tool: files:write_file
    arguments: { path: 7, content: '${one}' }
",
                flags,
                1,
                json!({
                    "/validation/missing_tools": ["files:reed_file"], "/findings/0/place/line": 4,
                    "/validation/type_errors/0/place/line": 6, "/validation/type_errors/0/arg": "path",
                }),
            ),
            case(
                "a cycle",
                "
tasks:
  - { id: one, tool: files:read_file, depends_on: [two] }
  - { id: two, tool: files:read_file, depends_on: [one] }
",
                flags,
                1,
                json!({
                    "/validation/syntax_valid": false, "/findings/0/code": "syntax", "/findings/0/place/line": 3,
                    "/findings/0/message": "these tasks wait for each other: one → two → one", "/findings/1": null,
                }),
            ),
        ],
    );
    assert_cases(
        "tasks.json",
        vec![case(
            "JSON",
            r#"{ "tasks": [{ "id": "json", "tool": "files:read_file", "arguments": { "path": "/json" } }], "result": "${json.size}" }"#,
            flags,
            0,
            json!({ "/simulated_result": 7 }),
        )],
    );
}

#[test]
fn dry_runs_are_equal_except_for_the_elapsed_time() {
    let plan = "
const jobs = [1, 2, 3].map(async (job) => {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
  const path = `/${job}-${Date.now()}-${Math.random()}`;
  await mcp.files.write_file({ path, content: new Date().toISOString() });
  return path;
});
return [await Promise.race(jobs), ...(await Promise.all(jobs)), crypto.randomUUID?.()];
";
    let plan = plan.replace(", crypto.randomUUID?.()", "");
    let fixture = project().file("plan.ts", &plan);
    let report = |seed: u32| {
        let (status, mut report) = json_of(&fixture, &format!("rehearse dry-run plan.ts --json --seed {seed}"));
        assert_eq!(status, 0, "{report:#}");
        report["runs"]["elapsed_ms"] = Value::Null;
        report
    };
    let first = report(1);
    assert_eq!(first, report(1));
    assert_ne!(first["simulated_result"], report(2)["simulated_result"]);
}

#[test]
fn wrong_flags_have_status_2_and_missing_servers_status_3() {
    let config = CONFIG.replace(r#""files": {"#, r#""broken": { "command": "no-such-program" }, "files": {"#);
    let fixture = project()
        .file("mixed.json", &config)
        .file("plan.ts", "await mcp.files.list_folder({ path: '/' });")
        .file("broken.ts", "await mcp.broken.anything({});")
        .file("plan.txt", "");
    let empty = Fixture::new().file("plan.ts", "1");
    for (fixture, line, status) in [
        (&fixture, "rehearse dry-run plan.ts --config mixed.json", 0),
        (&fixture, "rehearse dry-run broken.ts --config mixed.json", 3),
        (&fixture, "rehearse dry-run broken.ts --config mixed.json --json", 3),
        (&fixture, "rehearse dry-run plan.ts --config none.json", 2),
        (&fixture, "rehearse dry-run none.ts", 2),
        (&fixture, "rehearse dry-run plan.txt", 2),
        (&fixture, "rehearse dry-run plan.ts --effect files:read_file=maybe", 2),
        (&fixture, "rehearse dry-run plan.ts --override files", 2),
        (&fixture, "rehearse dry-run plan.ts --override files=none.mock.yaml", 2),
        (&fixture, "rehearse dry-run plan.ts --offline --no-cache", 2),
        (&fixture, "rehearse dry-run plan.ts --offline --cache new.sqlite", 3),
        (&fixture, "rehearse dry-run plan.ts --offline", 0),
        (&fixture, "mkdir folder; rehearse dry-run plan.ts --cache folder", 3),
        (&empty, "rehearse dry-run plan.ts", 2),
        (&empty, "rehearse dry-run plan.ts --offline", 0),
    ] {
        let output = fixture.shell(line).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{line}: {text}");
    }
    let (_, report) = json_of(&fixture, "rehearse dry-run broken.ts --config mixed.json --json");
    assert_eq!(report["findings"][0]["code"], "unknown-catalogue");
}

#[test]
fn recorded_results_are_imported_once_listed_shown_used_and_removed() {
    let record = "rehearse record -q -o trace.jsonl -- rehearse mock files.mock.yaml";
    let fixture = project().file("plan.ts", "await mcp.files.read_file({ path: '/a' });");
    for path in ["/a", "/b"] {
        let output = fixture.shell(&format!("rehearse call read_file path={path} -- {record}")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let list = |flags: &str| {
        let output = fixture.shell(&format!("rehearse cache list --json {flags}")).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let run = |line: &str| {
        let output = fixture.shell(line).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run("rehearse cache import trace.jsonl").0, 0);
    let first = list("");
    assert_eq!(first.len(), 2);
    assert_eq!(run("rehearse cache import trace.jsonl").0, 0);
    assert_eq!(list(""), first, "the second import adds nothing");
    let entry = first.iter().find(|entry| entry["arguments"]["path"] == "/a").unwrap();
    assert_eq!((&entry["server"], &entry["tool"]), (&json!("files"), &json!("read_file")));
    assert_eq!(entry["result"]["content"][0]["text"], "# Report in /a");
    let key = entry["key"].as_str().unwrap();
    let (status, shown) = run(&format!("rehearse cache show {key}"));
    assert_eq!((status, &serde_json::from_str::<Value>(&shown).unwrap()), (0, entry));
    assert_eq!(run("rehearse cache show 000000000000").0, 2);
    let (_, lines) = run("rehearse cache list --tool read_file");
    assert!(lines.lines().count() == 2 && lines.contains(key) && lines.contains("files:read_file"), "{lines}");

    let (status, report) = json_of(&fixture, "rehearse dry-run plan.ts --json --no-placeholders");
    assert_eq!(status, 0);
    let answer = &report["tools_called"][0]["answer"];
    assert_eq!((&answer["_source"], &answer["value"]), (&json!("capability_cache"), &json!("# Report in /a")));
    assert_eq!(answer["_cached_at"], entry["at"]);
    assert_eq!((&report["validation"]["cache_hits"], &report["confidence"]), (&json!(1), &json!(1.0)));
    // A recording of other arguments gives the shape of a result.
    let other = fixture.file("plan.ts", "return typeof (await mcp.files.read_file({ path: '/c' }))");
    let (_, report) = json_of(&other, "rehearse dry-run plan.ts --json");
    assert_eq!(
        (&report["simulated_result"], &report["tools_called"][0]["answer"]["_source"]),
        (&json!("string"), &json!("schema_mock"))
    );
    let (_, report) = json_of(&other, "rehearse dry-run plan.ts --json --no-cache");
    assert_eq!(report["tools_called"][0]["answer"]["_source"], "placeholder");

    let fixture = other;
    let count = || {
        fixture.shell("rehearse cache list --json").output().unwrap().stdout.split(|byte| *byte == b'\n').count() - 1
    };
    for (line, status, left) in [
        ("rehearse cache purge", 2, 2),
        ("rehearse cache purge --older-than 1h", 0, 2),
        ("rehearse cache purge --server other", 0, 2),
        ("rehearse cache purge --older-than 1ms --tool list_folder", 0, 2),
        ("rehearse cache purge --all", 0, 0),
        ("rehearse dry-run plan.ts --offline", 3, 0),
    ] {
        assert_eq!(fixture.shell(line).output().unwrap().status.code(), Some(status), "{line}");
        assert_eq!(count(), left, "{line}");
    }
}

#[test]
fn failures_that_the_plan_does_not_handle_are_errors_at_their_calls() {
    let plan = "await mcp.files.write_file({ path: '/a', content: 'a' });
try {
  await mcp.files.delete_file({ path: '/b' });
} catch (error) {
  console.log('kept');
}
await mcp.files.read_file({ path: '/c' });
";
    let fixture = project().file("plan.ts", plan);
    rehearse!(fixture, "rehearse dry-run plan.ts --explore errors 2>stderr | grep -A 3 error:", @r"
    exit: 0
    ----- stdout -----
    error: call 1: the plan does not handle a tool error, protocol error or time-out of files:write_file
     --> plan.ts:1:7
      |
    1 | await mcp.files.write_file({ path: '/a', content: 'a' });
    --
    error: call 3: the plan does not handle a tool error, protocol error or time-out of files:read_file; calls 1, 2 have changed something before
     --> plan.ts:7:7
      |
    7 | await mcp.files.read_file({ path: '/c' });
    ");
    assert!(fixture.run("rehearse dry-run plan.ts --explore errors").starts_with("exit: 1"));
}

#[test]
fn a_hybrid_run_calls_the_named_tools_and_no_others() {
    let fixture = project().file("plan.ts", "(await mcp.files.list_folder({ path: '/reports' })).files.length");
    let fixture = fixture.file(
        "other.ts",
        "await mcp.files.list_folder({ path: '/reports' }); await mcp.files.delete_file({ path: '/a' })",
    );
    let shown = fixture.run("rehearse dry-run plan.ts --hybrid files:list_folder");
    assert!(shown.contains("only 1 call of safe tools reached a server"), "{shown}");
    assert!(shown.contains("path=\"/reports\"  live\nResult: 2\n"), "{shown}");
    rehearse!(fixture, "rehearse dry-run other.ts --hybrid files:list_folder --json | grep -E '_source|_mocked'", @r#"
    exit: 0
    ----- stdout -----
            "_mocked": false,
            "_source": "live",
            "_mocked": true,
            "_source": "placeholder",
    "#);
    rehearse!(fixture, "rehearse dry-run plan.ts --hybrid files:list_foldr", @r"
    exit: 2
    ----- stderr -----
    error: --hybrid files:list_foldr: the server has no such tool
    hint: did you mean `files:list_folder`?
    ");
}
