//! What a request asks for.

use std::sync::Arc;

use serde_json::Value;

use super::Mock;
use super::rule::Rules;
use super::scene::Kind;
use crate::script::mock::Validate;

/// What a request asks for, by its position in the mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Tool(usize),
    Resource(usize),
    ResourceTemplate(usize),
    Prompt(usize),
    Request(usize),
}

impl Target {
    pub(super) fn rules(self, mock: &Mock) -> &Rules {
        match self {
            Target::Tool(at) => &mock.tools[at].rules,
            Target::Resource(at) => &mock.resources[at].rules,
            Target::ResourceTemplate(at) => &mock.resource_templates[at].rules,
            Target::Prompt(at) => &mock.prompts[at].rules,
            Target::Request(at) => &mock.requests[at].rules,
        }
    }

    /// Its number among everything that can be asked for.
    pub(super) fn number(self, mock: &Mock) -> usize {
        match self {
            Target::Tool(at) => mock.tools[at].number,
            Target::Resource(at) => mock.resources[at].number,
            Target::ResourceTemplate(at) => mock.resource_templates[at].number,
            Target::Prompt(at) => mock.prompts[at].number,
            Target::Request(at) => mock.requests[at].number,
        }
    }

    /// What happens to what does not fit.
    pub(super) fn validate(self, mock: &Mock) -> Validate {
        match self {
            Target::Tool(at) => mock.tools[at].validate,
            Target::Resource(at) => mock.resources[at].validate,
            Target::ResourceTemplate(at) => mock.resource_templates[at].validate,
            Target::Prompt(at) => mock.prompts[at].validate,
            Target::Request(_) => Validate::Off,
        }
    }

    /// What its answers look like.
    pub(super) fn kind(self) -> Kind {
        match self {
            Target::Tool(_) => Kind::Tool,
            Target::Resource(_) | Target::ResourceTemplate(_) => Kind::Resource,
            Target::Prompt(_) => Kind::Prompt,
            Target::Request(_) => Kind::Request,
        }
    }

    /// `tool get_forecast`
    pub(super) fn name(self, mock: &Mock) -> Arc<str> {
        Arc::clone(match self {
            Target::Tool(at) => &mock.tools[at].label,
            Target::Resource(at) => &mock.resources[at].label,
            Target::ResourceTemplate(at) => &mock.resource_templates[at].label,
            Target::Prompt(at) => &mock.prompts[at].label,
            Target::Request(at) => &mock.requests[at].label,
        })
    }

    /// Why a result is not what was promised, if the mock looks at that, and what is to be done about it.
    pub(super) fn objection(self, mock: &Mock, result: &Value) -> Option<(Validate, String)> {
        let Target::Tool(at) = self else { return None };
        let tool = &mock.tools[at];
        let output = tool.output.as_ref().filter(|_| tool.validate != Validate::Off)?;
        if result.get("isError") == Some(&Value::Bool(true)) {
            return None;
        }
        let Some(structured) = result.get("structuredContent") else {
            let why = "the answer has no structured_content, but the tool has an output_schema";
            return Some((tool.validate, why.to_owned()));
        };
        let wrong = output.objections(structured);
        let why = || format!("structured_content does not fit the output_schema: {}", wrong.join("; "));
        (!wrong.is_empty()).then(|| (tool.validate, why()))
    }
}
