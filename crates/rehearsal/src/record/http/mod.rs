//! Records a server behind a URL by a proxy between its clients and itself.
//!
//! ```text
//! HttpProxy ──► begin: which session? ──► ExchangeRecorder: heads, bodies ──► messages, events ──► SessionRecorder
//! ```
//!
//! | request | its session |
//! |---|---|
//! | any request of 2026-07-28 | one for the whole run: there are no HTTP sessions, and the channels keep equal ids of unrelated clients apart |
//! | `initialize` | a new one; the `Mcp-Session-Id` in the response names it |
//! | any request with an `Mcp-Session-Id` | the one with that id; if none was recorded yet, a new one |
//! | a GET for events without `Mcp-Session-Id` | a new one: the stream of HTTP+SSE; its `endpoint` event names the URL for its POSTs |
//! | any other request | that of the last handshake on the same socket, or of the last handshake, if the server sent no id; otherwise the one of the whole run |
//!
//! Each request and its response is a channel. A session ends with the response to a DELETE, with the stream of
//! HTTP+SSE, or with the recorder, but not before all of its other exchanges have ended.

mod body;
mod encoding;
mod exchange_recorder;
mod sessions;

pub use sessions::HttpRecording;
