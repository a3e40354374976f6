//! `rehearse trace recover`

use std::path::PathBuf;

use clap::Args;
use rehearsal::record::{RecoveryOutcome, recover};

use super::input::recovered_line;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::print::plural;

/// Add the sessions of killed recorders to their trace
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceRecoverArgs {
    /// The trace that was being recorded
    #[arg(default_value = "trace.jsonl", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

const AFTER_HELP: &str = "\
During a session, all forwarded messages are in the file TRACE.SESSION.journal in the folder of the
trace. If the recorder was killed, the next verb that reads the trace or records to it adds the session;
`recover` does only that. A session that is still being recorded is not changed.

Examples:
  rehearse trace recover
  rehearse trace recover today.jsonl

Exit status:
    0  everything went well
    2  a journal cannot be read, or the trace cannot be written";

impl TraceRecoverArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let unwritable = |cause: std::io::Error| Failure::unwritable(&self.file, &cause);
        let found = recover(&self.file).map_err(unwritable)?;
        if found.is_empty() {
            context.stderr.note(format_args!("nothing to recover for {}", self.file.display()));
        }
        let mut exit = Exit::Ok;
        let mut folded = 0;
        for recovered in &found {
            match &recovered.outcome {
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
            context.stderr.note(format_args!("{} added to {}", plural(folded, "session"), self.file.display()));
        }
        Ok(exit)
    }
}
