//! The places of all values in a file.

use std::fmt;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::read::parse;
use super::{Located, Span};
use crate::json::{Path, Segment};

/// The places of all values of a file. It is built only after an error, to find the exact place.
#[derive(Debug)]
pub(super) struct Tree(Located<Node>);

#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf,
    List(Vec<Located<Node>>),
    Keys(Vec<(Located<String>, Located<Node>)>),
}

impl Tree {
    /// Fails if the file cannot be parsed.
    pub(super) fn of(text: &str) -> Result<Tree, serde_saphyr::Error> {
        parse(text).map(Tree)
    }

    /// The place of the value whose key is at this place.
    pub(super) fn value_of_key(&self, key: Span) -> Option<Span> {
        fn within(node: &Located<Node>, key: Span) -> Option<Span> {
            match &node.value {
                Node::Leaf => None,
                Node::List(items) => items.iter().find_map(|item| within(item, key)),
                Node::Keys(keys) => keys
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
                (Node::Keys(keys), Segment::Key(key)) => {
                    keys.iter().find(|(name, _)| name.value == *key).map(|(name, value)| (Some(name.at), value))
                }
                (Node::List(items), Segment::Index(index)) => items.get(*index).map(|item| (None, item)),
                (Node::Leaf | Node::List(_) | Node::Keys(_), Segment::Key(_) | Segment::Index(_)) => None,
            };
            match inner {
                Some((at, inner)) => (key_at, here) = (at, inner),
                None => break,
            }
        }
        Some((key_at, here.at))
    }
}

fn find(node: &Located<Node>, within: Span) -> Option<&Located<Node>> {
    if node.at == within {
        return Some(node);
    }
    match &node.value {
        Node::Leaf => None,
        Node::List(items) => items.iter().find_map(|item| find(item, within)),
        Node::Keys(keys) => keys.iter().find_map(|(_, value)| find(value, within)),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut keys = Vec::new();
        while let Some(entry) = map.next_entry()? {
            keys.push(entry);
        }
        Ok(Node::Keys(keys))
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
        let found = Tree::of(text).unwrap().find(when, &path);
        assert_eq!((found.line, found.column), (5, 28));
        let nowhere = Tree::of(text).unwrap().find(when, &Path::root().join("country"));
        assert_eq!(nowhere, when);
    }
}
