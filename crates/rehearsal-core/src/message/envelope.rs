//! The keys of JSON-RPC in a message, as `serde_json` finds them.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The keys of JSON-RPC and the text of their values; other members of the object are ignored.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Envelope<'a> {
    pub(super) jsonrpc: Option<&'a [u8]>,
    pub(super) id: Option<&'a [u8]>,
    pub(super) method: Option<&'a [u8]>,
    pub(super) params: Option<&'a [u8]>,
    pub(super) result: Option<&'a [u8]>,
    pub(super) error: Option<&'a [u8]>,
    pub(super) duplicate: Option<&'static str>,
}

impl<'a> Envelope<'a> {
    /// Sets the value of a key; `false` if the key was already set.
    pub(super) fn set(&mut self, key: EnvelopeKey, value: &'a [u8]) -> bool {
        let (slot, name) = match key {
            EnvelopeKey::Jsonrpc => (&mut self.jsonrpc, "jsonrpc"),
            EnvelopeKey::Id => (&mut self.id, "id"),
            EnvelopeKey::Method => (&mut self.method, "method"),
            EnvelopeKey::Params => (&mut self.params, "params"),
            EnvelopeKey::Result => (&mut self.result, "result"),
            EnvelopeKey::Error => (&mut self.error, "error"),
            EnvelopeKey::Other => return true,
        };
        let first = slot.replace(value).is_none();
        if !first {
            self.duplicate = Some(name);
        }
        first
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(key) = map.next_key::<EnvelopeKey>()? {
            if key == EnvelopeKey::Other {
                map.next_value::<IgnoredAny>()?;
            } else {
                envelope.set(key, map.next_value::<&RawValue>()?.get().as_bytes());
            }
        }
        Ok(envelope)
    }
}

/// A key of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
pub(super) enum EnvelopeKey {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl EnvelopeKey {
    /// The key with this spelling, without its quotes.
    pub(super) fn read(key: &[u8]) -> EnvelopeKey {
        match key {
            b"jsonrpc" => EnvelopeKey::Jsonrpc,
            b"id" => EnvelopeKey::Id,
            b"method" => EnvelopeKey::Method,
            b"params" => EnvelopeKey::Params,
            b"result" => EnvelopeKey::Result,
            b"error" => EnvelopeKey::Error,
            _ => EnvelopeKey::Other,
        }
    }
}
