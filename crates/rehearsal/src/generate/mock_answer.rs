//! A recorded answer as a rule of a mock file says it.

use base64::Engine as _;
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::script::mock::LogLevel;
use serde_json::{Map, Value, json};

use super::learned::{Answered, Before, Question, Said};

/// What a rule says: steps, and an answer in the shortest words that mean exactly what was recorded. `description` is what
/// a prompt is listed with.
pub(super) fn answer(
    answered: &Answered,
    method: &Method,
    description: Option<&str>,
    left_out: &mut Vec<String>,
) -> Map<String, Value> {
    let mut rule = Map::new();
    let mut steps: Vec<Value> = answered.before.iter().filter_map(|before| step(before, left_out)).collect();
    if let Some(Before::Told { .. }) = answered.before.last() {
        // Some clients hear the answer first where both come at once, and the notification never.
        steps.push(json!({"wait": "5ms"}));
    }
    if !steps.is_empty() {
        rule.insert("steps".to_owned(), steps.into());
    }
    match &answered.said {
        Said::Error(ErrorReply { code, message, data }) => {
            let mut error = json!({"code": code, "message": literal(message)});
            if let Some(data) = data.as_ref().and_then(|data| data.value().ok()) {
                error["data"] = literals(&data);
            }
            rule.insert("error".to_owned(), error);
        }
        Said::Result(result) => {
            let short = match method.as_str() {
                "tools/call" => tool_result(result),
                "prompts/get" => prompt_result(result, description),
                _ => resource_result(result),
            };
            let whole = || Map::from_iter([("result".to_owned(), literals(&Value::Object(result.clone())))]);
            rule.extend(short.unwrap_or_else(whole));
        }
    }
    rule
}

/// The result of a tool in short; `None` where only the whole result says it.
fn tool_result(result: &Map<String, Value>) -> Option<Map<String, Value>> {
    only(result, &["content", "structuredContent", "isError", "_meta"])?;
    let mut rule = Map::new();
    let structured = result.get("structuredContent");
    let blocks = result.get("content")?.as_array()?;
    let only_text = match &blocks[..] {
        [block] => plain_text(block),
        _ => None,
    };
    let as_text = structured.map(Value::to_string);
    match (only_text, structured) {
        // A mock says structured content as text by itself.
        (Some(text), Some(_)) if Some(text) == as_text.as_ref() => {}
        (Some(text), _) => drop(rule.insert("text".to_owned(), literal(text).into())),
        (None, _) => {
            let blocks = blocks.iter().map(block).collect::<Option<Vec<_>>>()?;
            rule.insert("content".to_owned(), blocks.into());
        }
    }
    if let Some(structured) = structured {
        rule.insert("structured_content".to_owned(), literals(structured));
    }
    if let Some(failed) = result.get("isError") {
        rule.insert("is_error".to_owned(), failed.as_bool()?.into());
    }
    rule.extend(meta(result)?);
    Some(rule)
}

fn prompt_result(result: &Map<String, Value>, description: Option<&str>) -> Option<Map<String, Value>> {
    only(result, &["description", "messages", "_meta"])?;
    // A mock says what the prompt is listed with.
    if result.get("description").and_then(Value::as_str) != description {
        return None;
    }
    let message = |message: &Value| {
        let message = message.as_object()?;
        only(message, &["role", "content"])?;
        let role = message.get("role").filter(|role| *role == "user" || *role == "assistant")?;
        Some(json!({"role": role, "content": block(message.get("content")?)?}))
    };
    let messages = result.get("messages")?.as_array()?.iter().map(message).collect::<Option<Vec<_>>>()?;
    let mut rule = Map::from_iter([("messages".to_owned(), messages.into())]);
    rule.extend(meta(result)?);
    Some(rule)
}

fn resource_result(result: &Map<String, Value>) -> Option<Map<String, Value>> {
    only(result, &["contents", "_meta"])?;
    // Contents without a type would get that of the listed resource.
    let typed = |it: &Value| contents(it).filter(|it| it.get("mime_type").is_some());
    let all = result.get("contents")?.as_array()?.iter().map(typed).collect::<Option<Vec<_>>>()?;
    let mut rule = Map::from_iter([("contents".to_owned(), all.into())]);
    rule.extend(meta(result)?);
    Some(rule)
}

/// A content block as people write it; `None` where it has something that they cannot write.
fn block(block: &Value) -> Option<Value> {
    let object = block.as_object()?;
    let known: &[&str] = match object.get("type")?.as_str()? {
        "text" => &["type", "text", "annotations", "_meta"],
        "image" | "audio" => &["type", "data", "mimeType", "annotations", "_meta"],
        "resource" => &["type", "resource", "annotations", "_meta"],
        "resource_link" => &["type", "uri", "name", "title", "description", "mimeType", "size", "annotations", "_meta"],
        _ => return None,
    };
    only(object, known)?;
    let mut written = Map::new();
    for (key, value) in object {
        let (key, value) = match key.as_str() {
            "annotations" => ("annotations", annotations(value)?),
            "_meta" => ("meta", literals(value).as_object()?.clone().into()),
            "resource" => ("resource", contents(value)?),
            "mimeType" => ("mime_type", Value::from(value.as_str()?)),
            "data" => ("data", Value::from(base64(value)?)),
            "size" => ("size", Value::from(value.as_u64()?)),
            // These two are never templates.
            "title" | "description" => (key.as_str(), Value::from(value.as_str()?)),
            _ => (key.as_str(), Value::from(literal(value.as_str()?))),
        };
        written.insert(key.to_owned(), value);
    }
    Some(written.into())
}

