//! `rehearse trace diff`

use std::collections::BTreeMap;

use clap::Args;
use rehearsal::core::trace::{CallComparison, CallDigest, CallPairs, Part, RecordedCall};
use rehearsal::store::{Input, Recording};

use super::input::{InputArgs, stdin_once};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::flag_values::not_a_path;
use crate::cli::output::to_stdout;
use crate::print::{CallDifference, Columns, print_difference};

/// Compare two recordings call by call: what was asked, and what was answered
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceDiffArgs {
    /// The recording as it was; - is stdin
    #[arg(value_hint = clap::ValueHint::FilePath)]
    before: Input,

    /// The recording as it is
    #[arg(value_hint = clap::ValueHint::FilePath)]
    after: Input,

    /// Pass over what is at this JSONPath of a call, such as $.result..timestamp; may be repeated
    #[arg(long, value_name = "PATH")]
    ignore: Vec<String>,

    /// Show so many changes; all are counted
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,

    /// Print a JSON object for each change
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
Calls are compared by method, params and answer; ids, times, `_meta` and the order of calls do
not count. A call that has no equal in the other recording is compared with one of the same
question, otherwise of the same tool. ~ is changed, - is only in the first and + only in the
second. The paths begin at `params`, `result` or `error`.

Examples:
  rehearse trace diff before.jsonl after.jsonl
  rehearse trace diff before.jsonl after.jsonl --ignore '$.result..timestamp' --ignore '$..uuid'

Exit status:
    0  the recordings say the same
    1  they differ
    2  a file, a line of it, or a path cannot be read";

/// The numbers of a call in the first and in the second recording.
type Shown = (Option<usize>, Option<usize>);

impl TraceDiffArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        stdin_once([&self.before, &self.after])?;
        let mut compare = CallComparison::default();
        for path in &self.ignore {
            let no_path = |why: String| not_a_path(path, &why, "$.result.content[0].text");
            compare = compare.ignore(path).map_err(no_path)?;
        }
        let (before, after) = (self.input.open(&self.before, context)?, self.input.open(&self.after, context)?);
        let sketches = |recording, file| -> Result<Vec<CallDigest>, Failure> {
            let mut sketches = Vec::new();
            self.calls(recording, file, context, true, |call| sketches.push(compare.sketch(&call)))?;
            Ok(sketches)
        };
        let pairs = CallPairs::find(&sketches(&before, &self.before)?, &sketches(&after, &self.after)?);
        let shown = self.shown(&pairs);
        let wanted = |side: fn(&Shown) -> Option<usize>| -> BTreeMap<usize, Option<RecordedCall>> {
            shown.iter().filter_map(side).map(|at| (at, None)).collect()
        };
        let before = self.fetched(wanted(|pair| pair.0), &before, &self.before, context)?;
        let after = self.fetched(wanted(|pair| pair.1), &after, &self.after, context)?;
        let columns = if self.json { Columns::Json } else { Columns::Text };
        to_stdout(|out| {
            for (left, right) in &shown {
                let left = left.and_then(|at| before.get(&at)?.as_ref());
                let right = right.and_then(|at| after.get(&at)?.as_ref());
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
            context.stderr.hint(format_args!("{hidden} more are not shown; `--limit` shows more"));
        }
        Ok(if pairs.all_equal() { Exit::Ok } else { Exit::ChecksFailed })
    }

    /// What is shown, by the numbers of the calls: in the order of the first recording, then that of the second.
    fn shown(&self, pairs: &CallPairs) -> Vec<Shown> {
        let changed = pairs.changed.iter().map(|(before, after)| (Some(*before), Some(*after)));
        let removed = pairs.removed.iter().map(|before| (Some(*before), None));
        let mut shown: Vec<_> = changed.chain(removed).collect();
        shown.sort_unstable();
        shown.extend(pairs.added.iter().map(|after| (None, Some(*after))));
        shown.truncate(self.limit);
        shown
    }

    /// The calls that are wanted, by their numbers.
    fn fetched(
        &self,
        mut wanted: BTreeMap<usize, Option<RecordedCall>>,
        recording: &Recording,
        file: &Input,
        context: &Context,
    ) -> Result<BTreeMap<usize, Option<RecordedCall>>, Failure> {
        if wanted.is_empty() {
            return Ok(wanted);
        }
        let mut number = 0;
        self.calls(recording, file, context, false, |call| {
            if let Some(slot) = wanted.get_mut(&number) {
                *slot = Some(call);
            }
            number += 1;
        })?;
        Ok(wanted)
    }

    fn calls(
        &self,
        recording: &Recording,
        file: &Input,
        context: &Context,
        tell: bool,
        mut take: impl FnMut(RecordedCall),
    ) -> Result<(), Failure> {
        for part in recording.parts(self.input.bad_lines()) {
            // What is bad is told the first time.
            let part = match part {
                Err(_) if !tell => continue,
                part => self.input.or_skip(part, file, context)?,
            };
            if let Some(Part::Call(call)) = part {
                take(*call);
            }
        }
        Ok(())
    }
}
