//! `rehearse exec`

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rehearsal::matcher::Schema;
use serde_json::{Value, json};

use crate::fixture::{Fixture, rehearse};

const FILES: &str = include_str!("../../../../examples/plans/files.mock.yaml");
const CLEANUP: &str = include_str!("../../../../examples/plans/cleanup.ts");
const CONFIG: &str = r#"{ "mcpServers": {
  "files": { "command": "rehearse", "args": ["mock", "files.mock.yaml"] },
  "tiny": { "command": "tiny-server" }
} }"#;
/// Servers that cannot be started.
const BROKEN: &str = r#"{ "mcpServers": {
  "files": { "command": "rehearse", "args": ["mock", "files.mock.yaml"] },
  "missing": { "command": "no-such-program" },
  "secret": { "command": "rehearse", "args": ["mock", "files.mock.yaml"], "env": { "TOKEN": "${NOT_SET}" } }
} }"#;

fn project() -> Fixture {
    let fixture = Fixture::new().file(".mcp.json", CONFIG).file("files.mock.yaml", FILES).file("cleanup.ts", CLEANUP);
    std::fs::create_dir(fixture.path().join(".rehearsal")).unwrap();
    fixture
}

/// Adds or replaces a file of the project.
fn put(fixture: &Fixture, name: &str, text: &str) {
    std::fs::write(fixture.path().join(name), text).unwrap();
}

/// The exit status of a line of shell, and its stdout as JSON; without any, its stderr.
fn json_of(fixture: &Fixture, line: &str) -> (i32, Value) {
    let output = fixture.shell(line).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let report = if text.is_empty() {
        String::from_utf8(output.stderr).unwrap().into()
    } else {
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
    };
    (output.status.code().unwrap(), report)
}

/// Runs code on the servers.
fn exec(fixture: &Fixture, plan: &str, flags: &str) -> (i32, Value) {
    put(fixture, "plan.ts", plan);
    json_of(fixture, &format!("rehearse exec plan.ts --json {flags}"))
}