fn contents(contents: &Value) -> Option<Value> {
    let object = contents.as_object()?;
    only(object, &["uri", "mimeType", "text", "blob", "_meta"])?;
    if object.contains_key("text") == object.contains_key("blob") {
        return None;
    }
    let mut written = Map::new();
    for (key, value) in object {
        let (key, value) = match key.as_str() {
            "mimeType" => ("mime_type", Value::from(value.as_str()?)),
            "blob" => ("blob", Value::from(base64(value)?)),
            "_meta" => ("meta", literals(value).as_object()?.clone().into()),
            _ => (key.as_str(), Value::from(literal(value.as_str()?))),
        };
        written.insert(key.to_owned(), value);
    }
    written.contains_key("uri").then(|| written.into())
}

fn annotations(value: &Value) -> Option<Value> {
    let object = value.as_object()?;
    only(object, &["audience", "priority", "lastModified"])?;
    let written = snake(object, &["audience", "priority", "lastModified"]);
    (written.len() == object.len()).then(|| written.into())
}

/// The `_meta` of a result; `None` where it is no object.
fn meta(result: &Map<String, Value>) -> Option<Option<(String, Value)>> {
    match result.get("_meta") {
        None => Some(None),
        Some(Value::Object(_)) => Some(result.get("_meta").map(|meta| ("meta".to_owned(), literals(meta)))),
        Some(_) => None,
    }
}

fn base64(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    base64::engine::general_purpose::STANDARD.decode(text).ok().map(|_| text)
}

/// The words of a block that is nothing but words.
fn plain_text(block: &Value) -> Option<&String> {
    let object = block.as_object().filter(|object| object.len() == 2 && object["type"] == "text")?;
    match object.get("text")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// `None` where an object has a key that is not among these.
fn only(object: &Map<String, Value>, keys: &[&str]) -> Option<()> {
    object.keys().all(|key| keys.contains(&key.as_str())).then_some(())
}

/// What happens before the answer.
fn step(before: &Before, left_out: &mut Vec<String>) -> Option<Value> {
    match before {
        Before::SentAway => Some(json!({"again": {}})),
        Before::Told { method, params } => Some(told(method, params)),
        Before::Asked(questions) => {
            let mut asks = Map::new();
            for question in questions {
                match ask(question) {
                    Some(ask) => drop(asks.insert(question.name.clone(), ask)),
                    None => left_out.push(format!("{}, which a mock cannot ask", question.method)),
                }
            }
            (!asks.is_empty()).then(|| json!({"ask": asks}))
        }
    }
}

fn told(method: &Method, params: &Value) -> Value {
    let fields = params.as_object().cloned().unwrap_or_default();
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let progress = fields.get("progress").filter(|progress| progress.is_number());
    let level = text("level").and_then(LogLevel::named);
    if let Some(progress) = progress.filter(|_| *method == Method::PROGRESS) {
        let mut step = json!({"progress": progress});
        if let Some(total) = fields.get("total").filter(|total| total.is_number()) {
            step["total"] = total.clone();
        }
        if let Some(message) = text("message") {
            step["message"] = literal(message).into();
        }
        return json!({"progress": step});
    }
    if let (Some(level), Some(data)) = (level.filter(|_| *method == Method::LOG_MESSAGE), fields.get("data")) {
        let mut step = json!({"level": level.name()});
        if let Some(logger) = text("logger") {
            step["logger"] = logger.into();
        }
        step["data"] = literals(data);
        return json!({"log": step});
    }
    match method.as_str() {
        "notifications/tools/list_changed" => json!({"changed": "tools"}),
        "notifications/prompts/list_changed" => json!({"changed": "prompts"}),
        "notifications/resources/list_changed" => json!({"changed": "resources"}),
        "notifications/resources/updated" if text("uri").is_some() => {
            json!({"changed": {"resource": literal(text("uri").unwrap_or_default())}})
        }
        other if fields.is_empty() => json!({"notify": {"method": other}}),
        other => json!({"notify": {"method": other, "params": literals(params)}}),
    }
}

/// A question as people write it.
fn ask(question: &Question) -> Option<Value> {
    let params = question.params.as_object().cloned().unwrap_or_default();
    match question.method.as_str() {
        "roots/list" => Some("roots".into()),
        "elicitation/create" => {
            let mut form = Map::new();
            form.insert("message".to_owned(), literal(params.get("message")?.as_str()?).into());
            match (params.get("requestedSchema"), params.get("url").and_then(Value::as_str)) {
                (Some(schema), None) => drop(form.insert("requested_schema".to_owned(), schema.clone())),
                (_, Some(url)) => {
                    form.insert("url".to_owned(), url.into());
                    if let Some(id) = params.get("elicitationId").filter(|id| id.is_string()) {
                        form.insert("elicitation_id".to_owned(), id.clone());
                    }
                }
                (None, None) => return None,
            }
            Some(json!({"elicitation": form}))
        }
        "sampling/createMessage" => {
            let mut sampling = Map::new();
            sampling.insert("messages".to_owned(), literals(params.get("messages").filter(|it| it.is_array())?));
            if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
                sampling.insert("system_prompt".to_owned(), literal(system).into());
            }
            if let Some(tokens) = params.get("maxTokens").and_then(Value::as_u64) {
                sampling.insert("max_tokens".to_owned(), tokens.into());
            }
            let known = ["messages", "systemPrompt", "maxTokens", "_meta", "task"];
            let more = params.iter().filter(|(key, _)| !known.contains(&key.as_str()));
            let more: Map<String, Value> = more.map(|(key, value)| (key.clone(), literals(value))).collect();
            if !more.is_empty() {
                sampling.insert("more".to_owned(), more.into());
            }
            Some(json!({"sampling": sampling}))
        }
        _ => None,
    }
}

