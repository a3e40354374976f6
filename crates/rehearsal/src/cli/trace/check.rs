//! `rehearse trace check`

use clap::Args;
use rehearsal::core::exchange::Side;
use rehearsal::core::report::Severity;
use rehearsal::core::shape::SessionCheck;
use rehearsal::core::trace::TimelineItem;
use rehearsal::store::Input;

use super::input::{InputArgs, stdin_once};
use super::verb::SenderFilter;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::stream_to_stdout;
use crate::print::{CheckTotals, Columns, FindingPrinter};

/// Check every message against the shapes of its protocol version
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceCheckArgs {
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
    input: InputArgs,
}

const AFTER_HELP: &str = "\
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

impl TraceCheckArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        stdin_once(&self.files)?;
        let columns = if self.json { Columns::Json } else { Columns::Text };
        let mut checked = CheckTotals::default();
        stream_to_stdout(|out| {
            let mut printer = FindingPrinter::new(&context.stdout, columns, self.files.len(), out);
            for file in &self.files {
                let recording = self.input.open(file, context)?;
                let mut session = 0;
                let mut conversation = SessionCheck::default();
                for item in recording.timeline(self.input.bad_lines()) {
                    let Some(item) = self.input.or_skip(item, file, context)? else { continue };
                    if let TimelineItem::Start(start) = &item {
                        checked.sessions += 1;
                        session += 1;
                        printer.start(&file.to_string(), session, start);
                    }
                    let before = if matches!(item, TimelineItem::Start(_)) { 0 } else { conversation.messages() };
                    let found = conversation.check(&item);
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
        context.stderr.note(checked);
        if checked.notes > 0 && !self.notes {
            context.stderr.hint("`--notes` shows the notes too");
        }
        let failed = checked.errors > 0 || (self.strict && checked.warnings > 0);
        Ok(if failed { Exit::ChecksFailed } else { Exit::Ok })
    }

    fn wants(&self, from: Side) -> bool {
        self.from.is_none_or(|wanted| wanted.side() == from)
    }
}
