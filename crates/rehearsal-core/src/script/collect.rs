//! Collects all unknown keys and wrong values of a file, not only the first.
//!
//! serde stops at the first error. Unknown keys are therefore reported here and skipped, and a file with a wrong value
//! is parsed again without the key of that value.
//!
//! ```text
//! parse ──► unknown keys, and an error at key 17 ──► parse without key 17 ──► … ──► no new error
//! ```

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, Visitor};

use super::{Located, Span};

/// An unknown key, and the keys that are allowed in its place.
pub(super) struct UnknownKey {
    pub(super) key: Located<String>,
    pub(super) allowed: &'static [&'static str],
}

/// The state of one pass over a file.
#[derive(Default)]
pub(super) struct Pass {
    /// The places of keys that are ignored, because an earlier pass has reported their values.
    pub(super) ignored: HashSet<Span>,
    pub(super) unknown: Vec<UnknownKey>,
    /// The innermost key whose value has ended the pass.
    pub(super) failed: Option<Span>,
}

thread_local! {
    // `Deserialize` passes no state to inner values, so the pass of this thread is here.
    static PASS: RefCell<Option<Pass>> = const { RefCell::new(None) };
}

/// Runs one pass: `parse` skips unknown and ignored keys of structs.
pub(super) fn run<T>(ignored: HashSet<Span>, parse: impl FnOnce() -> T) -> (T, Pass) {
    PASS.set(Some(Pass { ignored, ..Pass::default() }));
    let parsed = parse();
    (parsed, PASS.take().unwrap_or_default())
}

fn with_pass<T>(run: impl FnOnce(&mut Pass) -> T) -> Option<T> {
    PASS.with_borrow_mut(|pass| pass.as_mut().map(run))
}

/// Visits a struct with these fields.
pub(super) struct StructVisitor<V> {
    pub(super) fields: &'static [&'static str],
    pub(super) visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for StructVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        match with_pass(|_| ()) {
            Some(()) => self.visitor.visit_map(StructKeys { fields: self.fields, map, current: None }),
            None => self.visitor.visit_map(map),
        }
    }
}

/// The keys of a struct, without unknown and ignored keys.
struct StructKeys<A> {
    fields: &'static [&'static str],
    map: A,
    current: Option<Span>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for StructKeys<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<Located<String>>()? {
            let is_known = self.fields.contains(&key.value.as_str());
            let is_ignored = with_pass(|pass| pass.ignored.contains(&key.at)).unwrap_or(false);
            if is_known && !is_ignored {
                self.current = Some(key.at);
                return seed.deserialize(key.value.as_str().into_deserializer()).map(Some);
            }
            if !is_known {
                let allowed = self.fields;
                with_pass(|pass| pass.unknown.push(UnknownKey { key, allowed }));
            }
            self.map.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let value = self.map.next_value_seed(seed);
        if value.is_err() {
            with_pass(|pass| pass.failed = pass.failed.or(self.current));
        }
        value
    }

    fn size_hint(&self) -> Option<usize> {
        self.map.size_hint()
    }
}
