//! The store of a cache in one SQLite file that several processes may use at once.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::entry::{CacheFilter, LatencyScope, PrincipalFilter};
use super::error::CacheError;
use super::store::{AnswerRow, CacheLimits, CacheStore, CacheView, CallId, CatalogueRow, ToolStats};
use super::tables::{VERSION, migrate, number, save_schemas, unsigned, version};

/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process waits for another one that migrates the file: all rows are copied.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(120);
/// How often the switch to the write-ahead log is tried: it ignores [`BUSY_TIMEOUT`].
const OPEN_TRIES: u32 = 200;
/// The pause between two tries.
const OPEN_PAUSE: Duration = Duration::from_millis(10);
/// Number of rows that one step of the eviction looks at.
const EVICTION_STEP: i64 = 1000;
/// Maximum number of steps of the eviction for one insert, so that an insert takes a bounded time.
const EVICTION_STEPS: usize = 8;

const COLUMNS: &str =
    "server, tool, key, arguments, reply, kind, run, sequence, at_ms, latency_ms, principal, shared, schema";

/// The rows that a reader may read, as part of a condition; `?1` is its principal and `?2` the latest time.
const VISIBLE: &str = "(principal = ?1 OR shared) AND at_ms <= ?2";

/// A cache in a SQLite file.
#[derive(Debug)]
pub(super) struct SqliteStore {
    connection: Mutex<Connection>,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the file, and creates it if it is missing.
    pub(super) fn open(path: &Path) -> Result<SqliteStore, CacheError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|cause| CacheError::Folder { path: folder.to_owned(), cause })?;
        }
        // The results of real runs may contain secrets, so a new file is its owner's. SQLite reports what is wrong with it.
        let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let connection = Connection::open(path).map_err(|cause| CacheError::Store { path: path.to_owned(), cause })?;
        SqliteStore::prepare(connection, path.to_owned())
    }

    /// A store that ends with the process.
    pub(super) fn in_memory() -> Result<SqliteStore, CacheError> {
        let path = PathBuf::from("(in memory)");
        let connection =
            Connection::open_in_memory().map_err(|cause| CacheError::Store { path: path.clone(), cause })?;
        SqliteStore::prepare(connection, path)
    }

    fn prepare(connection: Connection, path: PathBuf) -> Result<SqliteStore, CacheError> {
        let store = SqliteStore { connection: Mutex::new(connection), path };
        store.run(|connection| {
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
        let found = store.run(version)?;
        if found > VERSION {
            return Err(CacheError::Version { path: store.path, found, supported: VERSION });
        }
        if found < VERSION {
            store.run(|connection| {
                connection.busy_timeout(MIGRATION_TIMEOUT)?;
                migrate(connection)?;
                connection.busy_timeout(BUSY_TIMEOUT)
            })?;
        }
        Ok(store)
    }

    fn run<T>(&self, action: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, CacheError> {
        action(&self.connection()).map_err(|cause| CacheError::Store { path: self.path.clone(), cause })
    }

    /// Runs a transaction that writes. It waits for other writers when it begins: one that reads first and then writes fails
    /// if another process has written between.
    fn write<T>(&self, action: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, CacheError> {
        self.run(|connection| {
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let value = action(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic while the lock is held leaves no statement half done: SQLite rolls it back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheStore for SqliteStore {
    fn path(&self) -> &Path {
        &self.path
    }

    fn insert(&self, rows: &[AnswerRow]) -> Result<usize, CacheError> {
        if rows.is_empty() {
            return Ok(0);
        }
        self.write(|connection| {
            let added = insert_rows(connection, rows)?;
            if added > 0 {
                let limits = read_limits(connection)?;
                remove_old_versions(connection, rows, limits.versions)?;
                evict(connection, limits, EVICTION_STEPS)?;
            }
            Ok(added)
        })
    }

    fn answers(&self, call: CallId<'_>, view: CacheView<'_>) -> Result<Vec<AnswerRow>, CacheError> {
        self.run(|connection| {
            // Without the name of the index, SQLite reads every result of the tool in that run.
            let same =
                format!("FROM answer INDEXED BY answer_key WHERE server = ?3 AND tool = ?4 AND key = ?5 AND {VISIBLE}");
            let mut select = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} {same}
                 AND (principal, run) = (SELECT principal, run {same} ORDER BY at_ms DESC, id DESC LIMIT 1)
                 ORDER BY sequence"
            ))?;
            let (principal, until) = bounds(view);
            let values = params![principal, until, call.server, call.tool, call.key.bytes()];
            let rows = select.query_map(values, read_row)?;
            rows.collect()
        })
    }

    fn recent(
        &self,
        server: &str,
        tool: &str,
        limit: usize,
        view: CacheView<'_>,
    ) -> Result<Vec<AnswerRow>, CacheError> {
        self.run(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM answer INDEXED BY answer_newest
                 WHERE server = ?3 AND tool = ?4 AND kind = 0 AND {VISIBLE} ORDER BY at_ms DESC, id DESC LIMIT ?5"
            ))?;
            let (principal, until) = bounds(view);
            let values = params![principal, until, server, tool, number(limit as u64)];
            let rows = select.query_map(values, read_row)?;
            rows.collect()
        })
    }

    fn latencies(&self, calls: LatencyScope<'_>, view: CacheView<'_>) -> Result<Vec<f64>, CacheError> {
        self.run(|connection| {
            let (principal, until) = bounds(view);
            let select = |condition: &str, values: &[&dyn rusqlite::ToSql]| {
                let sql = format!(
                    "SELECT latency_ms FROM answer WHERE {condition} AND {VISIBLE} AND latency_ms IS NOT NULL
                     ORDER BY at_ms DESC LIMIT 1000"
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let rows = statement.query_map(values, |row| row.get::<_, f64>(0))?;
                rows.collect::<Result<Vec<_>, rusqlite::Error>>()
            };
            match calls {
                LatencyScope::Arguments { server, tool, key } => {
                    let condition = "server = ?3 AND tool = ?4 AND key = ?5";
                    select(condition, params![principal, until, server, tool, key.bytes()])
                }
                LatencyScope::Tool { server, tool } => {
                    select("server = ?3 AND tool = ?4", params![principal, until, server, tool])
                }
                LatencyScope::Server { server } => select("server = ?3", params![principal, until, server]),
            }
        })
    }

    fn list(&self, filter: &CacheFilter, view: CacheView<'_>) -> Result<Vec<AnswerRow>, CacheError> {
        self.run(|connection| {
            let mut select = connection.prepare(&format!(
                "SELECT {COLUMNS} FROM answer WHERE (?6 OR principal = ?1 OR shared) AND at_ms <= ?2
                 AND (?3 IS NULL OR server = ?3) AND (?4 IS NULL OR tool = ?4) AND (?5 IS NULL OR at_ms < ?5)
                 ORDER BY server, tool, at_ms DESC, id DESC"
            ))?;
            let (principal, until) = bounds(view);
            let CacheFilter { server, tool, before_ms, principals } = filter;
            let is_all = *principals == PrincipalFilter::All;
            let values = params![principal, until, server, tool, before_ms.map(number), is_all];
            let rows = select.query_map(values, read_row)?;
            rows.collect()
        })
    }

    fn purge(&self, filter: &CacheFilter, principal: &str) -> Result<usize, CacheError> {
        let CacheFilter { server, tool, before_ms, principals } = filter;
        let is_all = *principals == PrincipalFilter::All;
        self.write(|connection| {
            let removed = connection.execute(
                "DELETE FROM answer WHERE (?1 IS NULL OR server = ?1) AND (?2 IS NULL OR tool = ?2)
                 AND (?3 IS NULL OR at_ms < ?3) AND (?4 OR principal = ?5)",
                params![server, tool, before_ms.map(number), is_all, principal],
            )?;
            if tool.is_none() && before_ms.is_none() {
                connection.execute("DELETE FROM catalogue WHERE ?1 IS NULL OR server = ?1", params![server])?;
                connection.execute("DELETE FROM tool WHERE ?1 IS NULL OR server = ?1", params![server])?;
            }
            Ok(removed)
        })
    }

    fn save_catalogue(&self, catalogue: &CatalogueRow) -> Result<(), CacheError> {
        let CatalogueRow { server, tools, at_ms, schemas } = catalogue;
        self.write(|connection| {
            let changed = connection.execute(
                "INSERT INTO catalogue (server, tools, at_ms) VALUES (?1, ?2, ?3)
                 ON CONFLICT (server) DO UPDATE SET tools = ?2, at_ms = ?3 WHERE at_ms <= ?3",
                params![server, tools, number(*at_ms)],
            )?;
            if changed > 0 { save_schemas(connection, server, schemas) } else { Ok(()) }
        })
    }

    fn catalogue(&self, server: &str) -> Result<Option<CatalogueRow>, CacheError> {
        self.run(|connection| {
            let sql = "SELECT tools, at_ms FROM catalogue WHERE server = ?1";
            let read = |row: &Row<'_>| {
                let (tools, at_ms) = (row.get(0)?, unsigned(row.get(1)?));
                Ok(CatalogueRow { server: server.to_owned(), tools, at_ms, schemas: Vec::new() })
            };
            connection.query_row(sql, params![server], read).optional()
        })
    }

    fn catalogues(&self) -> Result<Vec<String>, CacheError> {
        self.run(|connection| {
            let mut select = connection.prepare_cached("SELECT server FROM catalogue ORDER BY server")?;
            let rows = select.query_map([], |row| row.get(0))?;
            rows.collect()
        })
    }

    fn tool_schema(&self, server: &str, tool: &str) -> Result<Option<Vec<u8>>, CacheError> {
        self.run(|connection| {
            let mut select = connection.prepare_cached("SELECT schema FROM tool WHERE server = ?1 AND name = ?2")?;
            select.query_row(params![server, tool], |row| row.get(0)).optional()
        })
    }

    fn limits(&self) -> Result<CacheLimits, CacheError> {
        self.run(read_limits)
    }

    fn set_limits(&self, limits: CacheLimits) -> Result<(), CacheError> {
        let CacheLimits { entries, bytes, versions } = limits;
        self.write(|connection| {
            connection.execute(
                "UPDATE usage SET max_entries = ?1, max_bytes = ?2, max_versions = ?3",
                params![number(entries), number(bytes), number(versions)],
            )?;
            evict(connection, limits, usize::MAX)
        })
    }

    fn stats(&self) -> Result<Vec<ToolStats>, CacheError> {
        self.run(|connection| {
            let mut select = connection.prepare(
                "SELECT server, tool, count(*), sum(bytes), count(DISTINCT principal), min(at_ms), max(at_ms)
                 FROM answer GROUP BY server, tool ORDER BY server, tool",
            )?;
            let read = |row: &Row<'_>| {
                Ok(ToolStats {
                    server: row.get(0)?,
                    tool: row.get(1)?,
                    entries: unsigned(row.get(2)?),
                    bytes: unsigned(row.get(3)?),
                    principals: unsigned(row.get(4)?),
                    oldest_ms: unsigned(row.get(5)?),
                    newest_ms: unsigned(row.get(6)?),
                })
            };
            let rows = select.query_map([], read)?;
            rows.collect()
        })
    }

    fn bytes_on_disk(&self) -> Option<u64> {
        let size = |suffix: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            std::fs::metadata(path).map(|file| file.len()).ok()
        };
        Some(size("")? + size("-wal").unwrap_or(0))
    }
}

