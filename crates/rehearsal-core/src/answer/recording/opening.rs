//! How a conversation opens, from how it once did.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::answer::introduce::shake_hands;
use crate::answer::request_context::supported;
use crate::answer::shape::{self, ResultType};
use crate::answer::{Asked, Memory, Wanted};
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Revision, meta};
use crate::shape::forget_in_result;
use crate::trace::Call;

/// What a server says about itself: its answer to `initialize` or to `server/discover`, for clients of either era.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Who the server is.
    pub info: Arc<Value>,
    /// What it can do, in the shape of the newest version.
    pub capabilities: Map<String, Value>,
    /// Everything else that it said, such as `instructions`.
    more: Map<String, Value>,
    /// What only `server/discover` says.
    discovered: Map<String, Value>,
    /// The version in which all this was said, with the capabilities as they were declared then.
    said_in: Option<(Revision, Map<String, Value>)>,
    /// The version that the client had asked for.
    wanted: Option<String>,
}

impl Opening {
    /// What this call says about the server, if it opened a conversation and was answered.
    pub fn recorded(call: &Call) -> Option<Opening> {
        let method = call.request.message.method()?;
        if *method != Method::INITIALIZE && *method != Method::DISCOVER {
            return None;
        }
        let Reply::Result(result) = &call.response.as_ref()?.message.as_response()?.reply else { return None };
        let Value::Object(mut said) = result.value().ok()? else { return None };
        let inside = said.get_mut("_meta").and_then(Value::as_object_mut);
        let inside = inside.and_then(|meta| meta.shift_remove(meta::SERVER_INFO));
        let info = said.shift_remove("serverInfo").or(inside).filter(Value::is_object);
        let capabilities = said.shift_remove("capabilities");
        let mut discovered = Map::new();
        for key in ["supportedVersions", "ttlMs", "cacheScope"] {
            discovered.extend(said.shift_remove(key).map(|value| (key.to_owned(), value)));
        }
        let agreed = said.shift_remove("protocolVersion");
        let revision = match *method == Method::DISCOVER {
            true => Some(Revision::V2026_07_28),
            false => agreed.as_ref().and_then(Value::as_str).and_then(|version| version.parse().ok()),
        };
        said.shift_remove("resultType");
        if said.get("_meta").and_then(Value::as_object).is_some_and(Map::is_empty) {
            said.shift_remove("_meta");
        }
        let capabilities = match capabilities {
            Some(Value::Object(capabilities)) => capabilities,
            Some(_) | None => Map::new(),
        };
        let said_in = revision.map(|revision| (revision, capabilities.clone()));
        let wanted = call.request.message.params().and_then(|params| params.field("protocolVersion")?.text());
        let info = info.unwrap_or_else(unnamed).into();
        Some(Opening { info, capabilities, more: said, discovered, said_in, wanted })
    }

    /// Adds what another server of the same recording could do.
    pub fn can_also(&mut self, other: &Opening) {
        add(&mut self.capabilities, &other.capabilities);
    }

