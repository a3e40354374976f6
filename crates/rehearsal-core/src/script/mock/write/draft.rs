//! The draft of a mock file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::step::{DraftStep, milliseconds};
use super::{items, result};
use crate::json::Segment;
use crate::message::ErrorReply;
use crate::protocol::Revision;
use crate::script::mock::Validate;
use crate::script::yaml::{Element, YamlKey, YamlNode, to_yaml};
use crate::shape::misspelled_keys;

/// The draft of a mock file. All values are in their wire form, and are converted when the file is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MockDraft {
    /// The comment at the top of the file.
    pub comment: String,
    /// The server info: `name`, `version` and so on.
    pub server: Option<Value>,
    /// The instructions for the model.
    pub instructions: Option<String>,
    /// The served versions; empty for all of them.
    pub versions: Vec<Revision>,
    /// Capabilities that differ from those that follow from the offers; `null` removes one.
    pub capabilities: Map<String, Value>,
    /// The errors of refused methods.
    pub refuses: BTreeMap<String, ErrorReply>,
    /// What happens to arguments and answers that do not match their schema; `None` for the default.
    pub validate: Option<Validate>,
    /// The tools.
    pub tools: Vec<DraftItem>,
    /// The resources.
    pub resources: Vec<DraftItem>,
    /// The resource templates.
    pub resource_templates: Vec<DraftItem>,
    /// The prompts.
    pub prompts: Vec<DraftItem>,
    /// The answers to requests of other methods, by method.
    pub requests: Vec<(String, Vec<DraftAnswer>)>,
}

/// A tool, prompt, resource or resource template, with its answers.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftItem {
    /// The comment above it.
    pub comment: String,
    /// The element of the list.
    pub listed: Value,
    /// Whether it must be listed unchanged in every version; the file then contains its wire form.
    pub verbatim: bool,
    /// Whether it answers without being listed.
    pub hidden: bool,
    /// The completions of each argument, or variable of a template.
    pub complete: Vec<(String, Vec<String>)>,
    /// The answers, in order; the last one should always match.
    pub answers: Vec<DraftAnswer>,
}

/// One answer with its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftAnswer {
    /// The comment above it.
    pub comment: String,
    /// Its name in reports.
    pub name: Option<String>,
    /// A matcher for the arguments, in its written form; `None` matches any arguments.
    pub when: Option<Value>,
    /// Matchers for everything else, by key: `{"call": 2}`.
    pub given: Option<Value>,
    /// How often it is used before the next one.
    pub times: Option<u64>,
    /// The delay before it.
    pub delay: Option<Duration>,
    /// The steps before it.
    pub steps: Vec<DraftStep>,
    /// The body.
    pub body: DraftBody,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum DraftBody {
    /// A result in its wire form; text that looks like a template is literal.
    Result(Value),
    /// A result whose texts are templates.
    Template(Value),
    /// An error.
    Error(ErrorReply),
    /// Several answers in turn; the last one is repeated.
    InTurn(Vec<DraftAnswer>),
}

/// The kind of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferKind {
    Tool,
    Resource,
    ResourceTemplate,
    Prompt,
    Request,
}

impl OfferKind {
    /// The key of an item's name on the wire.
    pub(super) fn wire_name_key(self) -> &'static str {
        match self {
            OfferKind::Tool | OfferKind::Prompt => "name",
            OfferKind::Resource => "uri",
            OfferKind::ResourceTemplate => "uriTemplate",
            OfferKind::Request => "method",
        }
    }

    /// The key of an item's name in a file.
    pub(super) fn file_name_key(self) -> &'static str {
        match self {
            OfferKind::Tool | OfferKind::Prompt => "name",
            OfferKind::Resource => "uri",
            OfferKind::ResourceTemplate => "uri_template",
            OfferKind::Request => "method",
        }
    }
}

impl DraftItem {
    /// Builds an offer from its listed form.
    pub fn new(listed: Value, answers: Vec<DraftAnswer>) -> DraftItem {
        DraftItem { comment: String::new(), listed, verbatim: false, hidden: false, complete: Vec::new(), answers }
    }
}

impl DraftAnswer {
    /// Builds an answer without conditions.
    pub fn new(body: DraftBody) -> DraftAnswer {
        DraftAnswer {
            comment: String::new(),
            name: None,
            when: None,
            given: None,
            times: None,
            delay: None,
            steps: Vec::new(),
            body,
        }
    }

    /// Whether the answer has nothing but its body.
    fn is_bare(&self) -> bool {
        let DraftAnswer { comment, name, when, given, times, delay, steps, body: _ } = self;
        let nothing = (comment.is_empty(), name, when, given, times, delay, steps.is_empty());
        matches!(nothing, (true, None, None, None, None, None, true))
    }
}

