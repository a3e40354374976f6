//! What a recording says about its server: who it is, what it offers, and what it answers to what.

use rehearsal_core::message::{ErrorReply, Method};
use serde_json::{Map, Value};

/// A server as its recordings show it. Everything is as it goes on the wire.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Who it says it is: `name`, `version` and so on.
    pub server: Map<String, Value>,
    /// What it tells the model about itself.
    pub instructions: Option<String>,
    /// What it declares.
    pub capabilities: Map<String, Value>,
    /// What it lists; of what was listed more than once, the last.
    pub tools: Listed,
    /// What it lists.
    pub resources: Listed,
    /// What it lists.
    pub resource_templates: Listed,
    /// What it lists.
    pub prompts: Listed,
    /// What it was asked for beyond that, each distinct request once, in the order in which they first came.
    pub requests: Vec<Request>,
    /// What could not be made use of, in words.
    pub left_out: Vec<String>,
}

/// What was listed of one kind.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Whether the list was ever asked for.
    pub was_asked: bool,
    /// What was in it.
    pub items: Vec<Value>,
}

/// A request that was made once or more often.
#[derive(Clone, Debug)]
pub struct Request {
    /// `tools/call`, `prompts/get`, `resources/read`, `completion/complete`, `resources/subscribe` or `resources/unsubscribe`.
    pub method: Method,
    /// With what, without what belongs to one conversation only.
    pub params: Value,
    /// All answers in the order in which they came.
    pub answers: Vec<Answered>,
}

/// One recorded answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// What the server said before it.
    pub before: Vec<Before>,
    /// The answer itself.
    pub said: Said,
}

/// A result or an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A result, without what belongs to one version only.
    Result(Map<String, Value>),
    /// A JSON-RPC error.
    Error(ErrorReply),
}

/// What a server said before it answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Before {
    /// A notification: progress, a log message, or any other.
    Told {
        /// Which.
        method: Method,
        /// With what, without tokens.
        params: Value,
    },
    /// It asked the client, in one round.
    Asked(Vec<Question>),
    /// It sent the client away without a question, since 2026-07-28.
    SentAway,
}

/// A question to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What it is called; the server's name for it since 2026-07-28.
    pub name: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Method,
    /// With what.
    pub params: Value,
}

impl Learned {
    /// The requests of a method, in order.
    pub fn requests_of(&self, method: &Method) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |request| request.method == *method)
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        let lists = [&self.tools, &self.resources, &self.resource_templates, &self.prompts];
        self.requests.is_empty() && lists.iter().all(|listed| listed.items.is_empty())
    }

    /// What the server is called.
    pub fn name(&self) -> &str {
        self.server.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or("recorded-server")
    }

    /// Its version.
    pub fn version(&self) -> &str {
        self.server.get("version").and_then(Value::as_str).unwrap_or("0.0.0")
    }
}

impl Listed {
    /// Takes in a page of a list; what has the same key is replaced. What is lost by that is given back, in words.
    pub(super) fn take(&mut self, page: &Value, list: &str, key: &str) -> Vec<String> {
        self.was_asked = true;
        let mut lost = Vec::new();
        for item in page.get(list).and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = item.get(key).and_then(Value::as_str) else {
                lost.push(format!("what is in `{list}` without a {key}"));
                continue;
            };
            match self.items.iter_mut().find(|known| known.get(key).and_then(Value::as_str) == Some(name)) {
                Some(known) if known == item => {}
                Some(known) => {
                    lost.push(format!("how {name} was listed before it changed"));
                    known.clone_from(item);
                }
                None => self.items.push(item.clone()),
            }
        }
        lost
    }

    /// The item with this value at a key.
    pub fn find(&self, key: &str, value: &str) -> Option<&Value> {
        self.items.iter().find(|item| item.get(key).and_then(Value::as_str) == Some(value))
    }
}

impl Request {
    /// The tool, prompt or resource that it is about.
    pub fn subject(&self) -> Option<&str> {
        let key = if self.method.as_str().starts_with("resources/") { "uri" } else { "name" };
        self.params.get(key)?.as_str()
    }

    /// What a tool or prompt was called with.
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
        self.params.get("arguments")?.as_object()
    }

    /// Whether some answer is a result, and not that a tool failed: some servers say so of a tool that they do not have.
    pub fn succeeded(&self) -> bool {
        let failed = |result: &Map<String, Value>| result.get("isError").is_some_and(|failed| failed == true);
        self.answers.iter().any(|answer| matches!(&answer.said, Said::Result(result) if !failed(result)))
    }
}
