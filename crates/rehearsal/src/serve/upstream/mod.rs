//! A live server behind a chain: what no source answers is forwarded to it.
//!
//! ```text
//! request ──► Upstream ──► UpstreamConnection, one for each client ──► Client ──► the live server
//!                └── SuspendedRequests: those whose client of 2026-07-28 must send input first
//! ```

mod suspended_requests;
#[expect(clippy::module_inception, reason = "the upstream is what this module is named after")]
mod upstream;
mod upstream_connection;

pub use upstream::Upstream;
