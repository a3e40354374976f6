//! A pipe gives the same messages however its bytes arrive, and loses none.
//!
//! The first byte is the limit, the second how the bytes arrive.

#![no_main]

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use rehearsal_core::message::{GarbledReason, Message};
use tokio::io::{AsyncRead, ReadBuf};

// The file and not its crate: with TLS and HTTP around it this would build ten times as long.
#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/rehearsal-wire/src/stdio/line_reader.rs"]
mod line_reader;

use line_reader::{LineEvent, LineReader};

fuzz_target!(|bytes: &[u8]| {
    let [limit, cut, stream @ ..] = bytes else { return };
    let limit = if *limit == u8::MAX { usize::MAX } else { usize::from(*limit) };
    let cut = usize::from(*cut).max(1);
    let whole = lines(stream, usize::MAX, limit);
    assert_eq!(whole, lines(stream, cut, limit));

    let too_long =
        |message: &Message| matches!(message.as_garbled().map(|garbled| &garbled.reason), Some(GarbledReason::TooLong { .. }));
    if !whole.iter().any(too_long) {
        let mut joined = whole.iter().map(|message| message.raw().to_vec()).collect::<Vec<_>>().join(&b'\n');
        if stream.ends_with(b"\n") {
            joined.push(b'\n');
        }
        assert_eq!(joined, stream, "a byte was lost");
    }
});

fn lines(stream: &[u8], cut: usize, limit: usize) -> Vec<Message> {
    let mut reader = LineReader::new(Pieces { bytes: stream.to_vec(), given: 0, cut }, limit);
    let mut found = Vec::new();
    loop {
        match reader.poll_line(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(LineEvent::Message(message)) => found.push(message),
            Poll::Ready(LineEvent::End) => return found,
            Poll::Ready(LineEvent::Failed(error)) => panic!("{error}"),
            Poll::Pending => panic!("there is nothing to wait for"),
        }
    }
}

/// Bytes that arrive a few at a time.
struct Pieces {
    bytes: Vec<u8>,
    given: usize,
    cut: usize,
}

impl AsyncRead for Pieces {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let rest = &self.bytes[self.given..];
        let count = self.cut.min(to.remaining()).min(rest.len());
        to.put_slice(&rest[..count]);
        self.given += count;
        Poll::Ready(Ok(()))
    }
}
