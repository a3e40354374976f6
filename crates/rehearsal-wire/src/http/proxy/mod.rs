//! A transparent reverse proxy: clients connect to a server through it, and a [`ProxyTap`] sees all traffic.
//!
//! ```text
//!             ┌── Requests ──► out ──┐                 each direction: read ──► understand ──► tap ──► write, and
//! client socket                      upstream socket   only then the next read: a side that does not read
//!             └── out ◄── Responses ─┘                 blocks its own direction and nothing else
//! ```
//!
//! Each client socket has its own upstream socket, so keep-alive, pipelining and closing pass through. Heads and bodies
//! are parsed from a view of the bytes. The bytes themselves are forwarded unchanged, with their framing: chunk sizes,
//! chunk extensions, trailers, odd spacing, odd order. The exceptions are those that a proxy needs in order to work:
//!
//! | what | why it is changed |
//! |---|---|
//! | `Host`, and the host in a request line with an absolute URL | servers refuse a foreign one (DNS rebinding) |
//! | `Origin`, `Referer`, if they name the proxy itself | servers refuse a foreign one |
//! | `Location`, `Content-Location`, `WWW-Authenticate`, `Access-Control-Allow-Origin`, if they name the upstream | the client would bypass the proxy |
//! | the `endpoint` event of HTTP+SSE, if it is an absolute URL of the upstream | the client would bypass the proxy; only the event's chunk gets a new size |
//!
//! Some requests are refused: a foreign host or a foreign origin (403), an ambiguous length (400: both `Content-Length`
//! and `Transfer-Encoding`, one of them twice, or an invalid chunk), a head beyond the limit (431), and `CONNECT`
//! (405). If the upstream cannot be reached, or disconnects before its first response on a connection, the client gets
//! a 502. After a response it gets a closed connection, as it would without a proxy.

mod body;
mod exchanges;
mod http_proxy;
mod request_head;
mod requests;
mod response_head;
mod responses;
mod rewrite;
mod socket_relay;
mod upstream;

pub use http_proxy::{
    ExchangeEnd, ExchangeObserver, Forward, HttpProxy, HttpProxyLimits, HttpProxyOptions, Observed, ProxyBindError,
    ProxyTap,
};
