//! The verbs below `rehearse trace`.

use clap::{Args, Subcommand, ValueEnum};
use rehearsal::core::exchange::Side;

use super::check::TraceCheckArgs;
use super::convert::TraceConvertArgs;
use super::diff::TraceDiffArgs;
use super::grep::TraceGrepArgs;
use super::merge::TraceMergeArgs;
use super::recover::TraceRecoverArgs;
use super::redact::TraceRedactArgs;
use super::show::TraceShowArgs;
use super::split::TraceSplitArgs;
use super::stats::TraceStatsArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};

/// Print, search, check, compare and rewrite recordings
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, subcommand_required = true, arg_required_else_help = true)]
pub(in crate::cli) struct TraceArgs {
    #[command(subcommand)]
    verb: TraceVerb,
}

const AFTER_HELP: &str = "\
The format is detected from the first bytes: a trace (one session per line), a journal (one message per
line), or a recording of another tool, as `rehearse trace convert --help` lists them. `-` reads stdin. Files
are streamed, so they may be larger than the memory.

Examples:
  rehearse trace show trace.jsonl
  rehearse trace stats trace.jsonl
  rehearse trace grep --errors . trace.jsonl
  rehearse trace check trace.jsonl
  rehearse trace diff before.jsonl after.jsonl";

#[derive(Debug, Subcommand)]
enum TraceVerb {
    Show(TraceShowArgs),
    Stats(TraceStatsArgs),
    Grep(TraceGrepArgs),
    Check(TraceCheckArgs),
    Diff(TraceDiffArgs),
    Merge(TraceMergeArgs),
    Split(TraceSplitArgs),
    Redact(TraceRedactArgs),
    Convert(TraceConvertArgs),
    Recover(TraceRecoverArgs),
}

impl TraceArgs {
    /// Runs the verb.
    pub(in crate::cli) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        match &self.verb {
            TraceVerb::Show(show) => show.run(context),
            TraceVerb::Stats(stats) => stats.run(context),
            TraceVerb::Grep(grep) => grep.run(context),
            TraceVerb::Check(check) => check.run(context),
            TraceVerb::Diff(diff) => diff.run(context),
            TraceVerb::Merge(merge) => merge.run(context),
            TraceVerb::Split(split) => split.run(context),
            TraceVerb::Redact(redact) => redact.run(context),
            TraceVerb::Convert(convert) => convert.run(context),
            TraceVerb::Recover(recover) => recover.run(context),
        }
    }
}

/// `--from`: the side whose messages are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SenderFilter {
    Client,
    Server,
}

impl SenderFilter {
    pub(super) fn side(self) -> Side {
        match self {
            SenderFilter::Client => Side::Client,
            SenderFilter::Server => Side::Server,
        }
    }
}
