//! The source that makes answers up from the schemas of a mock file.

use std::sync::Arc;

use serde_json::json;

use super::mock::Mock;
use super::target::Target;
use crate::answer::answer::{Answer, Provenance, WrittenFor};
use crate::answer::request_context::IncomingRequest;
use crate::answer::source::{AnswerContext, AnswerSource, MatchDepth, Offer};
use crate::json::RawJson;
use crate::message::{Method, Reply};
use crate::schema::example;

/// The key in `_meta` that marks a made-up result.
const PROVENANCE: &str = "rehearsal/provenance";

/// Answers for the tools, prompts and resources of a mock with an example of the output schema, or with a text that is
/// marked as made up.
#[derive(Debug)]
pub struct SchemaSource(pub Arc<Mock>);

impl AnswerSource for SchemaSource {
    fn begin(&self, request: &Arc<IncomingRequest>, _: &mut AnswerContext<'_>) -> Offer {
        let Some(target) = self.target(request) else { return Offer::Pass(MatchDepth::Nothing) };
        let name = target.name(&self.0);
        let text = format!("made up: the mock declares no answer for {name}");
        let mut result = match target {
            Target::Tool(position) => match &self.0.tools[position].output {
                Some(output) => match example(output.as_value()) {
                    Some(example) => json!({"structuredContent": example}),
                    None => return Offer::Pass(MatchDepth::Nothing),
                },
                None => json!({"content": [{"type": "text", "text": text}]}),
            },
            Target::Prompt(_) => json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
            Target::Resource(_) | Target::ResourceTemplate(_) => {
                json!({"contents": [{"uri": request.params.get("uri"), "text": text}]})
            }
            Target::Request(_) => return Offer::Pass(MatchDepth::Nothing),
        };
        result["_meta"] = json!({PROVENANCE: "schema"});
        let reply = Reply::Result(RawJson::from_value(&result));
        let answer = Answer::new(reply, Provenance::Schema { target: name });
        Offer::Answer(Answer { written_for: WrittenFor::Newest, ..answer })
    }
}

impl SchemaSource {
    fn target(&self, request: &IncomingRequest) -> Option<Target> {
        let name = request.subject()?;
        match &request.method {
            method if *method == Method::TOOLS_CALL => {
                let position = *self.0.tools_by_name.get(name)?;
                self.0.tools[position].is_offered(request).then_some(Target::Tool(position))
            }
            method if *method == Method::PROMPTS_GET => self.0.prompts_by_name.get(name).copied().map(Target::Prompt),
            method if *method == Method::RESOURCES_READ => self.0.find_resource(name).map(|(target, _)| target),
            _ => None,
        }
    }
}
