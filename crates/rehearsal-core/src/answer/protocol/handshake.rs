//! `initialize` and `server/discover`: the server's name, capabilities and instructions, for clients of both eras.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::text_param;
use crate::answer::adapt::{add_envelope, strip_capabilities, strip_implementation};
use crate::answer::answer::ResultKind;
use crate::answer::request_context::{IncomingRequest, LegacyState, NegotiatedClient, negotiate};
use crate::answer::subscription::SubscriptionFilter;
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Claim, Revision, code, meta};
use crate::shape::strip_result;
use crate::trace::RecordedCall;

/// The server's part of a handshake: its answer to `initialize` and to `server/discover`.
#[derive(Clone, Debug)]
pub struct Introduction {
    /// The server's name and version, if it has any.
    info: Option<Arc<Value>>,
    /// Its capabilities, in the form of the newest version.
    pub capabilities: Map<String, Value>,
    /// The other members of both results, such as `instructions`.
    more: Map<String, Value>,
    /// The members that only the result of `server/discover` has.
    discovered: Map<String, Value>,
    /// The version of a recorded handshake, with the capabilities that were declared there.
    recorded_for: Option<(Revision, Map<String, Value>)>,
    /// The version that the recorded client requested.
    requested: Option<String>,
}

impl Default for Introduction {
    fn default() -> Introduction {
        Introduction::new(None, Map::new(), None)
    }
}

impl Introduction {
    /// A server with this name and version, these capabilities and instructions.
    pub fn new(info: Option<Value>, capabilities: Map<String, Value>, instructions: Option<&str>) -> Introduction {
        let more = instructions.map(|text| ("instructions".to_owned(), text.into())).into_iter().collect();
        let (discovered, recorded_for, requested) = Default::default();
        Introduction { info: info.map(Arc::new), capabilities, more, discovered, recorded_for, requested }
    }

    /// The server's name and version.
    pub fn info(&self) -> Arc<Value> {
        self.info.clone().unwrap_or_else(|| json!({"name": "mock", "version": "0.0.0"}).into())
    }

    /// The introduction in a recorded `initialize` or `server/discover`, if its response is a result.
    pub fn recorded(call: &RecordedCall) -> Option<Introduction> {
        let method = call.request.message.method()?;
        if *method != Method::INITIALIZE && *method != Method::DISCOVER {
            return None;
        }
        let Reply::Result(result) = &call.response.as_ref()?.message.as_response()?.reply else { return None };
        let Value::Object(mut members) = result.value().ok()? else { return None };
        let inside = members.get_mut("_meta").and_then(Value::as_object_mut);
        let inside = inside.and_then(|meta| meta.shift_remove(meta::SERVER_INFO));
        let info = members.shift_remove("serverInfo").or(inside).filter(Value::is_object);
        let capabilities = members.shift_remove("capabilities");
        let mut discovered = Map::new();
        for key in ["supportedVersions", "ttlMs", "cacheScope"] {
            discovered.extend(members.shift_remove(key).map(|value| (key.to_owned(), value)));
        }
        let agreed = members.shift_remove("protocolVersion");
        let revision = match *method == Method::DISCOVER {
            true => Some(Revision::V2026_07_28),
            false => agreed.as_ref().and_then(Value::as_str).and_then(|version| version.parse().ok()),
        };
        members.shift_remove("resultType");
        if members.get("_meta").and_then(Value::as_object).is_some_and(Map::is_empty) {
            members.shift_remove("_meta");
        }
        let capabilities = match capabilities {
            Some(Value::Object(capabilities)) => capabilities,
            Some(_) | None => Map::new(),
        };
        let recorded_for = revision.map(|revision| (revision, capabilities.clone()));
        let requested = call.request.message.params().and_then(|params| params.field("protocolVersion")?.text());
        let info = Some(info.unwrap_or_else(unnamed).into());
        Some(Introduction { info, capabilities, more: members, discovered, recorded_for, requested })
    }

    /// Adds the capabilities of another introduction.
    #[must_use]
    pub fn with_capabilities_of(mut self, other: &Introduction) -> Introduction {
        add(&mut self.capabilities, &other.capabilities);
        self
    }

    /// Adds the members of another introduction that this one lacks.
    #[must_use]
    pub fn merged(mut self, other: &Introduction) -> Introduction {
        self.info = self.info.or_else(|| other.info.clone());
        for (key, value) in &other.more {
            self.more.entry(key).or_insert_with(|| value.clone());
        }
        self.with_capabilities_of(other)
    }

