//! Input requests to the client: elicitation, sampling and roots.

use serde_json::{Map, Value, json};

use crate::answer::answer::WrittenFor;
use crate::answer::request_context::RequestContext;
use crate::answer::script::{CompileContext, ObjectBuilder, TemplateScope, TemplateValue, Templates, parsed_or_report};
use crate::matcher::Schema;
use crate::message::{ErrorReply, Message, Method, RequestId};
use crate::protocol::{Era, Revision, code, meta};
use crate::script::Span;
use crate::script::mock::{Elicitation, InputRequestEntry, Sampling};
use crate::shape::{server_may_send, strip_unknown};

/// A request to the client: a JSON-RPC request before 2026-07-28, an entry of `inputRequests` since.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRequest {
    /// The name of the input.
    pub name: String,
    /// The method.
    pub method: Method,
    /// The params; `null` if a recorded request has none.
    pub params: Value,
}

impl InputRequest {
    /// The entry of `inputRequests`. Such a request has no progress, so it has no progress token.
    pub(in crate::answer) fn entry(&self) -> Value {
        let mut request = json!({"method": self.method.as_str()});
        let mut params = self.params.clone();
        if let Some(fields) = params.as_object_mut() {
            let meta = fields.get_mut("_meta").and_then(Value::as_object_mut);
            let token = meta.and_then(|meta| meta.shift_remove(meta::PROGRESS_TOKEN).map(|_| meta.is_empty()));
            if token == Some(true) {
                fields.shift_remove("_meta");
            }
        }
        if !params.is_null() {
            request["params"] = params;
        }
        request
    }

    /// The entries of an `inputRequests` member.
    pub(in crate::answer) fn from_entries(requests: Option<&Value>) -> Vec<InputRequest> {
        let requests = requests.and_then(Value::as_object).into_iter().flatten();
        let input_request = |(name, request): (&String, &Value)| {
            let method = request.get("method").and_then(Value::as_str)?.into();
            let params = request.get("params").cloned().unwrap_or_default();
            Some(InputRequest { name: name.clone(), method, params })
        };
        requests.filter_map(input_request).collect()
    }

    /// The JSON-RPC request, with further members in `_meta`. If it has a progress token, its id is the new token.
    pub fn request(&self, id: RequestId, more: Option<&Value>) -> Message {
        let mut params = self.params.clone();
        for (key, value) in more.and_then(Value::as_object).into_iter().flatten() {
            params["_meta"][key] = value.clone();
        }
        let token = params.get_mut("_meta").and_then(|meta| meta.get_mut(meta::PROGRESS_TOKEN));
        if let Some(token) = token {
            *token = json!(id);
        }
        let params = (!params.is_null()).then_some(params);
        Message::request(id, self.method.clone(), params.as_ref()).expect("a JSON value can always be written")
    }

    /// The `input_required` result of 2026-07-28; without requests it has only the state.
    pub fn result(requests: &[InputRequest], state: Option<String>) -> Value {
        let mut result = json!({});
        if !requests.is_empty() {
            let entries = requests.iter().map(|request| (request.name.clone(), request.entry()));
            result["inputRequests"] = Value::Object(entries.collect());
        }
        if let Some(state) = state {
            result["requestState"] = state.into();
        }
        result
    }

    /// A recorded `input_required` result with these of its requests and another state.
    pub(super) fn recorded_result(recorded: &Value, requests: &[InputRequest], state: Option<String>) -> Value {
        let mut result = recorded.clone();
        if let Some(entries) = result.get_mut("inputRequests").and_then(Value::as_object_mut) {
            entries.retain(|name, _| requests.iter().any(|request| request.name == *name));
        }
        if let Some(state) = state {
            result["requestState"] = state.into();
        }
        result
    }

