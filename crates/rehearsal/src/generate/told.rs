//! What notifications say that has no place in what is generated.

use std::collections::BTreeSet;

use rehearsal_core::protocol::Era;
use serde_json::Value;

use super::learned::{Before, Learned};

/// Notifications that came before an answer, by their methods and params.
fn told(learned: &Learned) -> impl Iterator<Item = (&str, &Value)> {
    let answers = learned.requests.iter().flat_map(|request| &request.answers);
    answers.flat_map(|answer| &answer.before).filter_map(|before| match before {
        Before::Told { method, params, .. } => Some((method.as_str(), params)),
        Before::Asked(_) | Before::SentAway => None,
    })
}

/// The members of progress and log messages that have no place in the steps of a mock and in the package mcp, in words.
///
/// ```text
/// `_meta` of notifications/progress
/// ```
pub(super) fn untold(learned: &Learned) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for (method, params) in told(learned) {
        let said: &[&str] = match method {
            "notifications/progress" => &["progress", "total", "message"],
            "notifications/message" => &["level", "logger", "data"],
            _ => continue,
        };
        let keys = params.as_object().into_iter().flat_map(|params| params.keys());
        let own = keys.filter(|key| !said.contains(&key.as_str()));
        words.extend(own.map(|key| format!("`{key}` of {method}")));
    }
    words
}

/// That some log messages were not asked for, which no SDK says since 2026-07-28, in words.
pub(super) fn unwanted(learned: &Learned) -> Option<String> {
    let answers = learned.requests.iter().flat_map(|request| &request.answers);
    let modern = answers.filter(|answer| answer.revision.is_some_and(|revision| revision.era() == Era::Modern));
    let mut before = modern.flat_map(|answer| &answer.before);
    let is_some = before.any(|before| matches!(before, Before::Told { unwanted: true, .. }));
    is_some.then(|| "log messages that the client had not asked for".to_owned())
}

/// The notifications of changes, which subscribers hear since 2026-07-28.
const CHANGES: [&str; 4] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
];

/// What came before an answer since 2026-07-28 and is told to nobody by a program, in words; changes are told where it
/// declares that it tells them.
///
/// ```text
/// notifications/own, which clients of 2026-07-28 do not hear
/// ```
pub(super) fn unheard(learned: &Learned, tells_changes: bool) -> BTreeSet<String> {
    let answers = learned.requests.iter().flat_map(|request| &request.answers);
    let modern = answers.filter(|answer| answer.revision.is_some_and(|revision| revision.era() == Era::Modern));
    let methods = modern.flat_map(|answer| &answer.before).filter_map(|before| match before {
        Before::Told { method, .. } => Some(method),
        Before::Asked(_) | Before::SentAway => None,
    });
    let unheard = methods.filter(|method| match method.as_str() {
        "notifications/progress" | "notifications/message" => false,
        change if CHANGES.contains(&change) => !tells_changes,
        _ => true,
    });
    unheard.map(|method| format!("{method}, which clients of 2026-07-28 do not hear")).collect()
}

/// Whether some log message says nothing.
pub(super) fn logs_null(learned: &Learned) -> bool {
    told(learned).any(|(method, params)| method == "notifications/message" && params.get("data") == Some(&Value::Null))
}
