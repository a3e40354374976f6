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

/// Convert a recording to another format
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceConvertArgs {
    /// The recording; - is stdin
    #[arg(value_hint = clap::ValueHint::FilePath)]
    from_file: Input,

    /// The file to write, replaced atomically at the end; - is stdout
    #[arg(value_name = "TO_FILE", default_value = "-", value_hint = clap::ValueHint::FilePath)]
    to_file: PathBuf,

    /// The format of the recording [default: detected from the first bytes]
    #[arg(long, value_name = "FORMAT", value_parser = formats(&Format::READ))]
    from: Option<Format>,

    /// The format to write [default: har or journal by the file extension, otherwise trace]
    #[arg(long, value_name = "FORMAT", value_parser = formats(&Format::WRITTEN))]
    to: Option<Format>,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
Formats: trace and journal are those of Rehearsal; python and python-log are those of the Python
interceptor; mcp-recorder, mcp-cassette, mcporter and mcptest are read only; har, an HTTP archive, is
written only. A conversion between python and trace is lossless in both directions;
docs/reference/trace-format.md lists the losses of the other formats.

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
        *known.expect("clap accepts only names of formats")
    })
}

impl TraceConvertArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let recording = match self.from {
            Some(format) => Recording::open_as(&self.from_file, format)?,
            None => self.input.open(&self.from_file, context)?,
        };
        let format = self.to.unwrap_or_else(|| format_of(&self.to_file));
        let mut output = AtomicOutput::begin(Some(&self.to_file), format)?;
        for part in recording.parts(self.input.bad_lines()) {
            if let Some(part) = self.input.or_skip(part, &self.from_file, context)? {
                output.part(&part)?;
            }
        }
        output.finish()?;
        Ok(Exit::Ok)
    }
}

/// The format for the extension of a file.
fn format_of(path: &Path) -> Format {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("har") => Format::Har,
        Some("journal") => Format::Journal,
        Some(_) | None => Format::Trace,
    }
}
