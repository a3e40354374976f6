//! Drive, record, mock and rehearse MCP servers, clients and agents.
//!
//! What exists: [`client`] drives any server from a test.

pub mod client;

pub use client::Client;
pub use rehearsal_core as core;
pub use rehearsal_wire as wire;
