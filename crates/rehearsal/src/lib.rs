//! Drive, record, mock and rehearse MCP servers, clients and agents.
//!
//! [`mock`] serves one from a file. [`client`] drives any server; [`testing`] has what a test of one needs beside it. [`record`] keeps what happens in
//! files, and [`replay`] makes a server of them again.

pub mod client;
pub mod config;
pub mod generate;
pub mod mock;
#[cfg(feature = "oauth")]
pub mod oauth;
pub mod record;
pub mod replay;
pub mod serve;
pub mod store;
pub mod testing;
pub mod verify;

pub use client::Client;
pub use rehearsal_core as core;
pub use rehearsal_wire as wire;
