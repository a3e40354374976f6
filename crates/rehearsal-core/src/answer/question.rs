//! What only the client knows: elicitation, sampling, roots.

use serde_json::{Map, Value, json};

use super::content::{Fields, Workshop};
use super::given::meant;
use super::scene::Wording;
use super::shape::{ResultType, envelope};
use super::template::{Draft, Scope, Templates};
use super::{Asked, Terms};
use crate::json::RawJson;
use crate::matcher::Schema;
use crate::message::{ErrorReply, Message, Method, RequestId};
use crate::protocol::{Era, Revision, code, meta};
use crate::script::Span;
use crate::script::mock::{Ask, Elicitation, Sampling};
use crate::shape::{forget_unknown, may_be_said};

/// A question to the client, ready to be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What its answer is called.
    pub name: String,
    /// How it is asked: a request before 2026-07-28, an entry of `inputRequests` since.
    pub method: Method,
    /// With what; `null` where the server once asked without params.
    pub params: Value,
}

impl Question {
    /// The entry of `inputRequests`. Nobody tells how far its answer is, so it has no progress token.
    pub(super) fn input_request(&self) -> Value {
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

    /// The questions that `inputRequests` has.
    pub(super) fn requested(requests: Option<&Value>) -> Vec<Question> {
        let requests = requests.and_then(Value::as_object).into_iter().flatten();
        let question = |(name, request): (&String, &Value)| {
            let method = request.get("method").and_then(Value::as_str)?.into();
            let params = request.get("params").cloned().unwrap_or_default();
            Some(Question { name: name.clone(), method, params })
        };
        requests.filter_map(question).collect()
    }

    /// The request before 2026-07-28, with this in `_meta` beside what is there. Where it once had a progress token, its id is
    /// the new one.
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

    /// The capability that a client has to declare to be asked this.
    pub fn needs(method: &Method) -> Option<&'static str> {
        Asks::of(method, &Value::Null).map(Asks::capability)
    }

    /// The result that sends a client away until it knows, since 2026-07-28; with state alone where nothing is asked.
    pub fn input_required(questions: &[Question], state: Option<String>, asked: &Asked, info: &Value) -> RawJson {
        let mut result = json!({});
        if !questions.is_empty() {
            let requests = questions.iter().map(|question| (question.name.clone(), question.input_request()));
            result["inputRequests"] = Value::Object(requests.collect());
        }
        if let Some(state) = state {
            result["requestState"] = state.into();
        }
        envelope(&mut result, ResultType::InputRequired, asked.method.as_str(), asked.terms.revision, info);
        RawJson::from_value(&result)
    }

    /// A question that somebody else once asked in a version, for this client; `Err` says why it cannot be asked.
    pub fn adapted(mut self, terms: &Terms, from: Option<Revision>) -> Result<Question, String> {
        let is_same = from == Some(terms.revision);
        if let Some(asks) = Asks::of(&self.method, &self.params) {
            // What was asked in this version once can be asked in it, whatever the version says.
            let since = if is_same { Revision::V2024_11_05 } else { asks.since(None) };
            if let Some(objection) = asks.objection(since, terms) {
                return Err(objection.why);
            }
        }
        if is_same {
            return Ok(self);
        }
        if terms.revision < Revision::V2025_11_25
            && let Some(schema) = self.params.get_mut("requestedSchema")
        {
            forget_choices(schema);
        }
        let known = matches!(self.method.as_str(), "elicitation/create" | "sampling/createMessage" | "roots/list");
        if terms.era() == Era::Modern && !known {
            return Err(format!("nobody is asked {} since {}", self.method, Revision::V2026_07_28));
        }
        if terms.era() == Era::Legacy && !may_be_said(self.method.as_str(), terms.revision) {
            return Err(format!("nobody is asked {} in {}", self.method, terms.revision));
        }
        if self.method == Method::SAMPLING {
            said_to_model(&mut self.params, terms);
        }
        if self.params.get("mode").is_some_and(|mode| mode == "url")
            && terms.revision == Revision::V2025_11_25
            && self.params.get("elicitationId").is_none()
        {
            self.params["elicitationId"] = self.name.as_str().into();
        }
        if self.params.is_object() {
            let mut asked = json!({"method": self.method.as_str(), "params": self.params});
            forget_unknown("InputRequest", &mut asked, terms.revision);
            self.params = asked["params"].take();
        }
        Ok(self)
    }
}

