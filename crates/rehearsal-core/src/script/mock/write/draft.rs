//! The draft of a mock file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::step::{DraftStep, milliseconds};
use super::{listed, said};
use crate::json::Segment;
use crate::message::ErrorReply;
use crate::protocol::Revision;
use crate::script::mock::Validate;
use crate::script::page::{Element, Key, Node, written};
use crate::shape::misspelt;

/// The draft of a mock file. All values are in their wire form, and are converted when the file is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
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
    pub tools: Vec<Offer>,
    /// The resources.
    pub resources: Vec<Offer>,
    /// The resource templates.
    pub resource_templates: Vec<Offer>,
    /// The prompts.
    pub prompts: Vec<Offer>,
    /// The answers to requests of other methods, by method.
    pub requests: Vec<(String, Vec<DraftAnswer>)>,
}

/// A tool, prompt, resource or resource template, with its answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The comment above it.
    pub comment: String,
    /// The element of the list.
    pub listed: Value,
    /// Whether it must be listed unchanged in every version; the file then contains its wire form.
    pub exactly: bool,
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
    pub says: Says,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Says {
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
pub(super) enum Kind {
    Tool,
    Resource,
    ResourceTemplate,
    Prompt,
    Request,
}

impl Kind {
    /// The key of an item's name on the wire.
    pub(super) fn name_on_the_wire(self) -> &'static str {
        match self {
            Kind::Tool | Kind::Prompt => "name",
            Kind::Resource => "uri",
            Kind::ResourceTemplate => "uriTemplate",
            Kind::Request => "method",
        }
    }

    /// The key of an item's name in a file.
    pub(super) fn name_in_file(self) -> &'static str {
        match self {
            Kind::Tool | Kind::Prompt => "name",
            Kind::Resource => "uri",
            Kind::ResourceTemplate => "uri_template",
            Kind::Request => "method",
        }
    }
}

impl Offer {
    /// Builds an offer from its listed form.
    pub fn new(listed: Value, answers: Vec<DraftAnswer>) -> Offer {
        Offer { comment: String::new(), listed, exactly: false, hidden: false, complete: Vec::new(), answers }
    }
}

impl DraftAnswer {
    /// Builds an answer without conditions.
    pub fn new(says: Says) -> DraftAnswer {
        DraftAnswer {
            comment: String::new(),
            name: None,
            when: None,
            given: None,
            times: None,
            delay: None,
            steps: Vec::new(),
            says,
        }
    }

    /// Whether the answer has nothing but its body.
    fn is_bare(&self) -> bool {
        let DraftAnswer { comment, name, when, given, times, delay, steps, says: _ } = self;
        let nothing = (comment.is_empty(), name, when, given, times, delay, steps.is_empty());
        matches!(nothing, (true, None, None, None, None, None, true))
    }
}