impl MockDraft {
    /// The text of the file, which [`parse`](crate::script::mock::parse) reads.
    pub fn to_text(&self) -> String {
        let mut keys = Vec::new();
        if let Some(server) = &self.server {
            keys.push(YamlKey::new("server", items::implementation(server)));
        }
        if let Some(instructions) = &self.instructions {
            keys.push(YamlKey::new("instructions", instructions.as_str()));
        }
        if !self.versions.is_empty() {
            let versions: Vec<_> = self.versions.iter().map(|revision| revision.as_str()).collect();
            let comment = "The supported protocol versions; without this key, all of them.".to_owned();
            keys.push(YamlKey { comment, ..YamlKey::new("versions", json!(versions)) });
        }
        keys.extend(self.capabilities_key());
        if !self.refuses.is_empty() {
            let refused = self.refuses.iter().map(|(method, error)| (method.clone(), refusal(error)));
            keys.push(YamlKey::new("refuses", Value::Object(refused.collect())));
        }
        if let Some(validate) = self.validate {
            keys.push(YamlKey::new("validate", validate.name()));
        }
        let lists = [
            ("tools", OfferKind::Tool, &self.tools),
            ("resources", OfferKind::Resource, &self.resources),
            ("resource_templates", OfferKind::ResourceTemplate, &self.resource_templates),
            ("prompts", OfferKind::Prompt, &self.prompts),
        ];
        for (name, kind, offers) in lists.into_iter().filter(|(_, _, offers)| !offers.is_empty()) {
            let element = |offer: &DraftItem| Element { comment: offer.comment.clone(), node: item_node(offer, kind) };
            keys.push(YamlKey::new(name, YamlNode::List(offers.iter().map(element).collect())));
        }
        if !self.requests.is_empty() {
            let request = |(method, answers): &(String, Vec<DraftAnswer>)| {
                let answers = answers.iter().map(|it| answer(it, OfferKind::Request, &Value::Null)).collect();
                let keys =
                    vec![YamlKey::new("method", method.as_str()), YamlKey::new("answers", YamlNode::List(answers))];
                Element { comment: String::new(), node: YamlNode::Keys(keys) }
            };
            keys.push(YamlKey::new("requests", YamlNode::List(self.requests.iter().map(request).collect())));
        }
        if let Some(first) = keys.first_mut() {
            first.comment = [self.comment.as_str(), first.comment.as_str()].join("\n").trim_end().to_owned();
        }
        to_yaml(&keys)
    }
}

fn item_node(offer: &DraftItem, kind: OfferKind) -> YamlNode {
    let entry = if offer.verbatim { None } else { items::item_keys(&offer.listed, kind) };
    let known = match entry {
        Some(_) => Cow::Borrowed(&offer.listed),
        // For an item that is listed in its wire form, the file needs only the name.
        None => Cow::Owned(name_alone(&offer.listed, kind)),
    };
    let mut keys: Vec<YamlKey> = match entry {
        Some(entry) => entry.into_iter().map(|(name, value)| field(&name, value, offer)).collect(),
        None => {
            let name = offer.listed.get(kind.wire_name_key()).cloned().unwrap_or_default();
            let mut keys = vec![YamlKey::new(kind.file_name_key(), name), YamlKey::new("listed", offer.listed.clone())];
            let extra = items::extra_keys(&offer.listed, kind, &offer.complete);
            keys.extend(extra.map(|(name, value)| field(name, value, offer)));
            keys
        }
    };
    if offer.hidden {
        keys.push(YamlKey::new("hidden", true));
    }
    if kind == OfferKind::ResourceTemplate && !offer.complete.is_empty() {
        let complete: Map<_, _> = offer.complete.iter().map(|(name, all)| (name.clone(), json!(all))).collect();
        keys.push(YamlKey::new("complete", Value::Object(complete)));
    }
    match &offer.answers[..] {
        [only] if only.is_bare() && kind != OfferKind::Tool => {
            let body = body_keys(&only.body, kind, &known);
            let own = match kind {
                OfferKind::Tool | OfferKind::Request => &[][..],
                OfferKind::Resource | OfferKind::ResourceTemplate => &["text", "blob"],
                OfferKind::Prompt => &["messages"],
            };
            if body.iter().all(|key| own.contains(&key.name.as_str())) {
                keys.extend(body);
                return YamlNode::Keys(keys);
            }
            keys.push(YamlKey::new("answers", YamlNode::List(vec![answer(only, kind, &known)])));
        }
        answers => {
            let answers = answers.iter().map(|it| answer(it, kind, &known)).collect();
            keys.push(YamlKey::new("answers", YamlNode::List(answers)));
        }
    }
    YamlNode::Keys(keys)
}

fn name_alone(listed: &Value, kind: OfferKind) -> Value {
    let name = kind.wire_name_key();
    json!({name: listed.get(name).cloned().unwrap_or_default()})
}

