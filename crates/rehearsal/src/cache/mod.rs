//! The capability cache: real results of tools, by the arguments that they were called with, and the tools of each server.
//!
//! ```text
//! trace ──► import ──┐
//!                    ├──► Cache (one SQLite file) ──► CacheSource (a source of the answer chain)
//! real run ──────────┘                          └──► catalogue: the tools of a server, for a dry run without it
//! ```
//!
//! An entry belongs to a run: one recorded session, or one real run of a plan. If a run called a tool several times with the
//! same arguments, a dry run gets the results in the order of that run.

mod import;
mod key;
mod source;
mod sqlite;

pub(crate) use import::is_complete;
pub use import::{ImportError, Imported, import};
pub use key::ArgumentsKey;
pub use source::CacheSource;
pub use sqlite::{Cache, CacheEntry, CacheError, CacheFilter, LatencyScope, SavedCatalogue, default_path};
