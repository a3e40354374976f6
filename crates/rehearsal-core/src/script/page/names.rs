//! What stands more than once is written once, and has a name.

use std::collections::HashMap;

use serde_json::Value;

use super::{Key, Node};

/// From which length on something that stands more than once is written once and referred to.
const WORTH_NAMING: usize = 160;
/// How many different things are named, and how many values referring to them may bring in again; a reader has limits.
const NAMES: usize = 200;
const BROUGHT_IN: usize = 50_000;

/// Long values that stand more than once, and what they are called.
#[derive(Debug)]
pub(super) struct Names {
    names: HashMap<String, (String, bool)>,
}

/// A value that has a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// It is written here: `&same-1`.
    First(String),
    /// It was written before: `*same-1`.
    Again(String),
}

impl Names {
    /// Names for what stands more than once under these keys.
    pub(super) fn of(keys: &[Key]) -> Names {
        let mut seen = Seen::default();
        keys.iter().for_each(|key| seen.node(&key.node));
        let Seen { counts, order } = seen;
        let mut left = BROUGHT_IN;
        let affordable = |(text, nodes): &(String, usize)| {
            let again = counts.get(text).map_or(0, |count| count - 1);
            let rest = left.checked_sub(again * nodes).filter(|_| again > 0);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let named = order.into_iter().filter(affordable).take(NAMES).enumerate();
        let named = named.map(|(at, (text, _))| (text, (format!("same-{}", at + 1), false)));
        Names { names: named.collect() }
    }

    /// Whether a value has a name.
    pub(super) fn has(&self, value: &Value) -> bool {
        !self.names.is_empty() && known_by(value).is_some_and(|key| self.names.contains_key(&key))
    }

    /// The name of a value that is about to be written, where it has one.
    pub(super) fn take(&mut self, value: &Value) -> Option<Named> {
        if self.names.is_empty() {
            return None;
        }
        let (name, written) = self.names.get_mut(&known_by(value)?)?;
        if std::mem::replace(written, true) {
            return Some(Named::Again(name.clone()));
        }
        Some(Named::First(name.clone()))
    }
}

#[derive(Default)]
struct Seen {
    counts: HashMap<String, usize>,
    order: Vec<(String, usize)>,
}

impl Seen {
    fn node(&mut self, node: &Node) {
        match node {
            Node::Value(value) => self.value(value),
            Node::Keys(keys) => keys.iter().for_each(|key| self.node(&key.node)),
            Node::List(elements) => elements.iter().for_each(|element| self.node(&element.node)),
        }
    }

    /// Counts what is worth a name. What is inside of something that was counted before is not counted again: it is not
    /// written again either.
    fn value(&mut self, value: &Value) {
        if let Some(key) = known_by(value) {
            let seen = self.counts.entry(key.clone()).or_insert(0);
            *seen += 1;
            if *seen > 1 {
                return;
            }
            self.order.push((key, nodes(value)));
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values().for_each(|item| self.value(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 2 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(fields) => 2 + fields.values().map(|value| 1 + nodes(value)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// What a value is known by, where it is worth a name.
fn known_by(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (text.len() >= WORTH_NAMING).then(|| format!("\"{text}")),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            (text.len() >= WORTH_NAMING).then_some(text)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Key, written};
    use crate::script::read;
    use serde_json::{Value, json};

    #[test]
    fn what_stands_twice_is_written_once() {
        let picture = "iVBORw0KGgo".repeat(20);
        let schema = json!({"type": "object", "properties": {"a": {"description": "word ".repeat(40)}}});
        let list = json!([{"n": 1, "data": picture, "schema": schema}, {"n": 2, "data": picture, "schema": schema}]);
        let text = written(&[Key::new("list", list.clone())]);
        assert_eq!(text.matches("iVBORw0KGgo").count(), 20, "{text}");
        assert!(text.contains("data: &same-1 ") && text.contains("data: *same-1\n"), "{text}");
        assert_eq!(read::<Value>("m.yaml", &text).unwrap(), json!({"list": list}));
    }
}
