//! The method of a request or notification.

use std::borrow::Cow;
use std::fmt;

/// The name of a request or notification, such as `tools/call`.
///
/// Names that the protocol defines need no allocation.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method(Cow<'static, str>);

macro_rules! methods {
    ($($constant:ident = $name:literal),* $(,)?) => {
        impl Method {
            $(
                #[doc = concat!("`", $name, "`")]
                pub const $constant: Method = Method(Cow::Borrowed($name));
            )*

            /// Every name that some version of the protocol defines.
            pub const KNOWN: &'static [&'static str] = &[$($name),*];

            fn known(name: &str) -> Option<&'static str> {
                match name {
                    $($name => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

methods! {
    INITIALIZE = "initialize",
    PING = "ping",
    DISCOVER = "server/discover",
    TOOLS_LIST = "tools/list",
    TOOLS_CALL = "tools/call",
    RESOURCES_LIST = "resources/list",
    RESOURCE_TEMPLATES_LIST = "resources/templates/list",
    RESOURCES_READ = "resources/read",
    RESOURCES_SUBSCRIBE = "resources/subscribe",
    RESOURCES_UNSUBSCRIBE = "resources/unsubscribe",
    SUBSCRIPTIONS_LISTEN = "subscriptions/listen",
    PROMPTS_LIST = "prompts/list",
    PROMPTS_GET = "prompts/get",
    COMPLETE = "completion/complete",
    SET_LOG_LEVEL = "logging/setLevel",
    SAMPLING = "sampling/createMessage",
    ELICITATION = "elicitation/create",
    ROOTS_LIST = "roots/list",
    TASKS_GET = "tasks/get",
    TASKS_RESULT = "tasks/result",
    TASKS_LIST = "tasks/list",
    TASKS_UPDATE = "tasks/update",
    TASKS_CANCEL = "tasks/cancel",
    INITIALIZED = "notifications/initialized",
    CANCELLED = "notifications/cancelled",
    PROGRESS = "notifications/progress",
    LOG_MESSAGE = "notifications/message",
    TOOLS_CHANGED = "notifications/tools/list_changed",
    PROMPTS_CHANGED = "notifications/prompts/list_changed",
    RESOURCES_CHANGED = "notifications/resources/list_changed",
    RESOURCE_UPDATED = "notifications/resources/updated",
    ROOTS_CHANGED = "notifications/roots/list_changed",
    ELICITATION_COMPLETE = "notifications/elicitation/complete",
    TASK_STATUS = "notifications/tasks/status",
    TASKS_NOTIFICATION = "notifications/tasks",
    SUBSCRIPTION_ACKNOWLEDGED = "notifications/subscriptions/acknowledged",
}

impl Method {
    /// Whether some version of the protocol defines it.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.0, Cow::Borrowed(_))
    }

    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Method {
    fn from(name: &str) -> Method {
        match Method::known(name) {
            Some(name) => Method(Cow::Borrowed(name)),
            None => Method(Cow::Owned(name.to_owned())),
        }
    }
}

impl From<String> for Method {
    fn from(name: String) -> Method {
        match Method::known(&name) {
            Some(name) => Method(Cow::Borrowed(name)),
            None => Method(Cow::Owned(name)),
        }
    }
}

impl PartialEq<str> for Method {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Method {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