/// What a model is asked, for a client that may know less than the one that was asked first.
fn said_to_model(params: &mut Value, terms: &Terms) {
    let Some(fields) = params.as_object_mut() else { return };
    let has_tools = terms.capabilities.get("sampling").is_some_and(|declared| declared.get("tools").is_some());
    if !has_tools {
        fields.shift_remove("tools");
        fields.shift_remove("toolChoice");
    }
    let Some(Value::Array(messages)) = fields.get_mut("messages") else { return };
    if terms.revision >= Revision::V2025_11_25 {
        return;
    }
    // One block a message, before 2025-11-25.
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
            Some("audio") => terms.revision >= Revision::V2025_03_26,
            Some(_) | None => true,
        };
        if !is_known {
            *content = json!({"type": "text", "text": content.to_string()});
        }
    }
}

/// A question as it was written.
#[derive(Debug)]
pub(super) struct QuestionDraft {
    pub(super) name: String,
    method: Method,
    /// What of a client it is for; `None` for what no capability is needed for.
    asks: Option<Asks>,
    params: Draft,
    wording: Wording,
    /// What the content of an accepted form must be.
    form: Option<Schema>,
    elicitation_id: Option<String>,
    /// The first version that has such a question.
    since: Revision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Form,
    Url,
    Model,
    Roots,
}

impl QuestionDraft {
    pub(super) fn compile(name: &str, ask: &Ask, at: Span, shop: &mut Workshop<'_>) -> QuestionDraft {
        let mut fields = Fields::new();
        let (mut form, mut elicitation_id) = (None, None);
        let asks = match ask {
            Ask::Request { method, params } => return QuestionDraft::exactly(name, method, params.as_ref(), at, shop),
            Ask::Elicitation(written) => {
                form = written.requested_schema.as_ref().and_then(|schema| meant(schema, shop.problems));
                elicitation_id = written.elicitation_id.clone();
                elicitation(written, &mut fields, at, shop)
            }
            Ask::Sampling(written) => {
                sampling(written, &mut fields, at, shop);
                Asks::Model
            }
            Ask::Roots => Asks::Roots,
        };
        let schema = match ask {
            Ask::Elicitation(written) => written.requested_schema.as_ref().map(|schema| &schema.written),
            Ask::Sampling(_) | Ask::Roots | Ask::Request { .. } => None,
        };
        QuestionDraft {
            name: name.to_owned(),
            method: asks.method(),
            asks: Some(asks),
            params: fields.finish(),
            wording: Wording::OfItsVersion,
            form,
            elicitation_id,
            since: asks.since(schema),
        }
    }

    /// A question that is asked in every version as it is written.
    fn exactly(
        name: &str,
        method: &str,
        params: Option<&Map<String, Value>>,
        at: Span,
        shop: &mut Workshop<'_>,
    ) -> QuestionDraft {
        let method = Method::from(method);
        let written = params.map_or(Value::Null, |params| Value::Object(params.clone()));
        QuestionDraft {
            name: name.to_owned(),
            asks: Asks::of(&method, &written),
            method,
            params: params.map_or(Draft::Fixed(Value::Null), |params| shop.object(at, params)),
            wording: Wording::AsWritten,
            form: written.get("requestedSchema").and_then(|schema| Schema::compile(schema).ok()),
            elicitation_id: None,
            since: Revision::V2024_11_05,
        }
    }

