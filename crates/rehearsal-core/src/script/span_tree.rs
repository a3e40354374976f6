//! The places of all values in a file.

use std::fmt;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::read;
use super::{Located, Span};
use crate::json::{Path, Segment};

/// The places of all values of a file. It is built only after an error, to find the exact place.
#[derive(Debug)]
pub(super) struct SpanTree(Located<SpanNode>);

#[derive(Clone, Debug)]
pub(super) enum SpanNode {
    Leaf,
    List(Vec<Located<SpanNode>>),
    Keys(Vec<(Located<String>, Located<SpanNode>)>),
}

impl SpanTree {
    /// Fails if the file cannot be parsed.
    pub(super) fn parse(text: &str) -> Result<SpanTree, serde_saphyr::Error> {
        read::parse(text).map(SpanTree)
    }

    /// The place of the value whose key is at this place.
    pub(super) fn value_of_key(&self, key: Span) -> Option<Span> {
        fn within(node: &Located<SpanNode>, key: Span) -> Option<Span> {
            match &node.value {
                SpanNode::Leaf => None,
                SpanNode::List(items) => items.iter().find_map(|item| within(item, key)),
                SpanNode::Keys(keys) => keys
                    .iter()
                    .find_map(|(name, value)| if name.at == key { Some(value.at) } else { within(value, key) }),
            }
        }
        within(&self.0, key)
    }

    /// The place of the value at `path` inside the value at `within`, or the closest known place.
    pub(super) fn find(&self, within: Span, path: &Path) -> Span {
        self.follow(within, path).map_or(within, |(_, value)| value)
    }

    /// The place of that value's key, if it has one.
    pub(super) fn find_key(&self, within: Span, path: &Path) -> Span {
        self.follow(within, path).map_or(within, |(key, value)| key.unwrap_or(value))
    }

    /// The places of a value and of its key, from the top of the file if `within` is unknown.
    fn follow(&self, within: Span, path: &Path) -> Option<(Option<Span>, Span)> {
        let mut here = if within == Span::START { &self.0 } else { find(&self.0, within)? };
        let mut key_at = None;
        for segment in path.segments() {
            let inner = match (&here.value, segment) {
                (SpanNode::Keys(keys), Segment::Key(key)) => {
                    keys.iter().find(|(name, _)| name.value == *key).map(|(name, value)| (Some(name.at), value))
                }
                (SpanNode::List(items), Segment::Index(index)) => items.get(*index).map(|item| (None, item)),
                (SpanNode::Leaf | SpanNode::List(_) | SpanNode::Keys(_), Segment::Key(_) | Segment::Index(_)) => None,
            };
            match inner {
                Some((at, inner)) => (key_at, here) = (at, inner),
                None => break,
            }
        }
        Some((key_at, here.at))
    }
}

fn find(node: &Located<SpanNode>, within: Span) -> Option<&Located<SpanNode>> {
    if node.at == within {
        return Some(node);
    }
    match &node.value {
        SpanNode::Leaf => None,
        SpanNode::List(items) => items.iter().find_map(|item| find(item, within)),
        SpanNode::Keys(keys) => keys.iter().find_map(|(_, value)| find(value, within)),
    }
}

impl<'de> Deserialize<'de> for SpanNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SpanNode, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = SpanNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<SpanNode, E> {
        Ok(SpanNode::Leaf)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<SpanNode, E> {
        Ok(SpanNode::Leaf)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<SpanNode, E> {
        Ok(SpanNode::Leaf)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<SpanNode, E> {
        Ok(SpanNode::Leaf)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<SpanNode, E> {
        Ok(SpanNode::Leaf)
    }

    fn visit_unit<E: de::Error>(self) -> Result<SpanNode, E> {
        Ok(SpanNode::Leaf)
    }

    fn visit_none<E: de::Error>(self) -> Result<SpanNode, E> {
        Ok(SpanNode::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<SpanNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(SpanNode::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SpanNode, A::Error> {
        let mut keys = Vec::new();
        while let Some(entry) = map.next_entry()? {
            keys.push(entry);
        }
        Ok(SpanNode::Keys(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::mock::MockFile;
    use crate::script::read;

    #[test]
    fn a_value_inside_a_value_is_found() {
        let text = "tools:\n  - name: a\n    answers:\n      - when:\n          city: { matches: \"(\" }\n";
        let mock: MockFile = read("m.yaml", text).unwrap();
        let when = mock.tools[0].answers[0].when.as_ref().unwrap().at;
        let path = Path::root().join("city").join("matches");
        let found = SpanTree::parse(text).unwrap().find(when, &path);
        assert_eq!((found.line, found.column), (5, 28));
        let nowhere = SpanTree::parse(text).unwrap().find(when, &Path::root().join("country"));
        assert_eq!(nowhere, when);
    }
}