    /// A request of a recorded or live server, in this client's version; `Err` is the reason why the client cannot get it.
    pub fn adapted(mut self, context: &RequestContext, from: Option<Revision>) -> Result<InputRequest, String> {
        let is_same = from == Some(context.revision);
        if let Some(kind) = InputKind::from_request(&self.method, &self.params) {
            // A server sent it in this version, so it may be sent again, even if the version does not define it.
            let since = if is_same { Revision::V2024_11_05 } else { kind.since(None) };
            if let Some(missing) = kind.missing_capability(since, context) {
                return Err(missing.why);
            }
        }
        if is_same {
            return Ok(self);
        }
        if context.revision < Revision::V2025_11_25
            && let Some(schema) = self.params.get_mut("requestedSchema")
        {
            strip_choices(schema);
        }
        let known = matches!(self.method.as_str(), "elicitation/create" | "sampling/createMessage" | "roots/list");
        if context.era() == Era::Modern && !known {
            return Err(format!("servers do not send {} since {}", self.method, Revision::V2026_07_28));
        }
        if context.era() == Era::Legacy && !server_may_send(self.method.as_str(), context.revision) {
            return Err(format!("servers do not send {} in {}", self.method, context.revision));
        }
        if self.method == Method::SAMPLING {
            adapt_sampling(&mut self.params, context);
        }
        if self.params.get("mode").is_some_and(|mode| mode == "url")
            && context.revision == Revision::V2025_11_25
            && self.params.get("elicitationId").is_none()
        {
            self.params["elicitationId"] = self.name.as_str().into();
        }
        if self.params.is_object() {
            let mut request = json!({"method": self.method.as_str(), "params": self.params});
            strip_unknown("InputRequest", &mut request, context.revision);
            self.params = request["params"].take();
        }
        Ok(self)
    }
}

/// Converts a sampling request for a client that supports less than the recorded one.
fn adapt_sampling(params: &mut Value, context: &RequestContext) {
    let Some(fields) = params.as_object_mut() else { return };
    let has_tools = context.capabilities.get("sampling").is_some_and(|declared| declared.get("tools").is_some());
    if !has_tools {
        fields.shift_remove("tools");
        fields.shift_remove("toolChoice");
    }
    let Some(Value::Array(messages)) = fields.get_mut("messages") else { return };
    if context.revision >= Revision::V2025_11_25 {
        return;
    }
    // Before 2025-11-25 a message has one content block.
    let apart = |message: Value| match message.get("content").and_then(Value::as_array).cloned() {
        None => vec![message],
        Some(blocks) => {
            let one = |block: Value| {
                let mut message = message.clone();
                message["content"] = block;
                message
            };
            blocks.into_iter().map(one).collect()
        }
    };
    *messages = std::mem::take(messages).into_iter().flat_map(apart).collect();
    for content in messages.iter_mut().filter_map(|message| message.get_mut("content")) {
        let is_known = match content["type"].as_str() {
            Some("tool_use" | "tool_result") => false,
            Some("audio") => context.revision >= Revision::V2025_03_26,
            Some(_) | None => true,
        };
        if !is_known {
            *content = json!({"type": "text", "text": content.to_string()});
        }
    }
}

/// An input request of a mock file, compiled.
#[derive(Debug)]
pub(in crate::answer) struct InputRequestTemplate {
    pub(in crate::answer) name: String,
    method: Method,
    /// The feature of the client that it uses; `None` if it needs no capability.
    kind: Option<InputKind>,
    params: TemplateValue,
    written_for: WrittenFor,
    /// The schema of an accepted form.
    form: Option<Schema>,
    elicitation_id: Option<String>,
    /// The first version that has this input request.
    since: Revision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputKind {
    Form,
    Url,
    Model,
    Roots,
}

impl InputRequestTemplate {
    pub(in crate::answer) fn compile(
        name: &str,
        ask: &InputRequestEntry,
        at: Span,
        context: &mut CompileContext<'_>,
    ) -> InputRequestTemplate {
        let mut fields = ObjectBuilder::new();
        let (mut form, mut elicitation_id) = (None, None);
        let kind = match ask {
            InputRequestEntry::Request { method, params } => {
                return InputRequestTemplate::compile_verbatim(name, method, params.as_ref(), at, context);
            }
            InputRequestEntry::Elicitation(written) => {
                form = written.requested_schema.as_ref().and_then(|schema| parsed_or_report(schema, context.problems));
                elicitation_id = written.elicitation_id.clone();
                elicitation(written, &mut fields, at, context)
            }
            InputRequestEntry::Sampling(written) => {
                sampling(written, &mut fields, at, context);
                InputKind::Model
            }
            InputRequestEntry::Roots => InputKind::Roots,
        };
        let schema = match ask {
            InputRequestEntry::Elicitation(written) => written.requested_schema.as_ref().map(|schema| &schema.written),
            InputRequestEntry::Sampling(_) | InputRequestEntry::Roots | InputRequestEntry::Request { .. } => None,
        };
        InputRequestTemplate {
            name: name.to_owned(),
            method: kind.method(),
            kind: Some(kind),
            params: fields.finish(),
            written_for: WrittenFor::Newest,
            form,
            elicitation_id,
            since: kind.since(schema),
        }
    }

