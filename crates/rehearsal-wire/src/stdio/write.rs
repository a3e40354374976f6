//! Messages written to a pipe, whole or not at all.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use crate::SendError;

/// A pipe that many tasks write to.
pub(super) struct LineWriter {
    /// `None` once closed.
    pipe: Mutex<Option<Pipe>>,
}

struct Pipe {
    to: Box<dyn AsyncWrite + Send + Unpin>,
    /// What is not written yet. A sender that gives up in the middle of a message leaves the rest here, and the next
    /// one writes it first: the peer never sees two messages in one line.
    rest: BytesMut,
}

impl LineWriter {
    pub(super) fn new(to: impl AsyncWrite + Send + Unpin + 'static) -> LineWriter {
        LineWriter { pipe: Mutex::new(Some(Pipe { to: Box::new(to), rest: BytesMut::with_capacity(4096) })) }
    }

    /// Writes one message and its line end.
    pub(super) async fn line(&self, message: &Bytes) -> Result<(), SendError> {
        if memchr::memchr(b'\n', message).is_some() {
            return Err(SendError::LineEnd);
        }
        self.write(&[message, b"\n"]).await
    }

    /// Writes bytes as they are.
    pub(super) async fn bytes(&self, bytes: &Bytes) -> Result<(), SendError> {
        self.write(&[bytes]).await
    }

    /// Writes bytes piece by piece; nobody else gets a word in between.
    pub(super) async fn drip(&self, bytes: &Bytes, piece: usize, pause: Duration) -> Result<(), SendError> {
        let mut pipe = self.pipe.lock().await;
        let Some(pipe) = pipe.as_mut() else { return Err(SendError::Closed) };
        for (at, piece) in bytes.chunks(piece.max(1)).enumerate() {
            if at > 0 {
                tokio::time::sleep(pause).await;
            }
            pipe.rest.extend_from_slice(piece);
            pipe.flush().await.map_err(failed)?;
        }
        Ok(())
    }

    async fn write(&self, parts: &[&[u8]]) -> Result<(), SendError> {
        let mut pipe = self.pipe.lock().await;
        let Some(pipe) = pipe.as_mut() else { return Err(SendError::Closed) };
        parts.iter().for_each(|part| pipe.rest.extend_from_slice(part));
        pipe.flush().await.map_err(failed)
    }

    /// Closes the pipe; a peer that reads sees the end.
    ///
    /// Waits while somebody writes: whoever calls this puts a limit on it.
    pub(super) async fn close(&self) {
        self.pipe.lock().await.take();
    }
}

fn failed(error: io::Error) -> SendError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => SendError::Closed,
        _ => SendError::Failed { why: error.to_string() },
    }
}

impl Pipe {
    async fn flush(&mut self) -> io::Result<()> {
        while !self.rest.is_empty() {
            let written = self.to.write(&self.rest).await?;
            if written == 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.rest.advance(written);
        }
        if self.rest.capacity() > 1024 * 1024 {
            self.rest = BytesMut::with_capacity(4096);
        }
        self.to.flush().await
    }
}

impl fmt::Debug for LineWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWriter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn a_sender_that_gives_up_does_not_cut_a_line_in_two() {
        let (near, mut far) = tokio::io::duplex(8);
        let writer = LineWriter::new(near);
        let long = Bytes::from_static(b"a long first message");
        let gave_up = tokio::time::timeout(Duration::from_millis(5), writer.line(&long)).await;
        assert!(gave_up.is_err());
        let short = Bytes::from_static(b"second");
        let read = async {
            let mut read = String::new();
            far.read_to_string(&mut read).await.unwrap();
            read
        };
        let write = async {
            writer.line(&short).await.unwrap();
            writer.close().await;
        };
        let (read, ()) = tokio::join!(read, write);
        assert_eq!(read, "a long first message\nsecond\n");
        assert!(matches!(writer.line(&short).await, Err(SendError::Closed)));
    }

    #[tokio::test]
    async fn a_line_end_inside_a_message_is_refused() {
        let writer = LineWriter::new(tokio::io::sink());
        assert!(matches!(writer.line(&Bytes::from_static(b"{\n}")).await, Err(SendError::LineEnd)));
    }
}
