//! `rehearse trace check`

use clap::Args;
use rehearsal::core::exchange::Side;
use rehearsal::core::report::Severity;
use rehearsal::core::shape::SessionCheck;
use rehearsal::core::trace::TimelineItem;
use rehearsal::store::Input;

use super::reading::{InputArgs, stdin_once};
use super::verb::SenderFilter;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::stream_to_stdout;
use crate::print::{CheckTotals, Columns, FindingPrinter};

/// Check every message against the shapes of its protocol version
#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub(super) struct Check {
    /// The recordings; - is stdin
    #[arg(default_value = "trace.jsonl", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<Input>,

    /// Only what this side sent
    #[arg(long, value_name = "SIDE")]
    from: Option<SenderFilter>,

    /// Warnings fail the check too
    #[arg(long)]
    strict: bool,

    /// Show notes too: keys that are allowed, but of another version
    #[arg(long)]
    notes: bool,

    /// Print a JSON object for each finding
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    reading: InputArgs,
}

const MORE: &str = "\
Methods, params, results, errors and notifications of both sides are held against the version
that is spoken: the one that `initialize` agreed on, or the one that a request names in `_meta`.
Where HTTP was recorded, the headers that repeat the body are checked too. Each finding says
which message it is about, where in it, and what was expected there. Keys that the protocol does
not know are allowed.

Examples:
  rehearse trace check
  rehearse trace check --from server --strict monday.jsonl tuesday.jsonl
  rehearse trace check --json trace.jsonl | jq -r '[.sequence, .path, .expected] | @tsv'

Exit status:
    0  no errors; with --strict, no warnings either
    1  something is not as the protocol has it
    2  a file, or a line of it, cannot be read";

impl Check {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        stdin_once(&self.files)?;
        let columns = if self.json { Columns::Json } else { Columns::Text };
        let mut checked = CheckTotals::default();
        stream_to_stdout(|out| {
            let mut printer = FindingPrinter::new(&context.stdout, columns, self.files.len(), out);
            for file in &self.files {
                let recording = self.reading.open(file, context)?;
                let mut conversation = SessionCheck::default();
                for moment in recording.timeline(self.reading.bad_lines()) {
                    let Some(moment) = self.reading.or_skip(moment, file, context)? else { continue };
                    if let TimelineItem::Start(start) = &moment {
                        checked.sessions += 1;
                        printer.start(&file.to_string(), start);
                    }
                    let before = if matches!(moment, TimelineItem::Start(_)) { 0 } else { conversation.messages() };
                    let found = conversation.check(&moment);
                    checked.messages += conversation.messages() - before;
                    for located in found.iter().filter(|located| self.wants(located.from)) {
                        checked.count(located.finding.severity);
                        if located.finding.severity > Severity::Note || self.notes {
                            printer.finding(located).map_err(Failure::stdout)?;
                        }
                    }
                }
            }
            Ok(())
        })?;
        context.talk.note(checked);
        if checked.notes > 0 && !self.notes {
            context.talk.hint("`--notes` shows the notes too");
        }
        let failed = checked.errors > 0 || (self.strict && checked.warnings > 0);
        Ok(if failed { Exit::ChecksFailed } else { Exit::Ok })
    }

    fn wants(&self, from: Side) -> bool {
        self.from.is_none_or(|wanted| wanted.side() == from)
    }
}
