//! The capability cache: turns results and lists of tools into the rows of a store, and back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::entry::{
    AnswerSharing, CacheEntry, CacheFilter, CachedAnswer, LOCAL_PRINCIPAL, LatencyScope, SavedCatalogue,
    ToolSchemaHash, parse_reply, reply_kind, reply_text,
};
use super::error::CacheError;
use super::key::ArgumentsKey;
use super::sqlite::SqliteStore;
use super::store::{AnswerRow, CacheLimits, CacheStore, CacheView, CallId, CatalogueRow, ToolStats};
use super::tables::schemas;

/// The capability cache, as one principal uses it.
#[derive(Debug)]
pub struct Cache {
    store: Box<dyn CacheStore>,
    principal: String,
    sharing: AnswerSharing,
    as_of_ms: Option<u64>,
}

/// What a cache contains, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheStats {
    /// The results of all principals, by server and tool.
    pub tools: Vec<ToolStats>,
    /// Number of servers whose tools are saved.
    pub catalogues: usize,
    /// The size of the files in bytes; `None` for a cache in memory.
    pub bytes_on_disk: Option<u64>,
    /// The limits.
    pub limits: CacheLimits,
}

impl CacheStats {
    /// Number of results.
    pub fn entries(&self) -> u64 {
        self.tools.iter().map(|tool| tool.entries).sum()
    }

    /// Bytes of all arguments and results.
    pub fn bytes(&self) -> u64 {
        self.tools.iter().map(|tool| tool.bytes).sum()
    }
}

/// The cache of a project, or of the user if no folder above `directory` has a `.rehearsal` folder: `data` is the user's data
/// folder.
pub fn default_path(directory: &Path, data: Option<&Path>) -> PathBuf {
    let project = directory.ancestors().map(|folder| folder.join(".rehearsal")).find(|folder| folder.is_dir());
    let folder = project.or_else(|| data.map(|data| data.join("rehearsal")));
    folder.unwrap_or_else(|| directory.join(".rehearsal")).join("cache.sqlite")
}

impl Cache {
    /// Opens the file, and creates it if it is missing. A file of an earlier version is migrated.
    pub fn open(path: &Path) -> Result<Cache, CacheError> {
        SqliteStore::open(path).map(Cache::new)
    }

    /// A cache that ends with the process.
    pub fn in_memory() -> Result<Cache, CacheError> {
        SqliteStore::in_memory().map(Cache::new)
    }

    /// The cache in a store.
    pub(super) fn new(store: impl CacheStore + 'static) -> Cache {
        let principal = LOCAL_PRINCIPAL.to_owned();
        Cache { store: Box::new(store), principal, sharing: AnswerSharing::Private, as_of_ms: None }
    }

    /// Uses the cache for a principal [default: `local`]. It reads its own results and those that are shared.
    #[must_use]
    pub fn for_principal(self, principal: impl Into<String>) -> Cache {
        Cache { principal: principal.into(), ..self }
    }

    /// Stores results without a `cacheScope` of the server as shared or private [default: private].
    #[must_use]
    pub fn sharing(self, sharing: AnswerSharing) -> Cache {
        Cache { sharing, ..self }
    }

    /// Reads the cache as of a time, in milliseconds since 1970: results that were recorded later do not count, and results
    /// expire as of that time.
    #[must_use]
    pub fn as_of(self, as_of_ms: u64) -> Cache {
        Cache { as_of_ms: Some(as_of_ms), ..self }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// The principal for which the cache is used.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// The time as of which results expire, in milliseconds since 1970: now, unless [`Cache::as_of`] has set another.
    pub fn now_ms(&self) -> u64 {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.as_of_ms.unwrap_or_else(|| u64::try_from(now().as_millis()).unwrap_or(u64::MAX))
    }

    /// Stores results in one transaction, and returns how many are new. A result that is already stored is skipped. Each
    /// belongs to the principal of this cache, and to the schemas of its tool in the saved catalogue.
    pub fn put(&self, entries: &[CacheEntry]) -> Result<usize, CacheError> {
        let mut schemas: BTreeMap<(&str, &str), Option<Vec<u8>>> = BTreeMap::new();
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            let name = (entry.server.as_str(), entry.tool.as_str());
            let schema = match schemas.get(&name) {
                Some(known) => known.clone(),
                None => schemas.entry(name).or_insert(self.store.tool_schema(name.0, name.1)?).clone(),
            };
            rows.push(self.row(entry, schema));
        }
        self.store.insert(&rows)
    }