fn insert_rows(connection: &Connection, rows: &[AnswerRow]) -> rusqlite::Result<usize> {
    let mut insert = connection.prepare_cached(&format!(
        "INSERT OR IGNORE INTO answer ({COLUMNS}, bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    ))?;
    let mut added = 0;
    for row in rows {
        added += insert.execute(params![
            row.server,
            row.tool,
            row.key,
            row.arguments,
            row.reply,
            row.kind,
            row.run,
            number(row.sequence),
            number(row.at_ms),
            row.latency_ms,
            row.principal,
            row.is_shared,
            row.schema,
            number(row.bytes()),
        ])?;
    }
    Ok(added)
}

/// Removes the results of the oldest runs for the arguments of these rows.
fn remove_old_versions(connection: &Connection, rows: &[AnswerRow], versions: u64) -> rusqlite::Result<()> {
    let mut ids: Vec<_> = rows.iter().map(|row| (&row.server, &row.tool, &row.key, &row.principal)).collect();
    ids.sort_unstable();
    ids.dedup();
    let same = "FROM answer INDEXED BY answer_key WHERE server = ?1 AND tool = ?2 AND key = ?3 AND principal = ?4";
    let mut delete = connection.prepare_cached(&format!(
        "DELETE {same} AND run NOT IN (SELECT run {same} GROUP BY run ORDER BY max(at_ms) DESC, max(id) DESC LIMIT ?5)"
    ))?;
    for (server, tool, key, principal) in ids {
        delete.execute(params![server, tool, key, principal, number(versions)])?;
    }
    Ok(())
}

/// Removes the rows that were stored first until the limits are met, in at most so many steps; the next insert continues.
/// Results of one run for the same arguments are removed together, since a dry run returns them in their order.
fn evict(connection: &Connection, limits: CacheLimits, steps: usize) -> rusqlite::Result<()> {
    let mut oldest = connection.prepare_cached("SELECT id, bytes FROM answer ORDER BY id LIMIT ?1")?;
    let mut delete = connection.prepare_cached(
        "DELETE FROM answer WHERE id IN (
             SELECT same.id FROM answer AS old JOIN answer AS same INDEXED BY answer_key
             ON same.server = old.server AND same.tool = old.tool AND same.key = old.key AND same.run = old.run
                 AND same.principal = old.principal
             WHERE old.id <= ?1)",
    )?;
    for _ in 0..steps {
        let (entries, bytes): (i64, i64) =
            connection.query_row("SELECT entries, bytes FROM usage", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (mut entries, mut bytes) = (entries - number(limits.entries), bytes - number(limits.bytes));
        if entries <= 0 && bytes <= 0 {
            break;
        }
        let mut last = None;
        let mut rows = oldest.query(params![EVICTION_STEP])?;
        while let Some(row) = rows.next()?.filter(|_| entries > 0 || bytes > 0) {
            last = Some(row.get::<_, i64>(0)?);
            entries -= 1;
            bytes -= row.get::<_, i64>(1)?;
        }
        drop(rows);
        let Some(last) = last else { break };
        delete.execute(params![last])?;
    }
    Ok(())
}

fn read_limits(connection: &Connection) -> rusqlite::Result<CacheLimits> {
    connection.query_row("SELECT max_entries, max_bytes, max_versions FROM usage", [], |row| {
        let (entries, bytes, versions) = (unsigned(row.get(0)?), unsigned(row.get(1)?), unsigned(row.get(2)?));
        Ok(CacheLimits { entries, bytes, versions })
    })
}

fn bounds(view: CacheView<'_>) -> (&str, i64) {
    (view.principal, view.as_of_ms.map_or(i64::MAX, number))
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<AnswerRow> {
    Ok(AnswerRow {
        server: row.get(0)?,
        tool: row.get(1)?,
        key: row.get(2)?,
        arguments: row.get(3)?,
        reply: row.get(4)?,
        kind: row.get(5)?,
        run: row.get(6)?,
        sequence: unsigned(row.get(7)?),
        at_ms: unsigned(row.get(8)?),
        latency_ms: row.get(9)?,
        principal: row.get(10)?,
        is_shared: row.get(11)?,
        schema: row.get(12)?,
    })
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{ArgumentsKey, Cache};

    /// A copy of a kept file.
    fn kept(name: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache.sqlite");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/caches").join(name);
        std::fs::copy(sample, &path).unwrap();
        (folder, path)
    }

    #[test]
    fn files_of_all_versions_are_read_and_migrated_by_several_processes_at_once() {
        for name in ["format_1.sqlite", "format_2.sqlite"] {
            let (_folder, path) = kept(name);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| Cache::open(&path).unwrap());
                }
            });
            let cache = Cache::open(&path).unwrap();
            let arguments = serde_json::json!({"path": "/a"});
            let found = cache.answers("files", "read_file", ArgumentsKey::new(&arguments)).unwrap();
            assert_eq!((found.len(), found[0].principal.as_str(), &found[0].entry.arguments), (1, "local", &arguments));
            assert_eq!(cache.limits().unwrap(), CacheLimits::default());
            let stats = cache.stats().unwrap();
            assert!(stats.tools.iter().all(|tool| tool.bytes > 0), "{stats:?}");
            let store = SqliteStore::open(&path).unwrap();
            assert!(store.tool_schema("files", "read_file").unwrap().is_some(), "{name}");
            let (entries, bytes): (i64, i64) = store
                .run(|it| it.query_row("SELECT entries, bytes FROM usage", [], |row| Ok((row.get(0)?, row.get(1)?))))
                .unwrap();
            assert_eq!(unsigned(entries), stats.entries());
            assert_eq!(unsigned(bytes), stats.bytes());
        }
    }

    #[test]
    fn a_cache_of_a_newer_version_is_refused() {
        let (_folder, path) = kept("format_2.sqlite");
        SqliteStore::open(&path)
            .unwrap()
            .run(|connection| connection.execute_batch("PRAGMA user_version = 99"))
            .unwrap();
        assert!(matches!(SqliteStore::open(&path), Err(CacheError::Version { found: 99, .. })));
    }

    #[test]
    fn a_new_file_belongs_to_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache.sqlite");
        let _store = SqliteStore::open(&path).unwrap();
        for name in ["cache.sqlite", "cache.sqlite-wal"] {
            let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_look_up_uses_the_index_of_keys() {
        let store = SqliteStore::in_memory().unwrap();
        let plan = store.run(|connection| {
            let same =
                format!("FROM answer INDEXED BY answer_key WHERE server = ?3 AND tool = ?4 AND key = ?5 AND {VISIBLE}");
            let mut explain = connection.prepare(&format!(
                "EXPLAIN QUERY PLAN SELECT {COLUMNS} {same} AND (principal, run) =
                 (SELECT principal, run {same} ORDER BY at_ms DESC, id DESC LIMIT 1) ORDER BY sequence"
            ))?;
            let rows = explain.query_map(params!["", 0, "", "", ""], |row| row.get::<_, String>(3))?;
            rows.collect::<Result<Vec<_>, _>>()
        });
        let plan = plan.unwrap();
        assert!(plan.iter().all(|step| !step.starts_with("SCAN") && !step.contains("CORRELATED")), "{plan:?}");
        assert_eq!(plan.iter().filter(|step| step.contains("(server=? AND tool=? AND key=?")).count(), 2, "{plan:?}");
    }
}
