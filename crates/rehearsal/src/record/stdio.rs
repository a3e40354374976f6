//! A server behind pipes, recorded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::redact::LineRun;
use rehearsal_core::trace::{EntryBody, SessionEnd};
use rehearsal_wire::stdio::{ClientStreams, Relay, RelayEnd, RelayTap, ServerCommand, SpawnError, StdioStream};
use serde_json::{Map, Value, json};

use super::lines::LineSplitter;
use super::tape::RecordedInput;
use super::{Recorder, SessionRecorder};

/// A server that a client talks to through us, and a tape of it.
///
/// ```no_run
/// use rehearsal::record::{Recorder, StdioRecording};
/// use rehearsal::transport::{ClientStreams, ServerCommand};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let recorder = Recorder::builder().trace("trace.jsonl").build();
/// let server = ServerCommand::new("npx").args(["-y", "some-server"]);
/// let recording = StdioRecording::start(&recorder, &server, ClientStreams::own()?).await?;
/// recording.ended().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct StdioRecording {
    relay: Relay,
    tape: SessionRecorder,
}

impl StdioRecording {
    /// Starts the server and passes everything on: the bytes that one side gets are the bytes that the other sent.
    pub async fn start(
        recorder: &Recorder,
        server: &ServerCommand,
        client: ClientStreams,
    ) -> Result<StdioRecording, SpawnError> {
        let tape = recorder.start(server_info(server));
        let limit = server.message_limit;
        let lines = |from| Mutex::new(LineSplitter::new(from, limit, tape.pieces()));
        let tap = StdioTap {
            tape: tape.clone(),
            client: lines(Side::Client),
            server: lines(Side::Server),
            stderr: Mutex::default(),
        };
        match Relay::start(server, client, Arc::new(tap)).await {
            Ok(relay) => Ok(StdioRecording { relay, tape }),
            Err(error) => {
                tape.end(SessionEnd::Failed { why: error.to_string() });
                Err(error)
            }
        }
    }

    /// Waits until the server has exited and all its output was forwarded, and appends the session to the trace.
    pub async fn ended(&self) -> RelayEnd {
        let end = self.relay.ended().await;
        self.tape.end(how(end));
        end
    }

    /// Ends the server with a signal first and firmly after that, and puts the session into the trace.
    pub async fn stop(&self, signal: nix::sys::signal::Signal) -> RelayEnd {
        let end = self.relay.stop(signal).await;
        self.tape.end(SessionEnd::Stopped);
        end
    }

    /// Kills the server at once.
    pub fn kill(&self) {
        self.relay.kill();
    }
}

fn server_info(server: &ServerCommand) -> Map<String, Value> {
    let arguments: Vec<_> = server.arguments.iter().map(|word| word.to_string_lossy()).collect();
    let info = json!({
        "transport": "stdio",
        "command": server.program.to_string_lossy(),
        "arguments": arguments,
    });
    match info {
        Value::Object(info) => info,
        _ => Map::new(),
    }
}

fn how(end: RelayEnd) -> SessionEnd {
    use std::os::unix::process::ExitStatusExt;
    let code = end.status.and_then(|status| status.code());
    let signal = end.status.and_then(|status| status.signal());
    match end.client_closed {
        true => SessionEnd::ClientClosed { status: code },
        false => SessionEnd::ServerExited { status: code, signal },
    }
}

struct StdioTap {
    tape: SessionRecorder,
    client: Mutex<LineSplitter>,
    server: Mutex<LineSplitter>,
    stderr: Mutex<StderrLines>,
}

impl RelayTap for StdioTap {
    fn passing(&self, stream: StdioStream, bytes: &[u8]) {
        match stream {
            StdioStream::Stdin => self.said(&mut locked(&self.client), bytes),
            StdioStream::Stdout => self.said(&mut locked(&self.server), bytes),
            StdioStream::Stderr => {
                let mut whats = Vec::new();
                locked(&self.stderr).cut(bytes, &mut whats);
                self.put(whats);
            }
        }
    }