    /// An input request that is sent unchanged in every version.
    fn compile_verbatim(
        name: &str,
        method: &str,
        params: Option<&Map<String, Value>>,
        at: Span,
        context: &mut CompileContext<'_>,
    ) -> InputRequestTemplate {
        let method = Method::from(method);
        let written = params.map_or(Value::Null, |params| Value::Object(params.clone()));
        InputRequestTemplate {
            name: name.to_owned(),
            kind: InputKind::from_request(&method, &written),
            method,
            params: params.map_or(TemplateValue::Fixed(Value::Null), |params| context.object(at, params)),
            written_for: WrittenFor::Verbatim,
            form: written.get("requestedSchema").and_then(|schema| Schema::compile(schema).ok()),
            elicitation_id: None,
            since: Revision::V2024_11_05,
        }
    }

    /// Renders the input request for one client request.
    pub(in crate::answer) fn render(
        &self,
        revision: Revision,
        templates: &Templates,
        scope: &TemplateScope<'_>,
    ) -> Result<InputRequest, String> {
        let mut params = self.params.render(templates, scope)?;
        match (self.written_for, self.kind) {
            (WrittenFor::Newest, Some(InputKind::Form)) if revision < Revision::V2025_11_25 => {
                params.as_object_mut().and_then(|params| params.shift_remove("mode"));
            }
            (WrittenFor::Newest, Some(InputKind::Url)) if revision == Revision::V2025_11_25 => {
                params["elicitationId"] = self.elicitation_id.as_deref().unwrap_or(&self.name).into();
            }
            (_, _) => {}
        }
        Ok(InputRequest { name: self.name.clone(), method: self.method.clone(), params })
    }

    /// The capability that the client lacks for it, if there is one.
    pub(in crate::answer) fn missing_capability(&self, context: &RequestContext) -> Option<MissingCapability> {
        self.kind?.missing_capability(self.since, context)
    }

    /// Whether an input response is valid.
    pub(in crate::answer) fn accepts(&self, answer: &Value) -> bool {
        let Some(kind) = self.kind else { return true };
        match kind {
            InputKind::Form => match answer.get("action").and_then(Value::as_str) {
                Some("accept") => {
                    let content = answer.get("content").filter(|content| content.is_object());
                    let fits = |content: &Value| self.form.as_ref().is_none_or(|form| form.is_valid(content));
                    content.map_or(self.form.is_none(), fits)
                }
                Some("decline" | "cancel") => true,
                Some(_) | None => false,
            },
            InputKind::Url => {
                matches!(answer.get("action").and_then(Value::as_str), Some("accept" | "decline" | "cancel"))
            }
            InputKind::Model => answer.get("content").is_some_and(|content| content.is_object() || content.is_array()),
            InputKind::Roots => answer.get("roots").is_some_and(Value::is_array),
        }
    }
}

impl InputKind {
    /// The feature of the client that an input request uses; `None` if it needs no capability.
    fn from_request(method: &Method, params: &Value) -> Option<InputKind> {
        match method.as_str() {
            "elicitation/create" if params.get("mode").is_some_and(|mode| mode == "url") => Some(InputKind::Url),
            "elicitation/create" => Some(InputKind::Form),
            "sampling/createMessage" => Some(InputKind::Model),
            "roots/list" => Some(InputKind::Roots),
            _ => None,
        }
    }

