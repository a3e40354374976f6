//! The model of a server: its server info, its lists, and its answers to each request.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::Revision;
use serde_json::{Map, Value, json};

/// The model of a server, built from its recordings. Every value is as on the wire.
#[derive(Clone, Debug)]
pub struct ServerModel {
    /// Its `serverInfo`, in the newest recorded version: `name`, `version` and so on.
    pub server: Map<String, Value>,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// The capabilities that it declared in any session; `None` if no handshake was recorded.
    pub capabilities: Option<Map<String, Value>>,
    /// The tools that it lists.
    pub tools: ListedItems,
    /// The resources that it lists.
    pub resources: ListedItems,
    /// The resource templates that it lists.
    pub resource_templates: ListedItems,
    /// The prompts that it lists.
    pub prompts: ListedItems,
    /// The newest version with a handshake that it supports, if a client requested a newer one.
    pub newest_legacy: Option<Revision>,
    /// Its `supportedVersions`, since 2026-07-28.
    pub supported_versions: Option<Value>,
    /// Methods that it always refused, each with the same error.
    pub refuses: BTreeMap<String, ErrorReply>,
    /// Every other distinct request, in recorded order.
    pub requests: Vec<DistinctRequest>,
    /// How much of the recording is not in this model.
    pub left_out: LeftOut,
}

/// The generated files, and how much of the recording is not in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Each file with its path: one file, or the files of a project.
    pub files: Vec<(String, String)>,
    /// How much of the recording is not in the files.
    pub left_out: LeftOut,
}

/// How many recorded items are not in the generated files, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Messages that are not JSON-RPC.
    pub garbled: usize,
    /// Requests without a response.
    pub unanswered: usize,
    /// Requests of the server that belong to no answer, or that a program cannot make.
    pub server_requests: usize,
    /// Requests that differ from others in a redacted secret only: any secret gets their answers in turn.
    pub secrets: usize,
    /// Everything else: notifications outside of a call, answers of tasks, methods that a program does not serve.
    pub others: usize,
}

impl LeftOut {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == LeftOut::default()
    }
}

/// ```text
/// 1 garbled message, 2 unanswered requests, 1 server request, 4 other items
/// ```
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { garbled, unanswered, server_requests, secrets, others } = *self;
        let counts = [
            (garbled, "garbled message", "garbled messages"),
            (unanswered, "unanswered request", "unanswered requests"),
            (server_requests, "server request", "server requests"),
            (secrets, "request that differs only in a secret", "requests that differ only in a secret"),
            (others, "other item", "other items"),
        ];
        let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
        let words = counts.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
        f.write_str(&words.collect::<Vec<_>>().join(", "))
    }
}

/// A request that was recorded once or more often.
#[derive(Clone, Debug)]
pub struct DistinctRequest {
    /// `tools/call`, `prompts/get`, `resources/read`, `completion/complete`, `resources/subscribe`, `resources/unsubscribe` or
    /// a method that is not of the protocol.
    pub method: Method,
    /// Its params, without the members that belong to one connection only.
    pub params: Value,
    /// All answers, in recorded order.
    pub answers: Vec<ModelAnswer>,
}

/// One recorded answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelAnswer {
    /// The events before it, in recorded order.
    pub before: Vec<PrecedingEvent>,
    /// The answer itself.
    pub reply: RecordedReply,
}

/// A result or an error.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedReply {
    /// A result, without what belongs to one version only.
    Result(Map<String, Value>),
    /// A JSON-RPC error.
    Error(ErrorReply),
}

/// An event that a server sent before an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum PrecedingEvent {
    /// A notification: progress, a log message, or any other.
    Notification {
        /// Its method.
        method: Method,
        /// Its params, without tokens.
        params: Value,
    },
    /// Requests to the client, in one round.
    InputRequests(Vec<RecordedInputRequest>),
    /// A round of `input_required` that requests nothing, since 2026-07-28.
    EmptyRound,
}

/// A request to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedInputRequest {
    /// Its name; the server's since 2026-07-28.
    pub name: String,
    /// `elicitation/create`, `sampling/createMessage`, `roots/list` or one that is not of the protocol.
    pub method: Method,
    /// Its params.
    pub params: Value,
    /// Whether the answer does not need its result: the client refused it and the server continued, or the server may have
    /// sent it unrelated to the call.
    pub optional: bool,
}

/// The items of one list, over all its pages and sessions.
#[derive(Clone, Debug)]
pub struct ListedItems {
    /// Whether the list was ever requested.
    pub was_requested: bool,
    /// Every item that was ever listed, as it was last listed in the newest version.
    pub items: Vec<Value>,
    /// The key of a result that has the list.
    list: &'static str,
    /// The key that names an item.
    key: &'static str,
    /// The index of each item and the version that it was listed in, by its name.
    places: HashMap<String, (usize, Option<Revision>)>,
}

