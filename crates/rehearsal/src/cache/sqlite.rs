//! The store of the cache: one SQLite file that several processes may use at once.

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Reply};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::key::ArgumentsKey;

/// The version of the file's tables, in `user_version`.
const VERSION: i64 = 1;
/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the switch to the write-ahead log is tried: it ignores [`BUSY_TIMEOUT`].
const OPEN_TRIES: u32 = 200;
/// The pause between two tries.
const OPEN_PAUSE: Duration = Duration::from_millis(10);

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS answer (
    id INTEGER PRIMARY KEY,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    key BLOB NOT NULL,
    arguments TEXT NOT NULL,
    reply TEXT NOT NULL,
    kind INTEGER NOT NULL,
    run TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    latency_ms REAL,
    UNIQUE (server, tool, run, sequence)
);
CREATE INDEX IF NOT EXISTS answer_key ON answer (server, tool, key, at_ms);
CREATE INDEX IF NOT EXISTS answer_newest ON answer (server, tool, kind, at_ms);
CREATE TABLE IF NOT EXISTS catalogue (
    server TEXT PRIMARY KEY,
    tools TEXT NOT NULL,
    at_ms INTEGER NOT NULL
);
";

const ENTRY: &str = "server, tool, key, arguments, reply, kind, run, sequence, at_ms, latency_ms";

/// The capability cache.
#[derive(Debug)]
pub struct Cache {
    connection: Mutex<Connection>,
    path: PathBuf,
}

/// Why the cache cannot be used.
#[derive(thiserror::Error)]
pub enum CacheError {
    /// Its folder cannot be created.
    #[error("cannot create {}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: io::Error,
    },
    /// SQLite cannot open, read or write the file.
    #[error("the cache {}: {cause}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: rusqlite::Error,
    },
    /// A newer version of `rehearse` wrote the file.
    #[error("the cache {} has version {found}, this program reads version {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of its tables.
        found: i64,
    },
    /// A stored value is not JSON.
    #[error("the cache {} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The value.
        what: String,
    },
}

debug_as_display!(CacheError);

/// One real result.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheEntry {
    /// The server, by its name in the configuration.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// The reply to `tools/call`, as the server sent it.
    pub reply: Reply,
    /// The recorded session or real run that it belongs to.
    pub run: String,
    /// Its position in the run.
    pub sequence: u64,
    /// When the server sent it, in milliseconds since 1970.
    pub at_ms: u64,
    /// The time between the request and the result, in milliseconds.
    pub latency_ms: Option<f64>,
}

/// The saved tools of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedCatalogue {
    /// The elements of `tools/list`.
    pub tools: Vec<Value>,
    /// When they were listed, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The calls whose latencies are requested.
#[derive(Clone, Copy, Debug)]
pub enum LatencyScope<'a> {
    /// Calls of a tool with these arguments.
    Arguments {
        /// The server.
        server: &'a str,
        /// The tool.
        tool: &'a str,
        /// The arguments.
        key: ArgumentsKey,
    },
    /// All calls of a tool.
    Tool {
        /// The server.
        server: &'a str,
        /// The tool.
        tool: &'a str,
    },
    /// All calls of a server.
    Server {
        /// The server.
        server: &'a str,
    },
}

/// Which entries a command is about.
#[derive(Clone, Debug, Default)]
pub struct CacheFilter {
    /// Those of this server.
    pub server: Option<String>,
    /// Those of this tool.
    pub tool: Option<String>,
    /// Those before this time, in milliseconds since 1970.
    pub before_ms: Option<u64>,
}

/// The cache of a project, or of the user if no folder above `directory` has a `.rehearsal` folder: `data` is the user's data
/// folder.
pub fn default_path(directory: &Path, data: Option<&Path>) -> PathBuf {
    let project = directory.ancestors().map(|folder| folder.join(".rehearsal")).find(|folder| folder.is_dir());
    let folder = project.or_else(|| data.map(|data| data.join("rehearsal")));
    folder.unwrap_or_else(|| directory.join(".rehearsal")).join("cache.sqlite")
}

