//! `subscriptions/listen`: what a client subscribes to, and the change notices that it gets.

use serde_json::{Map, Value, json};

use super::adapt::add_envelope;
use super::answer::ResultKind;
use super::protocol::invalid;
use super::request_context::IncomingRequest;
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, RequestId};
use crate::protocol::{Revision, meta};
use crate::shape::server_may_send;

/// The change notices of a subscription, limited to those that can ever be sent here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionFilter {
    tools: bool,
    prompts: bool,
    resource_list: bool,
    resources: Option<Vec<String>>,
    tasks: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// The filter of a request, where a server declares these capabilities and has the `known` resources.
    pub(super) fn new(
        capabilities: &Map<String, Value>,
        known: &dyn Fn(&str) -> bool,
        has_tasks: bool,
        request: &IncomingRequest,
    ) -> Result<SubscriptionFilter, ErrorReply> {
        let Some(requested) = request.params.get("notifications").filter(|requested| requested.is_object()) else {
            return Err(invalid("subscriptions/listen needs an object `notifications`".to_owned()));
        };
        let texts = |key: &str| {
            let texts = requested.get(key).and_then(Value::as_array);
            texts.map(|texts| texts.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        };
        let offers = |capability: &str| capabilities.contains_key(capability);
        let known = |uris: Vec<String>| uris.into_iter().filter(|uri| known(uri)).collect();
        Ok(SubscriptionFilter {
            tools: requested["toolsListChanged"] == true && offers("tools"),
            prompts: requested["promptsListChanged"] == true && offers("prompts"),
            resource_list: requested["resourcesListChanged"] == true && offers("resources"),
            resources: texts("resourceSubscriptions").map(known),
            tasks: texts("taskIds").filter(|_| has_tasks && request.context.has_tasks_extension()),
        })
    }

    /// Limits the filter to the notifications that a recorded server acknowledged.
    #[must_use]
    pub fn limited_to(self, acknowledged: &Map<String, Value>) -> SubscriptionFilter {
        let is_acknowledged = |key: &str| acknowledged.get(key) == Some(&Value::Bool(true));
        let among = |key: &str, texts: Option<Vec<String>>| {
            let known = acknowledged.get(key).and_then(Value::as_array)?;
            let is_known = |text: &String| known.iter().any(|it| it.as_str() == Some(text));
            Some(texts?.into_iter().filter(is_known).collect())
        };
        SubscriptionFilter {
            tools: self.tools && is_acknowledged("toolsListChanged"),
            prompts: self.prompts && is_acknowledged("promptsListChanged"),
            resource_list: self.resource_list && is_acknowledged("resourcesListChanged"),
            resources: among("resourceSubscriptions", self.resources),
            // The tasks have other ids in a replay.
            tasks: self.tasks,
        }
    }

    /// The acknowledged filter, as the params of the notification have it.
    pub fn accepted(&self) -> Value {
        let mut accepted = json!({});
        for (key, requested) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resource_list),
        ] {
            if requested {
                accepted[key] = true.into();
            }
        }
        for (key, texts) in [("resourceSubscriptions", &self.resources), ("taskIds", &self.tasks)] {
            if let Some(texts) = texts {
                accepted[key] = json!(texts);
            }
        }
        accepted
    }

    /// Whether it includes a change.
    pub fn includes(&self, change: &ChangeNotice) -> bool {
        match change {
            ChangeNotice::Tools => self.tools,
            ChangeNotice::Prompts => self.prompts,
            ChangeNotice::Resources => self.resource_list,
            ChangeNotice::Resource(uri) => self.resources.iter().flatten().any(|requested| requested == uri),
            ChangeNotice::Task(id, _) => self.includes_task(id),
        }
    }

    /// Whether it includes a task.
    pub fn includes_task(&self, id: &str) -> bool {
        self.tasks.iter().flatten().any(|requested| requested == id)
    }
}

/// A change that subscribed clients are notified of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeNotice {
    /// The list of tools changed.
    Tools,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources changed.
    Resources,
    /// The contents of a resource changed.
    Resource(String),
    /// The status of a task changed, since 2026-07-28: its id, and the params of the notification.
    Task(String, Box<Value>),
}

impl ChangeNotice {
    /// The change that a notification reports, if it reports one.
    pub fn from_notification(method: &Method, params: &Value) -> Option<ChangeNotice> {
        match method.as_str() {
            "notifications/tools/list_changed" => Some(ChangeNotice::Tools),
            "notifications/prompts/list_changed" => Some(ChangeNotice::Prompts),
            "notifications/resources/list_changed" => Some(ChangeNotice::Resources),
            "notifications/resources/updated" => Some(ChangeNotice::Resource(params.get("uri")?.as_str()?.to_owned())),
            "notifications/tasks" => {
                let mut params = params.clone();
                // The subscription id belongs to another client's request.
                params.as_object_mut()?.shift_remove("_meta");
                Some(ChangeNotice::Task(params.get("taskId")?.as_str()?.to_owned(), params.into()))
            }
            _ => None,
        }
    }

    /// Whether a version has a notification for it.
    pub fn is_in(&self, revision: Revision) -> bool {
        server_may_send(self.method().as_str(), revision)
    }

    /// The method of its notification.
    pub fn method(&self) -> Method {
        match self {
            ChangeNotice::Tools => Method::TOOLS_CHANGED,
            ChangeNotice::Prompts => Method::PROMPTS_CHANGED,
            ChangeNotice::Resources => Method::RESOURCES_CHANGED,
            ChangeNotice::Resource(_) => Method::RESOURCE_UPDATED,
            ChangeNotice::Task(..) => Method::TASKS_NOTIFICATION,
        }
    }

    /// The params of its notification.
    pub fn params(&self) -> Value {
        match self {
            ChangeNotice::Tools | ChangeNotice::Prompts | ChangeNotice::Resources => json!({}),
            ChangeNotice::Resource(uri) => json!({"uri": uri}),
            ChangeNotice::Task(_, params) => Value::clone(params),
        }
    }
}

/// Params of a notification on a subscription: they name the `subscriptions/listen` request.
pub fn with_subscription_id(mut params: Value, id: &RequestId) -> Value {
    params["_meta"][meta::SUBSCRIPTION_ID] = json!(id);
    params
}

/// The result with which a subscription ends.
pub fn subscription_result(info: &Value, id: &RequestId, revision: Revision) -> RawJson {
    let mut result = with_subscription_id(json!({}), id);
    add_envelope(&mut result, ResultKind::Complete, "subscriptions/listen", revision, info);
    RawJson::from_value(&result)
}
