//! The items that servers list: tools, resources, templates and prompts.
//!
//! Each item keeps its whole object in addition to the parsed members, so members of newer versions are not lost.

use serde_json::Value;

use super::content::string;
use crate::json::excerpt;
use crate::message::Method;

/// How many bytes of an unusable element are shown.
const EXCERPT_BYTES: usize = 200;

/// Why an element of a list is unusable.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} without a text `{key}`: {}", excerpt(found, EXCERPT_BYTES))]
pub struct UnnamedItem {
    /// The kind of element, such as `a tool`.
    pub what: &'static str,
    /// The key that is missing.
    pub key: &'static str,
    /// The element.
    pub found: Value,
}

/// A tool that a server offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name, which identifies it.
    pub name: String,
    /// The title for users.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The JSON Schema of its arguments; `null` if the server sent none.
    pub input_schema: Value,
    /// The JSON Schema of its structured content.
    pub output_schema: Option<Value>,
    /// The whole object as the server sent it.
    pub raw: Value,
}

/// A resource that a server offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The URI, which identifies it.
    pub uri: String,
    /// The name.
    pub name: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The whole object as the server sent it.
    pub raw: Value,
}

/// A family of resources.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceTemplate {
    /// An RFC 6570 template.
    pub uri_template: String,
    /// The name.
    pub name: Option<String>,
    /// The whole object as the server sent it.
    pub raw: Value,
}

/// A prompt that a server offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The name, which identifies it.
    pub name: String,
    /// The description.
    pub description: Option<String>,
    /// The arguments.
    pub arguments: Vec<PromptArgument>,
    /// The whole object as the server sent it.
    pub raw: Value,
}

/// One argument of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// Whether the argument is required.
    pub required: bool,
}

/// An element of one of the lists of a server.
pub trait ListItem: Sized {
    /// The method that lists them.
    const METHOD: Method;
    /// The key of the list in the result.
    const KEY: &'static str;

    /// Parses one element.
    fn read(raw: Value) -> Result<Self, UnnamedItem>;

    /// The schema of its arguments with its name, if it has one.
    fn schema(&self) -> Option<(&str, &Value)> {
        None
    }
}

fn named(raw: &Value, what: &'static str, key: &'static str) -> Result<String, UnnamedItem> {
    string(raw, key).ok_or_else(|| UnnamedItem { what, key, found: raw.clone() })
}

impl ListItem for Tool {
    const METHOD: Method = Method::TOOLS_LIST;
    const KEY: &'static str = "tools";

    fn read(raw: Value) -> Result<Tool, UnnamedItem> {
        Ok(Tool {
            name: named(&raw, "a tool", "name")?,
            title: string(&raw, "title"),
            description: string(&raw, "description"),
            input_schema: raw.get("inputSchema").cloned().unwrap_or_default(),
            output_schema: raw.get("outputSchema").cloned(),
            raw,
        })
    }

    fn schema(&self) -> Option<(&str, &Value)> {
        Some((&self.name, &self.input_schema))
    }
}

impl ListItem for Resource {
    const METHOD: Method = Method::RESOURCES_LIST;
    const KEY: &'static str = "resources";

    fn read(raw: Value) -> Result<Resource, UnnamedItem> {
        Ok(Resource {
            uri: named(&raw, "a resource", "uri")?,
            name: string(&raw, "name"),
            mime_type: string(&raw, "mimeType"),
            raw,
        })
    }
}

impl ListItem for ResourceTemplate {
    const METHOD: Method = Method::RESOURCE_TEMPLATES_LIST;
    const KEY: &'static str = "resourceTemplates";

    fn read(raw: Value) -> Result<ResourceTemplate, UnnamedItem> {
        Ok(ResourceTemplate {
            uri_template: named(&raw, "a resource template", "uriTemplate")?,
            name: string(&raw, "name"),
            raw,
        })
    }
}

impl ListItem for Prompt {
    const METHOD: Method = Method::PROMPTS_LIST;
    const KEY: &'static str = "prompts";

    fn read(raw: Value) -> Result<Prompt, UnnamedItem> {
        let argument = |argument: &Value| {
            let required = argument.get("required").and_then(Value::as_bool).unwrap_or(false);
            string(argument, "name").map(|name| PromptArgument { name, required })
        };
        let arguments = raw.get("arguments").and_then(Value::as_array).into_iter().flatten();
        Ok(Prompt {
            name: named(&raw, "a prompt", "name")?,
            description: string(&raw, "description"),
            arguments: arguments.filter_map(argument).collect(),
            raw,
        })
    }
}
