//! The top level of a mock file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{AnswerRule, FaultRule, Icon, PromptEntry, ResourceEntry, ResourceTemplateEntry, ToolEntry};
use crate::script::{Located, WithKeyOrder};

/// A mock MCP server: its name, its tools, resources and prompts, and its answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MockFile {
    /// The name and the version of the server. If several files are served together, the first one with this key
    /// applies.
    pub server: Option<Located<WithKeyOrder<Implementation>>>,
    /// The instructions for the model, which are part of the handshake.
    pub instructions: Option<String>,
    /// The capabilities in their wire form. Absent ones are inferred from the rest of the file; `null` removes an
    /// inferred one.
    #[serde(default)]
    pub capabilities: Map<String, Value>,
    /// The errors of refused methods, by method. Every request of such a method gets the error.
    #[serde(default)]
    pub refuses: BTreeMap<String, MethodError>,
    /// The supported protocol versions. The default is all of them.
    pub versions: Option<Vec<Located<String>>>,
    /// What happens if arguments or answers do not match their schema. The default is `strict`.
    pub validate: Option<Validate>,
    /// The maximum number of elements in a list page. The default is one page for the whole list.
    pub page_size: Option<Located<usize>>,
    /// The state at the start of the server. Answers can read and change it.
    #[serde(default)]
    pub state: Map<String, Value>,
    /// The tools.
    #[serde(default)]
    pub tools: Vec<WithKeyOrder<ToolEntry>>,
    /// The resources.
    #[serde(default)]
    pub resources: Vec<WithKeyOrder<ResourceEntry>>,
    /// The resource templates.
    #[serde(default)]
    pub resource_templates: Vec<WithKeyOrder<ResourceTemplateEntry>>,
    /// The prompts.
    #[serde(default)]
    pub prompts: Vec<WithKeyOrder<PromptEntry>>,
    /// The answers to requests of other methods.
    #[serde(default)]
    pub requests: Vec<RequestEntry>,
    /// The faults of all requests.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// The name and the version of a server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The version. The default is `0.0.0`.
    #[serde(default = "first_version")]
    pub version: String,
    /// The display name for users.
    pub title: Option<String>,
    /// A description of the server.
    pub description: Option<String>,
    /// The URL of a page about the server.
    pub website_url: Option<String>,
    /// The icons.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
}

fn first_version() -> String {
    "0.0.0".to_owned()
}

/// What happens if arguments or answers do not match their schema. The default is `strict`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Validate {
    /// They are used without a check.
    Off,
    /// They are used, and each mismatch is reported on stderr.
    Warn,
    /// Invalid arguments are refused, and an invalid answer becomes an internal error.
    #[default]
    Strict,
}

impl Validate {
    /// The name in a mock file.
    pub fn name(self) -> &'static str {
        match self {
            Validate::Off => "off",
            Validate::Warn => "warn",
            Validate::Strict => "strict",
        }
    }
}

/// Whether tools, prompts and resources need an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingAnswers {
    /// Each needs an answer.
    #[default]
    Refused,
    /// Another source may answer for them.
    Allowed,
}

/// A JSON-RPC error in its wire form.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MethodError {
    /// The error code.
    pub code: i64,
    /// The error message.
    pub message: String,
    /// The `data` of the error.
    #[serde(default, deserialize_with = "present_value")]
    pub data: Option<Value>,
}

/// A value that is `null` differs from an absent value.
fn present_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The answers to requests of a method other than `tools/call`, `prompts/get` and `resources/read`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestEntry {
    /// The method, such as `completion/complete` or a method of a vendor.
    pub method: Located<String>,
    /// The answers, each with a `result` or an `error`. Their `when` has conditions on the params without `_meta`. If
    /// none matches, the request is handled as if this entry did not exist.
    pub answers: Vec<AnswerRule>,
}

impl RequestEntry {
    /// Why rules cannot answer this method, as a hint for the author; `None` if they can.
    pub fn rule_conflict(method: &str) -> Option<&'static str> {
        Some(match method {
            "tools/call" => "write the answers in the tool, under `tools`",
            "prompts/get" => "write the answers in the prompt, under `prompts`",
            "resources/read" => "write the answers in the resource, under `resources`",
            "initialize" | "server/discover" => "the handshake follows from the other keys of the file",
            "subscriptions/listen" => "subscribed clients are notified of `changed` steps",
            _ if method.starts_with("tasks/") => "tasks follow from `task` in the answers of tools",
            _ => return None,
        })
    }
}

/// The JSON Schema of a mock file, for completion and checks in editors.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(MockFile);
    schema.insert("title".to_owned(), "A mock of an MCP server (*.mock.yaml)".into());
    schema.into()
}
