//! What can go wrong with a recording.

use std::io;
use std::path::PathBuf;

use rehearsal::core::redact::RuleError;
use rehearsal::core::trace::dialect::WriteError;
use rehearsal::core::trace::{Format, LaidOut, ReadError};
use rehearsal::store::{Input, OpenError};

/// What records what the real server says.
pub(in crate::cli) const FORWARD: &str = "--unmatched forward";

/// Why something could not be done with a recording.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum TraceError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A line of it is bad.
    #[error("{input}, {error}")]
    Read {
        /// Which.
        input: Input,
        /// Where, and what was expected.
        error: ReadError,
    },
    /// It cannot be read any further.
    #[error("cannot read {input}: {cause}")]
    Unreadable {
        /// Which.
        input: Input,
        /// Why not.
        cause: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {cause}", path = path.display())]
    Unwritable {
        /// Which.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Nothing has this name or number.
    #[error("{input} has no session {wanted}")]
    NoSession {
        /// Where it was looked for.
        input: Input,
        /// What was asked for.
        wanted: String,
    },
    /// stdin can only be read once.
    #[error("stdin can be read only once")]
    StdinTwice,
    /// What was read from stdin has no file to write to.
    #[error("{option} needs a recording in a file, not stdin or a pipe")]
    NoFile {
        /// What was wanted.
        option: &'static str,
    },
    /// What another tool has recorded is not written over.
    #[error("{input} is a recording of {format}, and {option} writes traces")]
    NotTrace {
        /// Which.
        input: Input,
        /// What it is.
        format: Format,
        /// What was wanted.
        option: &'static str,
    },
    /// A format that can only be written.
    #[error("{format} files can be written, but not read")]
    WriteOnly {
        /// Which.
        format: Format,
    },
    /// What there is does not fit the format.
    #[error(transparent)]
    Unfit(WriteError),
    /// Something that is no pattern.
    #[error("{what} is no pattern: {why}")]
    Pattern {
        /// What was written.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something that is no JSONPath.
    #[error("--ignore {written}: not a JSONPath: {why}")]
    Path {
        /// What was written.
        written: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something that is no rule of redaction.
    #[error("--redact {written}: {error}")]
    Rule {
        /// What was written.
        written: String,
        /// What is wrong with it.
        error: RuleError,
    },
}

/// What to do about a file that is not read line by line.
pub(in crate::cli) fn on_lines(laid_out: LaidOut) -> &'static str {
    match laid_out {
        LaidOut::OverLines => {
            "every session, or message of a journal, belongs on a line of its own: `jq -c .` puts it there"
        }
        LaidOut::InArray => "every session belongs on a line of its own: `jq -c '.[]'` puts them there",
    }
}

impl TraceError {
    /// What reading a recording has come upon.
    pub(in crate::cli) fn read(input: &Input, error: ReadError) -> TraceError {
        match error {
            ReadError::Io(cause) => TraceError::Unreadable { input: input.clone(), cause },
            error => TraceError::Read { input: input.clone(), error },
        }
    }

    /// What to do about it.
    pub(in crate::cli) fn hints(&self) -> Vec<String> {
        if let TraceError::Read { error, .. } = self
            && let Some(laid_out) = error.laid_out()
        {
            return vec![on_lines(laid_out).to_owned()];
        }
        let hints: &[&str] = match self {
            TraceError::Open(OpenError::Unknown { .. }) => {
                &["a trace has one session a line, a journal one message a line; `rehearse record` writes both"]
            }
            TraceError::Open(OpenError::Unreadable { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                &["`rehearse record -- COMMAND` writes trace.jsonl"]
            }
            TraceError::Read { error: ReadError::Format { .. }, .. } => &["update rehearse, or record again"],
            TraceError::Read { error: ReadError::Bad { expected, .. }, .. } if expected.contains("end of the line") => {
                &["a session is one line: `jq -c .` puts it on one", "`--skip-bad` goes on with the next line"]
            }
            TraceError::Read { .. } => &["`--skip-bad` goes on with the next line"],
            TraceError::NoSession { .. } => &["`rehearse trace show` shows the name of each session"],
            TraceError::Pattern { .. } => &["`.` finds everything; a backslash takes its meaning from a character"],
            TraceError::Path { .. } => {
                &["a path begins with `$`: $.result.content[0].text, or $..timestamp for all of them"]
            }
            TraceError::NoFile { option: FORWARD } => &["`-o FILE` records in a file"],
            TraceError::NotTrace { option: FORWARD, .. } => {
                &["`-o FILE` records in another file", "`rehearse trace convert` makes a trace of it"]
            }
            TraceError::NotTrace { .. } => &["`rehearse trace convert` makes a trace of it"],
            TraceError::Unfit(WriteError::SecondSession { .. }) => &["`rehearse trace split` makes one file of each"],
            TraceError::Unfit(_) | TraceError::WriteOnly { .. } => &[],
            TraceError::Open(OpenError::Unreadable { .. })
            | TraceError::Unreadable { .. }
            | TraceError::Unwritable { .. }
            | TraceError::StdinTwice
            | TraceError::NoFile { .. }
            | TraceError::Rule { .. } => &[],
        };
        hints.iter().map(|hint| (*hint).to_owned()).collect()
    }
}