    /// Stores results with the schemas under which they were recorded, for the principal of this cache.
    pub fn put_recorded(&self, recorded: &[(CacheEntry, Option<ToolSchemaHash>)]) -> Result<usize, CacheError> {
        let row = |(entry, schema): &(CacheEntry, Option<ToolSchemaHash>)| {
            self.row(entry, schema.map(|schema| schema.bytes().to_vec()))
        };
        self.store.insert(&recorded.iter().map(row).collect::<Vec<_>>())
    }

    /// Stores results with their principals, sharing and schemas unchanged, as an export has them.
    pub fn put_answers(&self, answers: &[CachedAnswer]) -> Result<usize, CacheError> {
        let row = |answer: &CachedAnswer| AnswerRow {
            principal: answer.principal.clone(),
            is_shared: answer.sharing == AnswerSharing::Shared,
            ..self.row(&answer.entry, answer.schema.map(|schema| schema.bytes().to_vec()))
        };
        self.store.insert(&answers.iter().map(row).collect::<Vec<_>>())
    }

    fn row(&self, entry: &CacheEntry, schema: Option<Vec<u8>>) -> AnswerRow {
        AnswerRow {
            server: entry.server.clone(),
            tool: entry.tool.clone(),
            key: ArgumentsKey::new(&entry.arguments).bytes().to_vec(),
            arguments: entry.arguments.to_string(),
            reply: reply_text(&entry.reply),
            kind: reply_kind(&entry.reply),
            run: entry.run.clone(),
            sequence: entry.sequence,
            at_ms: entry.at_ms,
            latency_ms: entry.latency_ms,
            principal: self.principal.clone(),
            is_shared: AnswerSharing::of(&entry.reply, self.sharing) == AnswerSharing::Shared,
            schema,
        }
    }

