//! Splits the bytes from a pipe into messages.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use rehearsal_core::message::{GarbledReason, Message};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The size of one read while much data arrives; also the capacity of a pipe on Linux.
const CHUNK: usize = 64 * 1024;
/// The size of one read while little data arrives. It fits the CPU cache, and a message that is kept holds no more
/// memory than this.
const SMALL_READ: usize = 4 * 1024;
/// The free space in the buffer that a read needs.
const MIN_SPARE: usize = 512;
/// How much of an overlong message is kept to identify it, in bytes.
const OVERLONG_LIMIT: usize = 1024;
/// How much of a partial line is shown.
const EXCERPT_LIMIT: usize = 200;

/// Splits a stream into lines. The line end belongs to the transport, everything else to the message.
pub(super) struct LineReader {
    from: Box<dyn AsyncRead + Send + Unpin>,
    buffer: BytesMut,
    /// The number of bytes in the buffer that are known to contain no line end.
    scanned: usize,
    limit: usize,
    state: LineState,
    /// True if the last message arrived alone. Then its response, or the next request, is probably written alone too.
    alone: Arc<AtomicBool>,
    /// True if a message of the last read was already returned.
    returned_one: bool,
    /// True if the last read filled the buffer.
    filled: bool,
    partial_line: Arc<PartialLine>,
    /// True if `partial_line` holds one.
    has_partial: bool,
}

/// The beginning of a line whose end has not arrived. It explains why a response is missing.
#[derive(Debug, Default)]
pub(super) struct PartialLine(Mutex<Option<(usize, String)>>);

impl PartialLine {
    /// Describes the partial line:
    ///
    /// ```text
    /// a line on its stdout was incomplete after 20 bytes: {"jsonrpc": "2.0", "
    /// ```
    pub(super) fn describe(&self) -> Option<String> {
        let (length, first) = self.state().clone()?;
        Some(format!("a line on its stdout was incomplete after {length} bytes: {first}"))
    }

    fn state(&self) -> MutexGuard<'_, Option<(usize, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineState {
    Lines,
    /// Skipping the rest of a line that was too long.
    Skipping,
    End,
}

/// What one poll of the stream returned.
pub(super) enum LineEvent {
    Message(Message),
    End,
    Failed(std::io::Error),
}

impl LineReader {
    pub(super) fn new(from: impl AsyncRead + Send + Unpin + 'static, limit: usize) -> LineReader {
        let (from, buffer) = (Box::new(from), BytesMut::with_capacity(SMALL_READ));
        let alone = Arc::new(AtomicBool::new(true));
        LineReader {
            from,
            buffer,
            scanned: 0,
            limit,
            state: LineState::Lines,
            alone,
            returned_one: false,
            filled: false,
            partial_line: Arc::default(),
            has_partial: false,
        }
    }

    /// Returns a shared view of the partial line.
    pub(super) fn partial_line(&self) -> Arc<PartialLine> {
        self.partial_line.clone()
    }

    /// Returns a shared flag: whether the last message arrived alone.
    pub(super) fn alone(&self) -> Arc<AtomicBool> {
        self.alone.clone()
    }

