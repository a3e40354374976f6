//! What the program was started with. Nothing else reads the environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};

use crate::print::{Palette, StderrPrinter, Terminal, USUAL_WIDTH};

/// The words, the variables and the streams that the program was given.
pub(crate) struct Context {
    /// The command line, the name of the program first.
    pub(super) words: Vec<OsString>,
    /// The file that the program is in.
    pub(super) program: PathBuf,
    /// How stdout is shown.
    pub(super) stdout: Terminal,
    /// What is said on stderr.
    pub(super) stderr: StderrPrinter,
    variables: HashMap<OsString, OsString>,
}

impl Context {
    /// Reads all of it.
    pub(crate) fn read() -> Context {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        Context {
            words: std::env::args_os().collect(),
            program: std::env::current_exe().unwrap_or_else(|_| "rehearse".into()),
            stdout: Terminal { palette: palette(AutoStream::choice(&stdout)), width: width(&stdout) },
            stderr: StderrPrinter::new(Terminal {
                palette: palette(AutoStream::choice(&stderr)),
                width: width(&stderr),
            }),
            variables: std::env::vars_os().collect(),
        }
    }

    /// The program and the verb as they were typed, such as `rehearse verify …`; what else was typed may be secret.
    pub(super) fn typed(&self) -> String {
        let verb = self.words.get(1).map_or_else(|| "list".into(), |verb| verb.to_string_lossy());
        let more = if self.words.len() > 2 { " …" } else { "" };
        format!("rehearse {verb}{more}")
    }

    /// A variable of our environment; `None` where it is not set, or not text.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(&OsString::from(name))?.to_str().map(str::to_owned)
    }
}

/// How many columns a terminal has; `None` where it is none.
fn width(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let told = terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    stream.is_terminal().then(|| told.unwrap_or(USUAL_WIDTH))
}

fn palette(choice: ColorChoice) -> Palette {
    match choice {
        ColorChoice::Never => Palette::PLAIN,
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => Palette::COLOURED,
    }
}