    /// The question for one request.
    pub(super) fn render(
        &self,
        revision: Revision,
        templates: &Templates,
        scope: &Scope<'_>,
    ) -> Result<Question, String> {
        let mut params = self.params.render(templates, scope)?;
        match (self.wording, self.asks) {
            (Wording::OfItsVersion, Some(Asks::Form)) if revision < Revision::V2025_11_25 => {
                params.as_object_mut().and_then(|params| params.shift_remove("mode"));
            }
            (Wording::OfItsVersion, Some(Asks::Url)) if revision == Revision::V2025_11_25 => {
                params["elicitationId"] = self.elicitation_id.as_deref().unwrap_or(&self.name).into();
            }
            (Wording::OfItsVersion | Wording::AsWritten, _) => {}
        }
        Ok(Question { name: self.name.clone(), method: self.method.clone(), params })
    }

    /// Why the client cannot be asked this.
    pub(super) fn objection(&self, terms: &Terms) -> Option<Objection> {
        self.asks?.objection(self.since, terms)
    }

    /// Whether an answer makes sense.
    pub(super) fn takes(&self, answer: &Value) -> bool {
        let Some(asks) = self.asks else { return true };
        match asks {
            Asks::Form => match answer.get("action").and_then(Value::as_str) {
                Some("accept") => {
                    let content = answer.get("content").filter(|content| content.is_object());
                    let fits = |content: &Value| self.form.as_ref().is_none_or(|form| form.is_valid(content));
                    content.map_or(self.form.is_none(), fits)
                }
                Some("decline" | "cancel") => true,
                Some(_) | None => false,
            },
            Asks::Url => matches!(answer.get("action").and_then(Value::as_str), Some("accept" | "decline" | "cancel")),
            Asks::Model => answer.get("content").is_some_and(|content| content.is_object() || content.is_array()),
            Asks::Roots => answer.get("roots").is_some_and(Value::is_array),
        }
    }
}

impl Asks {
    /// What of a client a question is for; `None` for what no capability is needed for.
    fn of(method: &Method, params: &Value) -> Option<Asks> {
        match method.as_str() {
            "elicitation/create" if params.get("mode").is_some_and(|mode| mode == "url") => Some(Asks::Url),
            "elicitation/create" => Some(Asks::Form),
            "sampling/createMessage" => Some(Asks::Model),
            "roots/list" => Some(Asks::Roots),
            _ => None,
        }
    }

    fn method(self) -> Method {
        match self {
            Asks::Form | Asks::Url => Method::ELICITATION,
            Asks::Model => Method::SAMPLING,
            Asks::Roots => Method::ROOTS_LIST,
        }
    }

    /// What a client has to declare.
    fn capability(self) -> &'static str {
        match self {
            Asks::Form | Asks::Url => "elicitation",
            Asks::Model => "sampling",
            Asks::Roots => "roots",
        }
    }

    /// The first version that has such a question, with this form where it is one.
    fn since(self, schema: Option<&Value>) -> Revision {
        match self {
            Asks::Form if schema.is_some_and(has_choices) => Revision::V2025_11_25,
            Asks::Form => Revision::V2025_06_18,
            Asks::Url => Revision::V2025_11_25,
            Asks::Model | Asks::Roots => Revision::V2024_11_05,
        }
    }

    /// Why the client cannot be asked this.
    fn objection(self, since: Revision, terms: &Terms) -> Option<Objection> {
        let capability = self.capability();
        if terms.revision < since {
            let why = format!("{capability} like this exists since {since}, and this client speaks {}", terms.revision);
            return Some(Objection { capability, mode: None, why });
        }
        let declared = terms.capabilities.get(capability).filter(|declared| declared.is_object());
        let mode = match self {
            // Since 2025-11-25 a client may take URLs but no forms; one that names neither takes forms.
            Asks::Form => {
                declared.filter(|modes| modes.get("url").is_some() && modes.get("form").is_none()).map(|_| "form")
            }
            Asks::Url => declared.filter(|modes| modes.get("url").is_none()).map(|_| "url"),
            Asks::Model | Asks::Roots => None,
        };
        (declared.is_none() || mode.is_some()).then(|| {
            let what = mode.map(|mode| format!(" for {mode}s")).unwrap_or_default();
            Objection {
                capability,
                mode,
                why: format!("this client did not declare the capability {capability}{what}"),
            }
        })
    }
}

