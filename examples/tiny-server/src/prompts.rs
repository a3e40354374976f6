//! The prompt `greet`, and completion for those who do not know whom to greet.

use serde_json::{Value, json};

use crate::call::Call;
use crate::instead::Instead;
use crate::resources;

const NAMES: [&str; 4] = ["Ada", "Alan", "Grace", "Linus"];

/// What is listed.
pub(crate) fn all() -> Vec<Value> {
    vec![json!({
        "name": "greet",
        "title": "Greet somebody",
        "description": "Says hello",
        "arguments": [{"name": "who", "description": "Whom to greet", "required": true}],
    })]
}

/// `prompts/get`.
pub(crate) fn get(call: &Call) -> Result<Value, Instead> {
    let name = call.text_param("name")?;
    if name != "greet" {
        return Err(Instead::invalid_params(format!("unknown prompt {name:?}; there is greet")));
    }
    let who = call.params["arguments"]["who"].as_str();
    let who = who.ok_or_else(|| Instead::invalid_params("the prompt greet needs a string argument `who`"))?;
    Ok(json!({
        "description": "Says hello",
        "messages": [{"role": "user", "content": {"type": "text", "text": format!("Hello {who}")}}],
    }))
}

/// `completion/complete`: the names that begin with what was typed.
pub(crate) fn complete(call: &Call) -> Result<Value, Instead> {
    let (reference, argument) = (&call.params["ref"], &call.params["argument"]);
    let expected = match reference["type"].as_str() {
        Some("ref/prompt") if reference["name"] == "greet" => "who",
        Some("ref/resource") if reference["uri"] == resources::TEMPLATE => "name",
        _ => return Err(Instead::invalid_params(format!("nothing to complete for {reference}"))),
    };
    match (argument["name"].as_str(), argument["value"].as_str()) {
        (Some(name), Some(typed)) if name == expected => {
            let values: Vec<_> = NAMES.into_iter().filter(|name| name.starts_with(typed)).collect();
            Ok(json!({"completion": {"values": values, "total": values.len(), "hasMore": false}}))
        }
        _ => Err(Instead::invalid_params(format!("completion needs `argument.name` {expected:?} and a string value"))),
    }
}
