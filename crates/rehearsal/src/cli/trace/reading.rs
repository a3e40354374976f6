//! How recordings are read by every verb.

use std::path::Path;

use clap::Args;
use rehearsal::core::trace::ReadError;
use rehearsal::record::{Fate, Recovered, journals, recover, unrecovered};
use rehearsal::store::{BadLines, Input, Recording};

use super::TraceError;
use crate::cli::context::Context;
use crate::print::one_line;

/// What is done with lines that cannot be read.
#[derive(Args, Clone, Copy, Debug)]
pub(in crate::cli) struct Reading {
    /// Go on after a line that cannot be read, and say which it was
    #[arg(long)]
    skip_bad: bool,
}

impl Reading {
    pub(in crate::cli) fn bad_lines(self) -> BadLines {
        if self.skip_bad { BadLines::Skip } else { BadLines::Refuse }
    }

    /// Opens a recording. Sessions whose recorder was killed are put into it first.
    pub(in crate::cli) fn open(self, input: &Input, context: &Context) -> Result<Recording, TraceError> {
        let Input::File(path) = input else { return Ok(Recording::open(input)?) };
        // Whoever may not look into the directory can still read the file.
        if journals(path).is_ok_and(|journals| !journals.is_empty()) {
            self.open_recovered(path, input, context)
        } else {
            Ok(Recording::open(input)?)
        }
    }

    /// The same, to be read in the order in which its sessions began.
    pub(in crate::cli) fn open_in_order(self, input: &Input, context: &Context) -> Result<Recording, TraceError> {
        let recording = self.open(input, context)?;
        recording.in_order().map_err(|error| TraceError::read(input, ReadError::Io(error)))
    }

    /// What can be put into the trace is; what cannot, because nothing may be written there, is read where it stands.
    fn open_recovered(self, path: &Path, input: &Input, context: &Context) -> Result<Recording, TraceError> {
        match put_back(path, context) {
            PutBack::All => Ok(Recording::open(input)?),
            PutBack::NotAll => match unrecovered(path) {
                Ok(left) => {
                    for journal in &left.journals {
                        context.talk.say(format_args!("reading {} in its place", journal.display()));
                    }
                    Ok(Recording::open_with(input, &left)?)
                }
                Err(_) => Ok(Recording::open(input)?),
            },
        }
    }

    /// What was read, unless it was bad: then it is told and passed over, or ends the verb.
    pub(in crate::cli) fn sound<T>(
        self,
        read: Result<T, ReadError>,
        input: &Input,
        context: &Context,
    ) -> Result<Option<T>, TraceError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if self.skip_bad && !matches!(error, ReadError::Io(_)) => {
                context.talk.say(format_args!("skipped: {}", TraceError::read(input, error)));
                Ok(None)
            }
            Err(error) => Err(TraceError::read(input, error)),
        }
    }
}

/// Whether everything that stood beside a trace is in it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum PutBack {
    All,
    NotAll,
}

/// Puts sessions whose recorder was killed into their trace, and says what was done.
pub(in crate::cli) fn put_back(path: &Path, context: &Context) -> PutBack {
    let recovered = recover(path);
    let mut failed = recovered.is_err();
    for recovered in recovered.iter().flatten() {
        failed |= matches!(recovered.fate, Fate::Failed { .. });
        if recovered.fate != Fate::Running {
            context.talk.say(recovered_line(recovered));
        }
    }
    if let Err(cause) = recovered {
        context.talk.say(format_args!("cannot recover what stands beside {}: {cause}", path.display()));
    }
    if failed { PutBack::NotAll } else { PutBack::All }
}

/// `recovered session 0198c2: 12 entries`
pub(super) fn recovered_line(recovered: &Recovered) -> String {
    let Recovered { session_id, journal, fate } = recovered;
    let (session_id, journal) = (one_line(session_id), journal.display());
    match fate {
        Fate::Folded { entries: 1 } => format!("recovered session {session_id}: 1 entry"),
        Fate::Folded { entries } => format!("recovered session {session_id}: {entries} entries"),
        Fate::AlreadyThere => format!("session {session_id} is in the trace already; removed {journal}"),
        Fate::Empty => format!("nothing had been said in session {session_id}; removed {journal}"),
        Fate::Running => format!("session {session_id} is still being recorded"),
        Fate::Failed { why } => format!("cannot recover session {session_id} from {journal}: {why}"),
    }
}

/// Reads the name of a file, or `-`.
pub(in crate::cli) fn input(word: &str) -> Result<Input, std::convert::Infallible> {
    word.parse()
}

/// That stdin is wanted by no more than one.
pub(super) fn stdin_once<'a>(inputs: impl IntoIterator<Item = &'a Input>) -> Result<(), TraceError> {
    let count = inputs.into_iter().filter(|input| **input == Input::Stdin).count();
    if count > 1 { Err(TraceError::StdinTwice) } else { Ok(()) }
}
