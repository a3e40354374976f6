//! The page of a dry run.

use std::io::{self, Write};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use anstyle::Style;
use jiff::Timestamp;
use rehearsal::dry_run::{
    AnswerOrigin, BranchKind, DryRunReport, Effect, FindingCode, KnownAfterRun, PlanFinding, PlanPlace, ReportedBranch,
    ReportedCall, UnknownReason, UnreachedCall, ValueSource,
};
use rehearsal_core::json::Path;
use rehearsal_core::report::Severity;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::Palette;
use super::plural;
use super::terminal::{Terminal, lines, sanitize_line};

/// Maximum width of one argument's value, in characters.
const MAX_VALUE: usize = 48;
/// Maximum width of arguments after which the answers are aligned.
const MAX_ALIGNED: usize = 60;
/// Maximum number of characters of the result.
const MAX_RESULT: usize = 1000;
/// Maximum number of console lines.
const MAX_CONSOLE: usize = 20;
/// Maximum number of calls, folded, and of calls that were not reached.
const MAX_ROWS: usize = 200;
/// Maximum number of sources of one argument.
const MAX_SOURCES: usize = 3;
/// Maximum number of findings.
const MAX_FINDINGS: usize = 50;

/// Prints the report of a dry run for a terminal; `now` is the present time.
pub(crate) fn dry_run_page(
    report: &DryRunReport,
    screen: &Terminal,
    now: Timestamp,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = Page { report, screen, now };
    page.heading(out)?;
    page.calls(out)?;
    page.not_run(out)?;
    page.branches(out)?;
    page.findings(out)?;
    console(&report.result.console, out)?;
    page.summary(out)
}

struct Page<'a> {
    report: &'a DryRunReport,
    screen: &'a Terminal,
    now: Timestamp,
}

/// A line of the table of calls: one call, or several equal ones of one place.
struct Row<'a> {
    first: &'a ReportedCall,
    last: &'a ReportedCall,
    count: usize,
}

