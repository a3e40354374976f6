//! Imports recordings into the cache: every result of a tool, and the tools of each server.

use std::collections::BTreeSet;
use std::mem;

use jiff::Timestamp;
use rehearsal_core::exchange::Side;
use rehearsal_core::message::{Message, Method, Reply};
use rehearsal_core::trace::{Part, ReadError, RecordedCall, SessionStart};
use serde_json::{Value, json};

use super::cache::Cache;
use super::entry::{CacheEntry, ToolSchemaHash};
use super::error::CacheError;
use crate::store::{BadLines, Recording};

/// How many results are stored in one transaction.
const BATCH: usize = 500;

/// The numbers of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Results that the cache did not have.
    pub added: usize,
    /// Results that it had.
    pub known: usize,
    /// Calls of tools without a complete reply.
    pub skipped: usize,
    /// The sessions that were read.
    pub sessions: usize,
    /// The servers, by the names that plans use.
    pub servers: BTreeSet<String>,
    /// The servers whose tools were listed.
    pub catalogues: BTreeSet<String>,
}

/// Why an import stopped. What was stored before is kept.
#[derive(thiserror::Error)]
pub enum ImportError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The cache cannot be written.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

debug_as_display!(ImportError);

/// Imports a recording. `server` is the name of its server; without one it is the `server` of the session's metadata, which
/// `rehearse wrap` writes, else the name with which the recorded server introduced itself.
pub fn import(cache: &Cache, recording: &Recording, server: Option<&str>) -> Result<Imported, ImportError> {
    let mut import = Import { cache, name: server, session: None, batch: Vec::new(), imported: Imported::default() };
    for part in recording.parts(BadLines::Refuse) {
        match part? {
            Part::Start(start) => import.start(&start)?,
            Part::Call(call) => import.call(&call)?,
            Part::Entry(_) => {}
            Part::Finish { .. } => import.finish()?,
        }
    }
    import.finish()?;
    import.flush()?;
    Ok(import.imported)
}

struct Import<'a> {
    cache: &'a Cache,
    name: Option<&'a str>,
    session: Option<Session>,
    batch: Vec<(CacheEntry, Option<ToolSchemaHash>)>,
    imported: Imported,
}

/// The session that is being read.
struct Session {
    id: String,
    server: String,
    started_ms: u64,
    /// The pages of the last `tools/list`.
    tools: Vec<Value>,
    is_listed: bool,
}

impl Import<'_> {
    fn start(&mut self, start: &SessionStart) -> Result<(), CacheError> {
        self.finish()?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let recorded = || text(start.metadata.get("server")).or_else(|| text(start.server_info.get("name")));
        let server = self.name.map(str::to_owned).or_else(recorded).unwrap_or_else(|| "server".to_owned());
        self.imported.sessions += 1;
        self.session = Some(Session {
            id: start.session_id.clone(),
            server,
            started_ms: start.started_at.map_or(0, milliseconds),
            tools: Vec::new(),
            is_listed: false,
        });
        Ok(())
    }

    fn call(&mut self, call: &RecordedCall) -> Result<(), CacheError> {
        let Some(session) = self.session.as_mut().filter(|_| call.asker == Side::Client) else { return Ok(()) };
        let reply = call.response.as_ref().and_then(|response| response.message.as_response()).map(|it| &it.reply);
        let request = &call.request.message;
        if request.method() == Some(&Method::TOOLS_LIST) {
            session.list(request, reply);
            return Ok(());
        }
        if request.method() != Some(&Method::TOOLS_CALL) {
            return Ok(());
        }
        self.imported.servers.insert(session.server.clone());
        let tool = request.params().and_then(|params| params.field("name")?.text());
        let (Some(tool), Some(reply)) = (tool, reply.filter(|reply| is_complete(reply))) else {
            self.imported.skipped += 1;
            return Ok(());
        };
        let arguments = request.params().and_then(|params| params.field("arguments")?.value().ok());
        let schema = session.schema(&tool);
        let entry = CacheEntry {
            server: session.server.clone(),
            tool,
            arguments: arguments.unwrap_or_else(|| json!({})),
            reply: reply.clone(),
            run: session.id.clone(),
            sequence: call.request.seq,
            at_ms: session.started_ms + u64::try_from(call.request.at.as_millis()).unwrap_or(0),
            latency_ms: call.took().map(|took| took.as_secs_f64() * 1000.0),
        };
        self.batch.push((entry, schema));
        if self.batch.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), CacheError> {
        let Some(session) = self.session.take().filter(|session| session.is_listed) else { return Ok(()) };
        self.cache.save_catalogue(&session.server, &session.tools, session.started_ms)?;
        self.imported.servers.insert(session.server.clone());
        self.imported.catalogues.insert(session.server);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CacheError> {
        let batch = mem::take(&mut self.batch);
        let added = self.cache.put_recorded(&batch)?;
        self.imported.added += added;
        self.imported.known += batch.len() - added;
        Ok(())
    }
}

impl Session {
    /// The schemas of a tool, if the session has listed it.
    fn schema(&self, name: &str) -> Option<ToolSchemaHash> {
        let tool = self.tools.iter().find(|tool| tool.get("name").and_then(Value::as_str) == Some(name))?;
        Some(ToolSchemaHash::of_tool(tool))
    }

    /// Adds a page of `tools/list`; the first page begins a new list.
    fn list(&mut self, request: &Message, reply: Option<&Reply>) {
        let Some(Reply::Result(result)) = reply else { return };
        let Some(Value::Array(page)) = result.field("tools").and_then(|tools| tools.value().ok()) else { return };
        if request.params().and_then(|params| params.field("cursor")).is_none() {
            self.tools.clear();
        }
        self.tools.extend(page);
        self.is_listed = true;
    }
}

/// Whether a reply is the result of a call: it neither requires input nor creates a task.
pub(crate) fn is_complete(reply: &Reply) -> bool {
    !reply.is_input_required() && !is_task(reply)
}

/// Whether a task was created in place of a result.
fn is_task(reply: &Reply) -> bool {
    let Reply::Result(result) = reply else { return false };
    result.field("task").is_some() && result.field("content").is_none()
}

fn milliseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or(0)
}
