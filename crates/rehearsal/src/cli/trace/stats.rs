//! `rehearse trace stats`

use clap::Args;
use rehearsal::core::trace::Stats;
use rehearsal::store::Input;

use super::input::{InputArgs, check_stdin_once};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::to_stdout;
use crate::print::{Columns, print_stats};

/// Count calls, failures and bytes, and measure the latency of calls
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
P50, P95 and MAX are the median, the 95th percentile and the maximum of the time between request and
response. Each tool, prompt and resource has its own row.

Examples:
  rehearse trace stats
  rehearse trace stats monday.jsonl tuesday.jsonl
  rehearse trace stats --json trace.jsonl | jq '.methods[] | select(.failed > 0)'

Exit status:
    0  everything went well
    2  a file, or a line of it, cannot be read";

impl TraceStatsArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        check_stdin_once(&self.files)?;
        let mut stats = Stats::default();
        for file in &self.files {
            for part in self.input.open(file, context)?.parts(self.input.bad_lines()) {
                if let Some(part) = self.input.or_skip(part, file, context)? {
                    stats.add(&part);
                }
            }
        }
        let columns = if self.json { Columns::Json } else { Columns::Text };
        to_stdout(|out| print_stats(&stats, columns, &context.stdout, out))?;
        Ok(Exit::Ok)
    }
}
