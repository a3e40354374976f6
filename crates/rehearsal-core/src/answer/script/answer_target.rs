//! The targets of a mock: its tools, resources, prompts and methods; and the completions of their arguments.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::mock::Mock;
use super::rule::CompiledRules;
use super::uri_template::UriTemplate;
use crate::answer::fault::FaultRules;
use crate::answer::protocol::{ListKind, ListedForm, SurfaceItem, invalid};
use crate::answer::request_context::IncomingRequest;
use crate::matcher::{Matcher, Schema};
use crate::message::ErrorReply;
use crate::script::mock::{TaskSupport, Validate};

/// The target of a request: a tool, resource, resource template, prompt or method, with the rules that answer it.
#[derive(Debug)]
pub(in crate::answer) struct AnswerTarget {
    /// Its name, URI, URI template or method.
    pub(in crate::answer) id: String,
    /// `tool get_forecast`
    pub(in crate::answer) label: Arc<str>,
    /// Its number among the targets of the mock. The state counts its requests under this number.
    pub(in crate::answer) number: usize,
    pub(super) listed: ListedForm,
    /// The capabilities of the clients that it is listed for.
    pub(super) needs: Option<Matcher>,
    /// What happens if its arguments, results or input responses are invalid.
    pub(in crate::answer) validate: Validate,
    pub(in crate::answer) rules: CompiledRules,
    pub(super) faults: FaultRules,
    pub(super) details: Details,
}

/// The properties that only targets of one kind have.
#[derive(Debug)]
pub(super) enum Details {
    Tool(CompiledTool),
    Resource,
    ResourceTemplate(CompiledTemplate),
    /// The arguments of a prompt.
    Prompt(Vec<CompiledArgument>),
    Method,
}

/// The properties of a tool.
#[derive(Debug)]
pub(super) struct CompiledTool {
    /// `None` accepts any object.
    pub(super) input: Option<Schema>,
    pub(super) output: Option<Schema>,
    pub(super) task_support: Option<TaskSupport>,
}

/// The properties of a resource template.
#[derive(Debug)]
pub(super) struct CompiledTemplate {
    pub(super) pattern: UriTemplate,
    /// The completions of each variable.
    pub(super) complete: Vec<(String, Vec<String>)>,
}

/// An argument of a prompt.
#[derive(Debug)]
pub(super) struct CompiledArgument {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) complete: Vec<String>,
}

/// The kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TargetKind {
    Tool,
    Resource,
    ResourceTemplate,
    Prompt,
    Method,
}

impl TargetKind {
    /// The kind of target that a method requests, and the param that names it.
    pub(super) fn from_method(method: &str) -> Option<(TargetKind, &'static str)> {
        match method {
            "tools/call" => Some((TargetKind::Tool, "name")),
            "prompts/get" => Some((TargetKind::Prompt, "name")),
            "resources/read" => Some((TargetKind::Resource, "uri")),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            TargetKind::Tool => "tool",
            TargetKind::Resource => "resource",
            TargetKind::ResourceTemplate => "resource template",
            TargetKind::Prompt => "prompt",
            TargetKind::Method => "method",
        }
    }
}

impl AnswerTarget {
    /// Its element in a list.
    pub(super) fn item(&self) -> SurfaceItem {
        SurfaceItem { id: self.id.clone(), form: self.listed.clone(), needs: self.needs.clone() }
    }

