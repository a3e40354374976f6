//! A saved plan as a contract: which calls were rehearsed.

use std::collections::{BTreeSet, HashMap};

use rehearsal_core::json::Path;
use rehearsal_core::matcher::{Difference, differences};
use rehearsal_core::report::Severity;
use serde_json::Value;

use crate::dry_run::assemble::finding;
use crate::dry_run::call::{AnsweredCall, CallEnd, PlannedCall};
use crate::dry_run::catalogue::ListedTools;
use crate::dry_run::changes::{changed_tool, first_change, is_invented, other_answer, unknown_paths};
use crate::dry_run::run::CallSite;
use crate::dry_run::{Catalogue, FindingCode, PlanFinding, ReportedBranch, SavedCall, SavedPlan};

/// A saved plan, and which of its calls the run has made.
#[derive(Debug)]
pub(super) struct Contract {
    saved: SavedPlan,
    /// The rehearsed calls from each place, in the order of the rehearsal.
    sites: HashMap<CallSite, Vec<usize>>,
    made: BTreeSet<usize>,
}

impl Contract {
    pub(super) fn new(saved: SavedPlan) -> Contract {
        let mut sites: HashMap<CallSite, Vec<usize>> = HashMap::new();
        for (index, call) in saved.calls.iter().enumerate() {
            let (server, tool) = call.tool.split_once(':').unwrap_or((&call.tool, ""));
            sites.entry(CallSite::new(server, tool, call.place.as_ref())).or_default().push(index);
        }
        Contract { saved, sites, made: BTreeSet::new() }
    }

    pub(super) fn saved_at(&self) -> &str {
        &self.saved.saved_at
    }

    /// Whether a rehearsed call is one of this server.
    pub(super) fn has_server(&self, server: &str) -> bool {
        self.saved.calls.iter().any(|call| call.tool.split(':').next() == Some(server))
    }

    /// The rehearsed call of a call, or why the call was not rehearsed.
    ///
    /// Calls from one place may come in another order than in the rehearsal, because their order depends on the latency of
    /// earlier calls. So each rehearsed call stands for one call, whatever its position.
    pub(super) fn admit(&mut self, call: &PlannedCall) -> Result<usize, String> {
        let name = format!("{}:{}", call.server, call.tool);
        let Some(rehearsed) = self.sites.get(&call.key.site) else { return Err(self.other_branch(&name, call)) };
        let fits = |index: &&usize| changed_arguments(&self.saved.calls[**index], &call.arguments).is_none();
        let mut open = rehearsed.iter().filter(|index| !self.made.contains(*index));
        if let Some(index) = open.clone().find(fits).copied() {
            self.made.insert(index);
            return Ok(index);
        }
        // A rehearsed call that repeats stands for any number of calls.
        let mut repeating = rehearsed.iter().filter(|index| self.saved.calls[**index].repeats);
        if let Some(index) = repeating.find(fits) {
            return Ok(*index);
        }
        let closest = open.next().or_else(|| rehearsed.iter().rfind(|index| self.saved.calls[**index].repeats));
        let change = closest.and_then(|index| changed_arguments(&self.saved.calls[*index], &call.arguments));
        Err(match change {
            Some(change) => format!("{name} was rehearsed with other arguments: {change}"),
            None => {
                let times = match rehearsed.len() {
                    1 => "once".to_owned(),
                    count => format!("{count} times"),
                };
                format!("{name} was rehearsed {times} from here; this is call {}", call.key.occurrence)
            }
        })
    }

    /// Why a call from a place that the rehearsal did not reach was not rehearsed.
    fn other_branch(&self, name: &str, call: &PlannedCall) -> String {
        let place = call.place.as_ref().map(|place| (place.line, place.column));
        let possible = self.saved.not_run.iter().find(|possible| {
            possible.tool.as_deref().is_none_or(|tool| tool == name)
                && Some((possible.place.line, possible.place.column)) == place
        });
        let only_if = possible.and_then(|possible| possible.only_if.as_ref());
        let branch = only_if.and_then(|only_if| Some((self.saved.branches.get(only_if.branch)?, only_if.value)));
        match (branch, possible) {
            (Some((branch, Some(value))), _) => {
                format!("{name} was not rehearsed: it is called only if {} is {value}", condition(branch))
            }
            (Some((branch, None)), _) => {
                format!("{name} was not rehearsed: it is in another branch of {}", condition(branch))
            }
            (None, Some(possible)) if call.task.is_some() => {
                format!("{name} was not rehearsed; in the rehearsal, {}", possible.reason)
            }
            (None, Some(_)) => format!("{name} was not rehearsed: the rehearsal did not reach this call"),
            (None, None) => format!("{name} was not rehearsed"),
        }
    }

    /// The tools that changed since the plan was saved, as far as their servers are connected.
    pub(super) fn changed_tools(&self, catalogue: &Catalogue) -> Vec<PlanFinding> {
        let mut found = Vec::new();
        for (name, before) in &self.saved.tools {
            let Some((server, tool)) = name.split_once(':') else { continue };
            let listed = ListedTools::new(catalogue, None, server);
            let changes = match (&listed, listed.get(tool)) {
                (_, Some(listed)) => changed_tool(name, before, listed),
                (ListedTools::Known(_), None) => {
                    let message = format!("{name} existed when the plan was saved; {server} has no such tool");
                    vec![(FindingCode::ToolRemoved, message)]
                }
                // It was not connected to.
                (ListedTools::Unavailable | ListedTools::Missing, None) => Vec::new(),
            };
            let changes = changes.into_iter();
            found.extend(changes.map(|(code, message)| finding(code, Severity::Warning, message)));
        }
        found
    }

    /// How the result of a call differs from the answer that the rehearsal relied on. An invented answer differs in any case,
    /// so it is a finding only if it explains why the run `deviated`.
    pub(super) fn changed_answer(&self, rehearsed: usize, call: &AnsweredCall, deviated: bool) -> Option<PlanFinding> {
        let before = self.saved.calls.get(rehearsed)?;
        let (value, is_error) = match &call.end {
            CallEnd::Value(value) => (value.clone(), false),
            CallEnd::Recorder => return None,
            CallEnd::Error { message, .. } => (Value::String(message.clone()), true),
        };
        let is_invented = is_invented(before.answer.source);
        if is_invented && !deviated {
            return None;
        }
        let (severity, subject) = match is_invented {
            true => (Severity::Note, "its answer was invented in the rehearsal"),
            false => (Severity::Warning, "its answer is another one than in the rehearsal"),
        };
        let text = other_answer(&before.answer, &value, is_error, subject)?;
        Some(finding(FindingCode::AnswerChanged, severity, format!("{}: {text}", before.tool)))
    }
}

/// The first change of arguments in more than what was known after the run.
fn changed_arguments(before: &SavedCall, arguments: &Value) -> Option<String> {
    let open = unknown_paths(&before.known_after_run);
    let is_open = |path: &Path| open.iter().any(|open| path.is_within(open));
    let changed = differences(&before.arguments, arguments);
    let other: Vec<&Difference> = changed.iter().filter(|change| !is_open(&change.mismatch.path)).collect();
    first_change(&other)
}

/// `file.size < 100` (cleanup.ts:3:7)
fn condition(branch: &ReportedBranch) -> String {
    let column = branch.place.column.map(|column| format!(":{column}")).unwrap_or_default();
    format!("`{}` ({}:{}{column})", branch.text, branch.place.file, branch.place.line)
}
