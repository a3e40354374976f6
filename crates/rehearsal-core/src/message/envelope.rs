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
    pub(super) fn set(&mut self, key: Key, value: &'a [u8]) -> bool {
        let (slot, name) = match key {
            Key::Jsonrpc => (&mut self.jsonrpc, "jsonrpc"),
            Key::Id => (&mut self.id, "id"),
            Key::Method => (&mut self.method, "method"),
            Key::Params => (&mut self.params, "params"),
            Key::Result => (&mut self.result, "result"),
            Key::Error => (&mut self.error, "error"),
            Key::Other => return true,
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
        while let Some(key) = map.next_key::<Key>()? {
            if key == Key::Other {
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
pub(super) enum Key {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl Key {
    /// The key with this spelling, without its quotes.
    pub(super) fn read(key: &[u8]) -> Key {
        match key {
            b"jsonrpc" => Key::Jsonrpc,
            b"id" => Key::Id,
            b"method" => Key::Method,
            b"params" => Key::Params,
            b"result" => Key::Result,
            b"error" => Key::Error,
            _ => Key::Other,
        }
    }
}
