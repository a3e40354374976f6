//! The page of a real run.

use std::io::{self, Write};

use anstyle::Style;
use rehearsal::exec::{CacheOutcome, ExecReport, ExecStatus, ExecutedCall, ExecutedOutcome};
use rehearsal_core::report::Severity;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::dry_run::{console, effect_counts, effect_symbol, finding_text, middle_cut, place};
use super::plural;
use super::terminal::{Terminal, sanitize_line};

/// Maximum width of one argument's value, in characters.
const MAX_VALUE: usize = 48;
/// Maximum width of the value of a call, in characters.
const MAX_ANSWER: usize = 60;
/// Maximum number of characters of the result.
const MAX_RESULT: usize = 1000;
/// Maximum number of calls.
const MAX_CALLS: usize = 200;
/// Maximum number of findings.
const MAX_FINDINGS: usize = 50;

/// Prints the report of a real run for a terminal:
///
/// ```text
/// plan.ts  completed in 131 ms
///   1  ·  read         2:25  files:list_folder  path="/reports"  3 ms  → {"files":[]}
/// Result: 0
/// Plan: 1 call: 1 read · 0 errors, 0 warnings
/// Cache: 1 result stored in .rehearsal/cache.sqlite
/// Trace: trace.jsonl
/// ```
pub(crate) fn exec_page(report: &ExecReport, screen: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let page = Page { report, screen };
    page.heading(out)?;
    page.calls(out)?;
    page.not_run(out)?;
    page.findings(out)?;
    console(&report.console, out)?;
    page.summary(out)
}

struct Page<'a> {
    report: &'a ExecReport,
    screen: &'a Terminal,
}

impl Page<'_> {
    fn heading(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = self.screen.palette.heading;
        let plan = sanitize_line(&self.report.plan);
        let time = time(self.report.duration_ms);
        let title = match self.report.status {
            ExecStatus::Completed => format!("completed in {time}"),
            ExecStatus::Failed => format!("failed after {time}"),
            ExecStatus::Deviated => format!("stopped after {time}: it deviated from its rehearsal"),
            ExecStatus::Refused => format!("stopped after {time}: it changes something"),
            ExecStatus::Cancelled => format!("cancelled after {time}"),
            ExecStatus::Invalid => "not run: it is not valid".to_owned(),
        };
        let contract = match &self.report.saved_at {
            Some(saved_at) => format!("  (saved at {saved_at})"),
            None => String::new(),
        };
        writeln!(out, "{heading}{plan}{heading:#}  {title}{contract}")
    }

    fn calls(&self, out: &mut dyn Write) -> io::Result<()> {
        let calls = &self.report.calls;
        let number_width = calls.len().to_string().len();
        let width = |text: fn(&ExecutedCall) -> String| calls.iter().map(|call| text(call).width()).max().unwrap_or(0);
        let (place_width, tool_width) = (width(place_of), width(|call| call.tool.clone()).min(40));
        for call in calls.iter().take(MAX_CALLS) {
            let (symbol, style) = effect_symbol(call.effect, self.screen.palette);
            let is_value = call.outcome == ExecutedOutcome::Value;
            let error = if is_value { Style::new() } else { self.screen.palette.error };
            let line = format!(
                "  {:>number_width$}  {style}{symbol}  {:<11}{style:#}  {:<place_width$}  {:<tool_width$}",
                call.call,
                call.effect.word(),
                place_of(call),
                sanitize_line(&call.tool)
            );
            let arguments = arguments(&call.arguments);
            let arguments = if arguments.is_empty() { arguments } else { format!("  {arguments}") };
            let took = call.took_ms.map(|took| format!("  {}", time(took))).unwrap_or_default();
            let answer = answer(call);
            writeln!(out, "{line}{arguments}{took}  {error}{answer}{error:#}")?;
        }
        if calls.len() > MAX_CALLS {
            writeln!(out, "  … and {} more; --json has all calls", calls.len() - MAX_CALLS)?;
        }
        if let Some(stopped) = &self.report.stopped_before {
            let place = stopped.place.as_ref().map(place).unwrap_or_default();
            let arguments = arguments(&stopped.arguments);
            writeln!(out, "Not made:\n  {place}  {}  {arguments}", sanitize_line(&stopped.tool))?;
        }
        Ok(())
    }

    fn not_run(&self, out: &mut dyn Write) -> io::Result<()> {
        let not_run = &self.report.not_run;
        if not_run.is_empty() {
            return Ok(());
        }
        writeln!(out, "Not run:")?;
        for task in not_run.iter().take(MAX_CALLS) {
            let reason = sanitize_line(&task.reason);
            writeln!(out, "  {}  {}  {reason}", sanitize_line(&task.task), sanitize_line(&task.tool))?;
        }
        Ok(())
    }

    fn findings(&self, out: &mut dyn Write) -> io::Result<()> {
        for found in self.report.findings.iter().take(MAX_FINDINGS) {
            writeln!(out, "{}", finding_text(found, "", self.screen))?;
        }
        let more = self.report.findings.len().saturating_sub(MAX_FINDINGS);
        if more > 0 {
            writeln!(out, "… and {more} more findings; --json has them all")?;
        }
        Ok(())
    }

    fn summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = self.report;
        if report.status == ExecStatus::Completed {
            writeln!(out, "Result: {}", middle_cut(&sanitize_line(&report.result.to_string()), MAX_RESULT))?;
        }
        let errors = plural(report.count(Severity::Error) as u64, "error");
        let warnings = plural(report.count(Severity::Warning) as u64, "warning");
        if report.status == ExecStatus::Invalid {
            return writeln!(out, "{errors}, {warnings}");
        }
        let effects = effect_counts(report.calls.iter().map(|call| call.effect));
        let effects = if effects.is_empty() { effects } else { format!(": {effects}") };
        let total = plural(report.calls.len() as u64, "call");
        writeln!(out, "Plan: {total}{effects} · {errors}, {warnings}")?;
        if let Some(cache) = &report.cache {
            let stored = plural(cache.stored as u64, "result");
            let errors = match cache.errors {
                0 => String::new(),
                count => format!(" ({})", plural(count as u64, "error")),
            };
            let excluded = match &cache.excluded[..] {
                [] => String::new(),
                tools => format!("; not those of {}", sanitize_line(&tools.join(", "))),
            };
            writeln!(out, "Cache: {stored}{errors} stored in {}{excluded}", sanitize_line(&cache.file))?;
        }
        if let Some(trace) = &report.trace {
            writeln!(out, "Trace: {}", sanitize_line(trace))?;
        }
        Ok(())
    }
}

