//! What a request carries.

use std::borrow::Cow;

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Message, Method, RequestId};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The params of a request.
pub(super) enum Params {
    /// Any value. Boxed, so that the future of a call is small.
    Any(Box<Value>),
    /// A name and arguments: the params of `tools/call` and `prompts/get`.
    Named(NamedParams),
    /// Params that cannot be written as JSON.
    Unwritable(serde_json::Error),
}

/// `{"name":…,"arguments":…` as text, without the closing brace, so that more members can be appended.
pub(super) struct NamedParams(Vec<u8>);

impl NamedParams {
    const NAME: &'static [u8] = b"{\"name\":";

    fn write(name: &str, arguments: &impl Serialize) -> Result<NamedParams, serde_json::Error> {
        let mut text = Vec::with_capacity(128);
        text.extend_from_slice(NamedParams::NAME);
        serde_json::to_writer(&mut text, name)?;
        text.extend_from_slice(b",\"arguments\":");
        serde_json::to_writer(&mut text, arguments)?;
        Ok(NamedParams(text))
    }

    /// Builds the request; `meta` is the result of [`meta_suffix`].
    pub(super) fn request(&self, id: RequestId, method: Method, meta: &[u8]) -> Message {
        Message::request_in_pieces(id, method, &[&self.0, meta, b"}"])
    }

    fn name(&self) -> Option<String> {
        let name = self.0.get(NamedParams::NAME.len()..)?;
        serde_json::Deserializer::from_slice(name).into_iter().next()?.ok()
    }

    /// Returns the params as a value.
    fn value(&self) -> Result<Value, serde_json::Error> {
        RawJson::parse(&[&self.0[..], b"}"].concat())?.value()
    }
}

impl Params {
    /// Builds params from a name and arguments.
    pub(super) fn named(name: &str, arguments: &impl Serialize) -> Params {
        NamedParams::write(name, arguments).map_or_else(Params::Unwritable, Params::Named)
    }

    /// Sets `arguments`; params that are no object stay unchanged.
    pub(super) fn set_arguments(&mut self, given: &impl Serialize) {
        match self {
            Params::Named(named) => *self = Params::named(&named.name().unwrap_or_default(), given),
            Params::Any(params) => match (params.as_object_mut(), serde_json::to_value(given)) {
                (Some(params), Ok(given)) => drop(params.insert("arguments".into(), given)),
                (Some(_), Err(error)) => *self = Params::Unwritable(error),
                (None, _) => {}
            },
            Params::Unwritable(_) => {}
        }
    }

    /// The name of the tool or prompt.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Params::Named(named) => named.name(),
            Params::Any(params) => params.get("name")?.as_str().map(str::to_owned),
            Params::Unwritable(_) => None,
        }
    }

    /// The params as an object; `None` if they are no object.
    pub(super) fn as_object_mut(&mut self) -> Option<&mut Map<String, Value>> {
        if let Params::Named(named) = self {
            *self = named.value().map_or_else(Params::Unwritable, |value| Params::Any(Box::new(value)));
        }
        match self {
            Params::Any(params) => params.as_object_mut(),
            Params::Named(_) | Params::Unwritable(_) => None,
        }
    }
}

/// A member of `_meta` that this client adds.
pub(super) type MetaField<'a> = (&'static str, Cow<'a, RawValue>);

/// The `_meta` as text after other fields: `,"_meta":{…}`, or nothing.
pub(super) fn meta_suffix(meta: &[MetaField<'_>]) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::new();
    if !meta.is_empty() {
        text.extend_from_slice(b",\"_meta\":");
        serde_json::to_writer(&mut text, &Meta { ours: meta, theirs: None })?;
    }
    Ok(text)
}

/// The caller's params with the client's `_meta`. Members that the caller set take precedence.
pub(super) struct WithMeta<'a> {
    pub(super) params: &'a Value,
    pub(super) meta: Vec<MetaField<'a>>,
}

impl WithMeta<'_> {
    /// Whether there is anything to write.
    pub(super) fn is_some(&self) -> bool {
        !self.params.is_null() || !self.meta.is_empty()
    }
}

impl Serialize for WithMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let params = match self.params {
            Value::Object(params) if !self.meta.is_empty() => Some(params),
            Value::Null => None,
            // There is nothing to add, or the params are no object.
            other => return other.serialize(serializer),
        };
        let mut map = serializer.serialize_map(None)?;
        let theirs = params.and_then(|params| params.get("_meta")).and_then(Value::as_object);
        for (key, value) in params.into_iter().flatten().filter(|(key, _)| *key != "_meta") {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("_meta", &Meta { ours: &self.meta, theirs })?;
        map.end()
    }
}

/// The `_meta` of the client and of the caller as one object.
struct Meta<'a> {
    ours: &'a [MetaField<'a>],
    theirs: Option<&'a Map<String, Value>>,
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, ours) in self.ours {
            match self.theirs.and_then(|theirs| theirs.get(*key)) {
                Some(theirs) => map.serialize_entry(key, theirs)?,
                None => map.serialize_entry(key, ours)?,
            }
        }
        let is_ours = |key: &str| self.ours.iter().any(|(ours, _)| *ours == key);
        for (key, theirs) in self.theirs.into_iter().flatten().filter(|(key, _)| !is_ours(key)) {
            map.serialize_entry(key, theirs)?;
        }
        map.end()
    }
}
