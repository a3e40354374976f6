//! Answers that nobody wrote: made up to fit a schema.

use serde_json::json;

use super::shape::{self, ResultType};
use super::target::Target;
use super::{Asked, Mock};
use crate::json::RawJson;
use crate::schema::example;

/// Says in `_meta` that a result was made up, and from what.
const PROVENANCE: &str = "rehearsal/provenance";

/// A result that fits what is known about it; `None` where nothing does.
pub(super) fn filled(mock: &Mock, target: Target, asked: &Asked) -> Option<RawJson> {
    let made_up = format!("made up: the mock declares no answer for {}", target.name(mock));
    let mut result = match target {
        Target::Tool(at) => match &mock.tools[at].output {
            Some(output) => json!({"structuredContent": example(output.as_value())?}),
            None => json!({"content": [{"type": "text", "text": made_up}]}),
        },
        Target::Prompt(_) => json!({"messages": [{"role": "user", "content": {"type": "text", "text": made_up}}]}),
        Target::Resource(_) | Target::ResourceTemplate(_) => {
            json!({"contents": [{"uri": asked.params.get("uri")?, "text": made_up}]})
        }
        Target::Request(_) => return None,
    };
    result["_meta"] = json!({PROVENANCE: "schema"});
    let (method, revision) = (asked.method.as_str(), asked.terms.revision);
    shape::called(&mut result, revision);
    shape::envelope(&mut result, ResultType::Complete, method, revision, &mock.info);
    Some(RawJson::from_value(&result))
}
