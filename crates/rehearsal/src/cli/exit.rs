//! What the program's exit status means.

use std::process::ExitCode;

/// How the program ended, for scripts that run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Everything went well.
    Ok = 0,
    /// The server answered, but with a failure: of the tool, or of the protocol.
    ChecksFailed = 1,
    /// The command line, or a file that it names, is wrong.
    BadInput = 2,
    /// The server gave no answer: it could not be started or reached, let us
    /// not in, died, or was silent for too long.
    ServerFailed = 3,
    /// Something could not be recorded; the conversation went on.
    RecordingFailed = 4,
    /// SIGHUP: the terminal was closed.
    HungUp = 129,
    /// SIGINT: somebody pressed Ctrl-C.
    Interrupted = 130,
    /// SIGTERM: somebody ended the program.
    Terminated = 143,
}

impl Exit {
    /// All of them, lowest first.
    pub(crate) const ALL: [Exit; 8] = [
        Exit::Ok,
        Exit::ChecksFailed,
        Exit::BadInput,
        Exit::ServerFailed,
        Exit::RecordingFailed,
        Exit::HungUp,
        Exit::Interrupted,
        Exit::Terminated,
    ];

    /// This, unless it is [`Exit::Ok`]: then the other.
    pub(crate) fn and(self, other: Exit) -> Exit {
        if self == Exit::Ok { other } else { self }
    }

    /// The number.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// What it means, in a few words.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Exit::Ok => "everything went well",
            Exit::ChecksFailed => "the tool says that it failed, or the server answered with an error",
            Exit::BadInput => "a flag, a file, a name or an argument is wrong",
            Exit::ServerFailed => {
                "the server could not be started or reached, let nobody in, died, or was silent for too long"
            }
            Exit::RecordingFailed => "something could not be recorded; the conversation itself went on",
            Exit::HungUp => "ended by SIGHUP",
            Exit::Interrupted => "ended by SIGINT (Ctrl-C)",
            Exit::Terminated => "ended by SIGTERM",
        }
    }

    /// All of them for `--help`:
    ///
    /// ```text
    /// Exit status:
    ///     0  everything went well
    ///     1  the tool says that it failed, or the server answered with an error
    /// ```
    pub(crate) fn help() -> String {
        let line = |exit: Exit| format!("\n  {:>3}  {}", exit.code(), exit.meaning());
        std::iter::once("Exit status:".to_owned()).chain(Exit::ALL.into_iter().map(line)).collect()
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_every_status() {
        let reference = include_str!("../../../../docs/reference/exit-status.md");
        for exit in Exit::ALL {
            let row = format!("| {} | {} |", exit.code(), exit.meaning());
            assert!(reference.contains(&row), "no row {row:?}");
        }
    }
}