/// The tools that were called, as the trace has them.
fn traced(fixture: &Fixture) -> Vec<String> {
    let line = "rehearse trace show trace.jsonl 2>/dev/null | grep -o 'tools/call [a-z_]*' | cut -d' ' -f2";
    let output = fixture.shell(line).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_real_run_has_a_page_with_its_calls_and_results() {
    let fixture = project();
    rehearse!(fixture, "rehearse exec cleanup.ts | sed -E 's/[0-9]+ ms/N ms/; s/in [^ ]*cache/in cache/'", @r#"
    exit: 0
    ----- stdout -----
    cleanup.ts  completed in N ms
      1  ·  read         2:25  files:list_folder  path="/reports"  N ms  → {"files":[{"path":"/re…(96 characters)…uary.md","size":80}]}
      2  -  destructive  6:9   files:delete_file  path="/reports/february.md"  N ms  → "deleted"
    Console:
      deleted 1 of 2 reports
    Result: ["/reports/february.md"]
    Plan: 2 calls: 1 read, 1 destructive · 0 errors, 0 warnings
    Cache: 2 results stored in cache.sqlite
    Trace: trace.jsonl
    ----- stderr -----
    running cleanup.ts on live servers of .mcp.json: files
    "#);
}

#[test]
fn a_real_run_fills_the_cache_and_an_offline_dry_run_returns_the_same_result() {
    let fixture = project();
    let (status, real) = json_of(&fixture, "rehearse exec cleanup.ts --json --intent 'clean up'");
    assert_eq!((status, &real["status"], &real["intent"]), (0, &"completed".into(), &"clean up".into()), "{real:#}");
    assert_eq!(real["cache"]["stored"], 2);
    let (status, dry) = json_of(&fixture, "rm files.mock.yaml .mcp.json; rehearse dry-run cleanup.ts --json --offline");
    assert_eq!(status, 0, "{dry:#}");
    assert_eq!(dry["simulated_result"], real["result"]);
    assert_eq!(dry["validation"]["cache_hits"], 2);
    assert_eq!(dry["confidence"], 1.0);
    assert_eq!(dry["estimated_duration_ms"]["known"], 2);
    // The trace has the same results, under the same keys.
    rehearse!(fixture, "rehearse cache import trace.jsonl 2>&1 | head -1", @"
    exit: 0
    ----- stdout -----
    trace.jsonl: 0 new results of files, 2 imported before, 0 without a result; 1 list of tools
    ");
    let schema: Value = serde_json::from_str(include_str!("../../../../schemas/exec.schema.json")).unwrap();
    assert_eq!(Schema::compile(&schema).unwrap().objections(&real), [""; 0]);
}

#[test]
fn a_workflow_runs_with_its_limit_and_its_result_is_that_of_its_rehearsal() {
    let fixture = project().file(
        "tasks.yaml",
        "concurrency: 2\n\
         tasks:\n\
        \x20 - { id: list, tool: files:list_folder, arguments: { path: /reports } }\n\
        \x20 - { id: read, tool: files:read_file, arguments: { path: { $from: list, path: '$.files[0].path' } } }\n\
        \x20 - { id: never, tool: files:read_file, arguments: { path: /x }, when: { $from: list, path: '$.files[0].size', is: 0 } }\n",
    );
    let (status, real) = json_of(&fixture, "rehearse exec tasks.yaml --json");
    assert_eq!((status, &real["status"]), (0, &"completed".into()), "{real:#}");
    assert_eq!(real["result"]["read"], "# Report in /reports/january.md");
    assert_eq!(real["calls"][1]["waits_for"], json!([1]));
    assert_eq!(real["not_run"][0]["task"], "never");
    let (status, dry) = json_of(&fixture, "rehearse dry-run tasks.yaml --json --offline");
    assert_eq!((status, &dry["simulated_result"]), (0, &real["result"]));
}

#[test]
fn time_is_real_and_calls_run_at_the_same_time() {
    let plan = "const start = Date.now();
        let fired = 0;
        setTimeout(() => { fired = Date.now(); }, 100);
        await Promise.all([1, 2, 3].map(() => mcp.tiny.slow({ steps: 2, delay_ms: 150 })));
        [start, fired - start, Date.now() - start];";
    let (status, report) = exec(&project(), plan, "");
    assert_eq!(status, 0, "{report:#}");
    let number = |index: usize| report["result"][index].as_f64().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as f64;
    assert!((now - number(0)).abs() < 60_000.0, "{report:#}");
    assert!((100.0..250.0).contains(&number(1)), "{report:#}");
    // One after the other they would take 900 ms.
    assert!((250.0..800.0).contains(&number(2)), "{report:#}");
}

#[test]
fn errors_are_exceptions_of_the_plan_and_are_stored_apart() {
    let plan = "const kinds = [];
        const kind = async (call) => { try { await call(); kinds.push('value'); } catch (error) { kinds.push(error.kind); } };
        await kind(() => mcp.tiny.no_such_tool({}));
        await kind(() => mcp.nowhere.tool({}));
        await kind(() => mcp.files.read_file({}));
        await kind(() => mcp.tiny.slow({ steps: 10, delay_ms: 1000 }));
        kinds;";
    let (status, report) = exec(&project(), plan, "--timeout 0.4");
    assert_eq!(status, 0, "{report:#}");
    let outcomes: Vec<&Value> = report["calls"].as_array().unwrap().iter().map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, ["not_sent", "not_sent", "tool_error", "timeout"], "{report:#}");
    assert_eq!(report["result"], json!(["protocol", "protocol", "tool", "timeout"]));
    assert_eq!(report["cache"]["stored"], 1);
    assert_eq!(report["cache"]["errors"], 1);
    assert_eq!(report["calls"][3]["cache"], "no_reply");
}

#[test]
fn a_server_that_cannot_be_started_ends_with_status_3_and_a_plan_that_fails_with_1() {
    let fixture = project().file(".mcp.json", BROKEN);
    let (status, report) = exec(&fixture, "await mcp.missing.tool({});", "");
    assert_eq!((status, &report["status"]), (3, &"failed".into()), "{report:#}");
    assert_eq!(report["findings"][0]["code"], "plan-error");
    let (status, report) = exec(&fixture, "await mcp.files.list_folder({ path: '/' });\nthrow new Error('no');", "");
    assert_eq!((status, &report["error"]), (1, &"Error: no".into()));
    assert_eq!(report["cache"]["stored"], 1);
    let (status, report) = exec(&fixture, "await mcp.files.", "");
    assert_eq!((status, &report["status"]), (1, &"invalid".into()));
    let (status, report) = exec(&fixture, "await mcp.files.list_folder({ path: '/' });", "-o missing/trace.jsonl");
    assert_eq!((status, report["status"].as_str()), (2, None), "{report:#}");
    // The variable of a server matters only if the plan names the server.
    let (status, report) = exec(&fixture, "await mcp.secret.tool({});", "");
    assert_eq!(status, 2, "{report:#}");
}

#[test]
fn tools_that_are_declared_different_from_call_to_call_are_not_stored() {
    let fixture = project();
    let (status, report) = exec(
        &fixture,
        "await mcp.files.list_folder({ path: '/' }); await mcp.files.read_file({ path: '/a' });",
        "--no-cache-for files:read_file",
    );
    assert_eq!((status, &report["cache"]["excluded"]), (0, &json!(["files:read_file"])), "{report:#}");
    assert_eq!(report["cache"]["stored"], 1);
    rehearse!(fixture, "rehearse cache list | grep -c list_folder; rehearse cache list | grep -c read_file
        rehearse exec plan.ts --no-cache-for nowhere:tool", @"
    exit: 2
    ----- stdout -----
    1
    0
    ----- stderr -----
    error: --no-cache-for nowhere:tool: no server nowhere is configured
    ");
}

#[test]
fn a_call_with_an_effect_is_not_made_if_only_reading_is_expected() {
    let fixture = project();
    let (status, report) = json_of(&fixture, "rehearse exec cleanup.ts --json --expect-read-only");
    assert_eq!((status, &report["status"]), (1, &"refused".into()), "{report:#}");
    assert_eq!(report["stopped_before"]["tool"], "files:delete_file");
    assert_eq!(report["findings"][0]["code"], "side-effect");
    assert_eq!(traced(&fixture), ["list_folder"]);
    let flags = "--expect-read-only --effect files:delete_file=read";
    let (status, report) = json_of(&fixture, &format!("rehearse exec cleanup.ts --json {flags}"));
    assert_eq!(status, 0, "{report:#}");
}

#[test]
fn secrets_are_not_in_the_trace() {
    let login = "  - { name: login, input_schema: { type: object }, answers: [{ text: welcome }] }\n";
    let fixture = project().file("files.mock.yaml", &format!("{FILES}{login}"));
    let plan = "await mcp.files.login({ password: 'hunter2-hunter2' });";
    let (status, report) = exec(&fixture, plan, "-o secret.jsonl");
    assert_eq!((status, &report["trace"]), (0, &"secret.jsonl".into()), "{report:#}");
    let trace = std::fs::read_to_string(fixture.path().join("secret.jsonl")).unwrap();
    let cache = std::fs::metadata(fixture.path().join(".rehearsal/cache.sqlite")).unwrap();
    assert_eq!(cache.permissions().mode() & 0o777, 0o600);
    assert!(trace.contains("login") && !trace.contains("hunter2-hunter2"), "{trace}");
}

/// Saves a plan after a rehearsal, changes the server, and runs the plan as a contract.
fn contract(plan: &str, server: &str, changed: &str) -> (Fixture, i32, Value) {
    let fixture = project().file("files.mock.yaml", server).file("plan.ts", plan);
    let saved = fixture.shell("rehearse dry-run plan.ts --max-run-time 2s --out saved.json").output().unwrap();
    assert!(fixture.path().join("saved.json").exists(), "{}", String::from_utf8_lossy(&saved.stdout));
    put(&fixture, "files.mock.yaml", changed);
    let (status, report) = json_of(&fixture, "rehearse exec saved.json --json");
    (fixture, status, report)
}

#[test]
fn a_saved_plan_that_goes_as_rehearsed_is_completed() {
    let (_, status, report) = contract(CLEANUP, FILES, FILES);
    assert_eq!((status, &report["status"]), (0, &"completed".into()), "{report:#}");
    let rehearsed: Vec<&Value> = report["calls"].as_array().unwrap().iter().map(|call| &call["rehearsed"]).collect();
    assert_eq!(rehearsed, [1, 2], "{report:#}");
    assert_eq!(report["findings"], json!([]));
}

#[test]
fn a_saved_plan_stops_before_a_call_in_another_branch() {
    let plan = "const { files } = await mcp.files.list_folder({ path: '/reports' });
if (files.length > 7) {
  await mcp.files.delete_file({ path: '/reports' });
} else {
  await mcp.files.read_file({ path: '/index' });
}";
    let entry = "            - { path: /reports/x.md, size: 1 }\n";
    let more = FILES.replace(
        "          files:\n            - {",
        &format!("          files:\n{}            - {{", entry.repeat(8)),
    );
    let (fixture, status, report) = contract(plan, FILES, &more);
    assert_eq!((status, &report["status"]), (1, &"deviated".into()), "{report:#}");
    assert_eq!(report["stopped_before"]["tool"], "files:delete_file");
    let reason = "files:delete_file was not rehearsed: it is called only if `files.length > 7` (plan.ts:2:5) is true";
    assert_eq!(report["stopped_before"]["reason"], reason);
    assert_eq!(traced(&fixture), ["list_folder"]);
    // What was done until then, and the answer that changed.
    assert_eq!(report["calls"].as_array().unwrap().len(), 1);
    assert_eq!(report["findings"][1]["code"], "answer-changed", "{report:#}");
    assert_eq!(report["findings"][1]["call"], 1);
    assert_eq!(report["cache"]["stored"], 1);
}

#[test]
fn a_saved_plan_stops_before_a_call_with_other_arguments() {
    // Text has no schema, so nothing shows in the rehearsal that the answer decides: an override has fixed it.
    let fixture = project().file(
        "plan.ts",
        "const text = await mcp.files.read_file({ path: '/target' });
await Promise.all([mcp.files.read_file({ path: '/a' }), mcp.files.delete_file({ path: text })]);",
    );
    let line = "rehearse exec plan.ts && rehearse dry-run plan.ts --offline --out saved.json";
    assert!(fixture.shell(line).status().unwrap().success());
    std::fs::remove_file(fixture.path().join("trace.jsonl")).unwrap();
    put(&fixture, "files.mock.yaml", &FILES.replace("# Report in", "# Another report in"));
    let (status, report) = json_of(&fixture, "rehearse exec saved.json --json");
    assert_eq!((status, &report["status"]), (1, &"deviated".into()), "{report:#}");
    let reason = "files:delete_file was rehearsed with other arguments: $.path: was \"# Report in /target\", is \"# Another report in /target\"";
    assert_eq!(report["stopped_before"]["reason"], reason);
    // The call before it in the same moment was made, and its result is there.
    assert_eq!(traced(&fixture), ["read_file", "read_file"]);
    assert_eq!(report["calls"][1]["value"], "# Another report in /a");
    assert_eq!(report["findings"][1]["code"], "answer-changed");
}

#[test]
fn a_saved_plan_reports_changed_schemas_and_stops_before_more_calls_than_rehearsed() {
    let plan = "const { files } = await mcp.files.list_folder({ path: '/reports' });
for (const file of files) await mcp.files.read_file({ path: file.path });";
    // The rehearsal has no recording, so the number of calls is known after the run.
    let changed = FILES.replace("size: { type: integer, minimum: 0 }", "size: { type: number }");
    let (_, status, report) = contract(plan, FILES, &changed);
    assert_eq!((status, &report["status"]), (0, &"completed".into()), "{report:#}");
    let codes: Vec<&Value> = report["findings"].as_array().unwrap().iter().map(|found| &found["code"]).collect();
    assert!(codes.iter().all(|code| *code == "schema-changed") && !codes.is_empty(), "{report:#}");
    // With recorded answers, the rehearsal has shown each call.
    let fixture = project().file("plan.ts", plan);
    let line = "rehearse exec plan.ts && rehearse dry-run plan.ts --offline --out saved.json";
    assert!(fixture.shell(line).status().unwrap().success());
    let entry = "            - { path: /reports/january.md, size: 1200 }\n";
    put(&fixture, "files.mock.yaml", &changed.replace(entry, &entry.repeat(2)));
    let (status, report) = json_of(&fixture, "rehearse exec saved.json --json");
    assert_eq!((status, &report["status"]), (1, &"deviated".into()), "{report:#}");
    let codes: Vec<&str> =
        report["findings"].as_array().unwrap().iter().map(|found| found["code"].as_str().unwrap()).collect();
    assert_eq!(codes[0], "call-changed");
    assert!(codes.contains(&"schema-changed") && codes.contains(&"answer-changed"), "{report:#}");
}

#[test]
fn a_saved_workflow_stops_before_a_task_that_its_rehearsal_skipped() {
    let tasks = "tasks:
  - { id: list, tool: files:list_folder, arguments: { path: /reports } }
  - id: delete
    tool: files:delete_file
    arguments: { path: { $from: list, path: '$.files[0].path' } }
    when: { $from: list, path: '$.files[0].size', is: { lt: 100 } }
";
    let fixture = project().file("tasks.yaml", tasks);
    let line = "rehearse exec tasks.yaml && rehearse dry-run tasks.yaml --offline --out saved.json";
    assert!(fixture.shell(line).status().unwrap().success());
    put(&fixture, "files.mock.yaml", &FILES.replace("size: 1200", "size: 12"));
    let (status, report) = json_of(&fixture, "rehearse exec saved.json --json");
    assert_eq!((status, &report["status"]), (1, &"deviated".into()), "{report:#}");
    let stopped = &report["stopped_before"];
    assert_eq!((&stopped["task"], &stopped["place"]["line"]), (&"delete".into(), &4.into()), "{report:#}");
    let reason = "files:delete_file was not rehearsed; in the rehearsal, task delete: its `when` does not hold";
    assert_eq!(stopped["reason"], reason);
    assert_eq!(report["not_run"], json!([]));
    assert!(!traced(&fixture).contains(&"delete_file".to_owned()));
}

#[test]
fn a_saved_plan_whose_text_was_edited_is_not_run() {
    let fixture = project();
    let line = "rehearse dry-run cleanup.ts --out saved.json >/dev/null 2>&1 && sed -i s/small/little/g saved.json";
    assert!(fixture.shell(line).status().unwrap().success());
    rehearse!(fixture, "rehearse exec saved.json", @"
    exit: 2
    ----- stderr -----
    running saved.json on live servers of .mcp.json: files
    error: cleanup.ts: the text of the plan was edited after the plan was saved
    hint: save a new rehearsal: rehearse dry-run FILE --out FILE
    ");
}

/// Waits until a file has a text, which a process is about to write.
fn wait_for(path: &Path, text: &str) {
    let has = || std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !has() {
        assert!(std::time::Instant::now() < end, "no {text} in {}", path.display());
        std::thread::yield_now();
    }
}

/// A plan whose second call takes a minute, and a server that leaves a pipe open until it ends.
fn slow_project() -> Fixture {
    let config = r#"{ "mcpServers": {
        "files": { "command": "rehearse", "args": ["mock", "files.mock.yaml"] },
        "slow": { "command": "sh", "args": ["-c", "echo started >&3; exec tiny-server"] } } }"#;
    project().file(".mcp.json", config).file(
        "plan.ts",
        "await mcp.files.read_file({ path: '/a' });\nawait mcp.slow.slow({ steps: 60, delay_ms: 60000 });",
    )
}

/// Runs a plan until its slow call is sent, and sends a signal. Returns the status and stdout. The pipe `alive` is at its end
/// only if no process of the run is left.
fn interrupt(fixture: &Fixture, signal: Signal) -> (Option<i32>, String) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let writer = std::process::Stdio::from(writer);
    let mut command = fixture.shell("exec 3>&2; exec rehearse exec plan.ts --json 2>notes");
    let mut child = command.stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    drop(command);
    let mut started = String::new();
    BufReader::new(&mut reader).read_line(&mut started).unwrap();
    assert_eq!(started, "started\n");
    let journal = || {
        let entries = std::fs::read_dir(fixture.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut journals = entries.filter(|path| path.extension().is_some_and(|extension| extension == "journal"));
        journals.find(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("delay_ms\":60000")))
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while journal().is_none() {
        assert!(std::time::Instant::now() < end, "the slow call was not sent");
        std::thread::yield_now();
    }
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let status = child.wait().unwrap();
    // Ends when the last process has closed the pipe.
    reader.read_to_end(&mut Vec::new()).unwrap();
    (status.code(), stdout)
}

#[test]
fn a_signal_cancels_the_run_and_the_report_has_what_was_done() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let fixture = slow_project();
        let (status, stdout) = interrupt(&fixture, signal);
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((status, &report["status"]), (Some(code), &"cancelled".into()), "{report:#}");
        let outcomes: Vec<&Value> = report["calls"].as_array().unwrap().iter().map(|call| &call["outcome"]).collect();
        assert_eq!(outcomes, ["value", "cancelled"], "{report:#}");
        let mut calls = traced(&fixture);
        calls.sort();
        assert_eq!(calls, ["read_file", "slow"]);
    }
}

