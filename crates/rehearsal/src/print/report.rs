//! Reports in their printed form.

use std::io::{self, Write};

use rehearsal::core::report::{Case, CaseStatus, Finding, Report, Verdict, VerdictCounts};
use serde::Serialize;

use super::sanitize_line;
use super::terminal::Terminal;

/// Prints the findings by case. A case that passed without a finding is not printed.
///
/// ```text
/// ~ tools/call get_forecast
///   error: changed (message 17)
///     $.result.content[0].text: expected "Rain", got "Sun"
/// . ping: skipped, a ping has nothing to compare
/// ```
pub(crate) fn print_report(report: &Report, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    report.findings.iter().try_for_each(|finding| print_finding(finding, "", out))?;
    report.cases.iter().try_for_each(|case| print_case(case, terminal, out))
}

/// A report with its counts.
#[derive(Serialize)]
struct ReportJson<'report> {
    #[serde(flatten)]
    report: &'report Report,
    counts: VerdictCounts,
}

/// Prints the whole report as JSON.
pub(crate) fn print_report_json(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &ReportJson { report, counts: report.counts() })?;
    writeln!(out)
}

fn print_case(case: &Case, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let style = terminal.palette.mark;
    let mark = match case.verdict() {
        Verdict::Failed => "~",
        Verdict::Skipped => ".",
        Verdict::Passed if case.findings.is_empty() => return Ok(()),
        Verdict::Passed => "=",
    };
    let name = sanitize_line(&case.name);
    match &case.run {
        CaseStatus::Skipped { reason } => writeln!(out, "{style}{mark}{style:#} {name}: skipped, {reason}")?,
        CaseStatus::Ran { .. } => writeln!(out, "{style}{mark}{style:#} {name}")?,
    }
    case.findings.iter().try_for_each(|finding| print_finding(finding, "  ", out))
}

fn print_finding(finding: &Finding, indent: &str, out: &mut dyn Write) -> io::Result<()> {
    for line in finding.to_string().lines() {
        writeln!(out, "{indent}{}", sanitize_line(line))?;
    }
    Ok(())
}
