//! Values by request, the newest of them at hand.

use std::collections::BTreeMap;

use super::{Channel, Key, Side};
use crate::message::RequestId;

/// A map whose newest entry is outside of the tree: where one request is answered before the next one is asked, as most
/// clients do it, no tree is ever touched.
#[derive(Debug)]
pub(super) struct AtHand<V> {
    newest: Option<(Key, V)>,
    others: BTreeMap<Key, V>,
}

impl<V> Default for AtHand<V> {
    fn default() -> AtHand<V> {
        AtHand { newest: None, others: BTreeMap::new() }
    }
}

impl<V> AtHand<V> {
    pub(super) fn len(&self) -> usize {
        self.others.len() + usize::from(self.newest.is_some())
    }

    #[inline]
    pub(super) fn get(&self, key: &Key) -> Option<&V> {
        match &self.newest {
            Some((newest, value)) if newest == key => Some(value),
            _ => self.others.get(key),
        }
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut V> {
        match &mut self.newest {
            Some((newest, value)) if newest == key => Some(value),
            _ => self.others.get_mut(key),
        }
    }

    /// Gives back what had this key before.
    #[inline]
    pub(super) fn insert(&mut self, key: Key, value: V) -> Option<V> {
        let displaced = self.remove(&key);
        if let Some((older, value)) = self.newest.replace((key, value)) {
            self.others.insert(older, value);
        }
        displaced
    }

    #[inline]
    pub(super) fn remove(&mut self, key: &Key) -> Option<V> {
        match &self.newest {
            Some((newest, _)) if newest == key => self.newest.take().map(|(_, value)| value),
            _ => self.others.remove(key),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &V)> {
        self.others.iter().chain(self.newest.iter().map(|(key, value)| (key, value)))
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = V> {
        self.others.into_values().chain(self.newest.map(|(_, value)| value))
    }

    /// Those of one asker on one channel.
    pub(super) fn asked_by(&self, asker: Side, channel: Channel) -> impl Iterator<Item = (&Key, &V)> {
        let here = move |key: &Key| key.channel == channel && key.asker == asker;
        let first = Key { channel, asker, id: RequestId::Number(i64::MIN) };
        let others = self.others.range(first..).take_while(move |(key, _)| here(key));
        others.chain(self.newest.iter().map(|(key, value)| (key, value)).filter(move |(key, _)| here(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Key> {
        (0..3_u64, any::<bool>(), -1..4_i64).prop_map(|(channel, client, id)| Key {
            channel: Channel(channel),
            asker: if client { Side::Client } else { Side::Server },
            id: if id < 0 { RequestId::Text("x".into()) } else { RequestId::Number(id) },
        })
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((any::<bool>(), key()), 0..40)) {
            let (mut ours, mut plain) = (AtHand::default(), BTreeMap::new());
            for (number, (insert, key)) in steps.into_iter().enumerate() {
                match insert {
                    true => prop_assert_eq!(ours.insert(key.clone(), number), plain.insert(key.clone(), number)),
                    false => prop_assert_eq!(ours.remove(&key), plain.remove(&key)),
                }
                prop_assert_eq!((ours.len(), ours.get(&key)), (plain.len(), plain.get(&key)));
                prop_assert_eq!(ours.get_mut(&key), plain.get_mut(&key));
                let sorted: BTreeMap<_, _> = ours.iter().map(|(key, value)| (key.clone(), *value)).collect();
                prop_assert_eq!(&sorted, &plain);
                let Key { channel, asker, .. } = key;
                let mut here: Vec<_> = ours.asked_by(asker, channel).collect();
                here.sort();
                let same = |key: &Key| key.channel == channel && key.asker == asker;
                prop_assert_eq!(here, plain.iter().filter(|(key, _)| same(key)).collect::<Vec<_>>());
            }
            let mut owned: Vec<_> = ours.into_values().collect();
            owned.sort();
            let mut expected: Vec<_> = plain.into_values().collect();
            expected.sort();
            prop_assert_eq!(owned, expected);
        }
    }
}
