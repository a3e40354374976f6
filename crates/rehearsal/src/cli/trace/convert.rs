//! `rehearse trace convert`

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use rehearsal::core::trace::Format;
use rehearsal::store::{Input, Recording};

use super::output::Writing;
use super::reading::{Reading, input};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;

/// Turn recordings of one tool into those of another
#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub(super) struct Convert {
    /// The recording; - is stdin
    #[arg(value_parser = input, value_hint = clap::ValueHint::FilePath)]
    from_file: Input,

    /// The file to write, replaced in one step when all is written; - is stdout
    #[arg(value_name = "TO_FILE", default_value = "-", value_hint = clap::ValueHint::FilePath)]
    to_file: PathBuf,

    /// The format of the recording, where it is not the one that its first bytes look like
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    from: Option<Format>,

    /// The format to write; without it, by the end of the file's name: .har, .journal, otherwise a trace
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Option<Format>,

    #[command(flatten)]
    reading: Reading,
}

const MORE: &str = "\
Formats: trace and journal are ours; python and python-log are those of the Python interceptor;
mcp-recorder, mcp-cassette, mcporter and mcptest are those of the tools of that name; har is an
HTTP archive, written only. Nothing is lost between python and trace, in either direction. The
cassettes of the others have no place for some of what we record;
docs/reference/trace-format.md says what.

Examples:
  rehearse trace convert session.jsonl trace.jsonl
  rehearse trace convert trace.jsonl session.jsonl --to python
  rehearse trace convert cassette.json | rehearse trace show -

Exit status:
    0  everything went well
    2  a file cannot be read or written, or does not fit the format";

fn formats() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::ALL.map(|format| PossibleValue::new(format.name())));
    names.map(|name| {
        let known = Format::ALL.into_iter().find(|format| format.name() == name);
        known.expect("only names of formats are let through")
    })
}

impl Convert {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let recording = match self.from {
            Some(Format::Har) => {
                return Err(Failure::bad_input(format_args!("{} files can be written, but not read", Format::Har)));
            }
            Some(format) => Recording::open_as(&self.from_file, format)?,
            None => self.reading.open(&self.from_file, context)?,
        };
        let format = self.to.unwrap_or_else(|| by_name(&self.to_file));
        let mut writing = Writing::begin(Some(&self.to_file), format)?;
        for part in recording.parts(self.reading.bad_lines()) {
            if let Some(part) = self.reading.sound(part, &self.from_file, context)? {
                writing.part(&part)?;
            }
        }
        writing.finish()?;
        Ok(Exit::Ok)
    }
}

/// The format that the name of a file asks for.
fn by_name(path: &Path) -> Format {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("har") => Format::Har,
        Some("journal") => Format::Journal,
        Some(_) | None => Format::Trace,
    }
}
