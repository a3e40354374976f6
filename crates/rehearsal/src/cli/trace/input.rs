//! Opens and reads recordings, for all verbs.

use std::io;
use std::path::Path;

use clap::Args;
use rehearsal::core::trace::{FileLayout, Format, ReadError};
use rehearsal::record::{Recovered, RecoveryOutcome, journals, recover, unrecovered};
use rehearsal::store::{BadLines, Input, OpenError, Recording};

use crate::cli::context::Context;
use crate::cli::exit::Failure;
use crate::print::sanitize_line;

/// The option for lines that cannot be read.
#[derive(Args, Clone, Copy, Debug)]
pub(in crate::cli) struct InputArgs {
    /// Report a line that cannot be read, and continue with the next one
    #[arg(long)]
    skip_bad: bool,
}

impl InputArgs {
    pub(in crate::cli) fn bad_lines(self) -> BadLines {
        if self.skip_bad { BadLines::Skip } else { BadLines::Refuse }
    }

    /// Opens a recording. Sessions of killed recorders are added to it first.
    pub(in crate::cli) fn open(self, input: &Input, context: &Context) -> Result<Recording, Failure> {
        let Input::File(path) = input else { return Ok(Recording::open(input)?) };
        // The file may be readable although its folder is not.
        if journals(path).is_ok_and(|journals| !journals.is_empty()) {
            self.open_recovered(path, input, context)
        } else {
            Ok(Recording::open(input)?)
        }
    }

    /// Opens a recording, with its sessions in the order of their start.
    pub(in crate::cli) fn open_in_order(self, input: &Input, context: &Context) -> Result<Recording, Failure> {
        let recording = self.open(input, context)?;
        recording.in_order().map_err(|error| unreadable(input, ReadError::Io(error)))
    }

    /// Adds the sessions of killed recorders to the trace. If the trace cannot be written, their journals are read instead.
    fn open_recovered(self, path: &Path, input: &Input, context: &Context) -> Result<Recording, Failure> {
        match recover_sessions(path, context) {
            RecoveryStatus::All => Ok(Recording::open(input)?),
            RecoveryStatus::NotAll => match unrecovered(path) {
                Ok(left) => {
                    for journal in &left.journals {
                        context.stderr.note(format_args!("reading {} instead", journal.display()));
                    }
                    Ok(Recording::open_with(input, &left)?)
                }
                Err(_) => Ok(Recording::open(input)?),
            },
        }
    }

    /// Returns what was read. With `--skip-bad` a bad line is reported and skipped, otherwise it is an error.
    pub(in crate::cli) fn or_skip<T>(
        self,
        read: Result<T, ReadError>,
        input: &Input,
        context: &Context,
    ) -> Result<Option<T>, Failure> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if self.skip_bad && !matches!(error, ReadError::Io(_)) => {
                context.stderr.note(format_args!("skipped: {}", unreadable(input, error)));
                Ok(None)
            }
            Err(error) => Err(unreadable(input, error)),
        }
    }
}

/// Whether all journals next to a trace were added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum RecoveryStatus {
    All,
    NotAll,
}

/// Adds the sessions of killed recorders to their trace, and reports each.
pub(in crate::cli) fn recover_sessions(path: &Path, context: &Context) -> RecoveryStatus {
    let recovered = recover(path);
    let mut failed = recovered.is_err();
    for recovered in recovered.iter().flatten() {
        failed |= matches!(recovered.outcome, RecoveryOutcome::Failed { .. });
        if recovered.outcome != RecoveryOutcome::Running {
            context.stderr.note(recovered_line(recovered));
        }
    }
    if let Err(cause) = recovered {
        context.stderr.note(format_args!("cannot recover the journals of {}: {cause}", path.display()));
    }
    if failed { RecoveryStatus::NotAll } else { RecoveryStatus::All }
}

/// `recovered session 0198c2: 12 entries`
pub(super) fn recovered_line(recovered: &Recovered) -> String {
    let Recovered { session_id, journal, outcome } = recovered;
    let (session_id, journal) = (sanitize_line(session_id), journal.display());
    match outcome {
        RecoveryOutcome::Folded { entries: 1 } => format!("recovered session {session_id}: 1 entry"),
        RecoveryOutcome::Folded { entries } => format!("recovered session {session_id}: {entries} entries"),
        RecoveryOutcome::AlreadyInTrace => format!("session {session_id} is in the trace already; removed {journal}"),
        RecoveryOutcome::Empty => format!("session {session_id} had no messages; removed {journal}"),
        RecoveryOutcome::Running => format!("session {session_id} is still being recorded"),
        RecoveryOutcome::Failed { why } => format!("cannot recover session {session_id} from {journal}: {why}"),
    }
}

/// Refuses stdin for more than one recording.
pub(super) fn check_stdin_once<'a>(inputs: impl IntoIterator<Item = &'a Input>) -> Result<(), Failure> {
    let count = inputs.into_iter().filter(|input| **input == Input::Stdin).count();
    if count > 1 { Err(Failure::bad_input("stdin can be read only once")) } else { Ok(()) }
}

/// The hint for a recording in another format.
pub(in crate::cli) const CONVERT: &str = "`rehearse trace convert` converts it to a trace";

/// The error for a recording that is not in a file.
pub(in crate::cli) fn no_file(option: &str) -> Failure {
    Failure::bad_input(format_args!("{option} needs a recording in a file, not stdin or a pipe"))
}

/// The error for a recording that is not a trace.
pub(in crate::cli) fn not_trace(input: &Input, format: Format, option: &str) -> Failure {
    Failure::bad_input(format_args!("{input} is a recording of {format}, and {option} writes traces"))
}

/// The error for a line that cannot be read.
pub(in crate::cli) fn unreadable(input: &Input, error: ReadError) -> Failure {
    if let ReadError::Io(cause) = error {
        return Failure::bad_input(format_args!("cannot read {input}: {cause}"));
    }
    let hints: &[&str] = match (error.file_layout(), &error) {
        (Some(layout), _) => &[on_lines(layout)],
        (None, ReadError::Format { .. }) => &["update rehearse, or record again"],
        (None, ReadError::Bad { expected, .. }) if expected.contains("end of the line") => {
            &["a session is one line: `jq -c .` writes it as one", "`--skip-bad` continues with the next line"]
        }
        (None, _) => &["`--skip-bad` continues with the next line"],
    };
    Failure::bad_input(format_args!("{input}, {error}")).hints(hints.iter().copied())
}

/// The hint for a file whose lines are not sessions or messages.
pub(in crate::cli) fn on_lines(layout: FileLayout) -> &'static str {
    match layout {
        FileLayout::MultiLine => "each session, or message of a journal, must be one line: `jq -c .` writes it as one",
        FileLayout::InArray => "each session must be one line: `jq -c '.[]'` writes them so",
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        let hint = match &error {
            OpenError::Unknown { .. } => {
                Some("a trace has one session a line, a journal one message a line; `rehearse record` writes both")
            }
            OpenError::Unreadable { cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
                Some("`rehearse record -- COMMAND` writes trace.jsonl")
            }
            OpenError::Unreadable { .. } => None,
        };
        Failure::bad_input(error).hints(hint)
    }
}
