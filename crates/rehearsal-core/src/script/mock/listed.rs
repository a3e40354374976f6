//! The offers of a mock file: tools, resources and prompts.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Annotations, AnswerRule, FaultRule, Icon, PromptMessage, Validate};
use crate::matcher::{Matcher, Schema};
use crate::script::{Located, Parsed, WithKeyOrder};

/// Something that can be called.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    /// Unique among the tools.
    pub name: Located<String>,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// What arguments it takes: any JSON Schema; any object unless given.
    pub input_schema: Option<Located<Parsed<Schema>>>,
    /// What structured content it gives: any JSON Schema.
    pub output_schema: Option<Located<Parsed<Schema>>>,
    /// Hints about what it does.
    pub annotations: Option<WithKeyOrder<ToolAnnotations>>,
    /// Pictures.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
    /// `_meta`, as it goes on the wire.
    pub meta: Option<Map<String, Value>>,
    /// What is listed instead of the other keys, exactly as it goes on the wire in every version.
    pub listed: Option<Located<Map<String, Value>>>,
    /// It answers, but is in no list.
    #[serde(default)]
    pub hidden: bool,
    /// Whether it may run as a task (2025-11-25).
    pub task_support: Option<TaskSupport>,
    /// Listed only for clients that declared these capabilities.
    pub needs: Option<Located<Parsed<Matcher>>>,
    /// Overrides the `validate` of the file.
    pub validate: Option<Validate>,
    /// What it answers: the first that fits.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
    /// What goes wrong with it.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// Whether a tool may run as a task, in the words of 2025-11-25.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskSupport {
    /// Never.
    Forbidden,
    /// If the client wants.
    Optional,
    /// Always.
    Required,
}

/// Hints about what a tool does.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolAnnotations {
    /// For people.
    pub title: Option<String>,
    /// It changes nothing.
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    pub destructive_hint: Option<bool>,
    /// Twice is the same as once.
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond what the server knows.
    pub open_world_hint: Option<bool>,
}

/// Something that can be read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceEntry {
    /// Unique among the resources.
    pub uri: Located<String>,
    /// For programs; the end of the URI unless given.
    pub name: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// What kind of contents.
    pub mime_type: Option<String>,
    /// How many bytes.
    pub size: Option<u64>,
    /// Who it is for and how much it matters.
    pub annotations: Option<WithKeyOrder<Annotations>>,
    /// Pictures.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
    /// `_meta`, as it goes on the wire.
    pub meta: Option<Map<String, Value>>,
    /// What is listed instead of the other keys, exactly as it goes on the wire in every version.
    pub listed: Option<Located<Map<String, Value>>>,
    /// It answers, but is in no list.
    #[serde(default)]
    pub hidden: bool,
    /// The contents as text; a template.
    pub text: Option<Located<String>>,
    /// The contents as base64.
    pub blob: Option<Located<String>>,
    /// The contents are those of this file, beside the mock file.
    pub file: Option<Located<String>>,
    /// Instead of fixed contents: what it answers, the first that fits.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
    /// What goes wrong with it.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// Resources by pattern: `notes://{id}/text`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceTemplateEntry {
    /// RFC 6570, simple expansions.
    pub uri_template: Located<String>,
    /// For programs; the pattern unless given.
    pub name: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// What kind of contents.
    pub mime_type: Option<String>,
    /// Who it is for and how much it matters.
    pub annotations: Option<WithKeyOrder<Annotations>>,
    /// Pictures.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
    /// `_meta`, as it goes on the wire.
    pub meta: Option<Map<String, Value>>,
    /// What is listed instead of the other keys, exactly as it goes on the wire in every version.
    pub listed: Option<Located<Map<String, Value>>>,
    /// It answers, but is in no list.
    #[serde(default)]
    pub hidden: bool,
    /// What to suggest for each variable of the pattern.
    #[serde(default)]
    pub complete: std::collections::BTreeMap<String, Vec<String>>,
    /// The contents as text; a template over `arguments`, the variables of the pattern.
    pub text: Option<Located<String>>,
    /// The contents as base64.
    pub blob: Option<Located<String>>,
    /// Instead of fixed contents: what it answers, the first that fits.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
}

/// What was read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentsEntry {
    /// What was asked for unless given.
    pub uri: Option<String>,
    /// What kind.
    pub mime_type: Option<String>,
    /// As text; a template.
    pub text: Option<Located<String>>,
    /// As base64.
    pub blob: Option<Located<String>>,
    /// `_meta`, as it goes on the wire.
    pub meta: Option<Map<String, Value>>,
}

/// Something that can be phrased.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptEntry {
    /// Unique among the prompts.
    pub name: Located<String>,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// What it takes.
    #[serde(default)]
    pub arguments: Vec<WithKeyOrder<ArgumentEntry>>,
    /// Pictures.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
    /// `_meta`, as it goes on the wire.
    pub meta: Option<Map<String, Value>>,
    /// What is listed instead of the other keys, exactly as it goes on the wire in every version.
    pub listed: Option<Located<Map<String, Value>>>,
    /// It answers, but is in no list.
    #[serde(default)]
    pub hidden: bool,
    /// What it says; texts are templates over `arguments`.
    pub messages: Option<Vec<PromptMessage>>,
    /// Instead of fixed messages: what it answers, the first that fits.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
    /// What goes wrong with it.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// What a prompt takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentEntry {
    /// Unique in its prompt.
    pub name: Located<String>,
    /// For people.
    pub title: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: Option<bool>,
    /// What to suggest for it.
    #[serde(default)]
    pub complete: Vec<String>,
}
