//! The plans of `traced_plans.txt`: what a report states about invented values. That file explains the format.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rehearsal::cache::{Cache, CacheEntry};
use rehearsal::dry_run::{
    BranchKind, Catalogue, DryRunOptions, DryRunReport, Effect, FindingCode, KnownAfterRun, OnlyIf, Plan, PlanPlace,
    ReportedBranch, ReportedCall, RunBudget, UnknownReason, UnreachedCall,
};
use rehearsal::message::{RawJson, Reply};
use serde_json::{Value, json};

/// The plans with the expected lines.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kit/traced_plans.txt");
/// The environment variable with which the test writes the expected lines.
const UPDATE: &str = "UPDATE_TRACED_PLANS";
/// The start of an expected line that is not compared.
const KNOWN_MISS: &str = "known miss:";

/// One plan of the file.
struct TracedPlan {
    title: String,
    recorded: Vec<CacheEntry>,
    /// The lines as they are in the file, without the expected ones.
    source: String,
    plan: String,
    expected: Vec<String>,
}

#[tokio::test]
async fn a_report_states_what_depends_on_invented_values() {
    let file = std::fs::read_to_string(FILE).unwrap();
    let (comment, plans) = parse(&file);
    let mut written = comment.to_owned();
    let mut failures = Vec::new();
    for plan in &plans {
        let report = report(plan).await;
        let actual = lines(&report);
        let (misses, expected): (Vec<String>, Vec<String>) =
            plan.expected.iter().cloned().partition(|line| line.starts_with(KNOWN_MISS));
        if actual != expected {
            failures.push(format!("== {}\n{}{}", plan.title, plan.source, line_difference(&expected, &actual)));
        }
        write!(written, "\n== {}\n{}--\n", plan.title, plan.source).unwrap();
        for line in actual.iter().chain(&misses) {
            writeln!(written, "{line}").unwrap();
        }
    }
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(FILE, written).unwrap();
        return;
    }
    let count = failures.len();
    assert!(count == 0, "{count} of {} plans differ (- expected, + reported)\n\n{}", plans.len(), failures.join("\n"));
}

#[test]
fn each_plan_that_deletes_states_what_that_depends_on() {
    let (_, plans) = parse(include_str!("traced_plans.txt"));
    assert!(plans.len() >= 40);
    let titles: BTreeSet<&str> = plans.iter().map(|plan| plan.title.as_str()).collect();
    assert_eq!(titles.len(), plans.len(), "a title is used twice");
    // Nothing in these plans decides about a delete, or all that decides is recorded.
    let certain = [
        "constants only, and the results are discarded",
        "a recorded error is caught",
        "recorded results only",
        "only the console shows an invented value",
    ];
    let is_note = |line: &String| {
        line.contains(" | ") || line.starts_with(|first: char| first.is_ascii_lowercase() && first != 'r')
    };
    for plan in &plans {
        let deletes = plan.plan.contains("delete_file") || plan.plan.contains("close_issue");
        let is_stated = plan.expected.iter().filter(|line| !line.starts_with(KNOWN_MISS)).any(is_note);
        assert_eq!(!deletes || is_stated, !certain.contains(&plan.title.as_str()), "{}", plan.title);
    }
}

/// Splits the file into the comment before the first plan, and the plans.
fn parse(file: &str) -> (&str, Vec<TracedPlan>) {
    let start = file.find("\n== ").expect("a plan");
    let (comment, plans) = file.split_at(start);
    let plans = plans.split("\n== ").filter(|text| !text.trim().is_empty()).map(|text| {
        let (title, rest) = text.split_once('\n').expect("a title");
        let end = rest.find("\n--\n").unwrap_or_else(|| panic!("{title}: no line `--`"));
        let (source, expected) = (&rest[..=end], &rest[end + "\n--\n".len()..]);
        let (recorded, plan): (Vec<&str>, Vec<&str>) = source.lines().partition(|line| line.starts_with("recorded: "));
        let recorded = recorded.iter().enumerate().map(|(index, line)| recorded_call(index, line));
        TracedPlan {
            title: title.to_owned(),
            recorded: recorded.collect(),
            source: source.to_owned(),
            plan: plan.join("\n"),
            expected: expected.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
        }
    });
    (comment, plans.collect())
}

/// Reads `recorded: hub:get_issue {"number":7} {"title":"x"}` or `recorded: hub:get_issue {"number":7} error "x"`.
fn recorded_call(index: usize, line: &str) -> CacheEntry {
    let rest = line.strip_prefix("recorded: ").unwrap_or(line);
    let (name, values) = rest.split_once(' ').expect("a tool");
    let (server, tool) = name.split_once(':').expect("a server");
    let mut values_read = serde_json::Deserializer::from_str(values).into_iter::<Value>();
    let arguments = values_read.next().expect("arguments").unwrap();
    let answer = values[values_read.byte_offset()..].trim();
    let result = match answer.strip_prefix("error ") {
        Some(text) => {
            let text: String = serde_json::from_str(text).unwrap();
            json!({ "content": [{ "type": "text", "text": text }], "isError": true })
        }
        None => json!({ "content": [], "structuredContent": serde_json::from_str::<Value>(answer).unwrap() }),
    };
    CacheEntry {
        server: server.to_owned(),
        tool: tool.to_owned(),
        arguments,
        reply: Reply::Result(RawJson::from_value(&result)),
        run: "run".to_owned(),
        sequence: index as u64 + 1,
        at_ms: 1_767_225_600_000,
        latency_ms: None,
    }
}

