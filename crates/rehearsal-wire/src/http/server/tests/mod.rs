//! Tests over real sockets: a client that writes HTTP by hand, and an application behind the server.

mod faults;
mod fixture;
mod http_sse;
mod legacy;
mod limits;
mod resumption;
mod stateless;
mod streams;
