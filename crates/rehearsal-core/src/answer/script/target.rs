//! Tools, prompts and resources as a request names them, and what completes their names.

use std::sync::Arc;

use serde_json::{Value, json};

use super::mock::Mock;
use super::rule::Rules;
use crate::answer::protocol::{ListKind, invalid};
use crate::answer::request_context::IncomingRequest;
use crate::message::ErrorReply;
use crate::script::mock::Validate;

/// What a request asks for, by its position in the mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) enum Target {
    Tool(usize),
    Resource(usize),
    ResourceTemplate(usize),
    Prompt(usize),
    Request(usize),
}

impl Target {
    pub(in crate::answer) fn rules(self, mock: &Mock) -> &Rules {
        match self {
            Target::Tool(at) => &mock.tools[at].rules,
            Target::Resource(at) => &mock.resources[at].rules,
            Target::ResourceTemplate(at) => &mock.resource_templates[at].rules,
            Target::Prompt(at) => &mock.prompts[at].rules,
            Target::Request(at) => &mock.requests[at].rules,
        }
    }

    /// Its number among everything that can be asked for.
    pub(in crate::answer) fn number(self, mock: &Mock) -> usize {
        match self {
            Target::Tool(at) => mock.tools[at].number,
            Target::Resource(at) => mock.resources[at].number,
            Target::ResourceTemplate(at) => mock.resource_templates[at].number,
            Target::Prompt(at) => mock.prompts[at].number,
            Target::Request(at) => mock.requests[at].number,
        }
    }

    /// What happens to what does not fit.
    pub(in crate::answer) fn validate(self, mock: &Mock) -> Validate {
        match self {
            Target::Tool(at) => mock.tools[at].validate,
            Target::Resource(at) => mock.resources[at].validate,
            Target::ResourceTemplate(at) => mock.resource_templates[at].validate,
            Target::Prompt(at) => mock.prompts[at].validate,
            Target::Request(_) => Validate::Off,
        }
    }

    /// `tool get_forecast`
    pub(in crate::answer) fn name(self, mock: &Mock) -> Arc<str> {
        Arc::clone(match self {
            Target::Tool(at) => &mock.tools[at].label,
            Target::Resource(at) => &mock.resources[at].label,
            Target::ResourceTemplate(at) => &mock.resource_templates[at].label,
            Target::Prompt(at) => &mock.prompts[at].label,
            Target::Request(at) => &mock.requests[at].label,
        })
    }

    /// Why a result is not what was promised, if the mock looks at that, and what is to be done about it.
    pub(in crate::answer) fn objection(self, mock: &Mock, result: &Value) -> Option<(Validate, String)> {
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
pub(in crate::answer) fn complete(mock: &Mock, request: &IncomingRequest) -> Result<Value, ErrorReply> {
    let (reference, argument) = (&request.params["ref"], &request.params["argument"]);
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
                None if lists_argument(mock, &prompt.name, name) => &[],
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

/// Whether a prompt is listed with an argument that has no completions.
fn lists_argument(mock: &Mock, prompt: &str, name: &str) -> bool {
    let item = mock.lists().find(ListKind::Prompts, prompt);
    let arguments = item.and_then(|item| item.value().get("arguments")).and_then(Value::as_array);
    arguments.is_some_and(|arguments| arguments.iter().any(|argument| argument["name"] == name))
}
