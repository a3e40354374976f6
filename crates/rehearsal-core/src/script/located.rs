//! Values, and names that the author of a file chooses, with their place in the file.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Span;
use super::schema_of::schema_of;
use super::strict::Strictly;

/// A value with its place in the file.
#[derive(Clone, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub at: Span,
}

impl<T> Located<T> {
    /// Converts the value; the place is unchanged.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Located<U> {
        Located { value: change(self.value), at: self.at }
    }
}

impl<T> std::ops::Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Located<T>, D::Error> {
        let spanned = serde_saphyr::Spanned::<Strictly<T>>::deserialize(deserializer)?;
        Ok(Located { value: spanned.value.0, at: Span::from_location(spanned.referenced) })
    }
}

schema_of!([T: JsonSchema] Located<T> = T);

/// Values under names that the author chooses, in the order of the file.
#[derive(Clone, Debug)]
pub struct NamedMap<T>(pub Vec<(String, T)>);

impl<T> std::ops::Deref for NamedMap<T> {
    type Target = [(String, T)];

    fn deref(&self) -> &[(String, T)] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NamedMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NamedMap<T>, D::Error> {
        struct Entries<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = NamedMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("keys and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedMap<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(NamedMap(entries))
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

schema_of!([T: JsonSchema] NamedMap<T> = BTreeMap<String, T>);
