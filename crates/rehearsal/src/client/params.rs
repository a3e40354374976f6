//! What a request carries.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The params of a request.
pub(super) enum Params {
    /// Anything.
    Any(Value),
    /// A name and its arguments, which is what tools and prompts are called with: written without making a map of them.
    Named {
        /// Of the tool or prompt.
        name: String,
        /// For it.
        arguments: Value,
    },
}

impl Params {
    /// Puts `arguments` where they belong; params that are no object have no place for them.
    pub(super) fn set_arguments(&mut self, given: Value) {
        match self {
            Params::Named { arguments, .. } => *arguments = given,
            Params::Any(Value::Object(params)) => drop(params.insert("arguments".into(), given)),
            Params::Any(_) => {}
        }
    }

    /// What is called.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Params::Named { name, .. } => Some(name),
            Params::Any(params) => params.get("name")?.as_str(),
        }
    }

    /// As an object that can be added to.
    pub(super) fn as_object_mut(&mut self) -> Option<&mut Map<String, Value>> {
        if let Params::Named { name, arguments } = self {
            *self = Params::Any(json!({"name": name, "arguments": arguments.take()}));
        }
        match self {
            Params::Any(Value::Object(params)) => Some(params),
            Params::Any(_) | Params::Named { .. } => None,
        }
    }
}

/// One of our fields of `_meta`.
pub(super) type MetaField<'a> = (&'static str, Cow<'a, RawValue>);

/// The caller's params with our `_meta`; what the caller put there counts.
pub(super) struct WithMeta<'a> {
    pub(super) params: &'a Params,
    pub(super) meta: Vec<MetaField<'a>>,
}

impl WithMeta<'_> {
    /// Whether there is anything to write.
    pub(super) fn is_some(&self) -> bool {
        !matches!(self.params, Params::Any(Value::Null)) || !self.meta.is_empty()
    }
}

impl Serialize for WithMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let params = match self.params {
            Params::Named { name, arguments } => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("arguments", arguments)?;
                if !self.meta.is_empty() {
                    map.serialize_entry("_meta", &Meta { ours: &self.meta, theirs: None })?;
                }
                return map.end();
            }
            Params::Any(Value::Object(params)) if !self.meta.is_empty() => Some(params),
            Params::Any(Value::Null) => None,
            // Nothing to add, or nothing that could be added to.
            Params::Any(other) => return other.serialize(serializer),
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

/// Our `_meta` and the caller's as one object.
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
