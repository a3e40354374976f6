//! Keys that are nearly those of the protocol.

use serde_json::Value;

use super::table::{Shape, TABLE};
use crate::json::Path;
use crate::suggest::closest;

/// The keys of an object of a type of the table that no version knows but that look like one that some version does, each with
/// what is most likely meant. Keys of one's own are left alone, and so is all that may have any keys.
pub(crate) fn misspelt(type_name: &'static str, value: &Value) -> Vec<(Path, &'static str)> {
    let mut found = Vec::new();
    search(&Shape::Named(type_name), value, &Path::root(), &mut found);
    found
}

fn search(shape: &Shape, value: &Value, at: &Path, found: &mut Vec<(Path, &'static str)>) {
    let (Some((body, _)), Some(map)) = (TABLE.object(shape), value.as_object()) else { return };
    for (key, value) in map {
        let at = at.join(key.as_str());
        match body.fields.iter().find(|field| field.name == key) {
            Some(field) => search(&field.shape, value, &at, found),
            None => found.extend(closest(key, body.fields.iter().map(|field| field.name)).map(|meant| (at, meant))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_nearly_a_key_is_found_and_what_is_free_is_free() {
        let value = json!({
            "tols": {},
            "tools": {"listChangd": true},
            "weather": {"tols": 1},
            "experimental": {"tols": {}, "x": {"listChangd": 1}},
            "extensions": {"a/tools": {"tols": 1}},
        });
        let found = misspelt("ServerCapabilities", &value);
        let found: Vec<String> = found.iter().map(|(at, meant)| format!("{at} {meant}")).collect();
        assert_eq!(found, ["$.tols tools", "$.tools.listChangd listChanged"]);
    }
}