async fn report(plan: &TracedPlan) -> DryRunReport {
    let cache = Cache::in_memory().unwrap();
    cache.put(&plan.recorded).unwrap();
    let budget = RunBudget { runs: 200, time: Duration::from_secs(60) };
    let options = DryRunOptions::new(catalogue()).cache(Arc::new(cache)).budget(budget);
    rehearsal::dry_run(&Plan::code("plan.ts", plan.plan.as_str()), &options).await.unwrap()
}

/// The servers that the comment of the file describes.
fn catalogue() -> Catalogue {
    let (text, integer) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let object = |members: Value, optional: &[&str]| {
        let required: Vec<&String> =
            members.as_object().unwrap().keys().filter(|key| !optional.contains(&key.as_str())).collect();
        json!({ "type": "object", "required": required, "properties": members })
    };
    let list = |element: Value| json!({ "type": "array", "items": element });
    let tool = |name: &str, input: Value, effect: Effect, output: Option<Value>| {
        let annotations = match effect {
            Effect::Read => json!({ "readOnlyHint": true }),
            Effect::Write => json!({ "readOnlyHint": false, "destructiveHint": false }),
            Effect::Destructive => json!({ "readOnlyHint": false, "destructiveHint": true }),
            Effect::Unknown => json!({}),
        };
        let mut tool = json!({ "name": name, "inputSchema": input, "annotations": annotations });
        if let Some(output) = output {
            tool["outputSchema"] = output;
        }
        tool
    };
    let issue = object(
        json!({
            "title": text,
            "state": text,
            "body": text,
            "labels": list(object(json!({ "name": text }), &[])),
            "assignee": object(json!({ "login": text }), &[]),
            "comments": integer,
        }),
        &["assignee"],
    );
    let listed = object(json!({ "number": integer, "title": text, "state": text }), &[]);
    let file = object(json!({ "path": text, "size": integer, "is_directory": { "type": "boolean" } }), &[]);
    let now = object(json!({ "iso": { "type": "string", "format": "date-time" }, "unix": integer }), &[]);
    let number = object(json!({ "number": integer }), &[]);
    let path = object(json!({ "path": text }), &[]);
    let none = object(json!({}), &[]);
    let comment = object(json!({ "number": integer, "text": text }), &[]);
    let content = object(json!({ "path": text, "content": text }), &[]);
    let issues = object(json!({ "issues": list(listed) }), &[]);
    let files = object(json!({ "files": list(file) }), &[]);
    let hub = vec![
        tool("list_issues", none.clone(), Effect::Read, Some(issues)),
        tool("get_issue", number.clone(), Effect::Read, Some(issue)),
        tool("comment", comment, Effect::Write, None),
        tool("close_issue", number, Effect::Destructive, None),
    ];
    let fs = vec![
        tool("list_directory", path.clone(), Effect::Read, Some(files)),
        tool("read_file", path.clone(), Effect::Read, None),
        tool("write_file", content, Effect::Write, None),
        tool("delete_file", path, Effect::Destructive, None),
    ];
    let time = vec![tool("now", none, Effect::Read, Some(now))];
    Catalogue::default().with_tools("hub", hub).with_tools("fs", fs).with_tools("time", time)
}

/// The lines of a report, as the file has them.
fn lines(report: &DryRunReport) -> Vec<String> {
    let mut lines: Vec<String> = report.tools_called.iter().map(|call| call_line(report, call)).collect();
    let mut branches: Vec<&ReportedBranch> = report.branches.iter().collect();
    branches.sort_by_key(|branch| (position(&branch.place), std::cmp::Reverse(branch.text.len())));
    let of_kind = |kind: fn(BranchKind) -> bool| branches.iter().copied().filter(move |branch| kind(branch.kind));
    lines.extend(of_kind(|kind| matches!(kind, BranchKind::Condition | BranchKind::Switch)).map(branch_line));
    lines.extend(of_kind(|kind| matches!(kind, BranchKind::Loop)).map(|branch| {
        let calls =
            if branch.calls.is_empty() { "no calls".to_owned() } else { format!("calls {}", list(&branch.calls)) };
        format!("loop {} `{}` from {}: {calls}", place(&branch.place), branch.text, sources(&branch.from))
    }));
    lines.extend(
        of_kind(|kind| matches!(kind, BranchKind::Catch))
            .map(|branch| format!("catch {} from {}", place(&branch.place), sources(&branch.from))),
    );
    let mut unreached: Vec<(u8, (u32, u32), String)> =
        report.not_run.iter().map(|call| unreached_line(report, call)).collect();
    unreached.sort();
    lines.extend(unreached.into_iter().map(|(_, _, line)| line));
    let may_fail = report.findings.iter().filter(|finding| finding.code == FindingCode::MayFail);
    lines.extend(may_fail.map(|finding| {
        let at = finding.place.as_ref().map(place).unwrap_or_default();
        format!("may fail: {} ({at})", error_of(&finding.message))
    }));
    if !report.result.depends_on.is_empty() {
        lines.push(format!("result after run from {}", list(&report.result.depends_on)));
    }
    lines
}

