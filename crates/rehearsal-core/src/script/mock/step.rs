//! The steps of a mock's answer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Delay;
use crate::matcher::Schema;
use crate::protocol::LogLevel;
use crate::script::{Located, NamedMap, Parsed};

/// A step before the answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Waits.
    Wait(Delay),
    /// Sends `notifications/progress`, if the request has a progress token.
    Progress(ProgressEntry),
    /// Sends `notifications/message`, if the client requested log messages of this level.
    Log {
        /// The level.
        level: LogLevel,
        /// The name of the logger.
        logger: Option<String>,
        /// The data; strings in it are templates.
        data: Located<Value>,
    },
    /// Sends any notification in its wire form; strings in it are templates.
    Notify {
        /// The method.
        method: String,
        /// The params.
        params: Option<Map<String, Value>>,
    },
    /// Sends a change notice to the subscribed clients.
    Changed(ChangedEntry),
    /// Sends input requests, and waits for the input responses. Since 2026-07-28 they are one `input_required` result;
    /// before, each is a request of the server.
    ///
    /// Each input request has a name. Templates have its response in `answers` under this name, and the `when` of
    /// `choose` has a condition on it.
    Ask(NamedMap<InputRequestEntry>),
    /// Sends input requests like `ask`. The response is `null` if the client does not support the request or fails to
    /// answer it.
    TryAsk(NamedMap<InputRequestEntry>),
    /// Sends an `input_required` result with a request state and without input requests (2026-07-28). In older versions
    /// it does nothing.
    EmptyRound(EmptyRound),
    /// Sets keys of the state; strings in the values are templates.
    Set(Map<String, Value>),
    /// Appends values to lists in the state; strings in the values are templates.
    Append(Map<String, Value>),
    /// Removes keys of the state.
    Delete(Vec<String>),
    /// Closes the stream of the response (2025-11-25). The client gets the rest when it reconnects.
    CloseStream {
        /// How long the client should wait before it reconnects.
        retry: Option<Delay>,
    },
}

impl Step {
    /// The input requests of the step.
    pub fn input_requests(&self) -> &[(String, InputRequestEntry)] {
        match self {
            Step::Ask(requests) | Step::TryAsk(requests) => requests,
            Step::Wait(_)
            | Step::Progress(_)
            | Step::Log { .. }
            | Step::Notify { .. }
            | Step::Changed(_)
            | Step::EmptyRound(_)
            | Step::Set(_)
            | Step::Append(_)
            | Step::Delete(_)
            | Step::CloseStream { .. } => &[],
        }
    }
}

/// An empty input round, which has no keys.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmptyRound {}

/// The params of a progress notification.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressEntry {
    /// The progress so far.
    pub progress: f64,
    /// The total, if it is known.
    pub total: Option<f64>,
    /// A message for the user; a template.
    pub message: Option<Located<String>>,
}

/// A change that subscribed clients are notified of.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ChangedEntry {
    /// The list of tools changed.
    Tools,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources changed.
    Resources,
    /// The contents of the resource with this URI changed; a template.
    Resource(String),
}

/// An input request to the client.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InputRequestEntry {
    /// A form for the user, or a URL that the user opens.
    Elicitation(Elicitation),
    /// A message from the client's model.
    Sampling(Sampling),
    /// The roots of the client: the folders that it works in.
    Roots,
    /// Any request in its wire form, sent unchanged in every protocol version.
    Request {
        /// The method.
        method: Located<String>,
        /// The params; strings in them are templates.
        params: Option<Map<String, Value>>,
    },
}

/// An elicitation: a form for the user, or a URL that the user opens.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elicitation {
    /// A message for the user; a template.
    pub message: Located<String>,
    /// The mode (2025-11-25). A URL always has one; a form has one only if this key is set.
    pub mode: Option<Located<ElicitationMode>>,
    /// The JSON Schema of the form.
    pub requested_schema: Option<Located<Parsed<Schema>>>,
    /// The URL that the user opens, in place of a form; a template.
    pub url: Option<String>,
    /// The id of a URL elicitation (2025-11-25). The default is the name of the input request.
    pub elicitation_id: Option<String>,
}

/// The mode of an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationMode {
    /// A form in the client.
    Form,
    /// A page at a URL.
    Url,
}

/// A request to the client's model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// The messages in their wire form; strings in them are templates.
    pub messages: Option<Vec<Value>>,
    /// A text, short for one message of the user; a template.
    pub prompt: Option<Located<String>>,
    /// The system prompt; a template.
    pub system_prompt: Option<Located<String>>,
    /// The maximum number of tokens of the response. The default is 100.
    #[serde(default = "some_tokens")]
    pub max_tokens: u64,
    /// Further params in their wire form; strings in them are templates.
    pub more: Option<Map<String, Value>>,
}

fn some_tokens() -> u64 {
    100
}

/// A task whose result is the answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskAnswer {
    /// How long the task is working before the first step.
    pub after: Option<Delay>,
    /// How long the task is kept, in milliseconds. The default is the lifetime that the client requests, or no limit.
    pub ttl_ms: Option<u64>,
    /// How often the client should poll, in milliseconds.
    pub poll_interval_ms: Option<u64>,
    /// A message for the user; a template.
    pub status_message: Option<Located<String>>,
    /// Whether clients without support for tasks are refused. By default they get the answer as an ordinary result.
    pub required: Option<Located<bool>>,
}
