//! The sources that invent answers: an example of the output schema, and a placeholder without even a schema.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::answer::{Answer, Provenance, WrittenFor};
use super::protocol::ListKind;
use super::request_context::IncomingRequest;
use super::source::{AnswerContext, AnswerSource, MatchDepth, Offer};
use super::surface::Surface;
use crate::json::RawJson;
use crate::message::{Method, Reply};
use crate::schema::example;

/// The key in `_meta` that marks an invented result.
const PROVENANCE_KEY: &str = "rehearsal/provenance";

/// Answers for a listed tool with an output schema, by an example of that schema.
#[derive(Debug, Default)]
pub struct SchemaSource {
    /// The example of each tool, with the schema that it is of: it is made once.
    examples: Mutex<HashMap<String, (Value, Option<Value>)>>,
}

impl SchemaSource {
    fn example_of(&self, tool: &str, schema: &Value) -> Option<Value> {
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        match examples.get(tool) {
            Some((known, example)) if known == schema => example.clone(),
            Some(_) | None => {
                let made = example(schema);
                examples.insert(tool.to_owned(), (schema.clone(), made.clone()));
                made
            }
        }
    }
}

/// Answers for a listed tool without an output schema, a prompt or a resource, by a text that is marked as invented.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaceholderSource;

impl AnswerSource for SchemaSource {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        let target = Target::from_request(request, context.surface).filter(|target| target.kind == ListKind::Tools);
        let schema = target.as_ref().and_then(|target| context.surface.output_schema(target.name));
        let example = target.as_ref().zip(schema).and_then(|(target, schema)| self.example_of(target.name, schema));
        match (target, example) {
            (Some(target), Some(example)) => {
                let provenance = Provenance::Schema { target: target.label() };
                invented(json!({"structuredContent": example, "_meta": {PROVENANCE_KEY: "schema"}}), provenance)
            }
            (_, _) => Offer::Pass(MatchDepth::Nothing),
        }
    }
}

impl AnswerSource for PlaceholderSource {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        // A text would break an output schema.
        let has_schema = |target: &Target<'_>| {
            target.kind == ListKind::Tools && context.surface.output_schema(target.name).is_some()
        };
        let target = Target::from_request(request, context.surface).filter(|target| !has_schema(target));
        let Some(target) = target else { return Offer::Pass(MatchDepth::Nothing) };
        let text = format!("placeholder: no answer is known for {}", target.label());
        let mut result = match target.kind {
            ListKind::Tools => json!({"content": [{"type": "text", "text": text}]}),
            ListKind::Prompts => json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
            ListKind::Resources | ListKind::ResourceTemplates => {
                json!({"contents": [{"uri": target.name, "text": text}]})
            }
        };
        result["_meta"] = json!({PROVENANCE_KEY: "placeholder"});
        invented(result, Provenance::Placeholder { target: target.label() })
    }
}

fn invented(result: Value, provenance: Provenance) -> Offer {
    let answer = Answer::new(Reply::Result(RawJson::from_value(&result)), provenance);
    Offer::Answer(Answer { written_for: WrittenFor::Newest, ..answer })
}

/// The listed tool, prompt or resource of a request.
struct Target<'a> {
    kind: ListKind,
    name: &'a str,
}

impl<'a> Target<'a> {
    fn from_request(request: &'a IncomingRequest, surface: &Surface) -> Option<Target<'a>> {
        let (name, lists) = (request.subject()?, surface.lists.as_ref()?);
        let kind = match &request.method {
            method if *method == Method::TOOLS_CALL => ListKind::Tools,
            method if *method == Method::PROMPTS_GET => ListKind::Prompts,
            method if *method == Method::RESOURCES_READ => ListKind::Resources,
            _ => return None,
        };
        let is_listed = match kind {
            ListKind::Resources | ListKind::ResourceTemplates => lists.has_resource(name),
            ListKind::Tools | ListKind::Prompts => lists.find(kind, name).is_some_and(|item| item.is_for(request)),
        };
        is_listed.then_some(Target { kind, name })
    }

    /// `tool get_forecast`
    fn label(&self) -> Arc<str> {
        let kind = match self.kind {
            ListKind::Tools => "tool",
            ListKind::Prompts => "prompt",
            ListKind::Resources | ListKind::ResourceTemplates => "resource",
        };
        format!("{kind} {}", self.name).into()
    }
}
