//! `rehearse trace stats`

use clap::Args;
use rehearsal::core::trace::Stats;
use rehearsal::store::Input;

use super::input::{InputArgs, stdin_once};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::to_stdout;
use crate::print::{Columns, print_stats};

/// Count calls, failures and bytes, and how long calls took
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceStatsArgs {
    /// The recordings, counted together; - is stdin
    #[arg(default_value = "trace.jsonl", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<Input>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
P50 and P95 are the times that half and 95 of a hundred calls did not exceed, from question to
answer. Tools, prompts and resources are counted each on their own.

Examples:
  rehearse trace stats
  rehearse trace stats monday.jsonl tuesday.jsonl
  rehearse trace stats --json trace.jsonl | jq '.methods[] | select(.failed > 0)'

Exit status:
    0  everything went well
    2  a file, or a line of it, cannot be read";

impl TraceStatsArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        stdin_once(&self.files)?;
        let mut numbers = Stats::default();
        for file in &self.files {
            for part in self.input.open(file, context)?.parts(self.input.bad_lines()) {
                if let Some(part) = self.input.or_skip(part, file, context)? {
                    numbers.add(&part);
                }
            }
        }
        let columns = if self.json { Columns::Json } else { Columns::Text };
        to_stdout(|out| print_stats(&numbers, columns, &context.stdout, out))?;
        Ok(Exit::Ok)
    }
}