    pub(super) fn poll_line(&mut self, context: &mut Context<'_>) -> Poll<LineEvent> {
        // Lines in the buffer need no system call. Without a budget a flood of them would block every other task.
        let budget = std::task::ready!(tokio::task::coop::poll_proceed(context));
        loop {
            if let Some(message) = self.take_line() {
                budget.made_progress();
                let returned_one = std::mem::replace(&mut self.returned_one, true);
                self.alone.store(!returned_one && self.buffer.is_empty(), Ordering::Relaxed);
                return Poll::Ready(LineEvent::Message(message));
            }
            if self.state == LineState::End {
                return Poll::Ready(LineEvent::End);
            }
            let room = self.buffer.capacity() - self.buffer.len();
            if room < MIN_SPARE {
                // If half of a small buffer holds a partial message, the message is probably large.
                self.buffer.reserve(if self.filled || self.buffer.len() >= SMALL_READ / 2 {
                    CHUNK
                } else {
                    SMALL_READ
                });
            }
            let room = self.buffer.capacity() - self.buffer.len();
            // `read_buf` keeps no state between polls, so nothing is lost when each poll builds a new future.
            match pin!(self.from.read_buf(&mut self.buffer)).poll(context) {
                Poll::Pending => {
                    if self.has_partial || !self.buffer.is_empty() {
                        self.note_partial();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) => {
                    let skipping = std::mem::replace(&mut self.state, LineState::End) == LineState::Skipping;
                    self.scanned = 0;
                    let rest = self.buffer.split().freeze();
                    if !rest.is_empty() && !skipping {
                        return Poll::Ready(LineEvent::Message(Message::unterminated(rest)));
                    }
                }
                Poll::Ready(Ok(count)) => {
                    self.returned_one = false;
                    self.filled = count == room;
                }
                Poll::Ready(Err(error)) => {
                    self.state = LineState::End;
                    return Poll::Ready(LineEvent::Failed(error));
                }
            }
        }
    }

    #[cold]
    fn note_partial(&mut self) {
        self.has_partial = !self.buffer.is_empty();
        let first = || String::from_utf8_lossy(&self.buffer[..self.buffer.len().min(EXCERPT_LIMIT)]).into_owned();
        *self.partial_line.state() = self.has_partial.then(|| (self.buffer.len(), first()));
    }

    fn take_line(&mut self) -> Option<Message> {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer[self.scanned..]).map(|at| self.scanned + at);
            self.scanned = 0;
            match (self.state, end) {
                (LineState::Skipping, Some(end)) => {
                    self.buffer.advance(end + 1);
                    self.state = LineState::Lines;
                }
                (LineState::Skipping, None) => {
                    self.buffer.clear();
                    return None;
                }
                (LineState::Lines | LineState::End, Some(end)) => {
                    let mut line = self.buffer.split_to(end + 1);
                    line.truncate(end);
                    let line = line.freeze();
                    if line.len() > self.limit {
                        return Some(too_long(&line, self.limit));
                    }
                    return Some(Message::parse(line));
                }
                (LineState::Lines | LineState::End, None) if self.buffer.len() > self.limit => {
                    self.state = LineState::Skipping;
                    // A new buffer frees the memory of the long line.
                    let long = std::mem::replace(&mut self.buffer, BytesMut::with_capacity(SMALL_READ));
                    return Some(too_long(&long, self.limit));
                }
                (LineState::Lines | LineState::End, None) => {
                    self.scanned = self.buffer.len();
                    return None;
                }
            }
        }
    }
}

fn too_long(line: &[u8], limit: usize) -> Message {
    Message::garbled(Bytes::copy_from_slice(&line[..OVERLONG_LIMIT.min(limit)]), GarbledReason::TooLong { limit })
}

impl fmt::Debug for LineReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineReader").field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(chunks: Vec<Vec<u8>>, limit: usize) -> Vec<Message> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty());
            let mut builder = tokio_test::io::Builder::new();
            chunks.for_each(|chunk| {
                builder.read(&chunk);
            });
            let mut reader = LineReader::new(builder.build(), limit);
            let mut found = Vec::new();
            loop {
                match std::future::poll_fn(|context| reader.poll_line(context)).await {
                    LineEvent::Message(message) => found.push(message),
                    LineEvent::End => return found,
                    LineEvent::Failed(error) => panic!("{error}"),
                }
            }
        })
    }

    fn texts(messages: &[Message]) -> Vec<String> {
        messages.iter().map(|message| message.text().into_owned()).collect()
    }

    #[test]
    fn a_log_line_on_stdout_is_garbled_not_lost() {
        let found = lines(vec![b"Server started\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\n".to_vec()], 100);
        assert_eq!(texts(&found), ["Server started", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r", ""]);
        assert!(found[0].as_garbled().is_some());
        assert!(found[1].as_response().is_some());
    }

    #[test]
    fn an_unterminated_last_line_is_garbled_only_if_incomplete() {
        let whole = lines(vec![b"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}".to_vec()], 100);
        assert!(whole[0].as_notification().is_some());
        let partial_line = lines(vec![b"{\"jsonrpc\":\"2.0\",\"met".to_vec()], 100);
        assert_eq!(partial_line[0].as_garbled().unwrap().reason, GarbledReason::PartialLine);
    }

    #[test]
    fn a_line_over_the_limit_is_reported_once_and_reading_continues() {
        for chunk in [1, 7, 10_000] {
            let bytes = [vec![b'x'; 5000], b"\nok\n".to_vec()].concat();
            let found = lines(bytes.chunks(chunk).map(<[u8]>::to_vec).collect(), 100);
            assert_eq!(found.len(), 2, "in chunks of {chunk}");
            assert_eq!(found[0].as_garbled().unwrap().reason, GarbledReason::TooLong { limit: 100 });
            assert_eq!(found[1].raw(), "ok");
        }
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(
            text in proptest::collection::vec(proptest::sample::select(b"ab\n\r".to_vec()), 0..200),
            cut in 1usize..20,
        ) {
            let whole = texts(&lines(vec![text.clone()], 50));
            let cut = texts(&lines(text.chunks(cut).map(<[u8]>::to_vec).collect(), 50));
            prop_assert_eq!(whole, cut);
        }
    }
}