    fn method(self) -> Method {
        match self {
            InputKind::Form | InputKind::Url => Method::ELICITATION,
            InputKind::Model => Method::SAMPLING,
            InputKind::Roots => Method::ROOTS_LIST,
        }
    }

    /// The capability that a client must declare.
    fn capability(self) -> &'static str {
        match self {
            InputKind::Form | InputKind::Url => "elicitation",
            InputKind::Model => "sampling",
            InputKind::Roots => "roots",
        }
    }

    /// The first version that has this input request, with this schema if it is a form.
    fn since(self, schema: Option<&Value>) -> Revision {
        match self {
            InputKind::Form if schema.is_some_and(has_enum_fields) => Revision::V2025_11_25,
            InputKind::Form => Revision::V2025_06_18,
            InputKind::Url => Revision::V2025_11_25,
            InputKind::Model | InputKind::Roots => Revision::V2024_11_05,
        }
    }

    /// The capability that the client lacks, if there is one.
    fn missing_capability(self, since: Revision, context: &RequestContext) -> Option<MissingCapability> {
        let capability = self.capability();
        if context.revision < since {
            let why = format!("{capability} like this exists since {since}, and this client uses {}", context.revision);
            return Some(MissingCapability { capability, mode: None, why });
        }
        let declared = context.capabilities.get(capability).filter(|declared| declared.is_object());
        let mode = match self {
            // Since 2025-11-25 a client may support URLs but no forms; one that declares neither supports forms.
            InputKind::Form => {
                declared.filter(|modes| modes.get("url").is_some() && modes.get("form").is_none()).map(|_| "form")
            }
            InputKind::Url => declared.filter(|modes| modes.get("url").is_none()).map(|_| "url"),
            InputKind::Model | InputKind::Roots => None,
        };
        (declared.is_none() || mode.is_some()).then(|| {
            let what = mode.map(|mode| format!(" for {mode}s")).unwrap_or_default();
            MissingCapability {
                capability,
                mode,
                why: format!("this client did not declare the capability {capability}{what}"),
            }
        })
    }
}

/// A capability that the client did not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::answer) struct MissingCapability {
    capability: &'static str,
    mode: Option<&'static str>,
    pub(in crate::answer) why: String,
}

impl MissingCapability {
    /// The error of 2026-07-28; its data names every missing capability.
    pub(in crate::answer) fn error(missing: &[MissingCapability]) -> ErrorReply {
        let mut required = Map::new();
        for MissingCapability { capability, mode, .. } in missing {
            let wanted = required.entry(*capability).or_insert_with(|| json!({}));
            if let Some(mode) = mode {
                wanted[*mode] = json!({});
            }
        }
        let names: Vec<_> = required.keys().map(String::as_str).collect();
        let message = format!("this needs the capability {}", names.join(" and "));
        ErrorReply::new(code::MISSING_CAPABILITY, message).with_data(&json!({"requiredCapabilities": required}))
    }
}

fn elicitation(
    written: &Elicitation,
    fields: &mut ObjectBuilder,
    at: Span,
    context: &mut CompileContext<'_>,
) -> InputKind {
    let message = context.text_template(written.message.at, &written.message);
    match &written.url {
        Some(url) => {
            fields.fixed("mode", "url");
            fields.template("message", message);
            let url = context.text_template(at, url);
            fields.template("url", url);
            InputKind::Url
        }
        None => {
            if written.mode.is_some() {
                fields.fixed("mode", "form");
            }
            fields.template("message", message);
            let empty = || json!({"type": "object", "properties": {}});
            let schema = written.requested_schema.as_ref().map_or_else(empty, |schema| schema.written.clone());
            fields.fixed("requestedSchema", schema);
            InputKind::Form
        }
    }
}

