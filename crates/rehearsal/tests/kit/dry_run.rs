//! `rehearsal::dry_run` in a test of an agent.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rehearsal::cache::{Cache, CacheEntry};
use rehearsal::dry_run::{
    AnswerOrigin, Catalogue, DeclaredEffect, DryRunOptions, DryRunReport, Effect, FindingCode, Plan, PlanLimits,
    PlanReadError, RunBudget, ServerTools, json_schema,
};
use rehearsal::message::{RawJson, Reply};
use rehearsal::mock::{MockFiles, Unanswered};
use serde_json::{Value, json};

fn tools() -> Vec<Value> {
    let number = json!({ "type": "number" });
    vec![
        json!({
            "name": "add",
            "inputSchema": { "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"] },
            "outputSchema": { "type": "object", "properties": { "sum": number }, "required": ["sum"] },
            "annotations": { "readOnlyHint": true },
        }),
        json!({ "name": "reset", "annotations": { "destructiveHint": true } }),
    ]
}

fn options() -> DryRunOptions {
    let budget = RunBudget { time: Duration::from_secs(60), ..RunBudget::default() };
    DryRunOptions::new(Catalogue::default().with_tools("math", tools())).budget(budget)
}

async fn dry_run(plan: &str, options: &DryRunOptions) -> DryRunReport {
    rehearsal::dry_run(&Plan::code("plan.ts", plan), options).await.unwrap()
}

fn result(sequence: u64, sum: i64) -> CacheEntry {
    CacheEntry {
        server: "math".to_owned(),
        tool: "add".to_owned(),
        arguments: json!({ "a": 1, "b": 1 }),
        reply: Reply::Result(RawJson::from_value(&json!({ "content": [], "structuredContent": { "sum": sum } }))),
        run: "run".to_owned(),
        sequence,
        at_ms: 1_700_000_000_000,
        latency_ms: Some(10.0 * sequence as f64),
    }
}

#[tokio::test]
async fn a_plan_is_checked_against_the_tools_of_a_test() {
    let report = dry_run("(await mcp.math.add({ a: 1, b: 2 })).sum", &options()).await;
    assert!(report.is_clean() && !report.has_side_effects() && report.reversible);
    assert!(report.validation.type_errors.is_empty() && report.validation.missing_tools.is_empty());
    assert_eq!(report.tools_called[0].answer.source, AnswerOrigin::SchemaMock);

    let report = dry_run("await mcp.math.add({ a: '1' });\nawait mcp.math.sub({});", &options()).await;
    let errors = report.validation.type_errors.iter().map(|error| (error.arg.as_str(), error.got.as_str()));
    assert_eq!(errors.collect::<Vec<_>>(), [("b", "missing"), ("a", "string")]);
    assert_eq!(report.validation.missing_tools, ["math:sub"]);
    assert_eq!((report.stops_at, report.is_clean()), (Some(1), false));
}

#[tokio::test]
async fn recorded_results_are_answered_in_their_order_with_their_latency() {
    let cache = Cache::in_memory().unwrap();
    cache.put(&[result(1, 10), result(2, 20), result(3, 30)]).unwrap();
    let options = options().cache(Arc::new(cache));
    let plan = "const sums = [];
for (let i = 0; i < 4; i++) sums.push((await mcp.math.add({ b: 1.0, a: 1 })).sum);
return sums";
    let report = dry_run(plan, &options).await;
    assert_eq!(report.simulated_result, json!([10, 20, 30, 30]));
    assert_eq!((report.validation.cache_hits, report.validation.cache_misses), (4, 0));
    assert!((report.confidence - 1.0).abs() < f64::EPSILON, "{:?}", report.confidence_reasons);
    let repeated = report.findings.iter().find(|finding| finding.code == FindingCode::Answer).unwrap();
    assert_eq!(repeated.call, Some(4));
    // Four calls, each with the median of the three latencies, and with the 95th percentile.
    let duration = &report.estimated_duration_ms;
    assert_eq!((duration.p50, duration.p95, duration.known), (80.0, 120.0, 4));
    // The base run, for the estimate with the 95th percentile, and with another clock.
    assert_eq!(report.runs.count, 3);
}

