//! The difference between two documents: it keeps the data of another tool's file that a trace has no place for.

use super::json_tree::JsonTree;

/// The member of a message, and of a session's metadata, that holds the additional data of the file that it was read
/// from.
pub const IMPORTED: &str = "_imported";

/// The patch that turns `from` into `to`; `None` if they are equal.
///
/// ```text
/// {"set": {"/response/result/meta": null}, "unset": ["/request/id"], "literal": {"/response/result/x": "NaN"}}
/// ```
pub(super) fn difference(from: &JsonTree, to: &JsonTree) -> Option<JsonTree> {
    let mut patch = Patch::default();
    patch.compare(from, to, "");
    let Patch { set, unset, literal } = patch;
    let mut members = Vec::new();
    let mut put = |key: &str, value: JsonTree, empty: bool| {
        if !empty {
            members.push((key.to_owned(), value));
        }
    };
    let (no_set, no_unset, no_literal) = (set.is_empty(), unset.is_empty(), literal.is_empty());
    put("unset", JsonTree::List(unset), no_unset);
    put("set", JsonTree::Object(set), no_set);
    put("literal", JsonTree::Object(literal), no_literal);
    (!members.is_empty()).then_some(JsonTree::Object(members))
}

#[derive(Default)]
struct Patch {
    set: Vec<(String, JsonTree)>,
    unset: Vec<JsonTree>,
    literal: Vec<(String, JsonTree)>,
}

impl Patch {
    fn compare(&mut self, from: &JsonTree, to: &JsonTree, at: &str) {
        match (from, to) {
            (from, to) if from == to => {}
            // A member whose name occurs twice has no unique path.
            (from, to) if from.has_twins() || to.has_twins() => self.set(to, at),
            (JsonTree::Object(before), JsonTree::Object(after)) => {
                for (key, _) in before.iter().filter(|(key, _)| to.get(key).is_none()) {
                    self.unset.push(quoted(&below(at, key)));
                }
                for (key, value) in after {
                    match from.get(key) {
                        Some(before) => self.compare(before, value, &below(at, key)),
                        None => self.set(value, &below(at, key)),
                    }
                }
            }
            (JsonTree::List(before), JsonTree::List(after)) if before.len() == after.len() => {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    self.compare(before, after, &below(at, &index.to_string()));
                }
            }
            (JsonTree::Leaf(_) | JsonTree::List(_) | JsonTree::Object(_), to) => self.set(to, at),
        }
    }

    fn set(&mut self, value: &JsonTree, at: &str) {
        self.set.push((at.to_owned(), value.valid()));
        self.literals(value, at);
    }

    /// A message must be JSON, so Python's `NaN` and infinities are stored separately.
    fn literals(&mut self, value: &JsonTree, at: &str) {
        if let Some(name) = value.not_a_number() {
            self.literal.push((at.to_owned(), quoted(name)));
        }
        for (index, element) in value.elements().iter().enumerate() {
            self.literals(element, &below(at, &index.to_string()));
        }
        // Of several members with one name only the last has a path.
        for (key, member) in value.members().iter().filter(|(key, member)| value.get(key) == Some(member)) {
            self.literals(member, &below(at, key));
        }
    }
}

fn quoted(text: &str) -> JsonTree {
    JsonTree::Leaf(format!("\"{text}\""))
}

/// The path of a member. Keys are in their escaped form on both sides, so a pointer is too.
fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Applies a patch. Steps that do not fit, because the file was edited in between, are skipped.
pub(super) fn apply(tree: &mut JsonTree, patch: &JsonTree) {
    for pointer in patch.get("unset").map(JsonTree::elements).unwrap_or_default() {
        if let JsonTree::Leaf(pointer) = pointer
            && let Some(pointer) = pointer.strip_prefix('"').and_then(|pointer| pointer.strip_suffix('"'))
            && let Some((parent, key)) = pointer.rsplit_once('/')
            && let Some(parent) = find(tree, parent)
        {
            parent.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
    }
    let literal = |value: &JsonTree| value.text().map_or_else(JsonTree::null, JsonTree::Leaf);
    let set = patch.get("set").map(JsonTree::members).unwrap_or_default().iter().map(|(at, value)| (at, value.clone()));
    let literals = patch.get("literal").map(JsonTree::members).unwrap_or_default();
    for (pointer, value) in set.chain(literals.iter().map(|(at, value)| (at, literal(value)))) {
        match pointer.rsplit_once('/') {
            None => *tree = value,
            Some((parent, key)) => {
                let key = key.replace("~1", "/").replace("~0", "~");
                match find(tree, parent) {
                    Some(JsonTree::List(elements)) => {
                        if let Some(place) = key.parse().ok().and_then(|index: usize| elements.get_mut(index)) {
                            *place = value;
                        }
                    }
                    Some(parent @ JsonTree::Object(_)) => parent.set(&key, value),
                    Some(JsonTree::Leaf(_)) | None => {}
                }
            }
        }
    }
}

fn find<'t>(tree: &'t mut JsonTree, pointer: &str) -> Option<&'t mut JsonTree> {
    pointer.split('/').skip(1).try_fold(tree, |tree, key| match tree {
        JsonTree::Object(members) => {
            let key = key.replace("~1", "/").replace("~0", "~");
            members.iter_mut().rfind(|(name, _)| *name == key).map(|(_, value)| value)
        }
        JsonTree::List(elements) => key.parse().ok().and_then(|index: usize| elements.get_mut(index)),
        JsonTree::Leaf(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree() -> impl Strategy<Value = JsonTree> {
        let leaf =
            prop::sample::select(vec!["1", "1.50", "null", "\"a\"", "NaN", "-Infinity", "\"NaN\"", "\"\\ud800\""]);
        let key = prop::sample::select(vec!["a", "b", "a/b", "~", "", "0", "\\u00e9", "a~1"]);
        leaf.prop_map(|leaf| JsonTree::Leaf(leaf.to_owned())).prop_recursive(3, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(JsonTree::List),
                prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|members| JsonTree::Object(members.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn members_of_the_same_name_are_all_kept() {
        for text in [r#"{"a":{"b":1,"b":2},"c":[{"d":1,"d":{}}]}"#, r#"{"a":1,"a":NaN}"#] {
            let (mut from, to) = (JsonTree::known(r#"{"a":{"b":2},"c":[{"d":{}}]}"#), JsonTree::known(text));
            let patch = difference(&from, &to).unwrap();
            apply(&mut from, &JsonTree::known(&patch.to_string()));
            assert_eq!(from.to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_patch_turns_one_value_into_the_other(from in tree(), to in tree()) {
            let mut patched = from.clone();
            if let Some(patch) = difference(&from, &to) {
                // A patch is stored in messages, so it must be JSON.
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&patch.to_string()).is_ok());
                apply(&mut patched, &JsonTree::known(&patch.to_string()));
            }
            prop_assert!(difference(&patched, &to).is_none(), "{} {} {}", from, to, patched);
        }
    }
}
