//! Tests of the proxy between raw sockets: which bytes it forwards, and what it reports to the watcher.

mod addresses;
mod endings;
mod framing;
mod pressure;
mod refusals;
mod stage;
mod tls;