#[tokio::test]
async fn stale_results_and_those_of_another_principal_are_not_answered() {
    let now_ms = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let hour = Duration::from_secs(3600);
    let old = CacheEntry { at_ms: now_ms - 2 * 3_600_000, ..result(1, 70) };
    let recorded = |principal: &str| {
        let cache = Cache::in_memory().unwrap().for_principal("ann");
        cache.save_catalogue("math", &tools(), 1).unwrap();
        cache.put(std::slice::from_ref(&old)).unwrap();
        cache.for_principal(principal)
    };
    let plan = "(await mcp.math.add({ a: 1, b: 1 })).sum";
    let report = dry_run(plan, &options().cache(Arc::new(recorded("ann")))).await;
    assert_eq!((report.simulated_result, report.validation.cache_hits), (json!(70), 1));

    let expiring = |cache: Cache| options().cache(Arc::new(cache)).time_to_live("math:add", hour);
    let report = dry_run(plan, &expiring(recorded("ann"))).await;
    assert_ne!(report.simulated_result, json!(70));
    assert_eq!((report.findings[0].code, report.findings[0].call), (FindingCode::StaleAnswer, Some(1)));
    let report = dry_run(plan, &expiring(recorded("ann").as_of(now_ms - 90 * 60_000))).await;
    assert_eq!(report.simulated_result, json!(70));

    let mut changed = tools();
    changed[0]["outputSchema"]["required"] = json!([]);
    let catalogue = Catalogue::default().with_tools("math", changed);
    let report = dry_run(plan, &DryRunOptions::new(catalogue).cache(Arc::new(recorded("ann")))).await;
    assert_ne!(report.simulated_result, json!(70));
    assert_eq!(report.findings[0].code, FindingCode::StaleAnswer);
    assert!(report.findings[0].message.contains("schema has changed"), "{}", report.findings[0].message);

    let report = dry_run(plan, &options().cache(Arc::new(recorded("bob")))).await;
    assert_ne!(report.simulated_result, json!(70));
    assert_eq!(report.estimated_duration_ms.known, 0);
    assert!(report.findings.iter().all(|finding| finding.code != FindingCode::StaleAnswer), "{:?}", report.findings);
}

#[tokio::test]
async fn the_number_of_runs_depends_on_what_is_invented() {
    let cache = Cache::in_memory().unwrap();
    cache.put(&[result(1, 2)]).unwrap();
    let options = options().cache(Arc::new(cache));
    // The base run, and one with another clock and seed.
    assert_eq!(dry_run("await mcp.math.add({ a: 1, b: 1 })", &options).await.runs.count, 2);
    let report = dry_run("(await mcp.math.reset()).left.length", &options).await;
    assert_eq!(report.tools_called[0].answer.source, AnswerOrigin::Placeholder);
    assert_eq!((report.runs.budget_hit, report.result.depends_on), (false, vec![1]));

    let budget = RunBudget { runs: 3, time: Duration::from_secs(60) };
    let report = dry_run("(await mcp.math.reset()).left.length", &options.budget(budget)).await;
    assert_eq!((report.runs.count, report.runs.budget_hit), (4, true));
    assert!(report.findings.iter().any(|finding| finding.code == FindingCode::Budget), "{:?}", report.findings);
}

#[tokio::test]
async fn a_plan_with_decisions_that_are_not_recorded_has_a_warning() {
    let plan = format!("let n = 0;\n{}return n;", "if (n > 5) n++;\n".repeat(2001));
    let report = dry_run(&plan, &options()).await;
    assert_eq!(report.findings.iter().map(|finding| finding.code).collect::<Vec<_>>(), [FindingCode::Budget]);
}

