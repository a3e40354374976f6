//! The operations of a store of the cache. All SQL is behind this trait.

use std::fmt;
use std::path::Path;

use super::entry::{CacheFilter, LatencyScope};
use super::error::CacheError;
use super::key::ArgumentsKey;

/// A place in which results and lists of tools are kept, for several processes at once.
///
/// Every operation is one transaction. [`super::Cache`] turns rows into results; a store knows neither JSON nor MCP.
pub(super) trait CacheStore: fmt::Debug + Send + Sync {
    /// The file, or a name for messages.
    fn path(&self) -> &Path;

    /// Stores rows and returns how many are new. A row that is already stored is skipped. Then it removes versions and rows
    /// beyond the limits.
    fn insert(&self, rows: &[AnswerRow]) -> Result<usize, CacheError>;

    /// The rows of a call in the newest run that has one, in their order. This is the look-up of every call of a plan: one
    /// query that uses an index.
    fn answers(&self, call: CallId<'_>, view: CacheView<'_>) -> Result<Vec<AnswerRow>, CacheError>;

    /// The newest rows of a tool without errors.
    fn recent(&self, server: &str, tool: &str, limit: usize, view: CacheView<'_>)
    -> Result<Vec<AnswerRow>, CacheError>;

    /// The newest 1000 latencies of some calls.
    fn latencies(&self, calls: LatencyScope<'_>, view: CacheView<'_>) -> Result<Vec<f64>, CacheError>;

    /// The rows that fit a filter: by server and tool, the newest first.
    fn list(&self, filter: &CacheFilter, view: CacheView<'_>) -> Result<Vec<AnswerRow>, CacheError>;

    /// Removes the rows that fit a filter and returns their number. Catalogues of a server go with its rows if the filter
    /// names neither a tool nor a time.
    fn purge(&self, filter: &CacheFilter, principal: &str) -> Result<usize, CacheError>;

    /// Saves the tools of a server with the hash of each tool's schemas, unless a newer list is saved.
    fn save_catalogue(&self, catalogue: &CatalogueRow) -> Result<(), CacheError>;

    /// The saved tools of a server.
    fn catalogue(&self, server: &str) -> Result<Option<CatalogueRow>, CacheError>;

    /// The names of the servers whose tools are saved, sorted.
    fn catalogues(&self) -> Result<Vec<String>, CacheError>;

    /// The hash of the schemas of a saved tool.
    fn tool_schema(&self, server: &str, tool: &str) -> Result<Option<Vec<u8>>, CacheError>;

    /// The limits of the store, which hold for all processes.
    fn limits(&self) -> Result<CacheLimits, CacheError>;

    /// Sets the limits, and removes rows beyond them.
    fn set_limits(&self, limits: CacheLimits) -> Result<(), CacheError>;

    /// The number of rows, their bytes and their times, by server and tool.
    fn stats(&self) -> Result<Vec<ToolStats>, CacheError>;

    /// The size of the files.
    fn bytes_on_disk(&self) -> Option<u64>;
}

/// A tool with arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallId<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) key: ArgumentsKey,
}

/// What a reader may read: shared rows and those of its principal, up to a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheView<'a> {
    pub(super) principal: &'a str,
    /// Rows that were recorded later do not count.
    pub(super) as_of_ms: Option<u64>,
}

/// A stored result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AnswerRow {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) key: Vec<u8>,
    pub(super) arguments: String,
    pub(super) reply: String,
    pub(super) kind: i64,
    pub(super) run: String,
    pub(super) sequence: u64,
    pub(super) at_ms: u64,
    pub(super) latency_ms: Option<f64>,
    pub(super) principal: String,
    pub(super) is_shared: bool,
    pub(super) schema: Option<Vec<u8>>,
}

impl AnswerRow {
    /// The bytes that count towards [`CacheLimits::bytes`].
    pub(super) fn bytes(&self) -> u64 {
        (self.arguments.len() + self.reply.len()) as u64
    }
}

/// The saved tools of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CatalogueRow {
    pub(super) server: String,
    /// The elements of `tools/list`, as JSON.
    pub(super) tools: String,
    pub(super) at_ms: u64,
    /// The tools with the hashes of their schemas.
    pub(super) schemas: Vec<(String, Vec<u8>)>,
}

/// How much a cache keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Number of results. If there are more, those that were stored first are removed.
    pub entries: u64,
    /// Bytes of all arguments and results together. If there are more, those that were stored first are removed.
    pub bytes: u64,
    /// Number of runs from which the results for the same arguments are kept.
    pub versions: u64,
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits { entries: 100_000, bytes: 256 << 20, versions: 10 }
    }
}

/// The results of a tool in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolStats {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Number of results.
    pub entries: u64,
    /// Bytes of their arguments and replies.
    pub bytes: u64,
    /// Number of principals that recorded them.
    pub principals: u64,
    /// When the oldest was recorded, in milliseconds since 1970.
    pub oldest_ms: u64,
    /// When the newest was recorded, in milliseconds since 1970.
    pub newest_ms: u64,
}
