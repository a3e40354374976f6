//! What each tool does.

use std::time::Duration;

use rehearsal_core::answer::unknown_level;
use rehearsal_core::protocol::Revision;
use rehearsal_core::script::mock::LogLevel;
use serde_json::{Number, Value, json};

use crate::answer::text;
use crate::arguments::Arguments;
use crate::ask::{Question, ask};
use crate::call::Call;
use crate::instead::Instead;
use crate::logging;
use crate::{resources, subscriptions};

/// `tools/call`.
pub(crate) async fn call(call: &Call) -> Result<Value, Instead> {
    let name = call.text_param("name")?;
    let arguments = Arguments::of(call)?;
    match name {
        "echo" => Ok(said(arguments.text("message")?)),
        "add" => add(call, &arguments),
        "slow" => slow(call, &arguments).await,
        "log" => log(call, &arguments).await,
        "fail" => Err(Instead::ToolFailed(arguments.text("message")?.to_owned())),
        "ask" => ask_name(call, &arguments).await,
        "sample" => sample(call, &arguments).await,
        "roots" => roots(call).await,
        "picture" => Ok(picture(call)),
        "touch" => {
            subscriptions::touch(call);
            Ok(said("touched"))
        }
        unknown => Err(Instead::invalid_params(format!("unknown tool {unknown:?}"))),
    }
}

fn said(words: &str) -> Value {
    json!({"content": [text(words)]})
}

fn add(call: &Call, arguments: &Arguments<'_>) -> Result<Value, Instead> {
    let (a, b) = (arguments.number("a")?, arguments.number("b")?);
    let sum = sum(a, b).ok_or_else(|| Instead::ToolFailed(format!("{a} + {b} is too large")))?;
    let mut result = said(&sum.to_string());
    if call.terms.revision.has_structured_content() {
        result["structuredContent"] = json!({"sum": sum});
    }
    Ok(result)
}

/// Integers stay integers as long as they fit.
fn sum(a: &Number, b: &Number) -> Option<Number> {
    let whole = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b));
    whole.map(Number::from).or_else(|| Number::from_f64(a.as_f64()? + b.as_f64()?))
}

async fn slow(call: &Call, arguments: &Arguments<'_>) -> Result<Value, Instead> {
    let steps = arguments.integer("steps", 1..=100)?;
    let delay = arguments.optional_integer("delay_ms", 0..=10_000)?.unwrap_or(100);
    for step in 1..=steps {
        // First the word, then the work: some clients lose a word that arrives together with the answer.
        call.progress(step, steps).await;
        call.pause(Duration::from_millis(delay)).await?;
    }
    Ok(said(&format!("done in {steps} steps")))
}

async fn log(call: &Call, arguments: &Arguments<'_>) -> Result<Value, Instead> {
    let (level, message) = (arguments.text("level")?, arguments.text("message")?);
    let level = LogLevel::named(level).ok_or_else(|| Instead::ToolFailed(unknown_level(level)))?;
    logging::log(call, level, message).await;
    Ok(said("logged"))
}

async fn ask_name(call: &Call, arguments: &Arguments<'_>) -> Result<Value, Instead> {
    let question = arguments.text("question")?;
    let state = call.session.server.mark(("ask", question));
    let answer = ask(call, Question::name(question, state)).await?;
    match (answer["action"].as_str(), answer["content"]["name"].as_str()) {
        (Some("accept"), Some(name)) => Ok(said(&format!("Hello, {name}!"))),
        (Some("decline"), _) => Ok(said("declined")),
        (Some("cancel"), _) => Ok(said("cancelled")),
        _ => Err(Instead::ToolFailed(format!("the client's answer makes no sense: {answer}"))),
    }
}

async fn sample(call: &Call, arguments: &Arguments<'_>) -> Result<Value, Instead> {
    let answer = ask(call, Question::model(arguments.text("prompt")?)).await?;
    // One block, or since 2025-11-25 several.
    let blocks = answer["content"].as_array().map_or(std::slice::from_ref(&answer["content"]), Vec::as_slice);
    let words: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    if words.is_empty() {
        return Err(Instead::ToolFailed(format!("the client's answer has no text: {answer}")));
    }
    Ok(said(&format!("model said: {}", words.join("\n"))))
}

async fn roots(call: &Call) -> Result<Value, Instead> {
    let answer = ask(call, Question::roots()).await?;
    let Some(roots) = answer["roots"].as_array() else {
        return Err(Instead::ToolFailed(format!("the client's answer has no roots: {answer}")));
    };
    let uris: Vec<_> = roots.iter().filter_map(|root| root["uri"].as_str()).collect();
    Ok(said(&uris.join("\n")))
}

fn picture(call: &Call) -> Value {
    let mut content = vec![json!({"type": "image", "data": resources::PNG, "mimeType": "image/png"})];
    if call.terms.revision >= Revision::V2025_06_18 {
        content.push(json!({
            "type": "resource_link",
            "uri": resources::PIXEL,
            "name": "pixel",
            "mimeType": "image/png",
        }));
    }
    content.push(json!({"type": "resource", "resource": resources::contents(resources::GREETING)}));
    json!({"content": content})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stay_integers_until_they_no_longer_fit() {
        let add = |a: Value, b: Value| sum(a.as_number().unwrap(), b.as_number().unwrap()).map(|sum| sum.to_string());
        assert_eq!(add(json!(2), json!(40)).as_deref(), Some("42"));
        assert_eq!(add(json!(0.5), json!(1)).as_deref(), Some("1.5"));
        assert_eq!(add(json!(i64::MAX), json!(1)).as_deref(), Some("9.223372036854776e+18"));
        assert_eq!(add(json!(1e308), json!(1e308)), None);
    }
}