#[tokio::test]
async fn overrides_effects_and_limits_are_options() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("math.mock.yaml");
    std::fs::write(&path, "tools: [{ name: add, answers: [{ structured_content: { sum: 42 } }] }]").unwrap();
    let mock = MockFiles { unanswered: Unanswered::Forward, ..MockFiles::new([path]) };
    let options = options().override_with("math", &mock).unwrap();
    let options = options.effect("math:reset", DeclaredEffect::Reversible).intent("Count");
    let report = dry_run("await mcp.math.reset();\nreturn await mcp.math.add({ a: 1, b: 1 })", &options).await;
    assert_eq!((report.simulated_result, report.validation.overrides), (json!({ "sum": 42 }), 1));
    assert_eq!((report.side_effects[0].effect, report.reversible), (Effect::Write, true));
    assert_eq!(report.intent.as_deref(), Some("Count"));

    let limits = PlanLimits { calls: 3, cpu_ms: 5_000, ..PlanLimits::default() };
    let report = dry_run("for (;;) await mcp.math.add({ a: 1, b: 1 });", &options.limits(limits)).await;
    assert_eq!(report.result.error.as_deref(), Some("the plan made more than 3 calls"));
    assert_eq!(report.findings[0].code, FindingCode::Limit);
}

#[tokio::test]
async fn a_server_without_known_tools_is_a_finding() {
    let mut catalogue = Catalogue::default().with_tools("math", tools());
    catalogue.insert("web", ServerTools::Unavailable { reason: "connection refused".to_owned() });
    let options = DryRunOptions::new(catalogue);
    assert!(dry_run("await mcp.math.add({ a: 1, b: 1 })", &options).await.is_clean());
    let report = dry_run("await mcp.web.fetch({})", &options).await;
    assert_eq!(report.findings[0].code, FindingCode::UnknownCatalogue);
    assert!(report.findings[0].message.ends_with("connection refused"), "{}", report.findings[0].message);
}

#[tokio::test]
async fn dry_runs_at_the_same_time_do_not_disturb_each_other() {
    let options = options();
    let runs = (0..16).map(|number| {
        let options = options.clone();
        tokio::spawn(async move {
            let plan = format!("const n = {number};\nawait mcp.math.add({{ a: n, b: 1 }});\nreturn n");
            (number, dry_run(&plan, &options).await)
        })
    });
    for run in runs.collect::<Vec<_>>() {
        let (number, report) = tokio::time::timeout(Duration::from_secs(60), run).await.unwrap().unwrap();
        assert_eq!(report.simulated_result, json!(number));
        assert_eq!(report.tools_called[0].arguments, json!({ "a": number, "b": 1 }));
    }
}

#[tokio::test]
async fn every_report_is_valid_against_its_schema() {
    let schema = rehearsal::core::matcher::Schema::compile(&json_schema()).unwrap();
    let workflow =
        "tasks: [{ id: a, tool: 'math:add', arguments: { a: 1, b: '${b.sum}' } }, { id: b, tool: 'math:reset' }]";
    for plan in [
        Plan::code("plan.ts", "await mcp.math.add({ a: 1, b: 1 })"),
        Plan::code("plan.ts", "mcp.math.add({ a: NaN }); await mcp.math.reset(); throw 1"),
        Plan::code("plan.ts", "let a; let a;"),
        Plan::code("plan.ts", "if (Math.random() > 2) mcp.other.tool();"),
        Plan::workflow("plan.yaml", workflow),
        Plan::workflow("plan.yaml", "tasks: []"),
    ] {
        let report = serde_json::to_value(rehearsal::dry_run(&plan, &options()).await.unwrap()).unwrap();
        assert_eq!(schema.objections(&report), [] as [&str; 0], "{plan:?}: {report:#}");
    }
}

#[test]
fn a_file_is_a_plan_if_its_extension_names_a_language() {
    let folder = tempfile::tempdir().unwrap();
    for (name, is_plan) in
        [("a.ts", true), ("a.mjs", true), ("a.yaml", true), ("a.json", true), ("a.py", false), ("a", false)]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        match Plan::read(&path) {
            Ok(plan) => assert!(is_plan && plan.file() == path.display().to_string()),
            Err(error) => assert!(!is_plan && matches!(error, PlanReadError::UnknownLanguage { .. }), "{error}"),
        }
    }
    assert!(matches!(Plan::read(folder.path().join("none.ts")), Err(PlanReadError::Unreadable { .. })));
}