    /// The introduction of a server whose handshake was not recorded: its name, and the capabilities that clients used.
    pub fn inferred<'a>(server_info: &Map<String, Value>, used: impl IntoIterator<Item = &'a str>) -> Introduction {
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
        Introduction::new(Some(info), capabilities, None)
    }

    /// Adds the capabilities behind the change notices that a client subscribed to.
    pub fn add_notices(&mut self, notifications: &Map<String, Value>) {
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

    /// `initialize`: negotiates the version, and stores what the client declares.
    pub fn initialize(
        &self,
        request: &IncomingRequest,
        legacy: &mut LegacyState,
        served: &[Revision],
    ) -> Result<Reply, ErrorReply> {
        let recorded_revision = self.recorded_revision(request);
        let revision =
            negotiate_client(request, legacy, recorded_revision.as_ref().map_or(served, std::slice::from_ref))?;
        let mut result = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": {},
            "serverInfo": strip_implementation((*self.info()).clone(), revision),
        });
        self.add_more(&mut result);
        strip_result(Method::INITIALIZE.as_str(), &mut result, revision);
        result["capabilities"] = strip_capabilities(&self.capabilities, revision);
        if let Some(declared) = self.recorded_for(revision) {
            result["serverInfo"] = (*self.info()).clone();
            self.add_more(&mut result);
            declare(&mut result, declared);
        }
        Ok(Reply::Result(RawJson::from_value(&result)))
    }

    /// `server/discover`: the members of `initialize`, without a negotiation.
    pub fn discover(&self, request: &IncomingRequest, served: &[Revision]) -> Reply {
        let revision = request.context.revision;
        let mut result = json!({
            "supportedVersions": Claim::supported(served),
            "capabilities": strip_capabilities(&self.capabilities, revision),
        });
        self.add_more(&mut result);
        add_envelope(&mut result, ResultKind::Complete, Method::DISCOVER.as_str(), revision, &self.info());
        for (key, value) in &self.discovered {
            result[key] = value.clone();
        }
        strip_result(Method::DISCOVER.as_str(), &mut result, revision);
        if let Some(declared) = self.recorded_for(revision) {
            declare(&mut result, declared);
        }
        Reply::Result(RawJson::from_value(&result))
    }

    /// The filter of a `subscriptions/listen` request, limited to the declared capabilities.
    pub fn subscription_filter(&self, request: &IncomingRequest) -> Result<SubscriptionFilter, ErrorReply> {
        let extensions = self.capabilities.get("extensions").and_then(|all| all.get(meta::TASKS_EXTENSION));
        SubscriptionFilter::new(&self.capabilities, &|_| true, extensions.is_some(), request)
    }

    /// The recorded capabilities, if this is the recorded version. A client of that version gets them unchanged.
    fn recorded_for(&self, revision: Revision) -> Option<&Map<String, Value>> {
        self.recorded_for.as_ref().filter(|(recorded_for, _)| *recorded_for == revision).map(|(_, declared)| declared)
    }

    /// The version that the recorded server chose for a client that requested the same one.
    fn recorded_revision(&self, request: &IncomingRequest) -> Option<Revision> {
        let requested = request.params.get("protocolVersion").and_then(Value::as_str)?;
        let (revision, _) = self.recorded_for.as_ref().filter(|_| self.requested.as_deref() == Some(requested))?;
        Some(*revision)
    }

    fn add_more(&self, result: &mut Value) {
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

/// Negotiates the version of a connection, and stores what the client declares.
fn negotiate_client(
    request: &IncomingRequest,
    legacy: &mut LegacyState,
    served: &[Revision],
) -> Result<Revision, ErrorReply> {
    let requested = text_param(request, "protocolVersion")?;
    let revision = negotiate(requested.parse().ok(), served).ok_or_else(|| {
        let data = json!({"supported": Claim::supported(served), "requested": requested});
        let message = "this server has no handshake; name a version in _meta";
        ErrorReply::new(code::UNSUPPORTED_VERSION, message).with_data(&data)
    })?;
    let object = |key: &str| request.params.get(key).filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({}));
    let (client, capabilities) = (object("clientInfo"), object("capabilities"));
    legacy.client = Some(NegotiatedClient { revision, client: client.into(), capabilities: capabilities.into() });
    Ok(revision)
}

/// Adds the members that are missing, and those that are `true` in `from`.
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
