//! A server behind pipes, recorded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::redact::Run;
use rehearsal_core::trace::{End, What};
use rehearsal_wire::stdio::{ClientStreams, Relay, RelayEnd, ServerCommand, SpawnError, Stream, Tap};
use serde_json::{Map, Value, json};

use super::lines::Lines;
use super::tape::Passed;
use super::{Recorder, Tape};

/// A server that a client talks to through us, and a tape of it.
///
/// ```no_run
/// use rehearsal::record::{Recorder, StdioRecording};
/// use rehearsal::wire::stdio::{ClientStreams, ServerCommand};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let recorder = Recorder::builder().trace("trace.jsonl").build();
/// let server = ServerCommand::new("npx").arguments(["-y", "some-server"]);
/// let recording = StdioRecording::start(&recorder, &server, ClientStreams::own()?).await?;
/// recording.ended().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct StdioRecording {
    relay: Relay,
    tape: Tape,
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
        let lines = |from| Mutex::new(Lines::new(from, limit, tape.pieces()));
        let tap = StdioTap {
            tape: tape.clone(),
            client: lines(Side::Client),
            server: lines(Side::Server),
            stderr: Mutex::default(),
        };
        match Relay::start(server, client, Arc::new(tap)).await {
            Ok(relay) => Ok(StdioRecording { relay, tape }),
            Err(error) => {
                tape.end(End::Failed { why: error.to_string() });
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
        self.tape.end(End::Stopped);
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

fn how(end: RelayEnd) -> End {
    use std::os::unix::process::ExitStatusExt;
    let code = end.status.and_then(|status| status.code());
    let signal = end.status.and_then(|status| status.signal());
    match end.client_closed {
        true => End::ClientClosed { status: code },
        false => End::ServerExited { status: code, signal },
    }
}

struct StdioTap {
    tape: Tape,
    client: Mutex<Lines>,
    server: Mutex<Lines>,
    stderr: Mutex<Stderr>,
}

impl Tap for StdioTap {
    fn passing(&self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdin => self.said(&mut locked(&self.client), bytes),
            Stream::Stdout => self.said(&mut locked(&self.server), bytes),
            Stream::Stderr => {
                let mut whats = Vec::new();
                locked(&self.stderr).cut(bytes, &mut whats);
                self.put(whats);
            }
        }
    }

    fn ended(&self, stream: Stream) {
        let mut whats = Vec::new();
        match stream {
            Stream::Stdin => locked(&self.client).end(&mut whats),
            Stream::Stdout => locked(&self.server).end(&mut whats),
            Stream::Stderr => locked(&self.stderr).end(&mut whats),
        }
        self.put(whats);
    }
}

impl StdioTap {
    /// Records the bytes of one side. Whole lines without secrets are kept verbatim: parsing them is not worth the
    /// delay.
    fn said(&self, lines: &mut Lines, bytes: &[u8]) {
        let begun =
            if lines.is_between() { 0 } else { memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1) };
        let whole = memchr::memrchr(b'\n', bytes).map_or(begun, |end| end + 1);
        let (mut passed, mut whats) = (Vec::new(), Vec::new());
        match self.tape.takes_lines().filter(|_| bytes.len() <= lines.limit) {
            Some(redaction) => {
                lines.cut(&bytes[..begun], &mut whats);
                for what in &whats {
                    if let What::Message { message, .. } = what {
                        lines.key.takes(message.raw());
                    }
                }
                for run in redaction.lines(&bytes[begun..whole]) {
                    match run {
                        Run::Clean(bytes) if !lines.key.is_open() => {
                            passed.extend(whats.drain(..).map(Passed::What));
                            let (channel, bytes) = (Channel::MAIN, bytes.into());
                            passed.push(Passed::Lines { from: lines.from, channel, bytes });
                        }
                        Run::Clean(few) | Run::Suspect(few) => {
                            lines.key.takes(few);
                            lines.cut(few, &mut whats);
                        }
                    }
                }
                lines.cut(&bytes[whole..], &mut whats);
            }
            None => lines.cut(bytes, &mut whats),
        }
        passed.extend(whats.into_iter().map(Passed::What));
        if !passed.is_empty() {
            self.tape.pass(passed);
        }
    }

    fn put(&self, whats: Vec<What>) {
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
const ALL: usize = 1024 * 1024;

/// Cuts stderr into lines, up to a limit.
#[derive(Debug, Default)]
pub(super) struct Stderr {
    line: Vec<u8>,
    kept: usize,
    full: bool,
}

impl Stderr {
    pub(super) fn cut(&mut self, bytes: &[u8], whats: &mut Vec<What>) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            self.push(whats);
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    pub(super) fn end(&mut self, whats: &mut Vec<What>) {
        if !self.line.is_empty() {
            self.push(whats);
        }
    }

    fn extend(&mut self, more: &[u8]) {
        let room = WIDTH.saturating_sub(self.line.len());
        self.line.extend_from_slice(&more[..more.len().min(room)]);
    }

    fn push(&mut self, whats: &mut Vec<What>) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        self.kept += text.len() + 1;
        if self.kept <= ALL {
            whats.push(What::Stderr { line: text });
        } else if !std::mem::replace(&mut self.full, true) {
            whats.push(What::Stderr { line: format!("(more than {ALL} bytes: what follows is not kept)") });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_kept_in_part_and_says_so() {
        let mut stderr = Stderr::default();
        let mut whats = Vec::new();
        let flood = [&[b'x'; 10_000][..], b"\n"].concat();
        (0..10_000).for_each(|_| stderr.cut(&flood, &mut whats));
        stderr.end(&mut whats);
        assert_eq!(whats.len(), ALL / (WIDTH + 1) + 1);
        let last = What::Stderr { line: "(more than 1048576 bytes: what follows is not kept)".into() };
        assert_eq!(whats.last(), Some(&last));
    }
}
