//! The capability cache: real results of tools, by the arguments that they were called with, and the tools of each server.
//!
//! ```text
//! trace ──► import ──┐
//!                    ├──► Cache ──► CacheStore (one SQLite file)
//! real run ──────────┘      ├─► CacheSource (a source of the answer chain): fresh answers of this principal
//!                           ├─► catalogue: the tools of a server, for a dry run without it
//!                           └─► export ──► JSON lines ──► import
//! ```
//!
//! An entry belongs to a run: one recorded session, or one real run of a plan. If a run called a tool several times with the
//! same arguments, a dry run gets the results in the order of that run. The results of earlier runs are kept, see
//! [`Cache::as_of`].

#[expect(clippy::module_inception, reason = "a file is named after the type in it")]
mod cache;
mod entry;
mod error;
mod export;
mod freshness;
mod import;
mod key;
mod source;
mod sqlite;
mod store;
#[cfg(test)]
mod store_tests;
mod tables;

pub use cache::{Cache, CacheStats, default_path};
pub use entry::{
    AnswerSharing, CacheEntry, CacheFilter, CachedAnswer, LOCAL_PRINCIPAL, LatencyScope, PrincipalFilter,
    SavedCatalogue, ToolSchemaHash,
};
pub use error::CacheError;
pub use export::{ExportError, export, import_export, is_export};
pub use freshness::{AnswerFreshness, StaleAnswer};
pub(crate) use import::is_complete;
pub use import::{ImportError, Imported, import};
pub use key::ArgumentsKey;
pub use source::CacheSource;
pub use store::{CacheLimits, ToolStats};
