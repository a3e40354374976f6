//! A server behind pipes, recorded between its client and itself.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use rehearsal::client::ClientError;
use rehearsal::record::{Recorder, StdioRecording};
use rehearsal::wire::stdio::{ClientStreams, ServerCommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::run::{Signals, runtime};

/// Records a server on our own stdin, stdout and stderr; the status to exit with.
pub(super) fn record(recorder: &Recorder, program: &OsString, arguments: &[OsString]) -> Result<u8, Failure> {
    let server = ServerCommand::new(program).arguments(arguments);
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        // A file that may not grow is an error like a full disk, not the death of the conversation. This is a handler
        // and not `SIG_IGN`, which the server would inherit.
        let _grown = signal(SignalKind::from_raw(Signal::SIGXFSZ as i32)).map_err(Failure::begin)?;
        let client = ClientStreams::own().map_err(Failure::begin)?;
        let recording = StdioRecording::start(recorder, &server, client).await.map_err(ClientError::Start)?;
        let exit = tokio::select! {
            end = recording.ended() => return Ok(code(end.status)),
            exit = signals.next() => exit,
        };
        tokio::select! {
            _ = recording.stop(as_signal(exit)) => {}
            // Whoever insists does not wait for the server.
            _ = signals.next() => {
                recording.kill();
                recording.stop(Signal::SIGKILL).await;
            }
        }
        Ok(exit.code())
    });
    runtime.shutdown_background();
    code
}

fn as_signal(exit: Exit) -> Signal {
    match exit {
        Exit::HungUp => Signal::SIGHUP,
        Exit::Interrupted => Signal::SIGINT,
        Exit::Terminated
        | Exit::Ok
        | Exit::ChecksFailed
        | Exit::BadInput
        | Exit::ServerFailed
        | Exit::RecordingFailed => Signal::SIGTERM,
    }
}

/// The status of a server as a shell would show it: 128 and the signal where one killed it.
fn code(status: Option<ExitStatus>) -> u8 {
    let code = status.and_then(|status| status.code().or_else(|| status.signal().map(|signal| 128 + signal)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::ServerFailed.code())
}
