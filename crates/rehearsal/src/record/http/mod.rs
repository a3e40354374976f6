//! A server behind a URL, recorded between its clients and itself.
//!
//! ```text
//! HttpProxy ──► begin: which session? ──► Exchange: heads, bodies ──► messages, events ──► the Tape of that session
//! ```
//!
//! | what is asked | its session |
//! |---|---|
//! | anything of 2026-07-28 | one for the whole run: there are no sessions, and ids of unrelated clients are kept apart by their channels |
//! | `initialize` | a new one; the `Mcp-Session-Id` in the answer names it |
//! | anything with an `Mcp-Session-Id` | the one of that name; one that nobody saw begin begins here |
//! | a GET for events without one | a new one: the stream of HTTP+SSE; the `endpoint` event says what is posted to it |
//! | anything else | that of the last handshake on the same socket, or of the last handshake, where the server named none; otherwise the one of the whole run |
//!
//! Each request and its response is a channel. A session ends when a DELETE was answered, when the stream of HTTP+SSE
//! ends, or with the recorder; and not before everything else in it is over.

mod body;
mod encoding;
mod exchange;
mod sessions;

pub use sessions::HttpRecording;
