//! `rehearse trace recover`

use std::path::PathBuf;

use clap::Args;
use rehearsal::record::{RecoveryOutcome, recover};

use super::input::recovered_line;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::print::plural;

/// Put sessions whose recorder was killed into their trace, and say what was done
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceRecoverArgs {
    /// The trace that was being recorded
    #[arg(default_value = "trace.jsonl", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

const AFTER_HELP: &str = "\
While a session is recorded, all forwarded messages are in the file TRACE.SESSION.journal beside its
trace. If the recorder was killed, the next verb that reads the trace or records to it adds the
session; `recover` does only that. A session that is still being recorded is not touched.

Examples:
  rehearse trace recover
  rehearse trace recover today.jsonl

Exit status:
    0  everything went well
    2  a journal could not be read, or the trace not be written";

impl TraceRecoverArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let unwritable = |cause: std::io::Error| Failure::unwritable(&self.file, &cause);
        let found = recover(&self.file).map_err(unwritable)?;
        if found.is_empty() {
            context.stderr.note(format_args!("nothing to recover beside {}", self.file.display()));
        }
        let mut exit = Exit::Ok;
        let mut folded = 0;
        for recovered in &found {
            match &recovered.fate {
                RecoveryOutcome::Failed { .. } => {
                    exit = Exit::BadInput;
                    context.stderr.error(recovered_line(recovered));
                    continue;
                }
                RecoveryOutcome::Folded { .. } => folded += 1,
                RecoveryOutcome::AlreadyInTrace | RecoveryOutcome::Empty | RecoveryOutcome::Running => {}
            }
            context.stderr.note(recovered_line(recovered));
        }
        if folded > 0 {
            context.stderr.note(format_args!("{} put into {}", plural(folded, "session"), self.file.display()));
        }
        Ok(exit)
    }
}
