//! The tables of the SQLite file, and the migrations from earlier versions, one function a step.
//!
//! `fixtures/caches` has a file of each version.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde_json::Value;

use super::entry::{LOCAL_PRINCIPAL, ToolSchemaHash};
use super::store::CacheLimits;

/// The version of the tables, in `user_version`.
pub(super) const VERSION: i64 = 2;

const TABLES_1: &str = "
CREATE TABLE answer (
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
CREATE INDEX answer_key ON answer (server, tool, key, at_ms);
CREATE INDEX answer_newest ON answer (server, tool, kind, at_ms);
CREATE TABLE catalogue (
    server TEXT PRIMARY KEY,
    tools TEXT NOT NULL,
    at_ms INTEGER NOT NULL
);
";

/// Version 2: principals, sharing, the schemas of tools, sizes and limits. SQLite cannot change a `UNIQUE` constraint, so the
/// rows are copied. The triggers keep the totals of the one row of `usage`, so that an insert need not count.
const TABLES_2: &str = "
ALTER TABLE answer RENAME TO answer_1;
CREATE TABLE answer (
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
    principal TEXT NOT NULL DEFAULT 'local',
    shared INTEGER NOT NULL DEFAULT 0,
    schema BLOB,
    bytes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (server, tool, run, sequence, principal)
);
CREATE TABLE usage (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    entries INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    max_entries INTEGER NOT NULL,
    max_bytes INTEGER NOT NULL,
    max_versions INTEGER NOT NULL
);
CREATE TABLE tool (
    server TEXT NOT NULL,
    name TEXT NOT NULL,
    schema BLOB NOT NULL,
    PRIMARY KEY (server, name)
);
CREATE TRIGGER answer_added AFTER INSERT ON answer BEGIN
    UPDATE usage SET entries = entries + 1, bytes = bytes + new.bytes;
END;
CREATE TRIGGER answer_removed AFTER DELETE ON answer BEGIN
    UPDATE usage SET entries = entries - 1, bytes = bytes - old.bytes;
END;
";

const ROWS_2: &str = "
INSERT INTO answer (id, server, tool, key, arguments, reply, kind, run, sequence, at_ms, latency_ms, principal, shared, bytes)
    SELECT id, server, tool, key, arguments, reply, kind, run, sequence, at_ms, latency_ms, ?1,
        CASE WHEN kind < 2 AND json_valid(reply) THEN json_extract(reply, '$.cacheScope') IS 'public' ELSE 0 END,
        length(CAST(arguments AS BLOB)) + length(CAST(reply AS BLOB))
    FROM answer_1 ORDER BY id";

const INDEXES_2: &str = "
DROP TABLE answer_1;
CREATE INDEX answer_key ON answer (server, tool, key, at_ms);
CREATE INDEX answer_newest ON answer (server, tool, kind, at_ms);
";

/// The version of a file.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings the tables of a file to [`VERSION`] in one transaction. Another process may do the same at the same time.
pub(super) fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    if found < 1 {
        transaction.execute_batch(TABLES_1)?;
    }
    if found < 2 {
        version_1_to_2(&transaction)?;
    }
    if found < VERSION {
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}

fn version_1_to_2(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES_2)?;
    let CacheLimits { entries, bytes, versions } = CacheLimits::default();
    connection.execute(
        "INSERT INTO usage (id, entries, bytes, max_entries, max_bytes, max_versions) VALUES (1, 0, 0, ?1, ?2, ?3)",
        params![number(entries), number(bytes), number(versions)],
    )?;
    connection.execute(ROWS_2, params![LOCAL_PRINCIPAL])?;
    connection.execute_batch(INDEXES_2)?;
    let servers = {
        let mut select = connection.prepare("SELECT server FROM catalogue")?;
        let rows = select.query_map([], |row| row.get(0))?;
        rows.collect::<Result<Vec<String>, _>>()?
    };
    for server in servers {
        let sql = "SELECT tools FROM catalogue WHERE server = ?1";
        let tools: Option<String> = connection.query_row(sql, params![server], |row| row.get(0)).optional()?;
        // A catalogue that is not JSON is reported when it is read.
        let tools: Vec<Value> = tools.and_then(|tools| serde_json::from_str(&tools).ok()).unwrap_or_default();
        save_schemas(connection, &server, &schemas(&tools))?;
    }
    Ok(())
}

/// The hashes of the schemas of listed tools.
pub(super) fn schemas(tools: &[Value]) -> Vec<(String, Vec<u8>)> {
    let hash = |tool: &Value| {
        let name = tool.get("name")?.as_str()?.to_owned();
        Some((name, ToolSchemaHash::of_tool(tool).bytes().to_vec()))
    };
    tools.iter().filter_map(hash).collect()
}

/// Replaces the hashes of the tools of a server.
pub(super) fn save_schemas(
    connection: &Connection,
    server: &str,
    schemas: &[(String, Vec<u8>)],
) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM tool WHERE server = ?1", params![server])?;
    let mut insert =
        connection.prepare_cached("INSERT OR REPLACE INTO tool (server, name, schema) VALUES (?1, ?2, ?3)")?;
    for (name, schema) in schemas {
        insert.execute(params![server, name, schema])?;
    }
    Ok(())
}

/// SQLite has signed numbers only; times, positions and sizes fit.
pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