    /// What can be said about a server whose opening was not recorded: its name, and what clients used.
    pub fn inferred<'a>(server_info: &Map<String, Value>, used: impl IntoIterator<Item = &'a str>) -> Opening {
        let mut info = unnamed();
        for key in ["name", "title", "version"] {
            if let Some(text) = server_info.get(key).filter(|text| text.is_string()) {
                info[key] = text.clone();
            }
        }
        let mut capabilities = Map::new();
        for method in used {
            let capability = match method.split('/').next() {
                Some("tools") => "tools",
                Some("prompts") => "prompts",
                Some("resources") => "resources",
                Some("completion") => "completions",
                Some("logging") => "logging",
                Some(_) | None => continue,
            };
            let declared = capabilities.entry(capability).or_insert_with(|| json!({}));
            if ["resources/subscribe", "resources/unsubscribe"].contains(&method) {
                declared["subscribe"] = true.into();
            }
        }
        let (more, discovered) = Default::default();
        Opening { info: info.into(), capabilities, more, discovered, said_in: None, wanted: None }
    }

    /// Adds what a server must be able to do that told, or was asked to tell, somebody who listened of all this.
    pub fn tells(&mut self, notifications: &Map<String, Value>) {
        for (key, capability, feature) in [
            ("toolsListChanged", "tools", "listChanged"),
            ("promptsListChanged", "prompts", "listChanged"),
            ("resourcesListChanged", "resources", "listChanged"),
            ("resourceSubscriptions", "resources", "subscribe"),
        ] {
            if notifications.get(key).is_some_and(|wanted| *wanted == true || wanted.is_array()) {
                let declared = self.capabilities.entry(capability).or_insert_with(|| json!({}));
                declared[feature] = true.into();
            }
        }
        if notifications.contains_key("taskIds") {
            add(
                &mut self.capabilities,
                &Map::from_iter([("extensions".to_owned(), json!({meta::TASKS_EXTENSION: {}}))]),
            );
        }
    }

    /// `initialize`: settles the version, and remembers what the client can do.
    pub fn initialize(&self, asked: &Asked, memory: &mut Memory) -> Result<Reply, ErrorReply> {
        let settled = self.settled(asked);
        let revisions = settled.as_ref().map_or(&Revision::ALL[..], std::slice::from_ref);
        let spoken = shake_hands(asked, memory, revisions)?;
        let mut result = json!({
            "protocolVersion": spoken.as_str(),
            "capabilities": shape::capabilities(&self.capabilities, spoken),
            "serverInfo": shape::implementation((*self.info).clone(), spoken),
        });
        self.rest(&mut result);
        forget_in_result(Method::INITIALIZE.as_str(), &mut result, spoken);
        if let Some(declared) = self.said_in(spoken) {
            result["serverInfo"] = (*self.info).clone();
            self.rest(&mut result);
            declare(&mut result, declared);
        }
        Ok(Reply::Result(RawJson::from_value(&result)))
    }

    /// `server/discover`: the same without settling anything.
    pub fn discover(&self, asked: &Asked) -> Reply {
        let revision = asked.terms.revision;
        let mut result = json!({
            "supportedVersions": supported(&Revision::ALL),
            "capabilities": shape::capabilities(&self.capabilities, revision),
        });
        self.rest(&mut result);
        shape::envelope(&mut result, ResultType::Complete, Method::DISCOVER.as_str(), revision, &self.info);
        for (key, value) in &self.discovered {
            result[key] = value.clone();
        }
        forget_in_result(Method::DISCOVER.as_str(), &mut result, revision);
        if let Some(declared) = self.said_in(revision) {
            declare(&mut result, declared);
        }
        Reply::Result(RawJson::from_value(&result))
    }

    /// What of a subscription can ever happen here: whatever may be listed, since nobody knows what was.
    pub fn wanted(&self, asked: &Asked) -> Result<Wanted, ErrorReply> {
        let extensions = self.capabilities.get("extensions").and_then(|all| all.get(meta::TASKS_EXTENSION));
        Wanted::among(&self.capabilities, &|_| true, extensions.is_some(), asked)
    }

    /// The capabilities that were declared in this version, where it is the one that was spoken: who hears them again hears
    /// them as they were, whatever the version says.
    fn said_in(&self, revision: Revision) -> Option<&Map<String, Value>> {
        self.said_in.as_ref().filter(|(said_in, _)| *said_in == revision).map(|(_, declared)| declared)
    }

    /// The version that the server chose when a client asked as this one does, which need not be the one that was asked for.
    fn settled(&self, asked: &Asked) -> Option<Revision> {
        let wanted = asked.params.get("protocolVersion").and_then(Value::as_str)?;
        let (settled, _) = self.said_in.as_ref().filter(|_| self.wanted.as_deref() == Some(wanted))?;
        Some(*settled)
    }

    fn rest(&self, result: &mut Value) {
        for (key, value) in &self.more {
            result[key] = value.clone();
        }
    }
}

fn declare(result: &mut Value, declared: &Map<String, Value>) {
    if let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) {
        add(capabilities, declared);
    }
}

/// Adds what is not there, and what is `true` elsewhere.
fn add(to: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (to.get_mut(key), value) {
            (None, _) => drop(to.insert(key.clone(), value.clone())),
            (Some(Value::Object(to)), Value::Object(from)) => add(to, from),
            (Some(to), Value::Bool(true)) if to.is_boolean() => *to = Value::Bool(true),
            (Some(_), _) => {}
        }
    }
}

fn unnamed() -> Value {
    json!({"name": "recorded", "version": "0"})
}