impl Page<'_> {
    fn heading(&self, out: &mut dyn Write) -> io::Result<()> {
        let Palette { heading, .. } = self.screen.palette;
        let plan = sanitize_line(&self.report.plan);
        let live = self.report.tools_called.iter().filter(|call| call.answer.source == AnswerOrigin::Live).count();
        let title = match live {
            0 => "dry run: no call reached a server".to_owned(),
            live => format!("dry run: only {} of safe tools reached a server", plural(live as u64, "call")),
        };
        write!(out, "{heading}{plan}{heading:#}  {title}")?;
        let sandbox = match &self.report.sandbox {
            Some(levels) if levels.are_enforced() => "(sandbox: landlock, seccomp, rlimits)",
            Some(_) => "(sandbox: not fully enforced)",
            None => return writeln!(out),
        };
        let width = plan.width() + 2 + title.width() + 2 + sandbox.width();
        let fits = self.screen.width.is_none_or(|available| width <= available);
        writeln!(out, "{}{sandbox}", if fits { "  " } else { "\n  " })
    }

    fn calls(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = rows(&self.report.tools_called);
        let number_width = rows.iter().map(|row| numbers(row).width()).max().unwrap_or(0);
        let tool_width = rows.iter().map(|row| row.first.tool.width()).max().unwrap_or(0).min(40);
        // The answers are aligned, unless that would make a line too wide.
        let inline_width = rows.iter().map(|row| arguments(row.first).join(" ").width());
        let inline_width = inline_width.filter(|width| *width <= MAX_ALIGNED).max().unwrap_or(0);
        for row in rows.iter().take(MAX_ROWS) {
            let call = row.first;
            let (symbol, style) = effect_symbol(call.effect, self.screen.palette);
            let tool = sanitize_line(&call.tool);
            let mut line = format!(
                "  {:>number_width$}  {style}{symbol}  {:<11}{style:#}  {tool:<tool_width$}",
                numbers(row),
                call.effect.word()
            );
            let plain_width = 2 + number_width + 2 + 1 + 2 + 11 + 2 + tool.width().max(tool_width);
            let status = self.status(call);
            let times = if row.count > 1 { format!("  ×{}", row.count) } else { String::new() };
            let arguments = arguments(call);
            let inline = arguments.join(" ");
            let width = plain_width + 2 + inline.width() + 2 + status.width() + times.width();
            let fits = self.screen.width.is_none_or(|available| width <= available);
            if fits {
                let room = self.screen.width.map_or(usize::MAX, |available| available - width);
                let padding = inline_width.saturating_sub(inline.width()).min(room);
                line += &format!("  {inline}{:padding$}", "");
            }
            let error = if call.fails { self.screen.palette.error } else { Style::new() };
            writeln!(out, "{line}  {error}{status}{error:#}{times}")?;
            if !fits {
                for argument in &arguments {
                    writeln!(out, "  {:number_width$}     {argument}", "")?;
                }
            }
        }
        if rows.len() > MAX_ROWS {
            writeln!(out, "  … and {} more; --json has all calls", rows.len() - MAX_ROWS)?;
        }
        Ok(())
    }

    fn status(&self, call: &ReportedCall) -> String {
        let about = |code| self.report.findings.iter().any(|found| is_about(found, call, code));
        if about(FindingCode::MissingServer) {
            return "✗ no such server".to_owned();
        }
        if about(FindingCode::MissingTool) {
            return "✗ no such tool".to_owned();
        }
        if about(FindingCode::TypeError) {
            return "✗ type error".to_owned();
        }
        let source = match (call.answer.source, &call.answer.cached_at) {
            (AnswerOrigin::CapabilityCache, Some(at)) => match at.parse::<Timestamp>() {
                Ok(at) => format!("cached {}", ago(self.now, at)),
                Err(_) => "cached".to_owned(),
            },
            (AnswerOrigin::CapabilityCache, None) => "cached".to_owned(),
            (AnswerOrigin::Override, _) => "override".to_owned(),
            (AnswerOrigin::SchemaMock, _) => "schema".to_owned(),
            (AnswerOrigin::Placeholder, _) => "placeholder".to_owned(),
            (AnswerOrigin::None, _) => "not checked".to_owned(),
            (AnswerOrigin::Live, _) => "live".to_owned(),
        };
        let source = if call.answer.is_error { format!("✗ error, {source}") } else { source };
        let conditions = call.conditional_on.iter().filter_map(|branch| self.report.branches.get(*branch));
        let conditions: Vec<String> = conditions.map(|branch| place(&branch.place)).collect();
        let mut notes = Vec::new();
        if !conditions.is_empty() {
            notes.push(format!("if {}", conditions.join(", ")));
        }
        if call.repeats {
            notes.push("count known after run".to_owned());
        }
        if notes.is_empty() { source } else { format!("{source} ({})", notes.join("; ")) }
    }

    fn not_run(&self, out: &mut dyn Write) -> io::Result<()> {
        let not_run = &self.report.not_run;
        if not_run.is_empty() {
            return Ok(());
        }
        writeln!(out, "Not run:")?;
        for call in not_run.iter().take(MAX_ROWS) {
            let tool = call.tool.as_deref().unwrap_or("a computed tool");
            let effect = call.effect.word();
            let place = place(&call.place);
            writeln!(out, "  {place:<7} {effect:<11}  {}  {}", sanitize_line(tool), sanitize_line(&call.reason))?;
        }
        Ok(())
    }

    /// The decisions that depend on values which are not known, as far as calls depend on them.
    fn branches(&self, out: &mut dyn Write) -> io::Result<()> {
        let leads_to = |branch: &&ReportedBranch| {
            let index = self.report.branches.iter().position(|other| other == *branch);
            let only_if = |call: &UnreachedCall| call.only_if.as_ref().map(|only_if| only_if.branch);
            self.report.not_run.iter().any(|call| index.is_some() && only_if(call) == index)
        };
        let matters = |branch: &&ReportedBranch| !branch.calls.is_empty() || leads_to(branch) || branch.unrehearsed;
        let shown: Vec<&ReportedBranch> = self.report.branches.iter().filter(matters).collect();
        if shown.is_empty() {
            return Ok(());
        }
        writeln!(out, "Depends on values that are known after the run:")?;
        for branch in shown.iter().take(MAX_ROWS) {
            let place = place(&branch.place);
            writeln!(out, "  {place:<7} {}", sanitize_line(&branch_text(branch)))?;
        }
        if shown.len() > MAX_ROWS {
            writeln!(out, "  … and {} more; --json has all", shown.len() - MAX_ROWS)?;
        }
        Ok(())
    }

    fn findings(&self, out: &mut dyn Write) -> io::Result<()> {
        let stop = self.report.findings.iter().position(|found| {
            found.call.is_some() && found.call == self.report.stops_at && found.severity == Severity::Error
        });
        for (index, found) in self.report.findings.iter().enumerate().take(MAX_FINDINGS) {
            let label = if stop == Some(index) { "a real run stops here" } else { "" };
            writeln!(out, "{}", finding_text(found, label, self.screen))?;
        }
        let more = self.report.findings.len().saturating_sub(MAX_FINDINGS);
        if more > 0 {
            writeln!(out, "… and {more} more findings; --json has them all")?;
        }
        Ok(())
    }

    fn summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = self.report;
        if report.validation.syntax_valid && report.result.error.is_none() {
            let result = report.simulated_result.to_string();
            writeln!(out, "Result: {}", middle_cut(&sanitize_line(&result), MAX_RESULT))?;
        }
        let calls = &report.tools_called;
        if report.validation.syntax_valid {
            let effects = effect_counts(calls.iter().map(|call| call.effect));
            let origins = [
                (AnswerOrigin::Override, "override"),
                (AnswerOrigin::CapabilityCache, "cached"),
                (AnswerOrigin::SchemaMock, "schema"),
                (AnswerOrigin::Placeholder, "placeholder"),
                (AnswerOrigin::Live, "live"),
                (AnswerOrigin::None, "not checked"),
            ]
            .map(|(origin, name)| (calls.iter().filter(|call| call.answer.source == origin).count(), name));
            let total = plural(calls.len() as u64, "call");
            if calls.is_empty() {
                writeln!(out, "Plan: {total}")?;
            } else {
                writeln!(out, "Plan: {total}: {effects} · answers: {}", counts(&origins))?;
            }
        }
        let errors = plural(report.count(Severity::Error) as u64, "error");
        let warnings = plural(report.count(Severity::Warning) as u64, "warning");
        write!(out, "{errors}, {warnings}")?;
        if report.validation.syntax_valid {
            let reversible = match (report.has_side_effects(), report.reversible) {
                (false, _) => "changes nothing",
                (true, true) => "reversible",
                (true, false) => "not reversible",
            };
            let duration = &report.estimated_duration_ms;
            let time = if duration.known == 0 {
                "duration unknown".to_owned()
            } else {
                let (p50, p95, known, of) = (duration.p50.round(), duration.p95.round(), duration.known, duration.of);
                format!("about {p50} ms (p95 {p95}, {known} of {of} known)")
            };
            write!(out, " · {reversible} · {time} · confidence {:.2}", report.confidence)?;
        }
        writeln!(out)
    }
}