    /// Whether a client can see and call it.
    pub(super) fn is_offered(&self, request: &IncomingRequest) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.matches(&request.context.capabilities))
    }

    pub(super) fn as_tool(&self) -> Option<&CompiledTool> {
        if let Details::Tool(tool) = &self.details { Some(tool) } else { None }
    }

    /// The values of the variables for which a resource template is this URI.
    pub(super) fn variables(&self, uri: &str) -> Option<Map<String, Value>> {
        if let Details::ResourceTemplate(template) = &self.details { template.pattern.matches(uri) } else { None }
    }

    /// Whether a client can suggest values for its arguments.
    pub(super) fn has_completions(&self) -> bool {
        match &self.details {
            Details::Prompt(arguments) => arguments.iter().any(|argument| !argument.complete.is_empty()),
            Details::ResourceTemplate(template) => !template.complete.is_empty(),
            Details::Tool(_) | Details::Resource | Details::Method => false,
        }
    }

    /// Whether it is a tool that may answer with a task.
    pub(super) fn has_tasks(&self) -> bool {
        self.as_tool().is_some_and(|tool| {
            let supports = matches!(tool.task_support, Some(TaskSupport::Optional | TaskSupport::Required));
            supports || self.rules.answers().any(|answer| answer.answer.any(&|answer| answer.task.is_some()))
        })
    }

    /// Why a result of a tool breaks its output schema, unless the mock validates nothing.
    pub(in crate::answer) fn output_mismatch(&self, result: &Value) -> Option<String> {
        let output = self.as_tool()?.output.as_ref().filter(|_| self.validate != Validate::Off)?;
        if result.get("isError") == Some(&Value::Bool(true)) {
            return None;
        }
        let Some(structured) = result.get("structuredContent") else {
            return Some("the answer has no structured_content, but the tool has an output_schema".to_owned());
        };
        let mismatches = output.objections(structured);
        (!mismatches.is_empty())
            .then(|| format!("structured_content does not fit the output_schema: {}", mismatches.join("; ")))
    }
}

/// Maximum number of values in a completion.
const MAX_COMPLETIONS: usize = 100;

/// The result of `completion/complete`: the values that begin with the typed text.
pub(in crate::answer) fn complete(mock: &Mock, request: &IncomingRequest) -> Result<Value, ErrorReply> {
    let (reference, argument) = (&request.params["ref"], &request.params["argument"]);
    let (Some(name), Some(typed)) = (argument["name"].as_str(), argument["value"].as_str()) else {
        return Err(invalid("completion/complete needs the strings `argument.name` and `argument.value`".to_owned()));
    };
    let nothing = || invalid(format!("there is no {reference} whose `{name}` could be completed"));
    let values: &[String] = match reference["type"].as_str() {
        Some("ref/prompt") => {
            let prompt = reference["name"].as_str().and_then(|id| mock.find(TargetKind::Prompt, id));
            let prompt = prompt.ok_or_else(nothing)?;
            let Details::Prompt(arguments) = &prompt.details else { return Err(nothing()) };
            match arguments.iter().find(|argument| argument.name == name) {
                Some(argument) => &argument.complete,
                None if lists_argument(mock, &prompt.id, name) => &[],
                None => return Err(nothing()),
            }
        }
        Some("ref/resource") => {
            let template = reference["uri"].as_str().and_then(|id| mock.find(TargetKind::ResourceTemplate, id));
            let Some(Details::ResourceTemplate(template)) = template.map(|it| &it.details) else {
                return Err(nothing());
            };
            if !template.pattern.variables().iter().any(|variable| variable == name) {
                return Err(nothing());
            }
            template.complete.iter().find(|(variable, _)| variable == name).map_or(&[][..], |(_, values)| values)
        }
        Some(_) | None => return Err(invalid("`ref.type` must be ref/prompt or ref/resource".to_owned())),
    };
    let typed = typed.to_lowercase();
    let fitting: Vec<_> = values.iter().filter(|value| value.to_lowercase().starts_with(&typed)).collect();
    let (total, shown) = (fitting.len(), &fitting[..fitting.len().min(MAX_COMPLETIONS)]);
    Ok(json!({"completion": {"values": shown, "total": total, "hasMore": total > MAX_COMPLETIONS}}))
}

/// Whether a prompt is listed with an argument that has no completions.
fn lists_argument(mock: &Mock, prompt: &str, name: &str) -> bool {
    let item = mock.lists().find(ListKind::Prompts, prompt);
    let arguments = item.and_then(|item| item.value().get("arguments")).and_then(Value::as_array);
    arguments.is_some_and(|arguments| arguments.iter().any(|argument| argument["name"] == name))
}
