//! What a real run may use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::redact::Redaction;
use rehearsal_sandbox::PlanLimits;
use serde_json::Value;
use tokio::sync::watch;

use crate::cache::{Cache, CacheError};
use crate::client::ClientBuilder;
use crate::dry_run::{Catalogue, DeclaredEffect, ServerTools};

/// How long a call may take by default.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// What a real run may use.
#[must_use = "nothing runs before `exec`"]
pub struct ExecOptions {
    pub(super) servers: BTreeMap<String, ClientBuilder>,
    pub(super) cache: Option<Arc<Cache>>,
    pub(super) not_cached: BTreeSet<String>,
    pub(super) trace: Option<PathBuf>,
    pub(super) redaction: Redaction,
    pub(super) effects: BTreeMap<String, DeclaredEffect>,
    pub(super) expects_read_only: bool,
    pub(super) requires_sandbox: bool,
    pub(super) timeout: Duration,
    pub(super) intent: Option<String>,
    pub(super) limits: PlanLimits,
    pub(super) seed: u64,
    pub(super) cancellation: Cancellation,
}

impl Default for ExecOptions {
    fn default() -> ExecOptions {
        ExecOptions {
            servers: BTreeMap::new(),
            cache: None,
            not_cached: BTreeSet::new(),
            trace: None,
            redaction: Redaction::standard(),
            effects: BTreeMap::new(),
            expects_read_only: false,
            requires_sandbox: false,
            timeout: CALL_TIMEOUT,
            intent: None,
            limits: PlanLimits::default(),
            seed: 0,
            cancellation: Cancellation::new(),
        }
    }
}

impl ExecOptions {
    /// Options without servers.
    pub fn new() -> ExecOptions {
        ExecOptions::default()
    }

    /// Adds a server that the plan can call. It is connected to when the plan calls it for the first time.
    pub fn server(mut self, name: impl Into<String>, client: ClientBuilder) -> ExecOptions {
        self.servers.insert(name.into(), client);
        self
    }

    /// Stores the results of calls, and the tools of the servers, for later dry runs.
    pub fn cache(self, cache: Arc<Cache>) -> ExecOptions {
        ExecOptions { cache: Some(cache), ..self }
    }

    /// Does not store the results of a tool, named as `server:tool`, because they differ from call to call.
    pub fn no_cache_for(mut self, tool: impl Into<String>) -> ExecOptions {
        self.not_cached.insert(tool.into());
        self
    }

    /// Appends a session for each server to this trace file.
    pub fn trace(self, path: impl Into<PathBuf>) -> ExecOptions {
        ExecOptions { trace: Some(path.into()), ..self }
    }

    /// The redaction of the trace; [`Redaction::standard`] by default.
    pub fn redaction(self, redaction: Redaction) -> ExecOptions {
        ExecOptions { redaction, ..self }
    }

    /// Declares the effect of a tool, named as `server:tool`. It wins over the annotations of the server.
    pub fn effect(mut self, tool: impl Into<String>, effect: DeclaredEffect) -> ExecOptions {
        self.effects.insert(tool.into(), effect);
        self
    }

    /// Ends the run before the first call of a tool that changes something, or may.
    pub fn expect_read_only(self) -> ExecOptions {
        ExecOptions { expects_read_only: true, ..self }
    }

    /// Runs nothing if the kernel does not enforce every part of the sandbox.
    pub fn require_sandbox(self) -> ExecOptions {
        ExecOptions { requires_sandbox: true, ..self }
    }

    /// How long each call may take, and each connection; 30 seconds by default.
    pub fn timeout(self, timeout: Duration) -> ExecOptions {
        ExecOptions { timeout, ..self }
    }

    /// The purpose of the plan, for the report.
    pub fn intent(self, intent: impl Into<String>) -> ExecOptions {
        ExecOptions { intent: Some(intent.into()), ..self }
    }

    /// The limits of the plan.
    pub fn limits(self, limits: PlanLimits) -> ExecOptions {
        ExecOptions { limits, ..self }
    }

    /// The seed of the plan's `Math.random`.
    pub fn seed(self, seed: u64) -> ExecOptions {
        ExecOptions { seed, ..self }
    }

    /// Lets this end the run.
    pub fn cancellation(self, cancellation: Cancellation) -> ExecOptions {
        ExecOptions { cancellation, ..self }
    }

    /// The tools that `Object.keys(mcp)` shows before a server is connected: those that the cache has.
    pub(super) fn known_tools(&self) -> Result<BTreeMap<String, Vec<String>>, CacheError> {
        let Some(cache) = &self.cache else { return Ok(BTreeMap::new()) };
        let names: Vec<String> = self.servers.keys().cloned().collect();
        let saved = Catalogue::saved(cache, &names)?;
        let known = saved.servers().filter_map(|(name, tools)| {
            let ServerTools::Known { tools, .. } = tools else { return None };
            let tools = tools.iter().filter_map(|tool| tool.get("name").and_then(Value::as_str));
            Some((name.to_owned(), tools.map(str::to_owned).collect()))
        });
        Ok(known.collect())
    }
}

impl std::fmt::Debug for ExecOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers: Vec<&String> = self.servers.keys().collect();
        f.debug_struct("ExecOptions").field("servers", &servers).field("trace", &self.trace).finish_non_exhaustive()
    }
}

/// Ends a run from outside: its open calls are cancelled, its servers are closed, and its report is returned. Clones are equal.
#[derive(Clone, Debug)]
pub struct Cancellation {
    sender: Arc<watch::Sender<bool>>,
}

impl Cancellation {
    /// A cancellation that has not happened.
    pub fn new() -> Cancellation {
        Cancellation { sender: Arc::new(watch::Sender::new(false)) }
    }

    /// Ends the run.
    pub fn cancel(&self) {
        self.sender.send_replace(true);
    }

    /// Returns when the run is to end.
    pub(super) async fn cancelled(&self) {
        // The sender is in `self`, so it is not closed.
        let _ = self.sender.subscribe().wait_for(|cancelled| *cancelled).await;
    }

    pub(super) fn is_cancelled(&self) -> bool {
        *self.sender.borrow()
    }
}

impl Default for Cancellation {
    fn default() -> Cancellation {
        Cancellation::new()
    }
}