impl Draft {
    /// The text of the file, which [`parse`](crate::script::mock::parse) reads.
    pub fn written(&self) -> String {
        let mut keys = Vec::new();
        if let Some(server) = &self.server {
            keys.push(Key::new("server", listed::implementation(server)));
        }
        if let Some(instructions) = &self.instructions {
            keys.push(Key::new("instructions", instructions.as_str()));
        }
        if !self.versions.is_empty() {
            let versions: Vec<_> = self.versions.iter().map(|revision| revision.as_str()).collect();
            let comment = "The versions of the protocol that are spoken; all of them without this line.".to_owned();
            keys.push(Key { comment, ..Key::new("versions", json!(versions)) });
        }
        keys.extend(self.capabilities_written());
        if !self.refuses.is_empty() {
            let refused = self.refuses.iter().map(|(method, error)| (method.clone(), refusal(error)));
            keys.push(Key::new("refuses", Value::Object(refused.collect())));
        }
        if let Some(validate) = self.validate {
            keys.push(Key::new("validate", validate.name()));
        }
        let lists = [
            ("tools", Kind::Tool, &self.tools),
            ("resources", Kind::Resource, &self.resources),
            ("resource_templates", Kind::ResourceTemplate, &self.resource_templates),
            ("prompts", Kind::Prompt, &self.prompts),
        ];
        for (name, kind, offers) in lists.into_iter().filter(|(_, _, offers)| !offers.is_empty()) {
            let element = |offer: &Offer| Element { comment: offer.comment.clone(), node: offered(offer, kind) };
            keys.push(Key::new(name, Node::List(offers.iter().map(element).collect())));
        }
        if !self.requests.is_empty() {
            let request = |(method, answers): &(String, Vec<DraftAnswer>)| {
                let answers = answers.iter().map(|it| answer(it, Kind::Request, &Value::Null)).collect();
                let keys = vec![Key::new("method", method.as_str()), Key::new("answers", Node::List(answers))];
                Element { comment: String::new(), node: Node::Keys(keys) }
            };
            keys.push(Key::new("requests", Node::List(self.requests.iter().map(request).collect())));
        }
        if let Some(first) = keys.first_mut() {
            first.comment = [self.comment.as_str(), first.comment.as_str()].join("\n").trim_end().to_owned();
        }
        written(&keys)
    }
}

fn offered(offer: &Offer, kind: Kind) -> Node {
    let words = if offer.exactly { None } else { listed::in_words(&offer.listed, kind) };
    let known = match words {
        Some(_) => Cow::Borrowed(&offer.listed),
        // For an item that is listed in its wire form, the file needs only the name.
        None => Cow::Owned(name_alone(&offer.listed, kind)),
    };
    let mut keys: Vec<Key> = match words {
        Some(words) => words.into_iter().map(|(name, value)| field(&name, value, offer)).collect(),
        None => {
            let name = offer.listed.get(kind.name_on_the_wire()).cloned().unwrap_or_default();
            let mut keys = vec![Key::new(kind.name_in_file(), name), Key::new("listed", offer.listed.clone())];
            let beside = listed::beside(&offer.listed, kind, &offer.complete);
            keys.extend(beside.map(|(name, value)| field(name, value, offer)));
            keys
        }
    };
    if offer.hidden {
        keys.push(Key::new("hidden", true));
    }
    if kind == Kind::ResourceTemplate && !offer.complete.is_empty() {
        let complete: Map<_, _> = offer.complete.iter().map(|(name, all)| (name.clone(), json!(all))).collect();
        keys.push(Key::new("complete", Value::Object(complete)));
    }
    match &offer.answers[..] {
        [only] if only.is_bare() && kind != Kind::Tool => {
            let words = says(&only.says, kind, &known);
            let own = match kind {
                Kind::Tool | Kind::Request => &[][..],
                Kind::Resource | Kind::ResourceTemplate => &["text", "blob"],
                Kind::Prompt => &["messages"],
            };
            if words.iter().all(|key| own.contains(&key.name.as_str())) {
                keys.extend(words);
                return Node::Keys(keys);
            }
            keys.push(Key::new("answers", Node::List(vec![answer(only, kind, &known)])));
        }
        answers => {
            let answers = answers.iter().map(|it| answer(it, kind, &known)).collect();
            keys.push(Key::new("answers", Node::List(answers)));
        }
    }
    Node::Keys(keys)
}

fn name_alone(listed: &Value, kind: Kind) -> Value {
    let name = kind.name_on_the_wire();
    json!({name: listed.get(name).cloned().unwrap_or_default()})
}

/// A key of an item; the arguments of a prompt get their completions.
fn field(name: &str, value: Value, offer: &Offer) -> Key {
    let mut value = value;
    if name == "arguments" {
        for argument in value.as_array_mut().into_iter().flatten() {
            let complete = offer.complete.iter().find(|(name, _)| argument.get("name").is_some_and(|it| it == name));
            if let Some((_, all)) = complete {
                argument["complete"] = json!(all);
            }
        }
    }
    Key::new(name, value)
}

