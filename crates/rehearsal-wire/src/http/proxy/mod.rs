//! A reverse proxy that changes nothing: clients talk to a server through it, and a [`Tap`] sees all that passes.
//!
//! ```text
//!             ┌── Requests ──► out ──┐                 each direction: read ──► understand ──► tap ──► write, and
//! client socket                      upstream socket   only then the next read: whoever does not take what he is
//!             └── out ◄── Responses ─┘                 sent holds up his own direction and nothing else
//! ```
//!
//! Each client socket has one upstream socket of its own, so keeping alive, pipelining and closing pass through. Heads and
//! bodies are understood beside the bytes, and the bytes go on as they came, with their framing: chunk sizes, chunk
//! extensions, trailers, odd spacing, odd order. The exceptions are those without which a proxy cannot work at all:
//!
//! | what | why it is changed |
//! |---|---|
//! | `Host`, and the host in a request line with a whole address | servers refuse a foreign one (DNS rebinding) |
//! | `Origin`, `Referer`, where they name the proxy itself | the same |
//! | `Location`, `Content-Location`, `WWW-Authenticate`, `Access-Control-Allow-Origin`, where they name the upstream | the client would go past the proxy |
//! | the `endpoint` event of HTTP+SSE, where it is a whole address of the upstream | the same; only the chunk that it is in gets a new size |
//!
//! Some requests go no further: those that name a foreign host or come from a foreign origin (403), those whose length is
//! ambiguous (400: both `Content-Length` and `Transfer-Encoding`, or one of them twice, or a chunk that is none), heads
//! beyond the limit (431), and `CONNECT` (405). An upstream that cannot be reached, or that goes away before it answered
//! anything on a connection, is a 502. After that, it is what it is without a proxy: a closed connection.

mod body;
mod exchanges;
mod http_proxy;
mod relay;
mod request_head;
mod requests;
mod response_head;
mod responses;
mod rewrite;
mod upstream;

pub use http_proxy::{BindError, Forward, HttpProxy, Limits, Options, Over, Sight, Tap, Watcher};
