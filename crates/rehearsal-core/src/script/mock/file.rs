//! The top level of a mock file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{AnswerRule, FaultRule, Icon, PromptEntry, ResourceEntry, ResourceTemplateEntry, ToolEntry};
use crate::script::{Located, WithKeyOrder};

/// A mock file: what the server is called, what it offers and how it answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MockFile {
    /// Who the server says it is. Of several files the first that says so counts.
    pub server: Option<Located<WithKeyOrder<Implementation>>>,
    /// What the server tells the model about itself.
    pub instructions: Option<String>,
    /// Capabilities, as they go on the wire; those that are not spoken of follow from what is offered.
    #[serde(default)]
    pub capabilities: Map<String, Value>,
    /// By method: the error that it is refused with, whatever is asked.
    #[serde(default)]
    pub refuses: BTreeMap<String, MethodError>,
    /// The protocol versions that are served; all of them unless given.
    pub versions: Option<Vec<Located<String>>>,
    /// What happens to arguments and answers that do not fit their schema.
    pub validate: Option<Validate>,
    /// How many tools, resources or prompts a page of a list has; all of them unless given.
    pub page_size: Option<Located<usize>>,
    /// What answers can read and change, as it is when the server starts.
    #[serde(default)]
    pub state: Map<String, Value>,
    /// What can be called.
    #[serde(default)]
    pub tools: Vec<WithKeyOrder<ToolEntry>>,
    /// What can be read.
    #[serde(default)]
    pub resources: Vec<WithKeyOrder<ResourceEntry>>,
    /// What can be read by pattern.
    #[serde(default)]
    pub resource_templates: Vec<WithKeyOrder<ResourceTemplateEntry>>,
    /// What can be asked to be phrased.
    #[serde(default)]
    pub prompts: Vec<WithKeyOrder<PromptEntry>>,
    /// How requests of other methods are answered.
    #[serde(default)]
    pub requests: Vec<RequestEntry>,
    /// What goes wrong, whatever is asked.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// A program and its version.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Implementation {
    /// For programs.
    pub name: String,
    /// Whatever numbering it has.
    #[serde(default = "first_version")]
    pub version: String,
    /// For people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Where to read more.
    pub website_url: Option<String>,
    /// Pictures.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
}

fn first_version() -> String {
    "0.0.0".to_owned()
}

/// What happens to arguments and answers that do not fit their schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Validate {
    /// Nothing.
    Off,
    /// They are told about, and used all the same.
    Warn,
    /// Wrong arguments are refused as a good server does, and wrong answers are an internal error.
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

/// A JSON-RPC error as it goes on the wire.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MethodError {
    /// What kind of failure, for programs.
    pub code: i64,
    /// What happened, for people.
    pub message: String,
    /// Whatever else there is to say.
    #[serde(default, deserialize_with = "given")]
    pub data: Option<Value>,
}

/// A value that is `null` differs from an absent value.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// How requests of a method are answered that are no calls of tools, prompts or resources.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestEntry {
    /// Which, such as `completion/complete`, or one of the server's own.
    pub method: Located<String>,
    /// The answers, each a `result` or an `error`; their `when` is a matcher for the params without `_meta`. Where none fits,
    /// the server does what it would do without them.
    pub answers: Vec<AnswerRule>,
}

impl RequestEntry {
    /// Why rules cannot answer this method; `None` if they can.
    pub fn rule_conflict(method: &str) -> Option<&'static str> {
        Some(match method {
            "tools/call" => "tools have their own `answers`",
            "prompts/get" => "prompts have their own `answers`",
            "resources/read" => "resources have their own `answers`",
            "initialize" | "server/discover" => "a handshake follows from the rest of the file",
            "subscriptions/listen" => "who listens is told what `changed` says",
            _ if method.starts_with("tasks/") => "tasks follow from the answers of tools",
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
