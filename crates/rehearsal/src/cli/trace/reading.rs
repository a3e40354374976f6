//! How recordings are read by every verb.

use clap::Args;
use rehearsal::core::trace::ReadError;
use rehearsal::store::{BadLines, Input, Recording};

use super::TraceError;
use crate::cli::context::Context;

/// What is done with lines that cannot be read.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Go on after a line that cannot be read, and say which it was
    #[arg(long)]
    skip_bad: bool,
}

impl Reading {
    pub(super) fn bad_lines(self) -> BadLines {
        if self.skip_bad { BadLines::Skip } else { BadLines::Refuse }
    }

    /// Opens a recording.
    pub(super) fn open(self, input: &Input) -> Result<Recording, TraceError> {
        Ok(Recording::open(input)?)
    }

    /// What was read, unless it was bad: then it is told and passed over, or ends the verb.
    pub(super) fn sound<T>(
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

/// Reads the name of a file, or `-`.
pub(super) fn input(word: &str) -> Result<Input, std::convert::Infallible> {
    word.parse()
}

/// That stdin is wanted by no more than one.
pub(super) fn stdin_once<'a>(inputs: impl IntoIterator<Item = &'a Input>) -> Result<(), TraceError> {
    let count = inputs.into_iter().filter(|input| **input == Input::Stdin).count();
    if count > 1 { Err(TraceError::StdinTwice) } else { Ok(()) }
}
