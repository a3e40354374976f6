//! Fields that an SDK has no place for.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::learned::{Learned, Said};

/// What the types of the SDKs have fields for, by where it stands; they keep nothing else.
const FIELDS: [(&str, &[&str]); 7] = [
    ("tools", &["name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta"]),
    ("resources", &["uri", "name", "title", "description", "mimeType", "size", "icons", "_meta", "annotations"]),
    (
        "resource templates",
        &["uriTemplate", "name", "title", "description", "mimeType", "icons", "_meta", "annotations"],
    ),
    ("prompts", &["name", "title", "description", "arguments", "icons", "_meta"]),
    ("tools/call", &["content", "structuredContent", "isError", "_meta"]),
    ("prompts/get", &["description", "messages", "_meta"]),
    ("resources/read", &["contents", "_meta", "ttlMs", "cacheScope"]),
];

/// What of the recording has no place in the types of an SDK, in words; `more` is what it knows of tools beyond the others.
///
/// ```text
/// `execution` of tools, which rmcp does not know
/// ```
pub(super) fn lost_fields(learned: &Learned, sdk: &str, more: &[&str]) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    for (place, known) in FIELDS {
        let answers = learned.requests.iter().filter(|it| it.method.as_str() == place).flat_map(|it| &it.answers);
        let results = answers.filter_map(|answer| match &answer.said {
            Said::Result(result) => Some(result),
            Said::Error(_) => None,
        });
        let listed = match place {
            "tools" => &learned.tools.items[..],
            "resources" => &learned.resources.items,
            "resource templates" => &learned.resource_templates.items,
            "prompts" => &learned.prompts.items,
            _ => &[],
        };
        let objects = listed.iter().filter_map(Value::as_object).chain(results);
        let is_known = |key: &str| known.contains(&key) || place == "tools" && more.contains(&key);
        let keys = objects.flat_map(Map::keys).filter(|key| !is_known(key));
        lost.extend(keys.map(|key| format!("`{key}` of {place}, which {sdk} does not know")));
    }
    lost
}
