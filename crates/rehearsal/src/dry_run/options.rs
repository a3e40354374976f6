//! What a dry run knows and may use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::answer::AnswerSource;
use rehearsal_sandbox::PlanLimits;

use super::catalogue::{Catalogue, ListedTools};
use super::effects::{DeclaredEffect, DeclaredEffects};
use super::safe_tools::SafeTools;
use super::search::RunBudget;
use crate::cache::Cache;
use crate::mock::{LoadError, MockFiles};

/// What a dry run knows and may use.
#[derive(Clone, Debug, Default)]
pub struct DryRunOptions {
    pub(super) catalogue: Catalogue,
    pub(super) cache: Option<Arc<Cache>>,
    pub(super) overrides: BTreeMap<String, Arc<dyn AnswerSource>>,
    pub(super) effects: DeclaredEffects,
    pub(super) intent: Option<String>,
    pub(super) limits: PlanLimits,
    pub(super) seed: u64,
    pub(super) budget: RunBudget,
    pub(super) explores_failures: bool,
    pub(super) safe_tools: Option<Arc<SafeTools>>,
    /// By `server:tool`.
    pub(super) time_to_live: BTreeMap<String, Duration>,
}

impl DryRunOptions {
    /// Options with the tools that the plan can call.
    pub fn new(catalogue: Catalogue) -> DryRunOptions {
        DryRunOptions { catalogue, ..DryRunOptions::default() }
    }

    /// The tools of a server, without what is recorded about them.
    pub(super) fn listed_tools(&self, server: &str) -> ListedTools {
        ListedTools::new(&self.catalogue, self.overrides.get(server), server)
    }

    /// Answers calls from recorded results.
    #[must_use]
    pub fn cache(self, cache: Arc<Cache>) -> DryRunOptions {
        DryRunOptions { cache: Some(cache), ..self }
    }

    /// How long recorded results of a tool answer calls, named as `server:tool`. It replaces `ttlMs` of the server.
    #[must_use]
    pub fn time_to_live(mut self, tool: impl Into<String>, time: Duration) -> DryRunOptions {
        self.time_to_live.insert(tool.into(), time);
        self
    }

    /// Answers calls of a server with the rules of a mock file, before any other source. The file may also add tools.
    pub fn override_with(mut self, server: impl Into<String>, mock: &MockFiles) -> Result<DryRunOptions, LoadError> {
        self.overrides.insert(server.into(), mock.source()?);
        Ok(self)
    }

    /// Declares the effect of a tool, named as `server:tool`. It wins over the annotations of the server.
    #[must_use]
    pub fn effect(mut self, tool: impl Into<String>, effect: DeclaredEffect) -> DryRunOptions {
        self.effects.insert(tool.into(), effect);
        self
    }

    /// The purpose of the plan, for the report.
    #[must_use]
    pub fn intent(self, intent: impl Into<String>) -> DryRunOptions {
        DryRunOptions { intent: Some(intent.into()), ..self }
    }

    /// The limits of the plan.
    #[must_use]
    pub fn limits(self, limits: PlanLimits) -> DryRunOptions {
        DryRunOptions { limits, ..self }
    }

    /// How often and how long the plan may run, to find out what depends on values that are not known.
    #[must_use]
    pub fn budget(self, budget: RunBudget) -> DryRunOptions {
        DryRunOptions { budget, ..self }
    }

    /// Finds the failures of calls that the plan does not handle: it runs with each call failing in turn.
    #[must_use]
    pub fn explore_failures(self) -> DryRunOptions {
        DryRunOptions { explores_failures: true, ..self }
    }

    /// Lets calls of these tools reach their servers.
    #[must_use]
    pub fn safe_tools(self, tools: Arc<SafeTools>) -> DryRunOptions {
        DryRunOptions { safe_tools: Some(tools), ..self }
    }

    /// The seed of the plan's `Math.random`.
    #[must_use]
    pub fn seed(self, seed: u64) -> DryRunOptions {
        DryRunOptions { seed, ..self }
    }
}
