//! The command line, the environment and the streams of the program. No other module reads the environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};

use crate::print::{Palette, StderrPrinter, Terminal, USUAL_WIDTH};

/// The command line, the environment and the streams of the program.
pub(crate) struct Context {
    /// The command line, the name of the program first.
    pub(super) words: Vec<OsString>,
    /// The path of the executable file.
    pub(super) program: PathBuf,
    /// The colours and the width of stdout.
    pub(super) stdout: Terminal,
    /// Prints messages for the user to stderr.
    pub(super) stderr: StderrPrinter,
    /// True if a user can answer prompts: stdin and stderr are terminals.
    pub(super) is_interactive: bool,
    variables: HashMap<OsString, OsString>,
}

impl Context {
    /// Reads the command line, the environment and the streams.
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
            is_interactive: io::stdin().is_terminal() && stderr.is_terminal(),
            variables: std::env::vars_os().collect(),
        }
    }

    /// The program and the verb from the command line, such as `rehearse verify …`. Other words may be secret.
    pub(super) fn typed(&self) -> String {
        let verb = self.words.get(1).map_or_else(|| "list".into(), |verb| verb.to_string_lossy());
        let more = if self.words.len() > 2 { " …" } else { "" };
        format!("rehearse {verb}{more}")
    }

    /// The folder for the user's data: `$XDG_DATA_HOME`, else `~/.local/share`.
    pub(super) fn data_folder(&self) -> Option<PathBuf> {
        let set = |name: &str| self.variable(name).filter(|value| !value.is_empty());
        let data = set("XDG_DATA_HOME").map(PathBuf::from);
        data.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/share")))
    }

    /// A variable of the environment; `None` if it is not set or is not UTF-8.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(&OsString::from(name))?.to_str().map(str::to_owned)
    }
}

/// The number of columns of a terminal; `None` if the stream is not a terminal.
fn width(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let columns = terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    stream.is_terminal().then(|| columns.unwrap_or(USUAL_WIDTH))
}

fn palette(choice: ColorChoice) -> Palette {
    match choice {
        ColorChoice::Never => Palette::PLAIN,
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => Palette::COLOURED,
    }
}