/// `issue.state === "open" (answer of call 1): false in this run; otherwise fs:delete_file`
fn branch_text(branch: &ReportedBranch) -> String {
    let numbers = |calls: &[usize]| calls.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let from = match (branch.reason, &branch.from[..]) {
        (UnknownReason::Clock, _) => "the clock".to_owned(),
        (UnknownReason::Random, _) => "a random number".to_owned(),
        (UnknownReason::Answer, []) => "invented answers".to_owned(),
        (UnknownReason::Answer, [call]) => format!("answer of call {call}"),
        (UnknownReason::Answer, calls) => format!("answers of calls {}", numbers(calls)),
    };
    let calls = match &branch.calls[..] {
        [] => None,
        [call] => Some(format!("call {call}")),
        calls => Some(format!("calls {}", numbers(calls))),
    };
    let mut text = match branch.kind {
        BranchKind::Loop => format!("loop over {} ({from})", branch.text),
        BranchKind::Catch => format!("an error is caught ({from})"),
        BranchKind::Condition | BranchKind::Switch => format!("{} ({from})", branch.text),
    };
    match (branch.kind, branch.taken) {
        (BranchKind::Condition, Some(taken)) => text += &format!(": {taken} in this run"),
        (BranchKind::Condition, None) => text += ": true and false in this run",
        (BranchKind::Switch | BranchKind::Loop | BranchKind::Catch, _) => {}
    }
    if let Some(calls) = calls {
        text += &match branch.kind {
            BranchKind::Loop => format!(": {calls} may repeat, or not be made"),
            BranchKind::Condition | BranchKind::Switch | BranchKind::Catch => format!("; {calls} may not be made"),
        };
    }
    if branch.unrehearsed {
        text += "; its other side fails with invented values, so what follows it is not known";
    }
    if !branch.other_calls.is_empty() {
        text += &format!("; otherwise {}", branch.other_calls.join(", "));
    }
    text
}

