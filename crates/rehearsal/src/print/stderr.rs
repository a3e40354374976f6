//! Prints messages for the user to stderr.

use std::fmt::Display;
use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anstream::adapter::strip_str;
use anstyle::Style;
use rehearsal::core::script::ScriptProblem;

use super::Palette;
use super::terminal::Terminal;
use super::terminal::cut;
use super::terminal::lines;

/// Moves the cursor to the first column and clears the line.
const CLEAR_LINE: &str = "\r\u{1b}[K";

/// Prints messages to stderr, one line at a time. Clones share the state of the current line.
///
/// A closed stderr is no reason to fail, so write errors are ignored.
#[derive(Clone, Debug)]
pub(crate) struct StderrPrinter {
    terminal: Terminal,
    /// True if the last line is a status, which the next line replaces.
    status: Arc<AtomicBool>,
    /// True if notifications and logs of a server are not printed.
    server_output_stopped: Arc<AtomicBool>,
}

impl StderrPrinter {
    /// Creates a printer for a terminal.
    pub(crate) fn new(terminal: Terminal) -> StderrPrinter {
        StderrPrinter { terminal, status: Arc::default(), server_output_stopped: Arc::default() }
    }

    /// Prints an informational message.
    pub(crate) fn note(&self, what: impl Display) {
        self.line(format_args!("{}\n", self.sanitize(what)));
    }

    /// Prints a notification or a log of a server, until [stopped](StderrPrinter::stop_server_output).
    pub(crate) fn server_output(&self, what: impl Display) {
        if !self.server_output_stopped.load(Ordering::Relaxed) {
            self.note(what);
        }
    }

    /// Stops printing notifications and logs of a server, so that our result is printed last.
    pub(crate) fn stop_server_output(&self) {
        self.server_output_stopped.store(true, Ordering::Relaxed);
    }

    /// Prints notifications and logs of a server again, for the next server.
    pub(crate) fn resume_server_output(&self) {
        self.server_output_stopped.store(false, Ordering::Relaxed);
    }

    /// Prints a text that the user completes on the same line.
    pub(crate) fn prompt(&self, text: &str) {
        self.line(format_args!("{} ", self.sanitize(text)));
    }

    /// Prints `error: there is no program "npx" in PATH`; evidence follows on separate lines.
    pub(crate) fn error(&self, what: impl Display) {
        self.marked(self.terminal.palette.error, "error:", what);
    }

    /// Prints `hint: did you mean "echo"?`.
    pub(crate) fn hint(&self, what: impl Display) {
        self.marked(self.terminal.palette.hint, "hint:", what);
    }

    /// Prints a problem in a file together with the line; see [`snippet`](super::snippet()).
    pub(crate) fn problem(&self, file: &str, text: &str, problem: &ScriptProblem) {
        let shown = super::snippet(&self.terminal, file, text, problem);
        self.line(format_args!("{shown}\n"));
    }

    /// Prints a line of the wire: `> {"jsonrpc":"2.0",…`, or of the server's stderr: `! Listening`.
    pub(crate) fn wire(&self, mark: &str, line: impl Display) {
        self.marked(self.terminal.palette.mark, mark, line);
    }

    /// Prints a status line on a terminal, which the next output replaces.
    pub(crate) fn status(&self, what: &str) {
        if let Some(width) = self.terminal.width {
            self.line(format_args!("{}", cut(what, width.saturating_sub(1))));
            self.status.store(true, Ordering::Relaxed);
        }
    }

    /// Clears the status line, if there is one.
    pub(crate) fn end_status(&self) {
        self.line(format_args!(""));
    }

    fn marked(&self, style: Style, mark: &str, what: impl Display) {
        self.line(format_args!("{style}{mark}{style:#} {}\n", self.sanitize(what)));
    }

    /// Removes colours and control sequences on a terminal: many messages quote a server.
    fn sanitize(&self, what: impl Display) -> String {
        let what = what.to_string();
        match self.terminal.width {
            Some(_) => lines(&strip_str(&what).to_string()).into_owned(),
            None => what,
        }
    }

    fn line(&self, what: std::fmt::Arguments<'_>) {
        let clear = if self.status.swap(false, Ordering::Relaxed) { CLEAR_LINE } else { "" };
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{clear}{what}").and_then(|()| stderr.flush());
    }
}

/// Renders a problem with its line:
///
/// ```text
/// error: unknown key `nam`
///  --> weather.mock.yaml:1:11
///   |
/// 1 | server: { nam: weather }
///   |           ^^^
///   |
///   = help: did you mean `name`?
/// ```
pub(crate) fn snippet(terminal: &Terminal, file: &str, text: &str, problem: &ScriptProblem) -> String {
    let start = floor(text, problem.at.start);
    // Only the first line of a long value is marked.
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = floor(text, problem.at.start.saturating_add(problem.at.length)).clamp(start, line_end);
    let title = lines(&problem.message).into_owned();
    let hint = problem.hint.as_deref().map(|hint| lines(hint).into_owned());
    let marked = Snippet::source(text).path(file).annotation(AnnotationKind::Primary.span(start..end));
    let group = Level::ERROR.primary_title(&title).element(marked);
    let group = match &hint {
        Some(hint) => group.element(Level::HELP.message(hint)),
        None => group,
    };
    let plain = terminal.palette.error == Palette::PLAIN.error;
    let renderer = if plain { Renderer::plain() } else { Renderer::styled() };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// The nearest beginning of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