/// A text that is no template, as it is written where templates are read.
pub(super) fn literal(text: &str) -> String {
    if !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
        text.to_owned()
    } else if text.contains("endraw") {
        format!("{{{{ {} }}}}", Value::from(text))
    } else {
        format!("{{% raw %}}{text}{{% endraw %}}")
    }
}

/// The same for every text in a value.
fn literals(value: &Value) -> Value {
    match value {
        Value::String(text) => literal(text).into(),
        Value::Array(items) => items.iter().map(literals).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), literals(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Some keys of the wire as they are written in a mock file, where their values are what the protocol says.
pub(super) fn snake(object: &Map<String, Value>, keys: &[&str]) -> Map<String, Value> {
    let mut written = Map::new();
    for key in keys {
        let Some(value) = object.get(*key).filter(|value| is_what_it_should_be(key, value)) else { continue };
        let mut snake = String::new();
        for c in key.chars() {
            if c.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        written.insert(snake, value.clone());
    }
    written
}

fn is_what_it_should_be(key: &str, value: &Value) -> bool {
    let all = |is: fn(&Value) -> bool| value.as_array().is_some_and(|items| items.iter().all(is));
    match key {
        "inputSchema" | "outputSchema" => value.is_object() || value.is_boolean(),
        "size" => value.is_u64(),
        "required" => value.is_boolean(),
        "priority" => value.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority)),
        "audience" => all(|role| role == "user" || role == "assistant"),
        "sizes" => all(Value::is_string),
        hint if hint.ends_with("Hint") => value.is_boolean(),
        _ => value.is_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::message::Method;

    fn written(method: Method, result: Value) -> Value {
        let said = Said::Result(result.as_object().unwrap().clone());
        answer(&Answered { before: Vec::new(), said }, &method, Some("Greets"), &mut Vec::new()).into()
    }

    #[test]
    fn an_answer_is_written_in_the_shortest_words_that_mean_it() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let table = [
            (json!({"content": text("hi")}), json!({"text": "hi"})),
            (json!({"content": text("hi"), "isError": true}), json!({"text": "hi", "is_error": true})),
            (
                json!({"content": text(r#"{"sum":42}"#), "structuredContent": {"sum": 42}}),
                json!({"structured_content": {"sum": 42}}),
            ),
            (
                json!({"content": text(r#"{"sum": 42}"#), "structuredContent": {"sum": 42}}),
                json!({"text": r#"{"sum": 42}"#, "structured_content": {"sum": 42}}),
            ),
            (
                json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
                json!({"content": [{"type": "image", "data": "AAAA", "mime_type": "image/png"}]}),
            ),
            // What cannot be written in short is written as it was.
            (json!({"content": [{"type": "hologram"}]}), json!({"result": {"content": [{"type": "hologram"}]}})),
            (json!({"content": text("hi"), "odd": 1}), json!({"result": {"content": text("hi"), "odd": 1}})),
            (json!({"content": text("{{ 1 }}")}), json!({"text": "{% raw %}{{ 1 }}{% endraw %}"})),
        ];
        for (result, expected) in table {
            assert_eq!(written(Method::TOOLS_CALL, result.clone()), expected, "{result}");
        }
    }

    #[test]
    fn a_prompt_whose_description_is_another_is_written_whole() {
        let messages = json!([{"role": "user", "content": {"type": "text", "text": "Hello"}}]);
        let same = written(Method::PROMPTS_GET, json!({"description": "Greets", "messages": messages}));
        assert_eq!(same, json!({"messages": messages}));
        let other = json!({"description": "Greets Ada", "messages": messages});
        assert_eq!(written(Method::PROMPTS_GET, other.clone()), json!({"result": other}));
    }
}
