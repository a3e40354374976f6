//! What is said to the person on stderr.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::Style;

use super::palette::Palette;

/// Says things on stderr, one line at a time, whoever speaks.
///
/// A stderr that nobody reads is no reason to fail, so nothing here does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talk {
    palette: Palette,
}

impl Talk {
    /// In these colours.
    pub(crate) fn new(palette: Palette) -> Talk {
        Talk { palette }
    }

    /// Prints what is only good to know.
    pub(crate) fn say(self, what: impl Display) {
        let _ = writeln!(io::stderr().lock(), "{what}");
    }

    /// Prints `error: there is no program "npx" in PATH`; evidence follows on lines of its own.
    pub(crate) fn error(self, what: impl Display) {
        self.marked(self.palette.error, "error:", what);
    }

    /// Prints `hint: did you mean "echo"?`.
    pub(crate) fn hint(self, what: impl Display) {
        self.marked(self.palette.hint, "hint:", what);
    }

    /// Prints a line of the wire: `> {"jsonrpc":"2.0",…`, or of the server's stderr: `! Listening`.
    pub(crate) fn wire(self, mark: &str, line: impl Display) {
        self.marked(self.palette.mark, mark, line);
    }

    fn marked(self, style: Style, mark: &str, what: impl Display) {
        let _ = writeln!(io::stderr().lock(), "{style}{mark}{style:#} {what}");
    }
}