fn sampling(written: &Sampling, fields: &mut ObjectBuilder, at: Span, context: &mut CompileContext<'_>) {
    let messages = match (&written.messages, &written.prompt) {
        (Some(messages), _) => TemplateValue::list(messages.iter().map(|message| context.value(at, message)).collect()),
        (None, Some(prompt)) => {
            let text = context.text_template(prompt.at, prompt);
            let block = vec![("type".to_owned(), TemplateValue::Fixed("text".into())), ("text".to_owned(), text)];
            let message = vec![
                ("role".to_owned(), TemplateValue::Fixed("user".into())),
                ("content".to_owned(), TemplateValue::fields(block)),
            ];
            TemplateValue::list(vec![TemplateValue::fields(message)])
        }
        (None, None) => TemplateValue::Fixed(json!([])),
    };
    fields.template("messages", messages);
    if let Some(system_prompt) = &written.system_prompt {
        let system_prompt = context.text_template(system_prompt.at, system_prompt);
        fields.template("systemPrompt", system_prompt);
    }
    fields.fixed("maxTokens", written.max_tokens);
    for (key, value) in written.more.iter().flatten() {
        let value = context.value(at, value);
        fields.template(key, value);
    }
}

/// Whether the client gets input requests as JSON-RPC requests of the server.
pub(in crate::answer) fn supports_server_requests(context: &RequestContext) -> bool {
    context.era() == Era::Legacy
}

/// Whether a form has fields that exist only since 2025-11-25: lists, and choices with titles.
fn has_enum_fields(schema: &Value) -> bool {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.is_some_and(|fields| fields.values().any(is_choice))
}

fn is_choice(field: &Value) -> bool {
    field["type"] == "array" || field.get("oneOf").is_some()
}

/// Removes the fields that exist only since 2025-11-25. A choice of one value with titles becomes the older form.
fn strip_choices(schema: &mut Value) {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    fields.values_mut().for_each(titles_to_enum_names);
    let removed: Vec<String> = fields.iter().filter(|(_, it)| is_choice(it)).map(|(name, _)| name.clone()).collect();
    fields.retain(|name, _| !removed.contains(name));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !removed.iter().any(|it| name == it));
    }
}

/// ```text
/// {"oneOf": [{"const": "a", "title": "A"}]} ──► {"enum": ["a"], "enumNames": ["A"]}
/// ```
fn titles_to_enum_names(field: &mut Value) {
    let choices = field.get("oneOf").and_then(Value::as_array).filter(|choices| !choices.is_empty());
    let Some(choices) = choices else { return };
    let text = |choice: &Value, key: &str| choice.get(key).filter(|it| it.is_string()).cloned();
    let named: Option<Vec<(Value, Value)>> = choices
        .iter()
        .map(|choice| {
            let word = text(choice, "const")?;
            let title = text(choice, "title").unwrap_or_else(|| word.clone());
            Some((word, title))
        })
        .collect();
    if let (Some(named), Value::Object(members)) = (named, field) {
        let (words, titles): (Vec<Value>, Vec<Value>) = named.into_iter().unzip();
        // The new members replace the field's members in place.
        *members = std::mem::take(members)
            .into_iter()
            .flat_map(|(key, value)| match key.as_str() {
                "oneOf" => {
                    vec![("enum".to_owned(), words.clone().into()), ("enumNames".to_owned(), titles.clone().into())]
                }
                _ => vec![(key, value)],
            })
            .collect::<Map<_, _>>();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_titled_choice_gets_the_older_form_and_lists_are_stripped() {
        let one = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}], "title": "One"});
        let mut schema = json!({"type": "object", "properties": {
            "one": one, "several": {"type": "array", "items": {"enum": ["a"]}}, "odd": {"oneOf": [{"const": 1}]}, "plain": {"type": "string"},
        }, "required": ["one", "several", "odd"]});
        strip_choices(&mut schema);
        let one = json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"], "title": "One"});
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {"one": one, "plain": {"type": "string"}}, "required": ["one"]})
        );
    }
}
