//! Plans that a test saves, and opens after something has changed.

use std::sync::Arc;
use std::time::Duration;

use rehearsal::cache::{Cache, CacheEntry};
use rehearsal::dry_run::{
    Catalogue, DeclaredEffect, DryRunOptions, DryRunReport, FindingCode, Plan, RunBudget, SavedPlan, SavedPlanError,
    ServerTools,
};
use rehearsal::message::{RawJson, Reply};
use serde_json::{Value, json};

const PLAN: &str = "const { size } = await mcp.fs.stat({ path: '/a' });
if (size > 0) await mcp.fs.write({ path: '/b', size });";

fn stat() -> Value {
    json!({
        "name": "stat",
        "inputSchema": { "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] },
        "outputSchema": { "type": "object", "properties": { "size": { "type": "integer" } }, "required": ["size"] },
        "annotations": { "readOnlyHint": true },
    })
}

fn write() -> Value {
    json!({
        "name": "write",
        "inputSchema": { "type": "object", "properties": { "path": { "type": "string" }, "size": { "type": "integer" } } },
        "annotations": { "destructiveHint": false },
    })
}

/// A tool that the plan does not call.
fn list() -> Value {
    json!({ "name": "list", "inputSchema": { "type": "object" } })
}

fn options(tools: Vec<Value>) -> DryRunOptions {
    DryRunOptions::new(Catalogue::default().with_tools("fs", tools)).budget(budget())
}

fn budget() -> RunBudget {
    RunBudget { time: Duration::from_secs(60), ..RunBudget::default() }
}

/// A cache with a size for `/a`.
fn recorded(size: u64) -> Arc<Cache> {
    let cache = Cache::in_memory().unwrap();
    let entry = CacheEntry {
        server: "fs".to_owned(),
        tool: "stat".to_owned(),
        arguments: json!({ "path": "/a" }),
        reply: Reply::Result(RawJson::from_value(&json!({ "content": [], "structuredContent": { "size": size } }))),
        run: "run".to_owned(),
        sequence: 1,
        at_ms: 1_700_000_000_000,
        latency_ms: None,
    };
    cache.put(&[entry]).unwrap();
    Arc::new(cache)
}

async fn saved(plan: &str, options: &DryRunOptions) -> SavedPlan {
    let plan = Plan::code("plan.ts", plan);
    let report = rehearsal::dry_run(&plan, options).await.unwrap();
    SavedPlan::from_report(&plan, options, &report).unwrap()
}

/// The severity, code and message of each finding about a change.
fn changes(report: &DryRunReport) -> Vec<String> {
    let is_change = |code| {
        use FindingCode::{AnswerChanged, CallChanged, EffectChanged, PlanEdited, SchemaChanged, ToolRemoved};
        matches!(code, AnswerChanged | CallChanged | EffectChanged | PlanEdited | SchemaChanged | ToolRemoved)
    };
    let found = report.findings.iter().filter(|finding| is_change(finding.code));
    found.map(|finding| format!("{} {:?} {}", finding.severity, finding.code, finding.message)).collect()
}

#[tokio::test]
async fn a_saved_plan_has_what_the_rehearsal_relied_on() {
    let saved = saved(PLAN, &options(vec![stat(), write(), list()]).seed(7).intent("Copy the size")).await;
    assert_eq!((saved.seed, saved.intent.as_deref(), saved.plan.as_str()), (7, Some("Copy the size"), "plan.ts"));
    assert_eq!(saved.plan_hash, Plan::code("", PLAN).hash());
    assert_eq!(saved.tools.keys().collect::<Vec<_>>(), ["fs:stat", "fs:write"]);
    assert_eq!(saved.tools["fs:stat"].output_schema.as_ref(), stat().get("outputSchema"));
    let call = &saved.calls[1];
    assert_eq!((call.known_after_run[0].path.as_str(), call.known_after_run[0].from[0].call), ("$.size", 1));
    assert_eq!((call.occurrence, call.conditional_on.as_slice()), (1, &[0][..]));
    assert_eq!(saved.branches[0].text, "size > 0");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.plan.json");
    saved.write(&path).unwrap();
    let read = SavedPlan::read(&path).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&saved).unwrap());
    let report = read.dry_run(&options(vec![stat(), write()])).await.unwrap();
    assert_eq!((changes(&report), report.has_changes()), (vec![], false));
    assert_eq!(report.intent.as_deref(), Some("Copy the size"));
}