/// A key of an item; the arguments of a prompt get their completions.
fn field(name: &str, value: Value, offer: &DraftItem) -> YamlKey {
    let mut value = value;
    if name == "arguments" {
        for argument in value.as_array_mut().into_iter().flatten() {
            let complete = offer.complete.iter().find(|(name, _)| argument.get("name").is_some_and(|it| it == name));
            if let Some((_, all)) = complete {
                argument["complete"] = json!(all);
            }
        }
    }
    YamlKey::new(name, value)
}

fn answer(answer: &DraftAnswer, kind: OfferKind, listed: &Value) -> Element {
    let mut keys = Vec::new();
    if let Some(name) = &answer.name {
        keys.push(YamlKey::new("name", name.as_str()));
    }
    let matchers = [("when", &answer.when), ("given", &answer.given)];
    keys.extend(matchers.into_iter().filter_map(|(name, matcher)| Some(YamlKey::new(name, matcher.clone()?))));
    if let Some(times) = answer.times {
        keys.push(YamlKey::new("times", times));
    }
    if let Some(delay) = answer.delay {
        keys.push(YamlKey::new("delay", milliseconds(delay)));
    }
    if !answer.steps.is_empty() {
        let steps: Vec<_> = answer.steps.iter().map(DraftStep::to_value).collect();
        keys.push(YamlKey::new("steps", steps));
    }
    keys.extend(body_keys(&answer.body, kind, listed).into_iter().map(|key| in_answer(key, kind, listed)));
    Element { comment: answer.comment.clone(), node: YamlNode::Keys(keys) }
}

/// Converts a key with a resource's contents to a key of an answer.
fn in_answer(key: YamlKey, kind: OfferKind, listed: &Value) -> YamlKey {
    let YamlKey { comment, name, node: YamlNode::Value(blob) } = key else { return key };
    if name != "blob" {
        return YamlKey { comment, name, node: YamlNode::Value(blob) };
    }
    let uri = if kind == OfferKind::ResourceTemplate { json!("{{ uri }}") } else { listed["uri"].clone() };
    let mut contents = json!({"uri": uri, "blob": blob});
    if let Some(mime_type) = listed.get("mimeType") {
        contents["mime_type"] = mime_type.clone();
    }
    YamlKey::new("contents", json!([contents]))
}

fn body_keys(body: &DraftBody, kind: OfferKind, listed: &Value) -> Vec<YamlKey> {
    let keys = |keys: Map<String, Value>| keys.into_iter().map(|(name, value)| YamlKey::new(&name, value)).collect();
    match body {
        DraftBody::Result(result) => keys(result::result(&super::escape_value(result), kind, listed)),
        DraftBody::Template(result) => keys(result::result(result, kind, listed)),
        DraftBody::Error(error) => {
            let mut keys = refusal(error);
            keys["message"] = super::escape_template(&error.message).into();
            if let Some(data) = keys.get_mut("data") {
                *data = super::escape_value(data);
            }
            vec![YamlKey::new("error", keys)]
        }
        DraftBody::InTurn(answers) => {
            let answers = answers.iter().map(|it| answer(it, kind, listed)).collect();
            vec![YamlKey::new("in_turn", YamlNode::List(answers))]
        }
    }
}

/// An error in its wire form, without members that a file cannot have.
fn refusal(error: &ErrorReply) -> Value {
    ErrorReply { more: None, ..error.clone() }.object().into()
}

impl MockDraft {
    /// Capabilities that the check would report as misspelled cannot be in a file, so a comment contains them.
    fn capabilities_key(&self) -> Option<YamlKey> {
        let (capabilities, misspelled) = split_misspelled(&self.capabilities);
        let comment = match misspelled.is_empty() {
            true => String::new(),
            false => {
                format!("It also declares these, which look like misspelled capabilities: {}", misspelled.join(", "))
            }
        };
        (!self.capabilities.is_empty()).then(|| YamlKey { comment, ..YamlKey::new("capabilities", capabilities) })
    }
}

/// The capabilities without those that the check would report as misspelled, and the paths of these.
fn split_misspelled(capabilities: &Map<String, Value>) -> (Value, Vec<String>) {
    let mut capabilities = Value::Object(capabilities.clone());
    let misspelled = misspelled_keys("ServerCapabilities", &capabilities);
    misspelled.iter().for_each(|(path, _)| remove_at(&mut capabilities, path.segments()));
    (capabilities, misspelled.iter().map(|(path, _)| path.to_string()).collect())
}

fn remove_at(value: &mut Value, path: &[Segment]) {
    match path {
        [Segment::Key(key)] => drop(value.as_object_mut().and_then(|map| map.shift_remove(key))),
        [Segment::Key(key), rest @ ..] => value.get_mut(key).into_iter().for_each(|inner| remove_at(inner, rest)),
        [] | [Segment::Index(_), ..] => {}
    }
}
