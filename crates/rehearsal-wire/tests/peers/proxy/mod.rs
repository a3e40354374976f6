//! Tests of the proxy between raw sockets: which bytes it forwards, and what it reports to the observer.

mod backpressure;
mod disconnects;
mod fixture;
mod framing;
mod refusals;
mod rewriting;
mod tls;