    fn ended(&self, stream: StdioStream) {
        let mut whats = Vec::new();
        match stream {
            StdioStream::Stdin => locked(&self.client).end(&mut whats),
            StdioStream::Stdout => locked(&self.server).end(&mut whats),
            StdioStream::Stderr => locked(&self.stderr).end(&mut whats),
        }
        self.put(whats);
    }
}

impl StdioTap {
    /// Records the bytes of one side. Whole lines without secrets are kept verbatim: parsing them is not worth the
    /// delay.
    fn said(&self, lines: &mut LineSplitter, bytes: &[u8]) {
        let begun =
            if lines.is_between() { 0 } else { memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1) };
        let whole = memchr::memrchr(b'\n', bytes).map_or(begun, |end| end + 1);
        let (mut passed, mut whats) = (Vec::new(), Vec::new());
        match self.tape.line_redaction().filter(|_| bytes.len() <= lines.limit) {
            Some(redaction) => {
                lines.split(&bytes[..begun], &mut whats);
                for what in &whats {
                    if let EntryBody::Message { message, .. } = what {
                        lines.key.continues(message.raw());
                    }
                }
                for run in redaction.lines(&bytes[begun..whole]) {
                    match run {
                        LineRun::Clean(bytes) if !lines.key.is_open() => {
                            passed.extend(whats.drain(..).map(RecordedInput::What));
                            let (channel, bytes) = (Channel::MAIN, bytes.into());
                            passed.push(RecordedInput::Lines { from: lines.from, channel, bytes });
                        }
                        LineRun::Clean(few) | LineRun::Suspect(few) => {
                            lines.key.continues(few);
                            lines.split(few, &mut whats);
                        }
                    }
                }
                lines.split(&bytes[whole..], &mut whats);
            }
            None => lines.split(bytes, &mut whats),
        }
        passed.extend(whats.into_iter().map(RecordedInput::What));
        if !passed.is_empty() {
            self.tape.record_lines(passed);
        }
    }

    fn put(&self, whats: Vec<EntryBody>) {
        if !whats.is_empty() {
            self.tape.put(whats);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How much of a line is kept.
const WIDTH: usize = 4096;
/// How much of a session is kept.
const MAX_SESSION_BYTES: usize = 1024 * 1024;

/// Cuts stderr into lines, up to a limit.
#[derive(Debug, Default)]
pub(super) struct StderrLines {
    line: Vec<u8>,
    kept: usize,
    full: bool,
}

impl StderrLines {
    pub(super) fn cut(&mut self, bytes: &[u8], whats: &mut Vec<EntryBody>) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            self.push(whats);
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    pub(super) fn end(&mut self, whats: &mut Vec<EntryBody>) {
        if !self.line.is_empty() {
            self.push(whats);
        }
    }

    fn extend(&mut self, more: &[u8]) {
        let room = WIDTH.saturating_sub(self.line.len());
        self.line.extend_from_slice(&more[..more.len().min(room)]);
    }

    fn push(&mut self, whats: &mut Vec<EntryBody>) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        self.kept += text.len() + 1;
        if self.kept <= MAX_SESSION_BYTES {
            whats.push(EntryBody::Stderr { line: text });
        } else if !std::mem::replace(&mut self.full, true) {
            whats.push(EntryBody::Stderr {
                line: format!("(more than {MAX_SESSION_BYTES} bytes: what follows is not kept)"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_kept_in_part_and_says_so() {
        let mut stderr = StderrLines::default();
        let mut whats = Vec::new();
        let flood = [&[b'x'; 10_000][..], b"\n"].concat();
        (0..10_000).for_each(|_| stderr.cut(&flood, &mut whats));
        stderr.end(&mut whats);
        assert_eq!(whats.len(), MAX_SESSION_BYTES / (WIDTH + 1) + 1);
        let last = EntryBody::Stderr { line: "(more than 1048576 bytes: what follows is not kept)".into() };
        assert_eq!(whats.last(), Some(&last));
    }
}
