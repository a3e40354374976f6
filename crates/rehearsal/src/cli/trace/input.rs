//! How recordings are read by every verb.

use std::io;
use std::path::Path;

use clap::Args;
use rehearsal::core::trace::{FileLayout, Format, ReadError};
use rehearsal::record::{Recovered, RecoveryOutcome, journals, recover, unrecovered};
use rehearsal::store::{BadLines, Input, OpenError, Recording};

use crate::cli::context::Context;
use crate::cli::exit::Failure;
use crate::print::sanitize_line;

/// What is done with lines that cannot be read.
#[derive(Args, Clone, Copy, Debug)]
pub(in crate::cli) struct InputArgs {
    /// Go on after a line that cannot be read, and say which it was
    #[arg(long)]
    skip_bad: bool,
}

impl InputArgs {
    pub(in crate::cli) fn bad_lines(self) -> BadLines {
        if self.skip_bad { BadLines::Skip } else { BadLines::Refuse }
    }

    /// Opens a recording. Sessions whose recorder was killed are put into it first.
    pub(in crate::cli) fn open(self, input: &Input, context: &Context) -> Result<Recording, Failure> {
        let Input::File(path) = input else { return Ok(Recording::open(input)?) };
        // Whoever may not look into the directory can still read the file.
        if journals(path).is_ok_and(|journals| !journals.is_empty()) {
            self.open_recovered(path, input, context)
        } else {
            Ok(Recording::open(input)?)
        }
    }

    /// The same, to be read in the order in which its sessions began.
    pub(in crate::cli) fn open_in_order(self, input: &Input, context: &Context) -> Result<Recording, Failure> {
        let recording = self.open(input, context)?;
        recording.in_order().map_err(|error| unreadable(input, ReadError::Io(error)))
    }

    /// What can be put into the trace is; what cannot, because nothing may be written there, is read where it stands.
    fn open_recovered(self, path: &Path, input: &Input, context: &Context) -> Result<Recording, Failure> {
        match put_back(path, context) {
            RecoveryStatus::All => Ok(Recording::open(input)?),
            RecoveryStatus::NotAll => match unrecovered(path) {
                Ok(left) => {
                    for journal in &left.journals {
                        context.stderr.note(format_args!("reading {} in its place", journal.display()));
                    }
                    Ok(Recording::open_with(input, &left)?)
                }
                Err(_) => Ok(Recording::open(input)?),
            },
        }
    }

    /// What was read, unless it was bad: then it is told and passed over, or ends the verb.
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

/// Whether everything that stood beside a trace is in it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum RecoveryStatus {
    All,
    NotAll,
}

/// Puts sessions whose recorder was killed into their trace, and says what was done.
pub(in crate::cli) fn put_back(path: &Path, context: &Context) -> RecoveryStatus {
    let recovered = recover(path);
    let mut failed = recovered.is_err();
    for recovered in recovered.iter().flatten() {
        failed |= matches!(recovered.fate, RecoveryOutcome::Failed { .. });
        if recovered.fate != RecoveryOutcome::Running {
            context.stderr.note(recovered_line(recovered));
        }
    }
    if let Err(cause) = recovered {
        context.stderr.note(format_args!("cannot recover what stands beside {}: {cause}", path.display()));
    }
    if failed { RecoveryStatus::NotAll } else { RecoveryStatus::All }
}

/// `recovered session 0198c2: 12 entries`
pub(super) fn recovered_line(recovered: &Recovered) -> String {
    let Recovered { session_id, journal, fate } = recovered;
    let (session_id, journal) = (sanitize_line(session_id), journal.display());
    match fate {
        RecoveryOutcome::Folded { entries: 1 } => format!("recovered session {session_id}: 1 entry"),
        RecoveryOutcome::Folded { entries } => format!("recovered session {session_id}: {entries} entries"),
        RecoveryOutcome::AlreadyInTrace => format!("session {session_id} is in the trace already; removed {journal}"),
        RecoveryOutcome::Empty => format!("nothing had been said in session {session_id}; removed {journal}"),
        RecoveryOutcome::Running => format!("session {session_id} is still being recorded"),
        RecoveryOutcome::Failed { why } => format!("cannot recover session {session_id} from {journal}: {why}"),
    }
}

/// That stdin is wanted by no more than one.
pub(super) fn stdin_once<'a>(inputs: impl IntoIterator<Item = &'a Input>) -> Result<(), Failure> {
    let count = inputs.into_iter().filter(|input| **input == Input::Stdin).count();
    if count > 1 { Err(Failure::bad_input("stdin can be read only once")) } else { Ok(()) }
}

/// What to do with a recording of another format.
pub(in crate::cli) const CONVERT: &str = "`rehearse trace convert` makes a trace of it";

/// A recording that is in no file, where one is needed.
pub(in crate::cli) fn no_file(option: &str) -> Failure {
    Failure::bad_input(format_args!("{option} needs a recording in a file, not stdin or a pipe"))
}

/// A recording of another tool, where a trace is needed.
pub(in crate::cli) fn not_trace(input: &Input, format: Format, option: &str) -> Failure {
    Failure::bad_input(format_args!("{input} is a recording of {format}, and {option} writes traces"))
}

/// An entry or a session that cannot be read.
pub(in crate::cli) fn unreadable(input: &Input, error: ReadError) -> Failure {
    if let ReadError::Io(cause) = error {
        return Failure::bad_input(format_args!("cannot read {input}: {cause}"));
    }
    let hints: &[&str] = match (error.file_layout(), &error) {
        (Some(laid_out), _) => &[on_lines(laid_out)],
        (None, ReadError::Format { .. }) => &["update rehearse, or record again"],
        (None, ReadError::Bad { expected, .. }) if expected.contains("end of the line") => {
            &["a session is one line: `jq -c .` puts it on one", "`--skip-bad` continues with the next line"]
        }
        (None, _) => &["`--skip-bad` continues with the next line"],
    };
    Failure::bad_input(format_args!("{input}, {error}")).hints(hints.iter().copied())
}

/// What to do about a file that is not read line by line.
pub(in crate::cli) fn on_lines(laid_out: FileLayout) -> &'static str {
    match laid_out {
        FileLayout::MultiLine => {
            "every session, or message of a journal, belongs on a line of its own: `jq -c .` puts it there"
        }
        FileLayout::InArray => "every session belongs on a line of its own: `jq -c '.[]'` puts them there",
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
