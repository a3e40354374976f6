//! `rehearse dry-run --out`, and a saved plan opened again

use std::os::unix::fs::PermissionsExt;

use rehearsal::matcher::Schema;
use serde_json::Value;

use crate::fixture::{Fixture, rehearse};

const FILES: &str = include_str!("../../../../examples/plans/files.mock.yaml");
const CLEANUP: &str = include_str!("../../../../examples/plans/cleanup.ts");
const SAMPLE: &str = include_str!("../../../../fixtures/saved-plans/format_1.plan.json");
const CONFIG: &str = r#"{ "mcpServers": { "files": { "command": "rehearse", "args": ["mock", "files.mock.yaml"] } } }"#;

fn project() -> Fixture {
    Fixture::new()
        .file(".mcp.json", CONFIG)
        .file("files.mock.yaml", FILES)
        .file("cleanup.ts", CLEANUP)
        .file("sample.plan.json", SAMPLE)
}

#[test]
fn a_saved_plan_is_opened_saved_again_and_private() {
    let fixture = project();
    rehearse!(
        fixture,
        "rehearse dry-run cleanup.ts --out saved.plan.json --seed 7 >report 2>notes; echo $?; grep -v listing notes
         rm cleanup.ts
         rehearse dry-run saved.plan.json --out saved.plan.json >again 2>notes; echo $?; sed s/202.*Z/TIME/ notes; cmp report again
         rehearse dry-run saved.plan.json --json 2>notes | grep -E '\"(plan|intent)\"'",
        @r#"
    exit: 0
    ----- stdout -----
    0
    saved saved.plan.json
    0
    saved.plan.json: cleanup.ts, saved at TIME; nothing that it relied on has changed
    saved saved.plan.json
      "plan": "cleanup.ts",
      "intent": null,
    "#
    );
    let path = fixture.path().join("saved.plan.json");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&saved["seed"], &saved["text"]), (&7.into(), &CLEANUP.into()));
    let schema: Value = serde_json::from_str(include_str!("../../../../schemas/saved-plan.schema.json")).unwrap();
    let schema = Schema::compile(&schema).unwrap();
    assert_eq!(schema.objections(&saved), [""; 0]);
    assert_eq!(schema.objections(&serde_json::from_str(SAMPLE).unwrap()), [""; 0]);
}

#[test]
fn a_saved_plan_names_each_change_of_a_schema() {
    let changed = FILES
        .replace("  - name: delete_file", "  - name: remove_file")
        .replace("size: { type: integer, minimum: 0 }", "size: { type: [integer, \"null\"] }")
        .replace("required: [path, size]", "required: [size]");
    let fixture = project().file("files.mock.yaml", &changed);
    rehearse!(fixture, "rehearse dry-run sample.plan.json --max-runs 24 2>notes | grep -A 1 -E '^(error|warning): '", @r#"
    exit: 0
    ----- stdout -----
    error: call 2: no tool files:delete_file
     --> cleanup.ts:6:9
    --
    warning: files:delete_file existed when the plan was saved; files has no such tool
    --> cleanup.ts:6:9
    warning: files:list_folder: output schema: $.properties.files.items.properties.size.type: was "integer", is ["integer","null"]
    --> cleanup.ts:2:25
    warning: files:list_folder: output schema: $.properties.files.items.properties.size.minimum: removed 0
    --> cleanup.ts:2:25
    warning: files:list_folder: output schema: $.properties.files.items.required: removed "path"
    --> cleanup.ts:2:25
    "#);
}

#[test]
fn a_file_that_cannot_be_opened_or_replaced_has_a_hint() {
    let fixture = project()
        .file("newer.json", r#"{ "format": "rehearsal-plan/2", "steps": [] }"#)
        .file("damaged.json", &SAMPLE[..60])
        .file("wrong.ts", "await mcp.files.delete_file({});")
        .file("tasks.json", r#"{ "tasks": [] }"#);
    rehearse!(
        fixture,
        "rehearse dry-run newer.json
         rehearse dry-run damaged.json
         rehearse dry-run sample.plan.json --seed 1
         rehearse dry-run cleanup.ts --out cleanup.ts
         rehearse dry-run cleanup.ts --out -
         rehearse dry-run cleanup.ts --out missing/saved.plan.json; echo status $?
         rehearse dry-run wrong.ts --out wrong.plan.json >/dev/null; echo status $?
         rehearse dry-run tasks.json | head -1
         ls wrong.plan.json",
        @r"
    exit: 2
    ----- stdout -----
    status 2
    status 1
    tasks.json  dry run: no call reached a server
    ----- stderr -----
    error: newer.json: cannot read format rehearsal-plan/2; this version reads up to rehearsal-plan/1
    hint: update rehearse, or save the plan again with --out
    error: damaged.json:3:26: the saved plan is damaged: EOF while parsing a string
    hint: save the plan again with --out
    error: --seed: a saved plan has its own seed
    hint: leave --seed out
    error: cleanup.ts exists and is not a saved plan
    hint: name another file, or remove this one
    error: --out -: the report is on stdout
    hint: name a file: --out plan.json
    error: cannot write missing/saved.plan.json: No such file or directory (os error 2)
    wrong.plan.json is not written: the dry run of wrong.ts found 1 error
    ls: cannot access 'wrong.plan.json': No such file or directory
    "
    );
}
