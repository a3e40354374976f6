//! What of a recorded request can be sent again.

use rehearsal_core::protocol::{Era, Revision, meta};
use rehearsal_core::trace::Call;
use serde_json::{Map, Value};

use super::plan::{input_requests, reply};

/// Who says in `_meta` which version is spoken, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Our client, if anybody.
    Ours,
    /// The recorded one, if it did.
    Recorded,
}

/// Params without what belongs to the recorded conversation, and whether progress is wanted.
pub(super) fn sendable(params: Value, claim: Claim) -> (Value, bool) {
    let Value::Object(mut fields) = params else { return (params, false) };
    for key in ["inputResponses", "requestState"] {
        fields.shift_remove(key);
    }
    let mut wants_progress = false;
    if let Some(Value::Object(about)) = fields.shift_remove("_meta") {
        wants_progress = about.contains_key(meta::PROGRESS_TOKEN);
        let claimed = |key: &str| claim == Claim::Ours && key.starts_with("io.modelcontextprotocol/");
        let ours = |key: &str| key == meta::PROGRESS_TOKEN || claimed(key);
        let theirs: Map<String, Value> = about.into_iter().filter(|(key, _)| !ours(key)).collect();
        if !theirs.is_empty() {
            fields.insert("_meta".to_owned(), theirs.into());
        }
    }
    (fields.into(), wants_progress)
}

/// Why a request cannot be made in this version.
pub(super) fn unknown(asked: &Call, answered: &Call, revision: Revision) -> Option<&'static str> {
    let gone = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    let method = asked.request.message.method()?;
    let is_open = reply(answered).is_some_and(|reply| input_requests(&reply).is_some());
    match revision.era() {
        Era::Modern => gone.contains(&method.as_str()).then_some("2026-07-28 knows no such request"),
        Era::Legacy => is_open.then_some("its client never came back, which only 2026-07-28 knows"),
    }
}
