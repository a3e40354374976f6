//! `rehearse trace diff`

use std::collections::BTreeMap;

use clap::Args;
use rehearsal::core::trace::{CallComparison, CallDigest, CallPairs, Part, RecordedCall};
use rehearsal::store::{Input, Recording};

use super::input::{InputArgs, check_stdin_once};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::flag_values::not_a_path;
use crate::cli::output::to_stdout;
use crate::print::{CallDifference, Columns, print_difference};

/// Compare two recordings call by call
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceDiffArgs {
    /// The first recording; - is stdin
    #[arg(value_hint = clap::ValueHint::FilePath)]
    before: Input,

    /// The second recording; - is stdin
    #[arg(value_hint = clap::ValueHint::FilePath)]
    after: Input,

    /// Ignore the value at this JSONPath of a call, such as $.result..timestamp; may be repeated
    #[arg(long, value_name = "PATH")]
    ignore: Vec<String>,

    /// Maximum number of printed differences; all are counted
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,

    /// Print one JSON object for each difference
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
Calls are compared by method, params and answer; ids, times, `_meta` and the order of calls are ignored.
A call without an equal call in the other recording is compared with one of the same request, otherwise
of the same tool. ~ marks a changed call, - a call of the first and + a call of the second recording only.
The paths begin at `params`, `result` or `error`.

Examples:
  rehearse trace diff before.jsonl after.jsonl
  rehearse trace diff before.jsonl after.jsonl --ignore '$.result..timestamp' --ignore '$..uuid'

Exit status:
    0  the recordings are equal
    1  they differ
    2  a file, a line of it, or a path cannot be read";

/// The indexes of a call in the first and in the second recording.
type CallIndexes = (Option<usize>, Option<usize>);

/// Whether bad lines are reported: a file is read more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BadLineReport {
    Report,
    Silent,
}

impl TraceDiffArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        check_stdin_once([&self.before, &self.after])?;
        let mut compare = CallComparison::default();
        for path in &self.ignore {
            let no_path = |why: String| not_a_path(path, &why, "$.result.content[0].text");
            compare = compare.ignore(path).map_err(no_path)?;
        }
        let (before, after) = (self.input.open(&self.before, context)?, self.input.open(&self.after, context)?);
        let digests = |recording, file| -> Result<Vec<CallDigest>, Failure> {
            let mut digests = Vec::new();
            self.for_each_call(recording, file, context, BadLineReport::Report, |call| {
                digests.push(compare.digest(&call))
            })?;
            Ok(digests)
        };
        let pairs = CallPairs::find(&digests(&before, &self.before)?, &digests(&after, &self.after)?);
        let shown = self.shown(&pairs);
        let indexes = |side: fn(&CallIndexes) -> Option<usize>| -> BTreeMap<usize, Option<RecordedCall>> {
            shown.iter().filter_map(side).map(|index| (index, None)).collect()
        };
        let before = self.read_calls(indexes(|pair| pair.0), &before, &self.before, context)?;
        let after = self.read_calls(indexes(|pair| pair.1), &after, &self.after, context)?;
        let columns = if self.json { Columns::Json } else { Columns::Text };
        to_stdout(|out| {
            for (left, right) in &shown {
                let left = left.and_then(|index| before.get(&index)?.as_ref());
                let right = right.and_then(|index| after.get(&index)?.as_ref());
                let change = match (left, right) {
                    (Some(left), Some(right)) => CallDifference::Changed {
                        before: left,
                        after: right,
                        mismatches: compare.mismatches(left, right),
                    },
                    (Some(left), None) => CallDifference::Removed(left),
                    (None, Some(right)) => CallDifference::Added(right),
                    (None, None) => continue,
                };
                print_difference(&change, columns, &context.stdout, out)?;
            }
            Ok(())
        })?;
        let CallPairs { alike, changed, removed, added } = &pairs;
        let (changed, removed, added) = (changed.len(), removed.len(), added.len());
        context.stderr.note(format_args!("{changed} changed, {removed} removed, {added} added, {alike} alike"));
        let hidden = changed + removed + added - shown.len();
        if hidden > 0 {
            context.stderr.hint(format_args!("{hidden} more; `--limit COUNT` prints more"));
        }
        Ok(if pairs.all_equal() { Exit::Ok } else { Exit::ChecksFailed })
    }

    /// The differences to print: in the order of the first recording, then in the order of the second.
    fn shown(&self, pairs: &CallPairs) -> Vec<CallIndexes> {
        let changed = pairs.changed.iter().map(|(before, after)| (Some(*before), Some(*after)));
        let removed = pairs.removed.iter().map(|before| (Some(*before), None));
        let mut shown: Vec<_> = changed.chain(removed).collect();
        shown.sort_unstable();
        shown.extend(pairs.added.iter().map(|after| (None, Some(*after))));
        shown.truncate(self.limit);
        shown
    }

    /// Reads the calls with these indexes.
    fn read_calls(
        &self,
        mut calls: BTreeMap<usize, Option<RecordedCall>>,
        recording: &Recording,
        file: &Input,
        context: &Context,
    ) -> Result<BTreeMap<usize, Option<RecordedCall>>, Failure> {
        if calls.is_empty() {
            return Ok(calls);
        }
        let mut number = 0;
        self.for_each_call(recording, file, context, BadLineReport::Silent, |call| {
            if let Some(slot) = calls.get_mut(&number) {
                *slot = Some(call);
            }
            number += 1;
        })?;
        Ok(calls)
    }

    fn for_each_call(
        &self,
        recording: &Recording,
        file: &Input,
        context: &Context,
        bad_lines: BadLineReport,
        mut take: impl FnMut(RecordedCall),
    ) -> Result<(), Failure> {
        for part in recording.parts(self.input.bad_lines()) {
            // The first pass has reported the bad lines.
            let part = match part {
                Err(_) if bad_lines == BadLineReport::Silent => continue,
                part => self.input.or_skip(part, file, context)?,
            };
            if let Some(Part::Call(call)) = part {
                take(*call);
            }
        }
        Ok(())
    }
}
