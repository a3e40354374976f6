//! What is said to the person on stderr.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::adapter::strip_str;
use anstyle::Style;

use rehearsal::core::script::Problem;

use super::screen::Screen;
use super::visible::lines;
use super::wrap::cut;

/// Back to the first column, and away with everything on the line.
const WIPE: &str = "\r\u{1b}[K";

/// Says things on stderr, one line at a time, whoever speaks.
///
/// A stderr that nobody reads is no reason to fail, so nothing here does.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    screen: Screen,
    /// Whether the last line is a status, which the next one replaces.
    status: Arc<AtomicBool>,
    /// Whether what a server says beside its answers is of no interest any more.
    hushed: Arc<AtomicBool>,
}

impl Talk {
    /// On this screen.
    pub(crate) fn new(screen: Screen) -> Talk {
        Talk { screen, status: Arc::default(), hushed: Arc::default() }
    }

    /// Prints what is only good to know.
    pub(crate) fn say(&self, what: impl Display) {
        self.line(format_args!("{}\n", self.tamed(what)));
    }

    /// Prints what a server says beside its answers, until [hushed](Talk::hush).
    pub(crate) fn overheard(&self, what: impl Display) {
        if !self.hushed.load(Ordering::Relaxed) {
            self.say(what);
        }
    }

    /// Nothing that is overheard is printed any more: the last word is ours.
    pub(crate) fn hush(&self) {
        self.hushed.store(true, Ordering::Relaxed);
    }

    /// Prints `error: there is no program "npx" in PATH`; evidence follows on lines of its own.
    pub(crate) fn error(&self, what: impl Display) {
        self.marked(self.screen.palette.error, "error:", what);
    }

    /// Prints `hint: did you mean "echo"?`.
    pub(crate) fn hint(&self, what: impl Display) {
        self.marked(self.screen.palette.hint, "hint:", what);
    }

    /// Prints what is wrong with a file, with the line itself; see [`snippet`](super::snippet()).
    pub(crate) fn problem(&self, file: &str, text: &str, problem: &Problem) {
        let shown = super::snippet(&self.screen, file, text, problem);
        self.line(format_args!("{shown}\n"));
    }

    /// Prints a line of the wire: `> {"jsonrpc":"2.0",…`, or of the server's stderr: `! Listening`.
    pub(crate) fn wire(&self, mark: &str, line: impl Display) {
        self.marked(self.screen.palette.mark, mark, line);
    }

    /// Shows how things stand, on a terminal: a line that whatever comes next replaces.
    pub(crate) fn status(&self, what: &str) {
        if let Some(width) = self.screen.width {
            self.line(format_args!("{}", cut(what, width.saturating_sub(1))));
            self.status.store(true, Ordering::Relaxed);
        }
    }

    /// Wipes the status away, if there is one.
    pub(crate) fn end_status(&self) {
        self.line(format_args!(""));
    }

    fn marked(&self, style: Style, mark: &str, what: impl Display) {
        self.line(format_args!("{style}{mark}{style:#} {}\n", self.tamed(what)));
    }

    /// Much of what is said quotes a server. On a terminal its colours are left out, and it commands nothing.
    fn tamed(&self, what: impl Display) -> String {
        let what = what.to_string();
        match self.screen.width {
            Some(_) => lines(&strip_str(&what).to_string()).into_owned(),
            None => what,
        }
    }

    fn line(&self, what: std::fmt::Arguments<'_>) {
        let wipe = if self.status.swap(false, Ordering::Relaxed) { WIPE } else { "" };
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{wipe}{what}").and_then(|()| stderr.flush());
    }
}
