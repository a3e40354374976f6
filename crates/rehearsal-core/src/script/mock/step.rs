//! The steps of a mock's answer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Delay;
use crate::matcher::Schema;
use crate::protocol::LogLevel;
use crate::script::{Located, NamedMap, Parsed};

/// One thing that is done before the answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Nothing happens for a while.
    Wait(Delay),
    /// `notifications/progress`, if the client asked for it.
    Progress(ProgressEntry),
    /// `notifications/message`, if the client wants that level.
    Log {
        /// How much it matters.
        level: LogLevel,
        /// Who says so.
        logger: Option<String>,
        /// What; strings in it are templates.
        data: Located<Value>,
    },
    /// Any notification, as it goes on the wire; strings in it are templates.
    Notify {
        /// Its method.
        method: String,
        /// Its params.
        params: Option<Map<String, Value>>,
    },
    /// Something else changed, and those who want to know are told.
    Changed(ChangedEntry),
    /// The client is asked: before 2026-07-28 by requests, since then by one `input_required` round.
    ///
    /// Each question has a name, under which its answer is found in `answers` of templates and in the `when` of `choose`.
    Ask(NamedMap<InputRequestEntry>),
    /// The same, but a client that refuses, or that cannot be asked, has answered `null`.
    TryAsk(NamedMap<InputRequestEntry>),
    /// Since 2026-07-28 the client is sent away and comes back at once, with state but no question; before, nothing.
    Again(Again),
    /// Keys of the state are set; strings in the values are templates.
    Set(Map<String, Value>),
    /// Values are appended to lists in the state.
    Append(Map<String, Value>),
    /// Keys of the state are removed.
    Delete(Vec<String>),
    /// The stream of the answer is closed, and the client has to come back for the rest (2025-11-25).
    CloseStream {
        /// How long it should wait.
        retry: Option<Delay>,
    },
}

impl Step {
    /// The input requests of the step.
    pub fn input_requests(&self) -> &[(String, InputRequestEntry)] {
        match self {
            Step::Ask(questions) | Step::TryAsk(questions) => questions,
            Step::Wait(_)
            | Step::Progress(_)
            | Step::Log { .. }
            | Step::Notify { .. }
            | Step::Changed(_)
            | Step::Again(_)
            | Step::Set(_)
            | Step::Append(_)
            | Step::Delete(_)
            | Step::CloseStream { .. } => &[],
        }
    }
}

/// Nothing to say yet.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Again {}

/// How far something has come.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressEntry {
    /// So far.
    pub progress: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// In words; a template.
    pub message: Option<Located<String>>,
}

/// What changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ChangedEntry {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The contents of this resource.
    Resource(String),
}

/// A question to the client.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InputRequestEntry {
    /// A form, or a URL to visit.
    Elicitation(Elicitation),
    /// Words from the client's model.
    Sampling(Sampling),
    /// The folders that the client works in.
    Roots,
    /// Any question exactly as it goes on the wire, in every version.
    Request {
        /// Its method.
        method: Located<String>,
        /// Its params; strings in them are templates.
        params: Option<Map<String, Value>>,
    },
}

/// What the person is asked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elicitation {
    /// In words; a template.
    pub message: Located<String>,
    /// Says in so many words that it is a form or a URL (2025-11-25); of a form nothing is said unless given.
    pub mode: Option<Located<ElicitationMode>>,
    /// The form, as JSON Schema.
    pub requested_schema: Option<Located<Parsed<Schema>>>,
    /// Instead of a form: where to go.
    pub url: Option<String>,
    /// Of a URL (2025-11-25).
    pub elicitation_id: Option<String>,
}

/// How the person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationMode {
    /// By a form.
    Form,
    /// On a page of its own.
    Url,
}

/// What the client's model is asked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// The conversation so far, as it goes on the wire; strings in it are templates.
    pub messages: Option<Vec<Value>>,
    /// One message of the user, for short; a template.
    pub prompt: Option<Located<String>>,
    /// How the model should behave; a template.
    pub system_prompt: Option<Located<String>>,
    /// How much it may say.
    #[serde(default = "some_tokens")]
    pub max_tokens: u64,
    /// Everything else, as it goes on the wire.
    pub more: Option<Map<String, Value>>,
}

fn some_tokens() -> u64 {
    100
}

/// An answer that comes from a task.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskAnswer {
    /// How long it works before it is completed or asks.
    pub after: Option<Delay>,
    /// How long the task is kept, in milliseconds; for ever unless given.
    pub ttl_ms: Option<u64>,
    /// How often the client should ask, in milliseconds.
    pub poll_interval_ms: Option<u64>,
    /// In words; a template.
    pub status_message: Option<Located<String>>,
    /// A JSON-RPC error makes the task fail instead of completing it; with a client that knows no tasks, refuse.
    pub required: Option<Located<bool>>,
}