impl Cache {
    /// Opens the file, and creates it if it is missing.
    pub fn open(path: &Path) -> Result<Cache, CacheError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|cause| CacheError::Folder { path: folder.to_owned(), cause })?;
        }
        // The results of real runs may contain secrets, so a new file is its owner's. SQLite reports what is wrong with it.
        let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let connection = Connection::open(path).map_err(|cause| CacheError::Store { path: path.to_owned(), cause })?;
        Cache::prepare(connection, path.to_owned())
    }

    /// A cache that ends with the process.
    pub fn in_memory() -> Result<Cache, CacheError> {
        let path = PathBuf::from("(in memory)");
        let connection =
            Connection::open_in_memory().map_err(|cause| CacheError::Store { path: path.clone(), cause })?;
        Cache::prepare(connection, path)
    }

    fn prepare(connection: Connection, path: PathBuf) -> Result<Cache, CacheError> {
        let cache = Cache { connection: Mutex::new(connection), path };
        cache.store(|connection| {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            let switch = || connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
            let mut switched = switch();
            for _ in 0..OPEN_TRIES {
                if !matches!(&switched, Err(error) if is_busy(error)) {
                    break;
                }
                std::thread::sleep(OPEN_PAUSE);
                switched = switch();
            }
            switched?;
            connection.execute_batch("PRAGMA synchronous = NORMAL")
        })?;
        let found = cache.store(|connection| connection.query_row("PRAGMA user_version", [], |row| row.get(0)))?;
        if found > VERSION {
            return Err(CacheError::Version { path: cache.path, found });
        }
        if found < VERSION {
            cache.store(|connection| {
                connection.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))
            })?;
        }
        Ok(cache)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores results in one transaction, and returns how many are new. A result that is already stored is skipped.
    pub fn put(&self, entries: &[CacheEntry]) -> Result<usize, CacheError> {
        self.store(|connection| {
            let transaction = connection.unchecked_transaction()?;
            let mut added = 0;
            {
                let mut insert = transaction.prepare_cached(&format!(
                    "INSERT OR IGNORE INTO answer ({ENTRY}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                ))?;
                for entry in entries {
                    let key = ArgumentsKey::new(&entry.arguments);
                    added += insert.execute(params![
                        entry.server,
                        entry.tool,
                        key.bytes(),
                        entry.arguments.to_string(),
                        reply_text(&entry.reply),
                        reply_kind(&entry.reply),
                        entry.run,
                        number(entry.sequence),
                        number(entry.at_ms),
                        entry.latency_ms,
                    ])?;
                }
            }
            transaction.commit()?;
            Ok(added)
        })
    }

    /// The replies for exactly these arguments in the newest run that has one, in their order.
    pub fn results(&self, server: &str, tool: &str, key: ArgumentsKey) -> Result<Vec<CacheEntry>, CacheError> {
        // Without the name of the index, SQLite reads every result of the tool in that run.
        const NEWEST_RUN: &str = "SELECT run FROM answer INDEXED BY answer_key
             WHERE server = ?1 AND tool = ?2 AND key = ?3 ORDER BY at_ms DESC, id DESC LIMIT 1";
        let entries = self.store(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT {ENTRY} FROM answer INDEXED BY answer_key
                 WHERE server = ?1 AND tool = ?2 AND key = ?3 AND run = ({NEWEST_RUN}) ORDER BY sequence"
            ))?;
            let rows = select.query_map(params![server, tool, key.bytes()], StoredRow::read)?;
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        entries.into_iter().map(|row| self.entry(row)).collect()
    }

    /// The newest results of a tool for any arguments, without errors.
    pub fn recent(&self, server: &str, tool: &str, limit: usize) -> Result<Vec<CacheEntry>, CacheError> {
        let rows = self.store(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT {ENTRY} FROM answer INDEXED BY answer_newest
                 WHERE server = ?1 AND tool = ?2 AND kind = 0 ORDER BY at_ms DESC, id DESC LIMIT ?3"
            ))?;
            let rows = select.query_map(params![server, tool, number(limit as u64)], StoredRow::read)?;
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        rows.into_iter().map(|row| self.entry(row)).collect()
    }

    /// The newest latencies of some calls, sorted.
    pub fn latencies(&self, calls: LatencyScope<'_>) -> Result<Vec<f64>, CacheError> {
        const LIMIT: &str = "AND latency_ms IS NOT NULL ORDER BY at_ms DESC LIMIT 1000";
        let mut latencies = self.store(|connection| {
            let select = |condition: &str, values: &[&dyn rusqlite::ToSql]| {
                let sql = format!("SELECT latency_ms FROM answer WHERE {condition} {LIMIT}");
                let mut statement = connection.prepare_cached(&sql)?;
                let rows = statement.query_map(values, |row| row.get::<_, f64>(0))?;
                rows.collect::<Result<Vec<_>, rusqlite::Error>>()
            };
            match calls {
                LatencyScope::Arguments { server, tool, key } => {
                    select("server = ?1 AND tool = ?2 AND key = ?3", params![server, tool, key.bytes()])
                }
                LatencyScope::Tool { server, tool } => select("server = ?1 AND tool = ?2", params![server, tool]),
                LatencyScope::Server { server } => select("server = ?1", params![server]),
            }
        })?;
        latencies.sort_by(f64::total_cmp);
        Ok(latencies)
    }

    /// The entries that fit a filter, the newest first.
    pub fn list(&self, filter: &CacheFilter) -> Result<Vec<CacheEntry>, CacheError> {
        let rows = self.store(|connection| {
            let mut select = connection.prepare(&format!(
                "SELECT {ENTRY} FROM answer WHERE {} ORDER BY server, tool, at_ms DESC, id DESC",
                CacheFilter::CONDITION
            ))?;
            let rows = select.query_map(filter.values(), StoredRow::read)?;
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        rows.into_iter().map(|row| self.entry(row)).collect()
    }

    /// Removes the entries that fit a filter, and returns their number. Catalogues of a server go with its entries if the
    /// filter names neither a tool nor a time.
    pub fn purge(&self, filter: &CacheFilter) -> Result<usize, CacheError> {
        self.store(|connection| {
            let removed =
                connection.execute(&format!("DELETE FROM answer WHERE {}", CacheFilter::CONDITION), filter.values())?;
            if filter.tool.is_none() && filter.before_ms.is_none() {
                connection.execute("DELETE FROM catalogue WHERE ?1 IS NULL OR server = ?1", params![filter.server])?;
            }
            Ok(removed)
        })
    }

    /// Saves the tools of a server, unless a newer list is saved.
    pub fn save_catalogue(&self, server: &str, tools: &[Value], at_ms: u64) -> Result<(), CacheError> {
        let tools = Value::from(tools.to_vec()).to_string();
        self.store(|connection| {
            connection.execute(
                "INSERT INTO catalogue (server, tools, at_ms) VALUES (?1, ?2, ?3)
                 ON CONFLICT (server) DO UPDATE SET tools = ?2, at_ms = ?3 WHERE at_ms <= ?3",
                params![server, tools, number(at_ms)],
            )?;
            Ok(())
        })
    }

    /// The saved tools of a server.
    pub fn catalogue(&self, server: &str) -> Result<Option<SavedCatalogue>, CacheError> {
        let saved = self.store(|connection| {
            let sql = "SELECT tools, at_ms FROM catalogue WHERE server = ?1";
            let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
            connection.query_row(sql, params![server], read).optional()
        })?;
        let Some((tools, at_ms)) = saved else { return Ok(None) };
        match serde_json::from_str(&tools) {
            Ok(tools) => Ok(Some(SavedCatalogue { tools, at_ms: unsigned(at_ms) })),
            Err(error) => Err(self.damaged(format!("the catalogue of {server}: {error}"))),
        }
    }

    /// The names of the servers whose tools are saved, sorted.
    pub fn catalogues(&self) -> Result<Vec<String>, CacheError> {
        self.store(|connection| {
            let mut select = connection.prepare_cached("SELECT server FROM catalogue ORDER BY server")?;
            let rows = select.query_map([], |row| row.get(0))?;
            rows.collect()
        })
    }

    fn store<T>(&self, action: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, CacheError> {
        action(&self.connection()).map_err(|cause| CacheError::Store { path: self.path.clone(), cause })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic while the lock is held leaves no statement half done: SQLite rolls it back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, row: StoredRow) -> Result<CacheEntry, CacheError> {
        let damaged = |what: &str, error| self.damaged(format!("the {what} of {}:{}: {error}", row.server, row.tool));
        let arguments = serde_json::from_str(&row.arguments).map_err(|error| damaged("arguments", error))?;
        let reply = match row.kind {
            PROTOCOL_ERROR => {
                let object = serde_json::from_str(&row.reply).map_err(|error| damaged("error", error))?;
                Reply::Error(ErrorReply::new(0, "").with_object(object))
            }
            _ => Reply::Result(RawJson::parse(row.reply.as_bytes()).map_err(|error| damaged("result", error))?),
        };
        Ok(CacheEntry {
            arguments,
            reply,
            sequence: unsigned(row.sequence),
            at_ms: unsigned(row.at_ms),
            latency_ms: row.latency_ms,
            server: row.server,
            tool: row.tool,
            run: row.run,
        })
    }

    fn damaged(&self, what: String) -> CacheError {
        CacheError::Damaged { path: self.path.clone(), what }
    }
}

impl CacheFilter {
    const CONDITION: &str = "(?1 IS NULL OR server = ?1) AND (?2 IS NULL OR tool = ?2) AND (?3 IS NULL OR at_ms < ?3)";

    fn values(&self) -> (Option<&str>, Option<&str>, Option<i64>) {
        (self.server.as_deref(), self.tool.as_deref(), self.before_ms.map(number))
    }
}

/// The columns of an entry.
struct StoredRow {
    server: String,
    tool: String,
    arguments: String,
    reply: String,
    kind: i64,
    run: String,
    sequence: i64,
    at_ms: i64,
    latency_ms: Option<f64>,
}

impl StoredRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<StoredRow> {
        Ok(StoredRow {
            server: row.get(0)?,
            tool: row.get(1)?,
            arguments: row.get(3)?,
            reply: row.get(4)?,
            kind: row.get(5)?,
            run: row.get(6)?,
            sequence: row.get(7)?,
            at_ms: row.get(8)?,
            latency_ms: row.get(9)?,
        })
    }
}

/// The kinds of replies, in the order in which they answer.
const RESULT: i64 = 0;
const TOOL_ERROR: i64 = 1;
const PROTOCOL_ERROR: i64 = 2;

fn reply_kind(reply: &Reply) -> i64 {
    match reply {
        Reply::Result(_) if is_tool_error(reply) => TOOL_ERROR,
        Reply::Result(_) => RESULT,
        Reply::Error(_) => PROTOCOL_ERROR,
    }
}

/// Whether a reply is the result of a tool that failed.
fn is_tool_error(reply: &Reply) -> bool {
    let Reply::Result(result) = reply else { return false };
    result.field("isError").is_some_and(|member| member.as_str() == "true")
}

fn reply_text(reply: &Reply) -> String {
    match reply {
        Reply::Result(result) => result.as_str().to_owned(),
        Reply::Error(error) => Value::Object(error.object()).to_string(),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

/// SQLite has signed numbers only; times and positions fit.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(result: Value) -> Reply {
        Reply::Result(RawJson::from_value(&result))
    }

    fn entry(run: &str, sequence: u64, text: &str) -> CacheEntry {
        CacheEntry {
            server: "fs".to_owned(),
            tool: "list".to_owned(),
            arguments: json!({"path": "/srv"}),
            reply: result(json!({"content": [{"type": "text", "text": text}]})),
            run: run.to_owned(),
            sequence,
            at_ms: 1000 + sequence,
            latency_ms: Some(10.0),
        }
    }

    fn texts(cache: &Cache) -> Vec<String> {
        let key = ArgumentsKey::new(&json!({"path": "/srv"}));
        let text = |found: CacheEntry| {
            let Reply::Result(result) = found.reply else { panic!("an error") };
            result.value().unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
        };
        cache.results("fs", "list", key).unwrap().into_iter().map(text).collect()
    }

    #[test]
    fn repeated_calls_get_the_results_of_the_newest_run_in_its_order() {
        let cache = Cache::in_memory().unwrap();
        cache.put(&[entry("old", 0, "before"), entry("new", 5, "empty"), entry("new", 9, "one file")]).unwrap();
        assert_eq!(texts(&cache), ["empty", "one file"]);
    }

    #[test]
    fn a_result_is_stored_once() {
        let cache = Cache::in_memory().unwrap();
        assert_eq!(cache.put(&[entry("a", 0, "x"), entry("a", 0, "x")]).unwrap(), 1);
        assert_eq!(cache.put(&[entry("a", 0, "x")]).unwrap(), 0);
        assert_eq!(cache.list(&CacheFilter::default()).unwrap().len(), 1);
    }

    #[test]
    fn an_error_of_a_newer_run_answers() {
        let cache = Cache::in_memory().unwrap();
        cache.put(&[entry("a", 0, "fine")]).unwrap();
        let reply = result(json!({"content": [{"type": "text", "text": "no such folder"}], "isError": true}));
        cache.put(&[CacheEntry { reply, at_ms: 9999, ..entry("later", 1, "") }]).unwrap();
        assert_eq!(texts(&cache), ["no such folder"]);
    }

    #[test]
    fn purge_removes_what_the_filter_names() {
        let cache = Cache::in_memory().unwrap();
        let other = CacheEntry { server: "git".to_owned(), ..entry("a", 1, "x") };
        cache.put(&[entry("a", 0, "x"), other]).unwrap();
        cache.save_catalogue("fs", &[json!({"name": "list"})], 1).unwrap();
        let filter = CacheFilter { server: Some("fs".to_owned()), ..CacheFilter::default() };
        assert_eq!(cache.purge(&filter).unwrap(), 1);
        assert_eq!(cache.catalogue("fs").unwrap(), None);
        assert_eq!(cache.list(&CacheFilter::default()).unwrap()[0].server, "git");
    }

    #[test]
    fn several_processes_can_open_a_new_cache_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/cache.sqlite");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let cache = Cache::open(path).unwrap();
                    for sequence in 0..20 {
                        cache.put(&[entry(&format!("run {number}"), sequence, "x")]).unwrap();
                    }
                });
            }
        });
        assert_eq!(Cache::open(&path).unwrap().list(&CacheFilter::default()).unwrap().len(), 160);
    }

    #[test]
    fn a_cache_of_a_newer_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache.sqlite");
        Cache::open(&path).unwrap().store(|connection| connection.execute_batch("PRAGMA user_version = 99")).unwrap();
        assert!(matches!(Cache::open(&path), Err(CacheError::Version { found: 99, .. })));
    }
}
