//! `completion/complete`: what an argument may be.

use serde_json::{Value, json};

use super::begin::invalid;
use super::offer::Listed;
use super::{Asked, Mock};
use crate::message::ErrorReply;

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
