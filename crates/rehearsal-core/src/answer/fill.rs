//! Answers that nobody wrote: made up to fit a schema.

use serde_json::{Value, json};

use super::shape::{self, ResultType};
use super::target::Target;
use super::{Asked, Mock};
use crate::json::RawJson;

/// A result that fits what is known about it; `None` where nothing is.
pub(super) fn filled(mock: &Mock, target: Target, asked: &Asked) -> Option<RawJson> {
    let mut result = match target {
        Target::Tool(at) => match &mock.tools[at].output {
            Some(output) => json!({"structuredContent": example(output.written())?}),
            None => json!({"content": [{"type": "text", "text": ""}]}),
        },
        Target::Prompt(_) => json!({"messages": []}),
        Target::Resource(_) | Target::ResourceTemplate(_) => {
            let uri = asked.params.get("uri")?;
            json!({"contents": [{"uri": uri, "text": ""}]})
        }
    };
    let (method, revision) = (asked.method.as_str(), asked.terms.revision);
    shape::called(&mut result, revision);
    shape::envelope(&mut result, ResultType::Complete, method, revision, &mock.info);
    Some(RawJson::from_value(&result))
}

fn example(_schema: &Value) -> Option<Value> {
    None
}