fn place_of(call: &ExecutedCall) -> String {
    call.place.as_ref().map(place).unwrap_or_default()
}

/// `path="/reports" depth=2`
fn arguments(arguments: &Value) -> String {
    let shown = |value: &Value| middle_cut(&sanitize_line(&value.to_string()), MAX_VALUE);
    match arguments {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{}={}", sanitize_line(key), shown(value)));
            members.collect::<Vec<_>>().join(" ")
        }
        other => shown(other),
    }
}

/// `→ {"files":[]}`, or what went wrong.
fn answer(call: &ExecutedCall) -> String {
    let message = || {
        let text = call.value.as_str().unwrap_or_default();
        middle_cut(&sanitize_line(text.lines().next().unwrap_or_default()), MAX_ANSWER)
    };
    let text = match call.outcome {
        ExecutedOutcome::Value => format!("→ {}", middle_cut(&sanitize_line(&call.value.to_string()), MAX_ANSWER)),
        ExecutedOutcome::ToolError => format!("✗ tool error: {}", message()),
        ExecutedOutcome::ProtocolError => format!("✗ protocol error: {}", message()),
        ExecutedOutcome::Timeout => "✗ no answer in time".to_owned(),
        ExecutedOutcome::Cancelled => "✗ cancelled before its answer".to_owned(),
        ExecutedOutcome::NotSent => format!("✗ not sent: {}", message()),
    };
    match &call.cache {
        CacheOutcome::Excluded => text + " (not cached)",
        CacheOutcome::Stored
        | CacheOutcome::StoredError
        | CacheOutcome::NoReply
        | CacheOutcome::Off
        | CacheOutcome::Failed(_) => text,
    }
}

/// `12 ms`, or `3.4 s` from ten seconds on.
fn time(ms: f64) -> String {
    if ms < 10_000.0 { format!("{} ms", ms.round()) } else { format!("{:.1} s", ms / 1000.0) }
}
