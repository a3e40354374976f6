//! Records a server over stdio.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::redact::LineRun;
use rehearsal_core::trace::{EntryBody, SessionEnd};
use rehearsal_wire::stdio::{ClientStreams, Relay, RelayEnd, RelayTap, ServerCommand, SpawnError, StdioStream};
use serde_json::{Map, Value, json};

use super::line_splitter::LineSplitter;
use super::session_recorder::RecordedInput;
use super::{Recorder, SessionRecorder};

/// A relay between a client and a server over stdio that records the session.
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
    session: SessionRecorder,
}

impl StdioRecording {
    /// Starts the server and forwards all bytes unchanged.
    pub async fn start(
        recorder: &Recorder,
        server: &ServerCommand,
        client: ClientStreams,
    ) -> Result<StdioRecording, SpawnError> {
        let session = recorder.start(server_info(server));
        let limit = server.message_limit;
        let lines = |from| Mutex::new(LineSplitter::new(from, limit, session.pieces()));
        let tap = StdioTap {
            session: session.clone(),
            client: lines(Side::Client),
            server: lines(Side::Server),
            stderr: Mutex::default(),
        };
        match Relay::start(server, client, Arc::new(tap)).await {
            Ok(relay) => Ok(StdioRecording { relay, session }),
            Err(error) => {
                session.end(SessionEnd::Failed { why: error.to_string() });
                Err(error)
            }
        }
    }

    /// Waits until the server has exited and all its output was forwarded, and appends the session to the trace.
    pub async fn ended(&self) -> RelayEnd {
        let end = self.relay.ended().await;
        self.session.end(how(end));
        end
    }

    /// Stops the server, first with a signal and then by killing it, and appends the session to the trace.
    pub async fn stop(&self, signal: nix::sys::signal::Signal) -> RelayEnd {
        let end = self.relay.stop(signal).await;
        self.session.end(SessionEnd::Stopped);
        end
    }

    /// Kills the server.
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
    session: SessionRecorder,
    client: Mutex<LineSplitter>,
    server: Mutex<LineSplitter>,
    stderr: Mutex<StderrLines>,
}

impl RelayTap for StdioTap {
    fn passing(&self, stream: StdioStream, bytes: &[u8]) {
        match stream {
            StdioStream::Stdin => self.record_bytes(&mut locked(&self.client), bytes),
            StdioStream::Stdout => self.record_bytes(&mut locked(&self.server), bytes),
            StdioStream::Stderr => {
                let mut entries = Vec::new();
                locked(&self.stderr).split(bytes, &mut entries);
                self.put(entries);
            }
        }
    }

    fn ended(&self, stream: StdioStream) {
        let mut entries = Vec::new();
        match stream {
            StdioStream::Stdin => locked(&self.client).end(&mut entries),
            StdioStream::Stdout => locked(&self.server).end(&mut entries),
            StdioStream::Stderr => locked(&self.stderr).end(&mut entries),
        }
        self.put(entries);
    }
}

impl StdioTap {
    /// Records the bytes of one side. Whole lines without secrets are kept verbatim: parsing them is not worth the
    /// delay.
    fn record_bytes(&self, lines: &mut LineSplitter, bytes: &[u8]) {
        let begun =
            if lines.is_between() { 0 } else { memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1) };
        let whole = memchr::memrchr(b'\n', bytes).map_or(begun, |end| end + 1);
        let (mut inputs, mut entries) = (Vec::new(), Vec::new());
        match self.session.line_redaction().filter(|_| bytes.len() <= lines.limit) {
            Some(redaction) => {
                lines.split(&bytes[..begun], &mut entries);
                for what in &entries {
                    if let EntryBody::Message { message, .. } = what {
                        lines.key.continues(message.raw());
                    }
                }
                for run in redaction.lines(&bytes[begun..whole]) {
                    match run {
                        LineRun::Clean(bytes) if !lines.key.is_open() => {
                            inputs.extend(entries.drain(..).map(RecordedInput::Entry));
                            let (channel, bytes) = (Channel::MAIN, bytes.into());
                            inputs.push(RecordedInput::Lines { from: lines.from, channel, bytes });
                        }
                        LineRun::Clean(few) | LineRun::Suspect(few) => {
                            lines.key.continues(few);
                            lines.split(few, &mut entries);
                        }
                    }
                }
                lines.split(&bytes[whole..], &mut entries);
            }
            None => lines.split(bytes, &mut entries),
        }
        inputs.extend(entries.into_iter().map(RecordedInput::Entry));
        if !inputs.is_empty() {
            self.session.record_lines(inputs);
        }
    }

    fn put(&self, entries: Vec<EntryBody>) {
        if !entries.is_empty() {
            self.session.put(entries);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of recorded bytes of a line.
const LINE_LIMIT: usize = 4096;
/// Maximum number of recorded bytes of a session.
const MAX_SESSION_BYTES: usize = 1024 * 1024;

/// Splits stderr into lines, up to a limit.
#[derive(Debug, Default)]
pub(super) struct StderrLines {
    line: Vec<u8>,
    kept: usize,
    full: bool,
}

impl StderrLines {
    pub(super) fn split(&mut self, bytes: &[u8], entries: &mut Vec<EntryBody>) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            self.push(entries);
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    pub(super) fn end(&mut self, entries: &mut Vec<EntryBody>) {
        if !self.line.is_empty() {
            self.push(entries);
        }
    }

    fn extend(&mut self, more: &[u8]) {
        let room = LINE_LIMIT.saturating_sub(self.line.len());
        self.line.extend_from_slice(&more[..more.len().min(room)]);
    }

    fn push(&mut self, entries: &mut Vec<EntryBody>) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        self.kept += text.len() + 1;
        if self.kept <= MAX_SESSION_BYTES {
            entries.push(EntryBody::Stderr { line: text });
        } else if !std::mem::replace(&mut self.full, true) {
            entries.push(EntryBody::Stderr {
                line: format!("(more than {MAX_SESSION_BYTES} bytes: what follows is not kept)"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_on_stderr_is_cut_with_a_note() {
        let mut stderr = StderrLines::default();
        let mut entries = Vec::new();
        let flood = [&[b'x'; 10_000][..], b"\n"].concat();
        (0..10_000).for_each(|_| stderr.split(&flood, &mut entries));
        stderr.end(&mut entries);
        assert_eq!(entries.len(), MAX_SESSION_BYTES / (LINE_LIMIT + 1) + 1);
        let last = EntryBody::Stderr { line: "(more than 1048576 bytes: what follows is not kept)".into() };
        assert_eq!(entries.last(), Some(&last));
    }
}