fn call_line(report: &DryRunReport, call: &ReportedCall) -> String {
    let mut line = format!("{} {}", call.call, call.tool);
    for KnownAfterRun { path, from, reason } in &call.known_after_run {
        let source = match (reason, &from[..]) {
            (UnknownReason::Clock, _) => ": clock".to_owned(),
            (UnknownReason::Random, _) => ": random".to_owned(),
            (UnknownReason::Answer, [only]) => {
                let path = only.path.as_ref().map(|path| format!(" {path}")).unwrap_or_default();
                format!(" from {}{path}", only.call)
            }
            (UnknownReason::Answer, several) => {
                format!(" from {}", list(&several.iter().map(|source| source.call).collect::<Vec<_>>()))
            }
        };
        write!(line, " | {path} after run{source}").unwrap();
    }
    let conditions: BTreeSet<(u32, u32)> =
        call.conditional_on.iter().map(|index| position(&report.branches[*index].place)).collect();
    for (at, column) in conditions {
        write!(line, " | if {at}:{column}").unwrap();
    }
    if call.repeats {
        line.push_str(" | repeats");
    }
    line
}

fn branch_line(branch: &ReportedBranch) -> String {
    let taken = match (branch.kind, branch.taken) {
        (BranchKind::Switch, _) => "case",
        (_, Some(true)) => "true",
        (_, Some(false)) => "false",
        (_, None) => "both",
    };
    let mut line = format!("branch {} `{}` from {}, {taken}", place(&branch.place), branch.text, sources(&branch.from));
    if !branch.calls.is_empty() {
        write!(line, "; only here: {}", list(&branch.calls)).unwrap();
    }
    if !branch.other_calls.is_empty() {
        write!(line, "; the other side: {}", branch.other_calls.join(", ")).unwrap();
    }
    if branch.unrehearsed {
        line.push_str("; unrehearsed");
    }
    line
}

/// The line of a call that the base run did not make, with its position among the others.
fn unreached_line(report: &DryRunReport, call: &UnreachedCall) -> (u8, (u32, u32), String) {
    let (rank, reason) = match &call.only_if {
        Some(OnlyIf { branch, value }) => {
            let value = match value {
                Some(true) => "true",
                Some(false) => "false",
                None => "another case",
            };
            (0, format!("only if {} is {value}", place(&report.branches[*branch].place)))
        }
        None if call.with_other_values => (1, "only with other values".to_owned()),
        None => (2, "not reached".to_owned()),
    };
    let tool = call.tool.as_deref().unwrap_or("a computed tool");
    let effect = match call.effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Destructive => "destructive",
        Effect::Unknown => "unknown",
    };
    (rank, position(&call.place), format!("{reason}: {} {tool} {effect}", place(&call.place)))
}

/// The error in a message: from its class on, such as `TypeError: …`, to the end of the line.
fn error_of(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    let Some(colon) = line.find("Error: ") else { return line };
    let start =
        line[..colon].rfind(|character: char| !character.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
    &line[start..]
}

fn position(place: &PlanPlace) -> (u32, u32) {
    (place.line, place.column.unwrap_or_default())
}

fn place(place: &PlanPlace) -> String {
    match place.column {
        Some(column) => format!("{}:{column}", place.line),
        None => place.line.to_string(),
    }
}

fn sources(calls: &[usize]) -> String {
    if calls.is_empty() { "clock or random".to_owned() } else { list(calls) }
}

fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// The lines of both lists in the order of the reported ones: `- ` only expected, `+ ` only reported.
fn line_difference(expected: &[String], actual: &[String]) -> String {
    let mut text = String::new();
    let mut next = 0;
    for line in actual {
        match expected[next..].iter().position(|other| other == line) {
            Some(skipped) => {
                expected[next..next + skipped].iter().for_each(|missing| writeln!(text, "- {missing}").unwrap());
                next += skipped + 1;
                writeln!(text, "  {line}").unwrap();
            }
            None => writeln!(text, "+ {line}").unwrap(),
        }
    }
    expected[next..].iter().for_each(|missing| writeln!(text, "- {missing}").unwrap());
    text
}
