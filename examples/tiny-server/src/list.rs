//! What the server lists: as far as a version knows it, a page at a time.

use rehearsal_core::protocol::Revision;
use serde_json::{Value, json};

use crate::call::Call;
use crate::instead::Instead;

/// What a cursor begins with. It means nothing to a client, and everything else is refused.
const CURSOR: &str = "from-";

/// The page of `elements` that the request asks for.
pub(crate) fn list(call: &Call, key: &str, elements: Vec<Value>) -> Result<Value, Instead> {
    let size = call.session.server.options.page_size.map_or(usize::MAX, usize::from);
    let start = match call.params.get("cursor") {
        None | Some(Value::Null) => 0,
        Some(cursor) => start_of(cursor, size, elements.len())
            .ok_or_else(|| Instead::invalid_params(format!("the cursor {cursor} was never given")))?,
    };
    let end = start.saturating_add(size).min(elements.len());
    let known = |element: &Value| known_in(call.terms.revision, element.clone());
    let mut result = json!({key: elements[start..end].iter().map(known).collect::<Vec<_>>()});
    if end < elements.len() {
        result["nextCursor"] = format!("{CURSOR}{end}").into();
    }
    Ok(result)
}

fn start_of(cursor: &Value, size: usize, length: usize) -> Option<usize> {
    let start = cursor.as_str()?.strip_prefix(CURSOR)?.parse().ok()?;
    (start > 0 && start < length && start % size == 0).then_some(start)
}

/// An element without the keys that came after `revision`.
fn known_in(revision: Revision, mut element: Value) -> Value {
    let since = [
        ("annotations", Revision::V2025_03_26),
        ("title", Revision::V2025_06_18),
        ("outputSchema", Revision::V2025_06_18),
    ];
    if let Some(object) = element.as_object_mut() {
        object.retain(|key, _| since.iter().all(|(newer, first)| key != newer || revision >= *first));
    }
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cursors_that_were_given_are_taken() {
        assert_eq!(start_of(&json!("from-4"), 2, 5), Some(4));
        for made_up in [json!("from-0"), json!("from-3"), json!("from-6"), json!("from-x"), json!("4"), json!(4)] {
            assert_eq!(start_of(&made_up, 2, 5), None, "{made_up}");
        }
    }

    #[test]
    fn an_old_version_sees_only_what_it_knows() {
        let tool = json!({"name": "echo", "title": "Echo", "annotations": {}, "outputSchema": {}, "inputSchema": {}});
        let keys = |revision| {
            let known = known_in(revision, tool.clone());
            known.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(keys(Revision::V2024_11_05), "name inputSchema");
        assert_eq!(keys(Revision::V2025_03_26), "name annotations inputSchema");
        assert_eq!(keys(Revision::V2025_06_18), "name title annotations outputSchema inputSchema");
    }
}