#[test]
fn a_killed_run_loses_no_result_and_leaves_no_process() {
    let fixture = slow_project();
    let (status, stdout) = interrupt(&fixture, Signal::SIGKILL);
    assert_eq!((status, stdout.as_str()), (None, ""));
    rehearse!(fixture, "rehearse cache list | grep -c read_file", @"
    exit: 0
    ----- stdout -----
    1
    ");
    // The next run restores the trace from the journals.
    put(&fixture, "plan.ts", "await mcp.files.read_file({ path: '/b' });");
    let (status, _) = json_of(&fixture, "rehearse exec plan.ts --json");
    assert_eq!(status, 0);
    let mut calls = traced(&fixture);
    calls.sort();
    assert_eq!(calls, ["read_file", "read_file", "slow"]);
    wait_for(&fixture.path().join("trace.jsonl"), "delay_ms");
}

#[test]
fn eight_runs_at_once_fill_one_cache() {
    let fixture = project();
    let line = "for i in 1 2 3 4 5 6 7 8; do
          echo \"await mcp.files.read_file({ path: '/$i' }); await mcp.files.list_folder({ path: '/$i' });\" > plan$i.ts
          rehearse exec plan$i.ts -o trace$i.jsonl >report$i 2>&1 &
        done; wait; rehearse cache list | grep -c -E 'read_file|list_folder'";
    let output = fixture.shell(line).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "16\n");
}