    fn view(&self) -> CacheView<'_> {
        CacheView { principal: &self.principal, as_of_ms: self.as_of_ms }
    }

    /// The replies for exactly these arguments in the newest run that has one, in their order.
    pub fn results(&self, server: &str, tool: &str, key: ArgumentsKey) -> Result<Vec<CacheEntry>, CacheError> {
        Ok(self.answers(server, tool, key)?.into_iter().map(|answer| answer.entry).collect())
    }

    /// The same replies as [`Cache::results`], with the circumstances in which they were recorded.
    pub fn answers(&self, server: &str, tool: &str, key: ArgumentsKey) -> Result<Vec<CachedAnswer>, CacheError> {
        let rows = self.store.answers(CallId { server, tool, key }, self.view())?;
        rows.into_iter().map(|row| self.answer(row)).collect()
    }

    /// The newest results of a tool for any arguments, without errors.
    pub fn recent(&self, server: &str, tool: &str, limit: usize) -> Result<Vec<CacheEntry>, CacheError> {
        Ok(self.recent_answers(server, tool, limit)?.into_iter().map(|answer| answer.entry).collect())
    }

    /// The same results as [`Cache::recent`], with the circumstances in which they were recorded.
    pub fn recent_answers(&self, server: &str, tool: &str, limit: usize) -> Result<Vec<CachedAnswer>, CacheError> {
        let rows = self.store.recent(server, tool, limit, self.view())?;
        rows.into_iter().map(|row| self.answer(row)).collect()
    }

    /// The newest latencies of some calls, sorted.
    pub fn latencies(&self, calls: LatencyScope<'_>) -> Result<Vec<f64>, CacheError> {
        let mut latencies = self.store.latencies(calls, self.view())?;
        latencies.sort_by(f64::total_cmp);
        Ok(latencies)
    }

    /// The entries that fit a filter: by server and tool, the newest first.
    pub fn list(&self, filter: &CacheFilter) -> Result<Vec<CacheEntry>, CacheError> {
        Ok(self.list_answers(filter)?.into_iter().map(|answer| answer.entry).collect())
    }

    /// The same entries as [`Cache::list`], with the circumstances in which they were recorded.
    pub fn list_answers(&self, filter: &CacheFilter) -> Result<Vec<CachedAnswer>, CacheError> {
        let rows = self.store.list(filter, self.view())?;
        rows.into_iter().map(|row| self.answer(row)).collect()
    }

    /// Removes the entries that fit a filter, and returns their number. Catalogues of a server go with its entries if the
    /// filter names neither a tool nor a time.
    pub fn purge(&self, filter: &CacheFilter) -> Result<usize, CacheError> {
        self.store.purge(filter, &self.principal)
    }

    /// Saves the tools of a server, unless a newer list is saved.
    pub fn save_catalogue(&self, server: &str, tools: &[Value], at_ms: u64) -> Result<(), CacheError> {
        let (server, schemas) = (server.to_owned(), schemas(tools));
        self.store.save_catalogue(&CatalogueRow {
            server,
            tools: Value::from(tools.to_vec()).to_string(),
            at_ms,
            schemas,
        })
    }

    /// The saved tools of a server.
    pub fn catalogue(&self, server: &str) -> Result<Option<SavedCatalogue>, CacheError> {
        let Some(CatalogueRow { tools, at_ms, .. }) = self.store.catalogue(server)? else { return Ok(None) };
        match serde_json::from_str(&tools) {
            Ok(tools) => Ok(Some(SavedCatalogue { tools, at_ms })),
            Err(error) => Err(self.damaged(format!("the catalogue of {server}: {error}"))),
        }
    }

    /// The names of the servers whose tools are saved, sorted.
    pub fn catalogues(&self) -> Result<Vec<String>, CacheError> {
        self.store.catalogues()
    }

    /// The limits. They are stored in the cache and hold for every process.
    pub fn limits(&self) -> Result<CacheLimits, CacheError> {
        self.store.limits()
    }

    /// Sets the limits, and removes the results beyond them that were stored first.
    pub fn set_limits(&self, limits: CacheLimits) -> Result<(), CacheError> {
        self.store.set_limits(limits)
    }

    /// What the cache contains, in numbers.
    pub fn stats(&self) -> Result<CacheStats, CacheError> {
        Ok(CacheStats {
            tools: self.store.stats()?,
            catalogues: self.store.catalogues()?.len(),
            bytes_on_disk: self.store.bytes_on_disk(),
            limits: self.store.limits()?,
        })
    }

    fn answer(&self, row: AnswerRow) -> Result<CachedAnswer, CacheError> {
        let damaged =
            |what: &str, error: String| self.damaged(format!("the {what} of {}:{}: {error}", row.server, row.tool));
        let arguments =
            serde_json::from_str(&row.arguments).map_err(|error| damaged("arguments", error.to_string()))?;
        let reply = parse_reply(row.kind, &row.reply).map_err(|error| damaged("result", error))?;
        Ok(CachedAnswer {
            entry: CacheEntry {
                arguments,
                reply,
                sequence: row.sequence,
                at_ms: row.at_ms,
                latency_ms: row.latency_ms,
                server: row.server,
                tool: row.tool,
                run: row.run,
            },
            principal: row.principal,
            sharing: if row.is_shared { AnswerSharing::Shared } else { AnswerSharing::Private },
            schema: row.schema.as_deref().and_then(ToolSchemaHash::from_bytes),
        })
    }

    fn damaged(&self, what: String) -> CacheError {
        CacheError::Damaged { path: self.path().to_owned(), what }
    }
}
