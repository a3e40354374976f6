//! Tests over real sockets: a client that writes HTTP by hand, and an application behind the server.

mod legacy;
mod limits;
mod misdeeds;
mod resumption;
mod stage;
mod stateless;
mod streams;
mod two_endpoints;
