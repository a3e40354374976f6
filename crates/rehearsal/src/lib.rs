//! Drive, record, mock and rehearse MCP servers, clients and agents.
//!
//! [`mock`] serves one from a file. [`client`] drives any server; [`testing`] has what a test of one needs beside it. [`record`] keeps what happens in
//! files, and [`replay`] makes a server of them again.

/// Errors print themselves in `unwrap` and `expect` as they do for users, with their causes.
macro_rules! debug_as_display {
    ($($error:ty),+) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{self}")?;
                let mut cause = std::error::Error::source(self);
                while let Some(error) = cause {
                    write!(f, ": {error}")?;
                    cause = error.source();
                }
                Ok(())
            }
        }
    )+};
}

pub mod cache;
pub mod client;
pub mod config;
pub mod dry_run;
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
pub use dry_run::dry_run;
pub use rehearsal_core as core;
pub use rehearsal_wire as wire;
