//! `rehearse trace redact`

use clap::Args;
use rehearsal::core::redact::{Redaction, RedactionRule, RedactionSummary};
use rehearsal::store::Input;

use super::input::InputArgs;
use super::output::OutputArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};

/// Redact the secrets of a recording
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceRedactArgs {
    /// The recording; - is stdin
    #[arg(default_value = "trace.jsonl", value_hint = clap::ValueHint::FilePath)]
    file: Input,

    /// Redact this too: a JSONPath, or a regular expression; may be repeated
    #[arg(long, value_name = "PATH|PATTERN")]
    redact: Vec<String>,

    /// Redact only what the rules of --redact match
    #[arg(long, requires = "redact")]
    only: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
Credentials in headers, environments, URLs, arguments and results are found by their keys and their
form, with the same rules as in `rehearse record`. Ids, progress tokens, cursors and schemas are not
changed, and equal secrets become equal pseudonyms, so the recording still replays. The number of
redacted values is printed on stderr.

Examples:
  rehearse trace redact trace.jsonl -o safe.jsonl
  rehearse trace redact trace.jsonl --redact '$.params.arguments.email' -o safe.jsonl

Exit status:
    0  everything went well
    2  a file cannot be read or written, or a rule is invalid";

impl TraceRedactArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let mut redaction = if self.only { Redaction::none() } else { Redaction::standard() };
        for written in &self.redact {
            let rule = RedactionRule::parse(written);
            redaction =
                redaction.with(rule.map_err(|error| Failure::bad_input(format_args!("--redact {written}: {error}")))?);
        }
        let recording = self.input.open(&self.file, context)?;
        let mut output = self.output.begin()?;
        let mut summary = RedactionSummary::default();
        for part in recording.parts(self.input.bad_lines()) {
            let Some(part) = self.input.or_skip(part, &self.file, context)? else { continue };
            let (part, hits) = redaction.part(part);
            summary.add(hits);
            output.part(&part)?;
        }
        output.finish()?;
        match summary.is_empty() {
            true => context.stderr.note("found nothing to redact"),
            false => context.stderr.note(summary),
        }
        Ok(Exit::Ok)
    }
}
