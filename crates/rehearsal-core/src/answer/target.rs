//! What a request asks for.

use std::sync::Arc;

use serde_json::Value;

use super::Mock;
use super::rule::Rules;
use crate::script::mock::Validate;

/// What a request asks for, by its position in the mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Tool(usize),
    Resource(usize),
    ResourceTemplate(usize),
    Prompt(usize),
}

impl Target {
    pub(super) fn rules(self, mock: &Mock) -> &Rules {
        match self {
            Target::Tool(at) => &mock.tools[at].rules,
            Target::Resource(at) => &mock.resources[at].rules,
            Target::ResourceTemplate(at) => &mock.resource_templates[at].rules,
            Target::Prompt(at) => &mock.prompts[at].rules,
        }
    }

    /// Its number among everything that can be asked for.
    pub(super) fn number(self, mock: &Mock) -> usize {
        match self {
            Target::Tool(at) => mock.tools[at].number,
            Target::Resource(at) => mock.resources[at].number,
            Target::ResourceTemplate(at) => mock.resource_templates[at].number,
            Target::Prompt(at) => mock.prompts[at].number,
        }
    }

    /// `tool get_forecast`
    pub(super) fn name(self, mock: &Mock) -> Arc<str> {
        Arc::clone(match self {
            Target::Tool(at) => &mock.tools[at].label,
            Target::Resource(at) => &mock.resources[at].label,
            Target::ResourceTemplate(at) => &mock.resource_templates[at].label,
            Target::Prompt(at) => &mock.prompts[at].label,
        })
    }

    /// Why a result is not what was promised, if the mock is strict about it.
    pub(super) fn check(self, mock: &Mock, result: &Value) -> Result<(), String> {
        let Target::Tool(at) = self else { return Ok(()) };
        let tool = &mock.tools[at];
        let Some(output) = tool.output.as_ref().filter(|_| tool.validate == Validate::Strict) else { return Ok(()) };
        if result.get("isError") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        let Some(structured) = result.get("structuredContent") else {
            return Err("the answer has no structured_content, but the tool has an output_schema".to_owned());
        };
        let wrong = output.objections(structured);
        if wrong.is_empty() {
            return Ok(());
        }
        Err(format!("structured_content does not fit the output_schema: {}", wrong.join("; ")))
    }
}
