//! What `subscriptions/listen` wants to be told.

use serde_json::{Map, Value, json};

use super::begin::invalid;
use super::play::Change;
use super::shape::{ResultType, envelope};
use super::{Asked, Mock};
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, RequestId};
use crate::protocol::{Revision, meta};
use crate::shape::may_be_said;

/// The part of what `subscriptions/listen` asked for that can ever happen here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    tools: bool,
    prompts: bool,
    resource_list: bool,
    resources: Option<Vec<String>>,
    tasks: Option<Vec<String>>,
}

impl Wanted {
    pub(super) fn read(mock: &Mock, asked: &Asked) -> Result<Wanted, ErrorReply> {
        let known = |uri: &str| mock.find_resource(uri).is_some();
        Wanted::among(&mock.capabilities, &known, mock.has_tasks, asked)
    }

    /// What of a request can ever happen where there is this.
    pub(super) fn among(
        capabilities: &Map<String, Value>,
        known: &dyn Fn(&str) -> bool,
        has_tasks: bool,
        asked: &Asked,
    ) -> Result<Wanted, ErrorReply> {
        let Some(wanted) = asked.params.get("notifications").filter(|wanted| wanted.is_object()) else {
            return Err(invalid("subscriptions/listen needs an object `notifications`".to_owned()));
        };
        let texts = |key: &str| {
            let texts = wanted.get(key).and_then(Value::as_array);
            texts.map(|texts| texts.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        };
        let offers = |capability: &str| capabilities.contains_key(capability);
        let known = |uris: Vec<String>| uris.into_iter().filter(|uri| known(uri)).collect();
        Ok(Wanted {
            tools: wanted["toolsListChanged"] == true && offers("tools"),
            prompts: wanted["promptsListChanged"] == true && offers("prompts"),
            resource_list: wanted["resourcesListChanged"] == true && offers("resources"),
            resources: texts("resourceSubscriptions").map(known),
            tasks: texts("taskIds").filter(|_| has_tasks && asked.terms.has_tasks_extension()),
        })
    }

    /// What of it a server once promised.
    pub fn promised(self, promised: &Map<String, Value>) -> Wanted {
        let is_promised = |key: &str| promised.get(key) == Some(&Value::Bool(true));
        let among = |key: &str, texts: Option<Vec<String>>| {
            let known = promised.get(key).and_then(Value::as_array)?;
            let is_known = |text: &String| known.iter().any(|it| it.as_str() == Some(text));
            Some(texts?.into_iter().filter(is_known).collect())
        };
        Wanted {
            tools: self.tools && is_promised("toolsListChanged"),
            prompts: self.prompts && is_promised("promptsListChanged"),
            resource_list: self.resource_list && is_promised("resourcesListChanged"),
            resources: among("resourceSubscriptions", self.resources),
            // They have other ids now.
            tasks: self.tasks,
        }
    }

    /// What is acknowledged.
    pub fn accepted(&self) -> Value {
        let mut accepted = json!({});
        for (key, wanted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resource_list),
        ] {
            if wanted {
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

    /// Whether a change is one of those.
    pub fn includes(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resource_list,
            Change::Resource(uri) => self.resources.iter().flatten().any(|wanted| wanted == uri),
            Change::Task(id, _) => self.includes_task(id),
        }
    }

    /// Whether it wants to hear about a task.
    pub fn includes_task(&self, id: &str) -> bool {
        self.tasks.iter().flatten().any(|wanted| wanted == id)
    }
}

impl Change {
    /// The change that a notification tells of, where it does.
    pub fn told(method: &Method, params: &Value) -> Option<Change> {
        match method.as_str() {
            "notifications/tools/list_changed" => Some(Change::Tools),
            "notifications/prompts/list_changed" => Some(Change::Prompts),
            "notifications/resources/list_changed" => Some(Change::Resources),
            "notifications/resources/updated" => Some(Change::Resource(params.get("uri")?.as_str()?.to_owned())),
            "notifications/tasks" => {
                let mut params = params.clone();
                // The name of the subscription is that of another client's request.
                params.as_object_mut()?.shift_remove("_meta");
                Some(Change::Task(params.get("taskId")?.as_str()?.to_owned(), params.into()))
            }
            _ => None,
        }
    }

    /// Whether a version tells of such a change.
    pub fn is_in(&self, revision: Revision) -> bool {
        may_be_said(self.method().as_str(), revision)
    }

    /// How it is told.
    pub fn method(&self) -> Method {
        match self {
            Change::Tools => Method::TOOLS_CHANGED,
            Change::Prompts => Method::PROMPTS_CHANGED,
            Change::Resources => Method::RESOURCES_CHANGED,
            Change::Resource(_) => Method::RESOURCE_UPDATED,
            Change::Task(..) => Method::TASKS_NOTIFICATION,
        }
    }

    /// With what.
    pub fn params(&self) -> Value {
        match self {
            Change::Tools | Change::Prompts | Change::Resources => json!({}),
            Change::Resource(uri) => json!({"uri": uri}),
            Change::Task(_, params) => Value::clone(params),
        }
    }
}

/// Params of a notification on a subscription: they name the request that it belongs to.
pub fn on_subscription(mut params: Value, id: &RequestId) -> Value {
    params["_meta"][meta::SUBSCRIPTION_ID] = json!(id);
    params
}

/// The result with which a subscription ends.
pub fn end_of_subscription(info: &Value, id: &RequestId, revision: Revision) -> RawJson {
    let mut result = on_subscription(json!({}), id);
    envelope(&mut result, ResultType::Complete, "subscriptions/listen", revision, info);
    RawJson::from_value(&result)
}