fn answer(answer: &DraftAnswer, kind: Kind, listed: &Value) -> Element {
    let mut keys = Vec::new();
    if let Some(name) = &answer.name {
        keys.push(Key::new("name", name.as_str()));
    }
    let matchers = [("when", &answer.when), ("given", &answer.given)];
    keys.extend(matchers.into_iter().filter_map(|(name, matcher)| Some(Key::new(name, matcher.clone()?))));
    if let Some(times) = answer.times {
        keys.push(Key::new("times", times));
    }
    if let Some(delay) = answer.delay {
        keys.push(Key::new("delay", milliseconds(delay)));
    }
    if !answer.steps.is_empty() {
        let steps: Vec<_> = answer.steps.iter().map(DraftStep::written).collect();
        keys.push(Key::new("steps", steps));
    }
    keys.extend(says(&answer.says, kind, listed).into_iter().map(|key| in_answer(key, listed)));
    Element { comment: answer.comment.clone(), node: Node::Keys(keys) }
}

/// Converts a key with a resource's contents to a key of an answer.
fn in_answer(key: Key, listed: &Value) -> Key {
    let Key { comment, name, node: Node::Value(blob) } = key else { return key };
    if name != "blob" {
        return Key { comment, name, node: Node::Value(blob) };
    }
    let mut contents = json!({"uri": listed["uri"], "blob": blob});
    if let Some(kind) = listed.get("mimeType") {
        contents["mime_type"] = kind.clone();
    }
    Key::new("contents", json!([contents]))
}

fn says(says: &Says, kind: Kind, listed: &Value) -> Vec<Key> {
    let keys = |said: Map<String, Value>| said.into_iter().map(|(name, value)| Key::new(&name, value)).collect();
    match says {
        Says::Result(result) => keys(said::result(&super::literal_value(result), kind, listed)),
        Says::Template(result) => keys(said::result(result, kind, listed)),
        Says::Error(error) => {
            let mut said = refusal(error);
            said["message"] = super::literal(&error.message).into();
            if let Some(data) = said.get_mut("data") {
                *data = super::literal_value(data);
            }
            vec![Key::new("error", said)]
        }
        Says::InTurn(answers) => {
            let answers = answers.iter().map(|it| answer(it, kind, listed)).collect();
            vec![Key::new("in_turn", Node::List(answers))]
        }
    }
}

/// An error in its wire form, without members that a file cannot have.
fn refusal(error: &ErrorReply) -> Value {
    ErrorReply { more: None, ..error.clone() }.object().into()
}

impl Draft {
    /// Capabilities that the check would report as misspelled cannot be in a file, so a comment contains them.
    fn capabilities_written(&self) -> Option<Key> {
        let (capabilities, slips) = spelt(&self.capabilities);
        let comment = match slips.is_empty() {
            true => String::new(),
            false => format!("It also declares, in words that are nearly the protocol's: {}", slips.join(", ")),
        };
        (!self.capabilities.is_empty()).then(|| Key { comment, ..Key::new("capabilities", capabilities) })
    }
}

/// The capabilities without those that the check would report as misspelled, and the paths of these.
fn spelt(capabilities: &Map<String, Value>) -> (Value, Vec<String>) {
    let mut capabilities = Value::Object(capabilities.clone());
    let slips = misspelt("ServerCapabilities", &capabilities);
    slips.iter().for_each(|(path, _)| forget(&mut capabilities, path.segments()));
    (capabilities, slips.iter().map(|(path, _)| path.to_string()).collect())
}

fn forget(value: &mut Value, path: &[Segment]) {
    match path {
        [Segment::Key(key)] => drop(value.as_object_mut().and_then(|map| map.shift_remove(key))),
        [Segment::Key(key), rest @ ..] => value.get_mut(key).into_iter().for_each(|inner| forget(inner, rest)),
        [] | [Segment::Index(_), ..] => {}
    }
}
