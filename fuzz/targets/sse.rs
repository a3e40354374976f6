//! A stream of events gives the same events however it is cut, and what it gave can be sent on.
//!
//! The first byte is the limit, the second how the stream is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;

// The file and not its crate: with TLS and HTTP around it this would build ten times as long.
#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/rehearsal-wire/src/http/sse.rs"]
mod sse;

use sse::{Decoder, EventTooLong, SseEvent, encode};

/// Every event, what was left unfinished, and the error, if any.
type Decoded = (Vec<SseEvent>, Option<SseEvent>, Option<EventTooLong>);

fuzz_target!(|bytes: &[u8]| {
    let [limit, cut, stream @ ..] = bytes else { return };
    let limit = if *limit == u8::MAX { usize::MAX } else { usize::from(*limit) };
    let cut = usize::from(*cut).max(1);

    let (events, unfinished, error) = decode([stream], limit);
    let (again, left, refused) = decode(stream.chunks(cut), limit);
    assert_eq!(events, again);
    assert_eq!(unfinished, left);
    assert_eq!(error.is_some(), refused.is_some());
    assert!(error.is_none_or(|error| error.data.len() <= limit));

    for event in events {
        assert_eq!(decode([&encode(&event)[..]], usize::MAX), (vec![event], None, None));
    }
});

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Decoded {
    let mut decoder = Decoder::new(limit);
    let result = pieces.into_iter().try_for_each(|piece| decoder.push(piece));
    let events = std::iter::from_fn(|| decoder.next_event()).collect();
    match result {
        Ok(()) => (events, decoder.finish(), None),
        Err(error) => (events, None, Some(error)),
    }
}