#[tokio::test]
async fn a_saved_plan_opened_later_reports_each_change() {
    let saved = saved(PLAN, &options(vec![stat(), write()]).cache(recorded(80))).await;
    let changed = |tool: Value, pointer: &str, value: Value| {
        let mut tool = tool;
        *tool.pointer_mut(pointer).unwrap() = value;
        tool
    };
    let with_mode = changed(write(), "/inputSchema/properties", json!({ "path": {}, "size": {}, "mode": {} }));
    let as_text = changed(stat(), "/outputSchema/properties/size", json!({ "type": ["integer", "string"] }));
    let destructive = changed(write(), "/annotations", json!({ "destructiveHint": true }));
    let unavailable = ServerTools::Unavailable { reason: "it is down".to_owned() };
    let mut down = Catalogue::default();
    down.insert("fs", unavailable);
    for (behaviour, options, expected) in [
        ("other tools do not count", options(vec![stat(), write(), list()]).cache(recorded(80)), vec![]),
        (
            "an input schema",
            options(vec![stat(), with_mode]).cache(recorded(80)),
            vec![
                "warning SchemaChanged fs:write: input schema: $.properties.path.type: removed \"string\"",
                "warning SchemaChanged fs:write: input schema: $.properties.size.type: removed \"integer\"",
                "warning SchemaChanged fs:write: input schema: $.properties.mode: added {}",
            ],
        ),
        (
            "an output schema",
            options(vec![as_text, write()]).cache(recorded(80)),
            vec![
                "warning SchemaChanged fs:stat: output schema: $.properties.size.type: was \"integer\", is [\"integer\",\"string\"]",
            ],
        ),
        (
            "annotations",
            options(vec![stat(), destructive]).cache(recorded(80)),
            vec![
                "warning EffectChanged fs:write: annotations: $.destructiveHint: was false, is true",
                "warning EffectChanged fs:write: its effect was write, is destructive",
            ],
        ),
        (
            "a declared effect",
            options(vec![stat(), write()]).cache(recorded(80)).effect("fs:write", DeclaredEffect::Read),
            vec!["warning EffectChanged fs:write: its effect was write, is read"],
        ),
        (
            "a tool",
            options(vec![stat()]).cache(recorded(80)),
            vec!["warning ToolRemoved fs:write existed when the plan was saved; fs has no such tool"],
        ),
        (
            "a server that cannot be reached",
            DryRunOptions::new(down).cache(recorded(80)).budget(budget()),
            vec![
                "warning CallChanged fs:write: arguments: $.size was known when the plan was saved, is known after run",
            ],
        ),
        (
            "a recorded answer",
            options(vec![stat(), write()]).cache(recorded(90)),
            vec![
                "warning AnswerChanged fs:stat: its answer, recorded at 2023-11-14T22:13:20Z, is another one: $.size: was 80, is 90",
                "warning CallChanged fs:write: arguments: $.size: was 80, is 90",
            ],
        ),
        (
            "a decision",
            options(vec![stat(), write()]).cache(recorded(0)),
            vec![
                "warning AnswerChanged fs:stat: its answer, recorded at 2023-11-14T22:13:20Z, is another one: $.size: was 80, is 0",
                "warning CallChanged fs:write is not called; it was called once when the plan was saved",
            ],
        ),
    ] {
        let report = saved.dry_run(&options).await.unwrap();
        assert_eq!(changes(&report), expected, "{behaviour}: {:#?}", report.findings);
        assert_eq!(report.has_changes(), !expected.is_empty(), "{behaviour}");
    }
    // The size is not recorded any more: it is another one, and what depends on it is not known.
    let report = saved.dry_run(&options(vec![stat(), write()])).await.unwrap();
    assert_eq!(
        changes(&report),
        [
            "warning AnswerChanged fs:stat: its answer was recorded at 2023-11-14T22:13:20Z, is an example of the schema",
            "warning CallChanged fs:write: arguments: $.size was known when the plan was saved, is known after run",
        ]
    );
}

