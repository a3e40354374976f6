//! What is an object in versions before 2026-07-28, and may be anything since.

use rehearsal_core::protocol::{Era, Revision};
use serde_json::Value;

use super::learned::{Learned, Said};

/// Whether something that was recorded is wider than clients before 2026-07-28 take it. Where some such client was given
/// it all the same, the next one is, too.
pub(super) fn narrows(learned: &Learned) -> bool {
    let heard = learned.tools.items.iter().flat_map(|tool| {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let heard = learned.tools.heard(name).into_iter();
        heard.map(|(revision, tool)| (Some(revision), is_wide_schema(tool.get("outputSchema"))))
    });
    let answers = learned.requests.iter().flat_map(|request| &request.answers).map(|answer| {
        let structured = match &answer.said {
            Said::Result(result) => result.get("structuredContent"),
            Said::Error(_) => None,
        };
        (answer.revision, structured.is_some_and(|it| !it.is_object()))
    });
    let wide: Vec<_> = heard.chain(answers).filter(|(_, is_wide)| *is_wide).map(|(revision, _)| revision).collect();
    let is_modern = |revision: &Option<Revision>| revision.is_some_and(|revision| revision.era() == Era::Modern);
    !wide.is_empty() && wide.iter().all(is_modern)
}

fn is_wide_schema(schema: Option<&Value>) -> bool {
    schema.is_some_and(|schema| schema["type"] != "object")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_old_client_was_given_the_next_one_is_given() {
        let tools = |schema: Value| json!({"tools": [{"name": "a", "inputSchema": {}, "outputSchema": schema}]});
        let table = [
            (json!({"type": "object"}), Revision::V2026_07_28, false),
            (json!({"type": "array"}), Revision::V2026_07_28, true),
            (json!({"anyOf": []}), Revision::V2026_07_28, true),
            (json!({"type": "array"}), Revision::V2025_11_25, false),
        ];
        for (schema, revision, expected) in table {
            let mut learned = Learned::default();
            learned.tools.take(&tools(schema.clone()), None, Some(revision));
            assert_eq!(narrows(&learned), expected, "{schema}, {revision}");
        }
    }
}
