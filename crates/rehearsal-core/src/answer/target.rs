//! Tools, prompts and resources as a request names them, and what completes their names.

use std::sync::Arc;

use serde_json::{Value, json};

use super::begin::invalid;
use super::offer::Listed;
use super::rule::Rules;
use super::scene::Kind;
use super::{Asked, Mock};
use crate::message::ErrorReply;
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

/// How many values a client is told at most.
const LIMIT: usize = 100;

/// The values that begin with what was typed.
pub(super) fn complete(mock: &Mock, asked: &Asked) -> Result<Value, ErrorReply> {
    let (reference, argument) = (&asked.params["ref"], &asked.params["argument"]);
    let (Some(name), Some(typed)) = (argument["name"].as_str(), argument["value"].as_str()) else {
        return Err(invalid("completion/complete needs the strings `argument.name` and `argument.value`".to_owned()));
    };
    let nothing = || invalid(format!("there is no {reference} whose `{name}` could be completed"));
    let values: &[String] = match reference["type"].as_str() {
        Some("ref/prompt") => {
            let prompt = reference["name"].as_str().and_then(|name| mock.prompts_by_name.get(name));
            let prompt = &mock.prompts[*prompt.ok_or_else(nothing)?];
            match prompt.arguments.iter().find(|argument| argument.name == name) {
                Some(argument) => &argument.complete,
                None if lists_argument(&prompt.listed, name) => &[],
                None => return Err(nothing()),
            }
        }
        Some("ref/resource") => {
            let uri = reference["uri"].as_str().ok_or_else(nothing)?;
            let template =
                mock.resource_templates.iter().find(|template| template.written == uri).ok_or_else(nothing)?;
            if !template.pattern.variables().iter().any(|variable| variable == name) {
                return Err(nothing());
            }
            template.complete.iter().find(|(variable, _)| variable == name).map_or(&[][..], |(_, values)| values)
        }
        Some(_) | None => return Err(invalid("`ref.type` must be ref/prompt or ref/resource".to_owned())),
    };
    let typed = typed.to_lowercase();
    let fitting: Vec<_> = values.iter().filter(|value| value.to_lowercase().starts_with(&typed)).collect();
    let (total, shown) = (fitting.len(), &fitting[..fitting.len().min(LIMIT)]);
    Ok(json!({"completion": {"values": shown, "total": total, "hasMore": total > LIMIT}}))
}

/// Whether a prompt that is listed as it is has this argument.
fn lists_argument(listed: &Listed, name: &str) -> bool {
    let Listed::Exactly(listed) = listed else { return false };
    let arguments = listed.get("arguments").and_then(Value::as_array);
    arguments.is_some_and(|arguments| arguments.iter().any(|argument| argument["name"] == name))
}