#[tokio::test]
async fn arguments_known_after_run_may_become_known() {
    let saved = saved(PLAN, &options(vec![stat(), write()])).await;
    let report = saved.dry_run(&options(vec![stat(), write()]).cache(recorded(80))).await.unwrap();
    let expected =
        "note AnswerChanged fs:stat: its answer was an example of the schema, is recorded at 2023-11-14T22:13:20Z";
    assert_eq!(changes(&report), [expected]);
    // The condition, which was true with an invented size, may be false.
    let report = saved.dry_run(&options(vec![stat(), write()]).cache(recorded(0))).await.unwrap();
    let expected = [expected, "note CallChanged fs:write is not called; it was called once when the plan was saved"];
    assert_eq!(changes(&report), expected);
}

#[tokio::test]
async fn an_edited_text_is_reported_with_the_calls_that_it_changes() {
    let mut saved = saved(PLAN, &options(vec![stat(), write()]).cache(recorded(80))).await;
    saved.text = format!("\n{}", PLAN.replace("'/b', size", "'/c', size"));
    let report = saved.dry_run(&options(vec![stat(), write()]).cache(recorded(80))).await.unwrap();
    assert_eq!(
        changes(&report),
        [
            "warning PlanEdited the text of the plan was edited after the plan was saved: its digest is not `plan_hash`",
            "warning CallChanged fs:write: arguments: $.path: was \"/b\", is \"/c\"",
        ]
    );
    // The saved plan has one write, and only if there is a size.
    saved.text = PLAN.replace("if (size > 0)", "await mcp.fs.write({});");
    let report = saved.dry_run(&options(vec![stat(), write()])).await.unwrap();
    let more = "warning CallChanged fs:write is called 2 times; it was called once when the plan was saved";
    assert!(changes(&report).iter().any(|change| change == more), "{:#?}", changes(&report));

    saved.text = "await".to_owned();
    let report = saved.dry_run(&options(vec![stat(), write()])).await.unwrap();
    assert_eq!((changes(&report).len(), report.validation.syntax_valid), (1, false));
}

#[tokio::test]
async fn only_a_clean_report_of_the_same_plan_is_saved_and_no_other_file_is_overwritten() {
    let options = options(vec![stat(), write()]);
    let (plan, wrong) = (Plan::code("plan.ts", PLAN), Plan::code("plan.ts", "await mcp.fs.stat({ path: 1 });"));
    let report = rehearsal::dry_run(&wrong, &options).await.unwrap();
    let error = SavedPlan::from_report(&wrong, &options, &report).unwrap_err();
    assert_eq!(error.to_string(), "the dry run of plan.ts found 1 error");
    let error = SavedPlan::from_report(&plan, &options, &report).unwrap_err();
    assert!(matches!(error, SavedPlanError::OtherPlan { .. }), "{error}");

    let saved = saved(PLAN, &options).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    std::fs::write(&path, "{\"tasks\": []}").unwrap();
    assert!(matches!(saved.write(&path), Err(SavedPlanError::Exists { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"tasks\": []}");
    assert!(matches!(saved.write(folder.path()), Err(SavedPlanError::Unwritable { .. })));
    for _ in 0..2 {
        saved.write(folder.path().join("new.json")).unwrap();
    }
}
