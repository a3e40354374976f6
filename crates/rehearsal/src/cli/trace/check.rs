//! `rehearse trace check`

use clap::Args;
use rehearsal::core::exchange::Side;
use rehearsal::core::report::Severity;
use rehearsal::core::shape::SessionCheck;
use rehearsal::core::trace::TimelineItem;
use rehearsal::store::Input;

use super::input::{InputArgs, check_stdin_once};
use super::verb::SenderFilter;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::stream_to_stdout;
use crate::print::{CheckTotals, Columns, FindingPrinter};

/// Check every message against the schema of its protocol version
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceCheckArgs {
    /// The recordings; - is stdin
    #[arg(default_value = "trace.jsonl", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<Input>,

    /// Check only messages of this side
    #[arg(long, value_name = "SIDE")]
    from: Option<SenderFilter>,

    /// Fail on warnings too
    #[arg(long)]
    strict: bool,

    /// Print notes too: keys that are allowed, but belong to another version
    #[arg(long)]
    notes: bool,

    /// Print one JSON object for each finding
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
Methods, params, results, errors and notifications of both sides are checked against the protocol
version of the session: the result of `initialize`, or the version that a request names in `_meta`. In
HTTP recordings, the headers that repeat the body are checked too. A finding has the number of the
message, a path in it, and the expected value. Keys that the protocol does not define are allowed.

Examples:
  rehearse trace check
  rehearse trace check --from server --strict monday.jsonl tuesday.jsonl
  rehearse trace check --json trace.jsonl | jq -r '[.sequence, .path, .expected] | @tsv'

Exit status:
    0  no errors; with --strict, no warnings either
    1  a message violates the protocol
    2  a file, or a line of it, cannot be read";

impl TraceCheckArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        check_stdin_once(&self.files)?;
        let columns = if self.json { Columns::Json } else { Columns::Text };
        let mut checked = CheckTotals::default();
        stream_to_stdout(|out| {
            let mut printer = FindingPrinter::new(&context.stdout, columns, self.files.len(), out);
            for file in &self.files {
                let recording = self.input.open(file, context)?;
                let mut session = 0;
                let mut session_check = SessionCheck::default();
                for item in recording.timeline(self.input.bad_lines()) {
                    let Some(item) = self.input.or_skip(item, file, context)? else { continue };
                    if let TimelineItem::Start(start) = &item {
                        checked.sessions += 1;
                        session += 1;
                        printer.start(&file.to_string(), session, start);
                    }
                    let count_before =
                        if matches!(item, TimelineItem::Start(_)) { 0 } else { session_check.messages() };
                    let found = session_check.check(&item);
                    checked.messages += session_check.messages() - count_before;
                    for located in found.iter().filter(|located| self.is_selected(located.from)) {
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
            context.stderr.hint("`--notes` prints the notes too");
        }
        let failed = checked.errors > 0 || (self.strict && checked.warnings > 0);
        Ok(if failed { Exit::ChecksFailed } else { Exit::Ok })
    }

    fn is_selected(&self, from: Side) -> bool {
        self.from.is_none_or(|filter| filter.side() == from)
    }
}
