//! Objects with their keys in the order of the file.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::schema_of::schema_of;

/// A value with the order of its keys in the file, which is also their order on the wire.
#[derive(Clone, Debug)]
pub struct WithKeyOrder<T> {
    /// The value.
    pub value: T,
    keys: Vec<String>,
}

impl<T> WithKeyOrder<T> {
    /// Puts the keys of an object that was built from the value into the order of the file. `on_the_wire` converts a
    /// key of the file to its name on the wire; keys that are not in the file stay where they are.
    pub(crate) fn order(&self, object: &mut Map<String, Value>, on_the_wire: impl Fn(&str) -> String) {
        let names = self.keys.iter().map(|key| on_the_wire(key)).filter(|name| object.contains_key(name));
        let mut written: Vec<String> = names.collect();
        written.reverse();
        let order: Vec<String> = object
            .keys()
            .map(|key| {
                let is_written = self.keys.iter().any(|name| on_the_wire(name) == *key);
                if is_written { written.pop().unwrap_or_else(|| key.clone()) } else { key.clone() }
            })
            .collect();
        let mut fields = std::mem::take(object);
        object.extend(order.into_iter().filter_map(|key| fields.remove(&key).map(|value| (key, value))));
    }
}

impl<T> std::ops::Deref for WithKeyOrder<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WithKeyOrder<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WithKeyOrder<T>, D::Error> {
        let mut keys = Vec::new();
        let value = T::deserialize(KeyRecorder { inner: deserializer, keys: &mut keys })?;
        Ok(WithKeyOrder { value, keys })
    }
}

schema_of!([T: JsonSchema] WithKeyOrder<T> = T);

/// Records the keys of the struct that is read.
struct KeyRecorder<'a, T> {
    inner: T,
    keys: &'a mut Vec<String>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for KeyRecorder<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, fields, KeyRecorder { inner: visitor, keys: self.keys })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for KeyRecorder<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(KeyRecorder { inner: map, keys: self.keys })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KeyRecorder<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let key = KeyRecorder { inner: Seed(seed, PhantomData), keys: self.keys };
        self.inner.next_key_seed(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

struct Seed<'de, K>(K, PhantomData<&'de ()>);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KeyRecorder<'_, Seed<'de, K>> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let key = String::deserialize(deserializer)?;
        self.keys.push(key.clone());
        self.inner.0.deserialize(key.into_deserializer())
    }
}
