//! The offers of a mock file: tools, resources and prompts.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Annotations, AnswerRule, FaultRule, Icon, PromptMessage, Validate};
use crate::matcher::{Matcher, Schema};
use crate::script::{Located, Parsed, WithKeyOrder};

/// A tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    /// The name, unique among the tools.
    pub name: Located<String>,
    /// The display name for users.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The JSON Schema of the arguments. The default accepts any object.
    pub input_schema: Option<Located<Parsed<Schema>>>,
    /// The JSON Schema of the structured content.
    pub output_schema: Option<Located<Parsed<Schema>>>,
    /// Hints about what the tool does.
    pub annotations: Option<WithKeyOrder<ToolAnnotations>>,
    /// The icons.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
    /// The `_meta` of the tool.
    pub meta: Option<Map<String, Value>>,
    /// The list element in its wire form, sent unchanged in every protocol version in place of the other keys.
    pub listed: Option<Located<Map<String, Value>>>,
    /// Whether the list leaves out the tool. Requests for it are still answered.
    #[serde(default)]
    pub hidden: bool,
    /// Whether the tool can be called as a task (2025-11-25).
    pub task_support: Option<TaskSupport>,
    /// A matcher for the client's capabilities. The tool exists only for clients that it matches.
    pub needs: Option<Located<Parsed<Matcher>>>,
    /// What happens if arguments or answers do not match their schema. The default is the `validate` of the file.
    pub validate: Option<Validate>,
    /// The answers: the first that matches is used.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
    /// The faults of calls of this tool.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// Whether a tool can be called as a task (2025-11-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskSupport {
    /// The tool cannot be called as a task.
    Forbidden,
    /// The client decides.
    Optional,
    /// The tool can only be called as a task.
    Required,
}

/// Hints about what a tool does.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolAnnotations {
    /// The display name for users.
    pub title: Option<String>,
    /// Whether the tool changes nothing.
    pub read_only_hint: Option<bool>,
    /// Whether the tool may delete or overwrite data.
    pub destructive_hint: Option<bool>,
    /// Whether a repeated call with the same arguments has no further effect.
    pub idempotent_hint: Option<bool>,
    /// Whether the tool interacts with systems outside of the server.
    pub open_world_hint: Option<bool>,
}

/// A resource.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceEntry {
    /// The URI, unique among the resources.
    pub uri: Located<String>,
    /// The name for programs. The default is the last segment of the URI.
    pub name: Option<String>,
    /// The display name for users.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The media type of the contents, such as `text/markdown`.
    pub mime_type: Option<String>,
    /// The size in bytes.
    pub size: Option<u64>,
    /// The audience, the priority and the time of the last change.
    pub annotations: Option<WithKeyOrder<Annotations>>,
    /// The icons.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
    /// The `_meta` of the resource.
    pub meta: Option<Map<String, Value>>,
    /// The list element in its wire form, sent unchanged in every protocol version in place of the other keys.
    pub listed: Option<Located<Map<String, Value>>>,
    /// Whether the list leaves out the resource. Requests for it are still answered.
    #[serde(default)]
    pub hidden: bool,
    /// The contents as text; a template.
    pub text: Option<Located<String>>,
    /// The contents as base64; a template.
    pub blob: Option<Located<String>>,
    /// The file with the contents; its path is relative to the mock file.
    pub file: Option<Located<String>>,
    /// The answers in place of fixed contents: the first that matches is used.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
    /// The faults of reads of this resource.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// A resource template: a pattern for the URIs of resources, such as `notes://{id}/text`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceTemplateEntry {
    /// The URI template (RFC 6570, simple expansions only).
    pub uri_template: Located<String>,
    /// The name for programs. The default is the URI template.
    pub name: Option<String>,
    /// The display name for users.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The media type of the contents, such as `text/markdown`.
    pub mime_type: Option<String>,
    /// The audience, the priority and the time of the last change.
    pub annotations: Option<WithKeyOrder<Annotations>>,
    /// The icons.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
    /// The `_meta` of the resource template.
    pub meta: Option<Map<String, Value>>,
    /// The list element in its wire form, sent unchanged in every protocol version in place of the other keys.
    pub listed: Option<Located<Map<String, Value>>>,
    /// Whether the list leaves out the resource template. Requests for it are still answered.
    #[serde(default)]
    pub hidden: bool,
    /// The completions of each variable.
    #[serde(default)]
    pub complete: std::collections::BTreeMap<String, Vec<String>>,
    /// The contents as text; a template in which `arguments` has the variables of the URI template.
    pub text: Option<Located<String>>,
    /// The contents as base64; a template.
    pub blob: Option<Located<String>>,
    /// The answers in place of fixed contents: the first that matches is used.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
}

/// The contents of a resource.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentsEntry {
    /// The URI. The default is the requested one.
    pub uri: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The contents as text; a template.
    pub text: Option<Located<String>>,
    /// The contents as base64; a template.
    pub blob: Option<Located<String>>,
    /// The `_meta` of the contents.
    pub meta: Option<Map<String, Value>>,
}

/// A prompt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptEntry {
    /// The name, unique among the prompts.
    pub name: Located<String>,
    /// The display name for users.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The arguments.
    #[serde(default)]
    pub arguments: Vec<WithKeyOrder<ArgumentEntry>>,
    /// The icons.
    #[serde(default)]
    pub icons: Vec<WithKeyOrder<Icon>>,
    /// The `_meta` of the prompt.
    pub meta: Option<Map<String, Value>>,
    /// The list element in its wire form, sent unchanged in every protocol version in place of the other keys.
    pub listed: Option<Located<Map<String, Value>>>,
    /// Whether the list leaves out the prompt. Requests for it are still answered.
    #[serde(default)]
    pub hidden: bool,
    /// The messages; their texts are templates.
    pub messages: Option<Vec<PromptMessage>>,
    /// The answers in place of fixed messages: the first that matches is used.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
    /// The faults of requests for this prompt.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentEntry {
    /// The name, unique in the prompt.
    pub name: Located<String>,
    /// The display name for users.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// Whether the argument is required.
    pub required: Option<bool>,
    /// The completions of the argument.
    #[serde(default)]
    pub complete: Vec<String>,
}