/// A finding with the line of the plan; `label` is the text at its place.
pub(super) fn finding_text(found: &PlanFinding, label: &str, screen: &Terminal) -> String {
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let call = found.call.map(|call| format!("call {call}: ")).unwrap_or_default();
    let title = lines(&format!("{call}{}", found.message)).into_owned();
    let is_name = matches!(found.code, FindingCode::MissingServer | FindingCode::MissingTool);
    let hint = found.hint.as_deref().map(lines).map(|hint| match is_name && !hint.contains(' ') {
        true => format!("did you mean `{hint}`?"),
        false => hint.into_owned(),
    });
    let mut group = level.primary_title(&title).elements([] as [Snippet<'_, annotate_snippets::Annotation<'_>>; 0]);
    if let (Some(place), Some(line)) = (&found.place, &found.source_line) {
        let start = line.char_indices().nth(place.column.map_or(0, |column| column.saturating_sub(1) as usize));
        let start = start.map_or(line.len(), |(index, _)| index);
        // Without a column the whole line is meant.
        let length =
            if place.column.is_some() { callee_length(&line[start..]) } else { line[start..].trim_end().len() };
        let end = start + length;
        let annotation = AnnotationKind::Primary.span(start..end).label(label);
        let snippet = Snippet::source(line.as_str()).path(place.file.as_str()).line_start(place.line as usize);
        group = group.element(snippet.annotation(annotation));
    } else if let Some(place) = &found.place {
        // The end of the file has no line.
        let origin = Origin::path(place.file.as_str()).line(place.line as usize);
        group = group.element(origin.char_column(place.column.unwrap_or(1) as usize));
    }
    if let Some(hint) = &hint {
        group = group.element(Level::HELP.message(hint));
    }
    let plain = screen.palette.error == Palette::PLAIN.error;
    let renderer = if plain { Renderer::plain() } else { Renderer::styled() };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// The symbol of an effect, and its style.
pub(super) fn effect_symbol(effect: Effect, palette: Palette) -> (char, Style) {
    match effect {
        Effect::Read => ('·', Style::new()),
        Effect::Write => ('+', palette.name),
        Effect::Destructive => ('-', palette.error),
        Effect::Unknown => ('?', palette.hint),
    }
}

/// What the plan wrote to `console`.
pub(super) fn console(console: &[String], out: &mut dyn Write) -> io::Result<()> {
    if console.is_empty() {
        return Ok(());
    }
    writeln!(out, "Console:")?;
    for line in console.iter().take(MAX_CONSOLE) {
        writeln!(out, "  {}", lines(line).replace('\n', "\n  "))?;
    }
    if console.len() > MAX_CONSOLE {
        writeln!(out, "  … and {} more lines", console.len() - MAX_CONSOLE)?;
    }
    Ok(())
}

/// `2 read, 1 destructive`
pub(super) fn effect_counts(effects: impl Iterator<Item = Effect> + Clone) -> String {
    let all = [Effect::Read, Effect::Write, Effect::Destructive, Effect::Unknown];
    counts(&all.map(|effect| (effects.clone().filter(|other| *other == effect).count(), effect.word())))
}

/// The counts that are not 0, with their names.
fn counts(counts: &[(usize, &str)]) -> String {
    let shown = counts.iter().filter(|(count, _)| *count > 0);
    shown.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// `9:5`
pub(super) fn place(place: &PlanPlace) -> String {
    let column = place.column.map(|column| format!(":{column}")).unwrap_or_default();
    format!("{}{column}", place.line)
}

fn is_about(found: &PlanFinding, call: &ReportedCall, code: FindingCode) -> bool {
    let same_place = found.place.is_some() && found.place == call.place;
    found.code == code && call.fails && (found.call == Some(call.call) || same_place)
}

/// Folds consecutive calls of one place that have the same tool, answer and outcome.
fn rows(calls: &[ReportedCall]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for call in calls {
        let is_equal = |other: &ReportedCall| {
            other.tool == call.tool
                && other.place.is_some()
                && other.place == call.place
                && other.arguments == call.arguments
                && other.answer.source == call.answer.source
                && other.answer.is_error == call.answer.is_error
                && other.known_after_run == call.known_after_run
                && other.conditional_on == call.conditional_on
        };
        match rows.last_mut() {
            Some(row) if is_equal(row.first) => {
                row.last = call;
                row.count += 1;
            }
            _ => rows.push(Row { first: call, last: call, count: 1 }),
        }
    }
    rows
}

/// `4`, or `4–23`.
fn numbers(row: &Row<'_>) -> String {
    if row.count == 1 { row.first.call.to_string() } else { format!("{}–{}", row.first.call, row.last.call) }
}

/// `key=value` for each argument. A value that a real run may replace has its source in its place or behind it.
fn arguments(call: &ReportedCall) -> Vec<String> {
    let shown = |value: &Value| middle_cut(&sanitize_line(&value.to_string()), MAX_VALUE);
    let Value::Object(members) = &call.arguments else { return vec![shown(&call.arguments)] };
    let argument = |(key, value): (&String, &Value)| {
        let path = Path::root().join(key.as_str()).to_string();
        let known = &call.known_after_run;
        let inner = |known: &&KnownAfterRun| {
            known.path.strip_prefix(&path).is_some_and(|rest| rest.starts_with('.') || rest.starts_with('['))
        };
        let key = sanitize_line(key);
        match (known.iter().find(|known| known.path == path), known.iter().find(inner)) {
            // The type of an invented value is real, and it is what does not fit.
            (Some(known), _) if call.fails => format!("{key}={} ({})", shown(value), source(known)),
            (Some(known), _) => format!("{key}=({})", source(known)),
            (None, Some(inner)) => {
                format!("{key}={} (in part {})", shown(value), source(inner))
            }
            (None, None) => format!("{key}={}", shown(value)),
        }
    };
    members.iter().map(argument).collect()
}

/// `known after run: 2 $.title`
fn source(known: &KnownAfterRun) -> String {
    let from = match known.reason {
        UnknownReason::Clock => "clock".to_owned(),
        UnknownReason::Random => "random".to_owned(),
        UnknownReason::Answer => {
            let source = |source: &ValueSource| match &source.path {
                Some(path) => format!("{} {path}", source.call),
                None => source.call.to_string(),
            };
            let sources = known.from.iter().take(MAX_SOURCES).map(source);
            let more = if known.from.len() > MAX_SOURCES { ", …" } else { "" };
            sources.collect::<Vec<_>>().join(", ") + more
        }
    };
    format!("known after run: {from}")
}

/// The beginning and the end of a long text, with its size in the middle.
pub(super) fn middle_cut(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let middle = format!("…({count} characters)…");
    let kept = limit.saturating_sub(middle.chars().count()).max(2);
    let head: String = text.chars().take(kept - kept / 2).collect();
    let tail: String = text.chars().skip(count - kept / 2).collect();
    format!("{head}{middle}{tail}")
}

/// The length of `await mcp.fs.read` or `fs:read`: what a place points at.
fn callee_length(text: &str) -> usize {
    let part_of_name =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | ':' | '[' | ']' | '"' | '\'' | '-' | '?');
    let end = text.find(|c: char| !part_of_name(c)).unwrap_or(text.len());
    end.max(text.chars().next().map_or(0, char::len_utf8))
}

/// `2 h ago`
fn ago(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