/// Why a client cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objection {
    capability: &'static str,
    mode: Option<&'static str>,
    pub(super) why: String,
}

impl Objection {
    /// As the error of 2026-07-28; every objection names its capability in the data.
    pub(super) fn error(objections: &[Objection]) -> ErrorReply {
        let mut required = Map::new();
        for Objection { capability, mode, .. } in objections {
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

fn elicitation(written: &Elicitation, fields: &mut Fields, at: Span, shop: &mut Workshop<'_>) -> Asks {
    let message = shop.words(written.message.at, &written.message);
    match &written.url {
        Some(url) => {
            fields.fixed("mode", "url");
            fields.draft("message", message);
            let url = shop.words(at, url);
            fields.draft("url", url);
            Asks::Url
        }
        None => {
            if written.mode.is_some() {
                fields.fixed("mode", "form");
            }
            fields.draft("message", message);
            let empty = || json!({"type": "object", "properties": {}});
            let schema = written.requested_schema.as_ref().map_or_else(empty, |schema| schema.written.clone());
            fields.fixed("requestedSchema", schema);
            Asks::Form
        }
    }
}

fn sampling(written: &Sampling, fields: &mut Fields, at: Span, shop: &mut Workshop<'_>) {
    let messages = match (&written.messages, &written.prompt) {
        (Some(messages), _) => Draft::list(messages.iter().map(|message| shop.value(at, message)).collect()),
        (None, Some(prompt)) => {
            let text = shop.words(prompt.at, prompt);
            let block = vec![("type".to_owned(), Draft::Fixed("text".into())), ("text".to_owned(), text)];
            let message =
                vec![("role".to_owned(), Draft::Fixed("user".into())), ("content".to_owned(), Draft::fields(block))];
            Draft::list(vec![Draft::fields(message)])
        }
        (None, None) => Draft::Fixed(json!([])),
    };
    fields.draft("messages", messages);
    if let Some(system_prompt) = &written.system_prompt {
        let system_prompt = shop.words(system_prompt.at, system_prompt);
        fields.draft("systemPrompt", system_prompt);
    }
    fields.fixed("maxTokens", written.max_tokens);
    for (key, value) in written.more.iter().flatten() {
        let value = shop.value(at, value);
        fields.draft(key, value);
    }
}

/// Whether the client is asked by requests of ours.
pub(super) fn asks_at_once(terms: &Terms) -> bool {
    terms.era() == Era::Legacy
}

/// Whether a form lets somebody choose several things, or among things with titles: nobody could before 2025-11-25.
pub(super) fn has_choices(schema: &Value) -> bool {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.is_some_and(|fields| fields.values().any(is_choice))
}

fn is_choice(field: &Value) -> bool {
    field["type"] == "array" || field.get("oneOf").is_some()
}

/// A form without the fields that nobody had before 2025-11-25. A choice of one thing with a title is one in the words of then.
pub(super) fn forget_choices(schema: &mut Value) {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    fields.values_mut().for_each(name_choices);
    let forgotten: Vec<String> = fields.iter().filter(|(_, it)| is_choice(it)).map(|(name, _)| name.clone()).collect();
    fields.retain(|name, _| !forgotten.contains(name));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !forgotten.iter().any(|it| name == it));
    }
}

/// ```text
/// {"oneOf": [{"const": "a", "title": "A"}]} ──► {"enum": ["a"], "enumNames": ["A"]}
/// ```
fn name_choices(field: &mut Value) {
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
        // In their place.
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
    fn a_choice_with_titles_is_one_in_older_words_and_what_has_none_is_forgotten() {
        let one = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}], "title": "One"});
        let mut schema = json!({"type": "object", "properties": {
            "one": one, "several": {"type": "array", "items": {"enum": ["a"]}}, "odd": {"oneOf": [{"const": 1}]}, "plain": {"type": "string"},
        }, "required": ["one", "several", "odd"]});
        forget_choices(&mut schema);
        let one = json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"], "title": "One"});
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {"one": one, "plain": {"type": "string"}}, "required": ["one"]})
        );
    }
}