impl ListedItems {
    /// An empty list that is the member `list` of a result; `key` names an item.
    pub(super) fn new(list: &'static str, key: &'static str) -> ListedItems {
        ListedItems { was_requested: false, items: Vec::new(), list, key, places: HashMap::new() }
    }

    /// Adds a page that was listed in a version.
    pub(super) fn add_page(&mut self, page: &Value, revision: Option<Revision>) {
        self.was_requested = true;
        for item in page.get(self.list).and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = item.get(self.key).and_then(Value::as_str) else { continue };
            let next = self.items.len();
            let (at, listed_in) = self.places.entry(name.to_owned()).or_insert((next, revision));
            match self.items.get_mut(*at) {
                None => self.items.push(item.clone()),
                Some(known) if revision >= *listed_in => (*known, *listed_in) = (item.clone(), revision),
                Some(_) => {}
            }
        }
    }

    /// Whether an item of this name was ever listed.
    pub fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }
}

impl Default for ServerModel {
    fn default() -> ServerModel {
        ServerModel {
            server: Map::new(),
            instructions: None,
            capabilities: None,
            tools: ListedItems::new("tools", "name"),
            resources: ListedItems::new("resources", "uri"),
            resource_templates: ListedItems::new("resourceTemplates", "uriTemplate"),
            prompts: ListedItems::new("prompts", "name"),
            newest_legacy: None,
            supported_versions: None,
            refuses: BTreeMap::new(),
            requests: Vec::new(),
            left_out: LeftOut::default(),
        }
    }
}

impl ServerModel {
    /// The requests of a method, in order.
    pub fn requests_of(&self, method: &Method) -> impl Iterator<Item = &DistinctRequest> {
        self.requests.iter().filter(move |request| request.method == *method)
    }

    /// A list item for a prompt that was never listed, with the names of all arguments that were used.
    pub(super) fn unlisted_prompt(&self, name: &str) -> Value {
        let requests = self.requests_of(&Method::PROMPTS_GET).filter(|request| request.subject() == Some(name));
        let mut names: Vec<&String> = Vec::new();
        for key in requests.filter_map(DistinctRequest::arguments).flat_map(Map::keys) {
            if !names.contains(&key) {
                names.push(key);
            }
        }
        let mut prompt = json!({"name": name});
        if !names.is_empty() {
            prompt["arguments"] = names.into_iter().map(|name| json!({"name": name})).collect();
        }
        prompt
    }

    /// Adds the capabilities that were declared in a session; of what is declared in several, the last counts.
    pub(super) fn declare(&mut self, declared: &Map<String, Value>) {
        let all = self.capabilities.get_or_insert_with(Map::new);
        for (key, value) in declared {
            match (all.get_mut(key), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
                (Some(_) | None, _) => drop(all.insert(key.clone(), value.clone())),
            }
        }
    }

    /// Whether the model has no items and no requests.
    pub fn is_empty(&self) -> bool {
        let lists = [&self.tools, &self.resources, &self.resource_templates, &self.prompts];
        self.requests.is_empty() && lists.iter().all(|list| list.items.is_empty())
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        self.server.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or("recorded-server")
    }

    /// The server's version.
    pub fn version(&self) -> &str {
        self.server.get("version").and_then(Value::as_str).unwrap_or("0.0.0")
    }
}

impl DistinctRequest {
    /// The name of the tool or prompt, or the URI of the resource.
    pub fn subject(&self) -> Option<&str> {
        let key = if self.method.as_str().starts_with("resources/") { "uri" } else { "name" };
        self.params.get(key)?.as_str()
    }

    /// The arguments of a tool or prompt.
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
        self.params.get("arguments")?.as_object()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_listed_once_as_in_the_newest_version() {
        let page = |title: &str, names: &[&str]| {
            let tools: Vec<_> = names.iter().map(|name| json!({"name": name, "title": title})).collect();
            json!({"tools": tools})
        };
        let mut tools = ListedItems::new("tools", "name");
        tools.add_page(&page("first", &["a", "b"]), Some(Revision::V2025_11_25));
        tools.add_page(&page("older", &["b", "c"]), Some(Revision::V2024_11_05));
        tools.add_page(&page("last", &["a"]), Some(Revision::V2025_11_25));
        let titles = tools.items.iter().map(|it| (it["name"].as_str().unwrap(), it["title"].as_str().unwrap()));
        assert_eq!(titles.collect::<Vec<_>>(), [("a", "last"), ("b", "first"), ("c", "older")]);
        assert!(tools.contains("c") && !tools.contains("d"));
    }
}
