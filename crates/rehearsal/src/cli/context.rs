//! What the program was started with. Nothing else reads the environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};

use crate::print::{Palette, Screen, Talk};

/// The words, the variables and the streams that the program was given.
pub(crate) struct Context {
    /// The command line, the name of the program first.
    pub(super) words: Vec<OsString>,
    /// How stdout is shown.
    pub(super) stdout: Screen,
    /// What is said on stderr.
    pub(super) talk: Talk,
    variables: HashMap<OsString, OsString>,
}

impl Context {
    /// Reads all of it.
    pub(crate) fn read() -> Context {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let width = terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
        Context {
            words: std::env::args_os().collect(),
            stdout: Screen {
                palette: palette(AutoStream::choice(&stdout)),
                width: width.filter(|_| stdout.is_terminal()),
            },
            talk: Talk::new(palette(AutoStream::choice(&stderr))),
            variables: std::env::vars_os().collect(),
        }
    }

    /// A variable of our environment; `None` where it is not set, or not text.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(&OsString::from(name))?.to_str().map(str::to_owned)
    }
}

fn palette(choice: ColorChoice) -> Palette {
    match choice {
        ColorChoice::Never => Palette::PLAIN,
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => Palette::COLOURED,
    }
}
