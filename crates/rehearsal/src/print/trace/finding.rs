//! Findings of `rehearse trace check` in their printed form.

use std::fmt;
use std::io::{self, Write};

use rehearsal::core::report::Severity;
use rehearsal::core::shape::LocatedFinding;
use rehearsal::core::trace::SessionStart;
use serde_json::json;

use super::timeline::Columns;
use crate::print::sanitize_line;
use crate::print::terminal::Terminal;

/// The totals of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckTotals {
    pub(crate) sessions: u64,
    pub(crate) messages: u64,
    pub(crate) errors: u64,
    pub(crate) warnings: u64,
    pub(crate) notes: u64,
}

impl CheckTotals {
    pub(crate) fn count(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => self.notes += 1,
        }
    }
}

impl fmt::Display for CheckTotals {
    /// `2 sessions, 41 messages: 1 error, 2 warnings, no notes`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u64, what: &str| match count {
            0 => format!("no {what}s"),
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let CheckTotals { sessions, messages, errors, warnings, notes } = *self;
        write!(f, "{}, {}: ", counted(sessions, "session"), counted(messages, "message"))?;
        write!(f, "{}, {}, {}", counted(errors, "error"), counted(warnings, "warning"), counted(notes, "note"))
    }
}

/// Prints findings below the title of their session:
///
/// ```text
/// session 1  weather-1  weather 1.2
///   error: wrong result of tools/call in 2025-11-25 (message 9)
///     $.result.content[0].type: expected "text", "image" or "resource", got "hologram"
/// ```
pub(crate) struct FindingPrinter<'a> {
    terminal: &'a Terminal,
    columns: Columns,
    out: &'a mut dyn Write,
    /// True if there are several files, so that each title names its file.
    several: bool,
    file: String,
    session: u64,
    session_id: String,
    /// The title above the findings of the session, until it is printed.
    title: Option<String>,
}

impl<'a> FindingPrinter<'a> {
    pub(crate) fn new(
        terminal: &'a Terminal,
        columns: Columns,
        files: usize,
        out: &'a mut dyn Write,
    ) -> FindingPrinter<'a> {
        let several = files > 1;
        FindingPrinter {
            terminal,
            columns,
            out,
            several,
            file: String::new(),
            session: 0,
            session_id: String::new(),
            title: None,
        }
    }

    /// Begins a session: the next findings belong to it.
    pub(crate) fn start(&mut self, file: &str, number: u64, start: &SessionStart) {
        let word = |key: &str| start.server_info.get(key).and_then(|word| word.as_str()).unwrap_or_default();
        let server = format!("{} {}", word("name"), word("version"));
        let title = format!("session {number}  {}  {}", sanitize_line(&start.session_id), sanitize_line(server.trim()));
        let title = if self.several { format!("{}  {title}", sanitize_line(file)) } else { title };
        self.file = file.to_owned();
        self.session = number;
        self.session_id = start.session_id.clone();
        self.title = Some(title.trim_end().to_owned());
    }

    pub(crate) fn finding(&mut self, located: &LocatedFinding) -> io::Result<()> {
        match self.columns {
            Columns::Json => self.json(located),
            Columns::Text => self.text(located),
        }
    }

    fn text(&mut self, located: &LocatedFinding) -> io::Result<()> {
        if let Some(title) = self.title.take() {
            let style = self.terminal.palette.name;
            writeln!(self.out, "{style}{title}{style:#}")?;
        }
        for line in located.finding.to_string().lines() {
            writeln!(self.out, "  {}", sanitize_line(line))?;
        }
        Ok(())
    }

    fn json(&mut self, located: &LocatedFinding) -> io::Result<()> {
        let LocatedFinding { from, method, revision, sequence, finding } = located;
        let mismatch = finding.mismatches.first();
        let row = json!({
            "file": self.file,
            "session": self.session,
            "session_id": self.session_id,
            "sequence": sequence,
            "from": from.to_string(),
            "method": method,
            "version": revision.as_str(),
            "severity": finding.severity,
            "message": finding.message,
            "path": mismatch.map(|mismatch| mismatch.path.to_string()),
            "expected": mismatch.map(|mismatch| &mismatch.expected),
            "got": mismatch.and_then(|mismatch| mismatch.got.as_ref()),
            "hint": finding.hint,
        });
        writeln!(self.out, "{row}")
    }
}
