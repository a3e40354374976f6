//! What a recording says about its server: who it is, what it offers, and what it answers to what.

use std::collections::{BTreeMap, BTreeSet};

use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::{Era, Revision};
use serde_json::{Map, Value};

use super::declared::Declared;
use super::listed::Listed;
use super::looked_at::is_own;

/// A server as its recordings show it. Everything is as it goes on the wire.
#[derive(Clone, Debug)]
pub struct Learned {
    /// Who it says it is, in the newest version: `name`, `version` and so on.
    pub server: Map<String, Value>,
    /// The same in each version whose handshake said so.
    pub servers: BTreeMap<Revision, Map<String, Value>>,
    /// What it tells the model about itself.
    pub instructions: Option<String>,
    /// What it declares.
    pub capabilities: Declared,
    /// What it lists.
    pub tools: Listed,
    /// What it lists.
    pub resources: Listed,
    /// What it lists.
    pub resource_templates: Listed,
    /// What it lists.
    pub prompts: Listed,
    /// The newest version with a handshake that it speaks, where it was asked for a newer one.
    pub newest_legacy: Option<Revision>,
    /// The versions that it says it speaks, since 2026-07-28.
    pub supported_versions: Option<Value>,
    /// Whether it says with each result who it is, since 2026-07-28.
    pub names_itself: bool,
    /// Whether it was told from which level on to log, and did as told.
    pub takes_levels: bool,
    /// Methods that it always refused, each with the same error.
    pub refuses: BTreeMap<String, ErrorReply>,
    /// What it was asked for beyond that, each distinct request once, in the order in which they first came.
    pub requests: Vec<Request>,
    /// What could not be made use of, in words.
    pub left_out: Vec<String>,
}

/// A request that was made once or more often.
#[derive(Clone, Debug)]
pub struct Request {
    /// `tools/call`, `prompts/get`, `resources/read`, `completion/complete`, `resources/subscribe`, `resources/unsubscribe` or
    /// one of the server's own.
    pub method: Method,
    /// With what, without what belongs to one conversation only.
    pub params: Value,
    /// All answers in the order in which they came.
    pub answers: Vec<Answered>,
}

/// One recorded answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// What the server said before it.
    pub before: Vec<Before>,
    /// The answer itself.
    pub said: Said,
    /// The version in which it was given, where that is known.
    pub revision: Option<Revision>,
    /// Whether clients that were sent away before it were given state; `None` where nobody was.
    pub request_state: Option<bool>,
}

impl Answered {
    /// Whether another answer says the same, in whatever version.
    pub fn says_the_same(&self, other: &Answered) -> bool {
        let states = self.request_state.zip(other.request_state);
        self.before == other.before && self.said == other.said && states.is_none_or(|(one, other)| one == other)
    }
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
        /// Whether the client had not asked for it: a log message below the level that it wanted, or a change of a resource that
        /// it had not subscribed to.
        unwanted: bool,
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
    /// Whether the server went on without an answer.
    pub refused: bool,
}

impl Default for Learned {
    fn default() -> Learned {
        Learned {
            server: Map::new(),
            servers: BTreeMap::new(),
            instructions: None,
            capabilities: Declared::default(),
            tools: Listed::new("tools", "name"),
            resources: Listed::new("resources", "uri"),
            resource_templates: Listed::new("resourceTemplates", "uriTemplate"),
            prompts: Listed::new("prompts", "name"),
            newest_legacy: None,
            supported_versions: None,
            names_itself: false,
            takes_levels: false,
            refuses: BTreeMap::new(),
            requests: Vec::new(),
            left_out: Vec::new(),
        }
    }
}

impl Learned {
    /// Its lists.
    pub(super) fn lists(&self) -> [&Listed; 4] {
        [&self.tools, &self.resources, &self.resource_templates, &self.prompts]
    }

    /// The same, to be changed.
    pub(super) fn lists_mut(&mut self) -> [&mut Listed; 4] {
        [&mut self.tools, &mut self.resources, &mut self.resource_templates, &mut self.prompts]
    }

    /// How many items a page of every list has, where all of them agree on that; `None` where nothing comes in pages.
    pub(super) fn page_size(&self) -> Option<usize> {
        let lists = self.lists();
        let sizes: BTreeSet<_> = lists.iter().flat_map(|listed| listed.pages()).copied().collect();
        let [size] = sizes.into_iter().collect::<Vec<_>>()[..] else { return None };
        let fits = |listed: &&Listed| !listed.pages().is_empty() || listed.items.len() <= size;
        (size > 0 && lists.iter().all(fits)).then_some(size)
    }

    /// The requests of a method, in order.
    pub fn requests_of(&self, method: &Method) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |request| request.method == *method)
    }

    /// The error that a method was always refused with, whatever was asked.
    pub(super) fn always_refused(&self, method: &Method) -> Option<&ErrorReply> {
        let mut answers = self.requests_of(method).flat_map(|request| &request.answers).map(|answer| match answer {
            Answered { before, said: Said::Error(error), .. } if before.is_empty() => Some(error),
            Answered { .. } => None,
        });
        let first = answers.next()??;
        answers.all(|other| other == Some(first)).then_some(first)
    }

    /// Takes methods of its own that were always refused for refused, whatever they will be asked.
    pub(super) fn refuse_own(&mut self) {
        let own: Vec<_> = self.requests.iter().map(|request| request.method.clone()).filter(is_own).collect();
        for method in own {
            if let Some(error) = self.always_refused(&method).cloned() {
                self.refuses.insert(method.as_str().to_owned(), error);
                self.requests.retain(|request| request.method != method);
            }
        }
    }

    /// The errors that it answered with.
    pub(super) fn errors(&self) -> impl Iterator<Item = &ErrorReply> {
        let answers = self.requests.iter().flat_map(|request| &request.answers);
        answers.filter_map(|answer| match &answer.said {
            Said::Error(error) => Some(error),
            Said::Result(_) => None,
        })
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.lists().iter().all(|listed| listed.items.is_empty())
    }

    /// What it said about itself that no version knows, in one of these eras, in words.
    pub(super) fn own_of_server(&self, eras: &[Era]) -> BTreeSet<String> {
        const KNOWN: [&str; 6] = ["name", "title", "version", "description", "icons", "websiteUrl"];
        let servers = self.servers.iter().filter(|(revision, _)| eras.contains(&revision.era()));
        let own = servers.flat_map(|(_, server)| server.keys()).filter(|key| !KNOWN.contains(&key.as_str()));
        own.map(|key| format!("`{key}` of `serverInfo`")).collect()
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
}
