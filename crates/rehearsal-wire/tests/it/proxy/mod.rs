//! The proxy between raw sockets: which bytes come out where, and what whoever watches is told.

mod addresses;
mod endings;
mod framing;
mod pressure;
mod refusals;
mod stage;
mod tls;
