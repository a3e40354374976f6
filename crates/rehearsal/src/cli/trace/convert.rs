//! `rehearse trace convert`

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use rehearsal::core::trace::Format;
use rehearsal::store::{Input, Recording};

use super::input::InputArgs;
use super::output::AtomicOutput;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};

/// Turn recordings of one tool into those of another
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceConvertArgs {
    /// The recording; - is stdin
    #[arg(value_hint = clap::ValueHint::FilePath)]
    from_file: Input,

    /// The file to write, replaced in one step when all is written; - is stdout
    #[arg(value_name = "TO_FILE", default_value = "-", value_hint = clap::ValueHint::FilePath)]
    to_file: PathBuf,

    /// The format of the recording, where it is not the one that its first bytes look like
    #[arg(long, value_name = "FORMAT", value_parser = formats(&Format::READ))]
    from: Option<Format>,

    /// The format to write; without it, by the end of the file's name: .har, .journal, otherwise a trace
    #[arg(long, value_name = "FORMAT", value_parser = formats(&Format::WRITTEN))]
    to: Option<Format>,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
Formats: trace and journal are ours; python and python-log are those of the Python interceptor;
mcp-recorder, mcp-cassette, mcporter and mcptest are those of the tools of that name, and are only
read; har is an HTTP archive, and is only written. Nothing is lost between python and trace, in
either direction; docs/reference/trace-format.md lists what the other formats have no place for.

Examples:
  rehearse trace convert session.jsonl trace.jsonl
  rehearse trace convert trace.jsonl session.jsonl --to python
  rehearse trace convert cassette.json | rehearse trace show -

Exit status:
    0  everything went well
    2  a file cannot be read or written, or does not fit the format";

fn formats(formats: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(formats.iter().map(|format| PossibleValue::new(format.name())));
    names.map(|name| {
        let known = formats.iter().find(|format| format.name() == name);
        *known.expect("only names of formats are let through")
    })
}

impl TraceConvertArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let recording = match self.from {
            Some(format) => Recording::open_as(&self.from_file, format)?,
            None => self.input.open(&self.from_file, context)?,
        };
        let format = self.to.unwrap_or_else(|| by_name(&self.to_file));
        let mut writing = AtomicOutput::begin(Some(&self.to_file), format)?;
        for part in recording.parts(self.input.bad_lines()) {
            if let Some(part) = self.input.or_skip(part, &self.from_file, context)? {
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
