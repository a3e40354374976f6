//! A call as Python's interceptor writes it, converted to and from its wire form.
//!
//! ```text
//! {"method": "call_tool", "args": ["add"], "kwargs": {"arguments": {"a": 1}}} ⇄ tools/call {"name": "add", "arguments": {"a": 1}}
//! ```
//!
//! Data that this conversion would lose is kept as a patch in the request.

use std::time::Duration;

use jiff::Timestamp;

use super::super::{Entry, EntryBody, PlacedMessage, RecordedCall};
use super::json_tree::JsonTree;
use super::patch;
use super::python_names::{CLIENT_ONLY_ARGUMENTS, NOTIFICATION_METHODS, PythonMethod, find, uri, wire};
use super::python_time::{self, PythonClock, in_milliseconds};
use super::session_info::{message_patch, message_tree, with_patch};
use crate::exchange::{Channel, Side};
use crate::message::{Body, Message, Reply};
use crate::protocol::{Era, Revision, meta};

/// The code of an error for which Python recorded only a text: JSON-RPC's "internal error".
const NO_CODE: &str = "-32603";

/// Params that have other names in Python's methods.
const RENAMED: [(&str, &str); 3] =
    [("_meta", "meta"), ("inputResponses", "input_responses"), ("requestState", "request_state")];

fn answer(original: &JsonTree) -> Option<&JsonTree> {
    original.get("response").filter(|response| response.is_object())
}

/// Converts the call with this number, from 0, of a session of Python's.
pub(super) fn import(
    original: &JsonTree,
    number: u64,
    clock: &mut PythonClock,
    agreed: &mut NegotiatedVersion,
) -> RecordedCall {
    let (id, seq) = (number + 1, number * 2);
    let recorded = original.get("request").filter(|request| request.is_object());
    let sent_at = clock.at(recorded.and_then(|request| request.get("timestamp")));
    let request = request(recorded, id);
    let response = answer(original).map(|response| {
        let took = original.get("duration_ms").and_then(JsonTree::number).map(python_time::milliseconds);
        let at = match response.some("timestamp").filter(|time| python_time::read(time).is_some()) {
            Some(time) => clock.at(Some(time)),
            None => sent_at + took.unwrap_or_default(),
        };
        let method = recorded.and_then(|request| request.get("method")?.text()).unwrap_or_default();
        PlacedMessage::new(seq + 1, at, message(&reply(response, &method, id, agreed)))
    });
    let mut call =
        RecordedCall { asker: Side::Client, request: PlacedMessage::new(seq, sent_at, message(&request)), response };
    if let Some(patch) = patch::difference(&plain(&call, clock.started), original) {
        call.request.message = with_patch(&call.request.message, &patch);
    }
    call
}

/// Converts a notification that Python recorded as a call of a method without a response; `None` for a call.
pub(super) fn import_notification(original: &JsonTree, seq: u64, clock: &mut PythonClock) -> Option<Entry> {
    let request = original.get("request").filter(|request| request.is_object())?;
    let name = request.get("method")?.text()?;
    let (method, params) = match NOTIFICATION_METHODS.iter().find(|word| word.python == name) {
        Some(word) => (word.wire.to_owned(), params(request, Some(word))),
        None => {
            let given = wrapped_request(request, "send_notification", "notification")?;
            (given.get("method")?.text()?, given.some("params").map_or_else(|| JsonTree::Object(Vec::new()), wire))
        }
    };
    let mut notification =
        JsonTree::object([("jsonrpc", JsonTree::string("2.0")), ("method", JsonTree::string(&method))]);
    if !params.members().is_empty() {
        notification.set("params", params.valid());
    }
    let (at, notification) = (clock.at(request.get("timestamp")), message(&notification));
    let ours = plain_notification(&notification, at, clock.started);
    // A message with a patch was one of Python's calls.
    let patch = patch::difference(&ours, original).unwrap_or_else(|| JsonTree::Object(Vec::new()));
    let message = with_patch(&notification, &patch);
    let what = EntryBody::Message { from: Side::Client, channel: Channel::MAIN, message, event_id: None };
    Some(Entry::new(seq, at, what))
}

/// The client notification as Python would have written it; `None` if Python does not write it.
pub(super) fn export_notification(entry: &Entry, started: Option<Timestamp>) -> Option<JsonTree> {
    let EntryBody::Message { from: Side::Client, message, .. } = &entry.what else { return None };
    let Body::Notification(_) = message.body() else { return None };
    let patch = message_patch(message)?;
    let mut tree = plain_notification(message, entry.at, started);
    patch::apply(&mut tree, &patch);
    Some(tree)
}

fn plain_notification(message: &Message, at: Duration, started: Option<Timestamp>) -> JsonTree {
    let word =
        message.method().and_then(|method| NOTIFICATION_METHODS.iter().find(|word| word.wire == method.as_str()));
    let mut request = line(message, word);
    request.set("timestamp", timestamp(started, at));
    JsonTree::object([("request", request), ("response", JsonTree::null()), ("duration_ms", JsonTree::null())])
}

/// The call as Python would have written it, with its patch applied.
pub(super) fn export(call: &RecordedCall, started: Option<Timestamp>) -> JsonTree {
    let mut tree = plain(call, started);
    if let Some(patch) = message_patch(&call.request.message) {
        patch::apply(&mut tree, &patch);
    }
    tree
}

/// The call as Python would have written it, without the patch.
fn plain(call: &RecordedCall, started: Option<Timestamp>) -> JsonTree {
    let time = |placed: &PlacedMessage| timestamp(started, placed.at);
    let mut request = request_line(&call.request.message);
    request.set("timestamp", time(&call.request));
    let response = call.response.as_ref().map(|response| {
        let mut tree = response_line(&response.message, &call.request.message);
        tree.set("timestamp", time(response));
        tree
    });
    let took = call.took().map_or_else(JsonTree::null, in_milliseconds);
    JsonTree::object([
        ("request", request),
        ("response", response.unwrap_or_else(JsonTree::null)),
        ("duration_ms", took),
    ])
}

/// A time in Python's form.
pub(super) fn timestamp(started: Option<Timestamp>, at: Duration) -> JsonTree {
    let time = started.and_then(|started| started.checked_add(at).ok());
    time.map_or_else(JsonTree::null, python_time::write)
}

/// `method`, `args` and `kwargs` of a request.
pub(super) fn request_line(message: &Message) -> JsonTree {
    line(message, message.method().and_then(|method| find(method.as_str())))
}

fn line(message: &Message, word: Option<&PythonMethod>) -> JsonTree {
    let method = message.method().map(|method| method.as_str()).unwrap_or_default();
    let mut params =
        message.params().map_or_else(|| JsonTree::Object(Vec::new()), |params| JsonTree::known(params.as_str()));
    let Some(word) = word else {
        let kwargs = if params.is_object() { params } else { JsonTree::object([("params", params)]) };
        return JsonTree::object([
            ("method", JsonTree::string(method)),
            ("args", JsonTree::List(Vec::new())),
            ("kwargs", kwargs),
        ]);
    };
    // The first argument is positional by convention, the others are named.
    let first = word.positional.first().filter(|name| !["cursor", "ref"].contains(*name));
    let args = first.and_then(|name| params.remove(name)).into_iter().collect();
    for (wire, python) in RENAMED {
        if let Some(value) = params.remove(wire) {
            params.set(python, value);
        }
    }
    let kwargs = if params.is_object() { params } else { JsonTree::object([("params", params)]) };
    JsonTree::object([("method", JsonTree::string(word.python)), ("args", JsonTree::List(args)), ("kwargs", kwargs)])
}

/// `success`, `result` and `error` of a response.
pub(super) fn response_line(message: &Message, request: &Message) -> JsonTree {
    let (success, result, error) = match message.body() {
        Body::Response(response) => match &response.reply {
            Reply::Result(result) => (true, typed(JsonTree::known(result.as_str()), request), JsonTree::null()),
            Reply::Error(_) => {
                let error = message_tree(message).remove("error").unwrap_or_else(JsonTree::null);
                (false, JsonTree::null(), error)
            }
        },
        Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => {
            (false, JsonTree::null(), JsonTree::string(&message.text()))
        }
    };
    JsonTree::object([("success", success.into()), ("result", result), ("error", error)])
}

/// A result with the name of its class as its first member.
fn typed(result: JsonTree, request: &Message) -> JsonTree {
    let class = request.method().and_then(|method| find(method.as_str())).map(|word| word.result);
    match (result, class) {
        (JsonTree::Object(members), Some(class)) => {
            let first = ("_type".to_owned(), JsonTree::string(class));
            JsonTree::Object(std::iter::once(first).chain(members).collect())
        }
        (result, _) => result,
    }
}

/// Builds the request in its wire form.
pub(super) fn request(request: Option<&JsonTree>, id: u64) -> JsonTree {
    let request = request.map(|request| wrapped_request(request, "send_request", "request").unwrap_or(request));
    let name = request.and_then(|request| request.get("method")?.text()).unwrap_or_else(|| "unknown".to_owned());
    let word = find(&name);
    let mut message = JsonTree::object([("jsonrpc", JsonTree::string("2.0")), ("id", id.into())]);
    message.set("method", JsonTree::string(word.map_or(name.as_str(), |word| word.wire)));
    let params = request.map_or_else(|| JsonTree::Object(Vec::new()), |request| params(request, word));
    if !params.members().is_empty() || word.is_some_and(|word| word.wire == "initialize") {
        message.set("params", params.valid());
    }
    message
}

/// The message that was passed to `send_request` as its `request`, or to a similar method. Python sends methods this
/// way that it has no function for.
fn wrapped_request<'t>(request: &'t JsonTree, sends: &str, named: &str) -> Option<&'t JsonTree> {
    request.get("method")?.text().filter(|name| name == sends)?;
    let args = request.get("args").and_then(|args| args.elements().first().or_else(|| args.get(named)));
    let given = args.or_else(|| request.get("kwargs")?.get(named))?;
    let given = given.some("root").unwrap_or(given);
    given.get("method")?.text().is_some().then_some(given)
}

/// The params, from positional or named arguments, or from the sent message.
fn params(request: &JsonTree, word: Option<&PythonMethod>) -> JsonTree {
    if let Some(params) = request.some("params").filter(|params| params.is_object()) {
        return wire(params);
    }
    let mut params = JsonTree::Object(Vec::new());
    let args = request.some("args").cloned().unwrap_or_else(JsonTree::null);
    let positional = word.map(|word| word.positional).unwrap_or_default();
    for (name, value) in positional.iter().zip(args.elements()) {
        bind(&mut params, name, value, word);
    }
    if word.is_none() && !args.elements().is_empty() {
        params.set("args", args.clone());
    }
    // Some tools write keyword arguments, or the arguments of the tool, where others write positional ones.
    let named = [Some(&args), request.some("kwargs"), Some(request)];
    for (at, source) in named.into_iter().enumerate() {
        for (name, value) in source.map(JsonTree::members).unwrap_or_default() {
            let own =
                ["method", "args", "kwargs", "timestamp", "type", "params", "_type", "id"].contains(&name.as_str());
            let stray = at == 2 && (own || !positional.contains(&name.as_str()));
            if !stray {
                bind(&mut params, name, value, word);
            }
        }
    }
    params
}

fn bind(params: &mut JsonTree, name: &str, value: &JsonTree, word: Option<&PythonMethod>) {
    match name {
        _ if word.is_some() && (name == "_type" || CLIENT_ONLY_ARGUMENTS.contains(&name)) => {}
        "params" if word.is_some() => {
            wire(value).members().iter().for_each(|(key, value)| params.set(key, value.clone()));
        }
        _ if value.is_null() && word.is_some() => {}
        "meta" if word.is_some() => params.set("_meta", value.clone()),
        "version" if word.is_some_and(|word| word.python == "send_discover") => {
            params.set("_meta", JsonTree::object([(meta::PROTOCOL_VERSION, value.clone())]));
        }
        "context_arguments" if word.is_some_and(|word| word.wire == "completion/complete") => {
            params.set("context", JsonTree::object([("arguments", value.clone())]));
        }
        "arguments" => params.set(name, value.clone()),
        "uri" if word.is_some() => params.set(name, uri(value)),
        _ if word.is_some() => {
            wire(&JsonTree::object([(name, value.clone())]))
                .members()
                .iter()
                .for_each(|(key, value)| params.set(key, value.clone()));
        }
        _ => params.set(name, value.clone()),
    }
}

/// The negotiated version of a session, if known. Python's models write the members of every version with their default
/// values. Members with default values that the session's version does not have were not sent by the server.
#[derive(Debug, Default)]
pub(super) struct NegotiatedVersion(Option<Revision>);

impl NegotiatedVersion {
    fn strip_defaults(&mut self, mut result: JsonTree, word: Option<&PythonMethod>) -> JsonTree {
        if word.is_some_and(|word| word.wire == "initialize") {
            self.0 = result.get("protocolVersion").and_then(|version| version.text()?.parse().ok());
        }
        if self.0.is_some_and(|agreed| agreed.era() == Era::Legacy) {
            ["resultType", "ttlMs", "cacheScope"].iter().for_each(|key| drop(result.remove(key)));
        }
        result
    }
}

/// Builds the response in its wire form.
pub(super) fn reply(response: &JsonTree, method: &str, id: u64, agreed: &mut NegotiatedVersion) -> JsonTree {
    let mut message = JsonTree::object([("jsonrpc", JsonTree::string("2.0")), ("id", id.into())]);
    let error = response.some("error");
    let failed = match response.get("success") {
        Some(JsonTree::Leaf(word)) if word == "true" => false,
        Some(JsonTree::Leaf(word)) if word == "false" => true,
        // Without a statement about success, an error member decides.
        Some(_) | None => error.is_some(),
    };
    let result = response.some("result");
    // Some tools record a tool's own failure as an unsuccessful call; then its content is the result.
    let content = result.filter(|result| error.is_none() && !result.members().is_empty());
    match (failed, content) {
        (true, None) => message.set("error", wire_error(error).valid()),
        (true, Some(_)) | (false, _) => match wire_result(result, find(method)) {
            Ok(result) => message.set("result", agreed.strip_defaults(result, find(method)).valid()),
            Err(unusable) => message.set("error", wire_error(Some(&JsonTree::string(&unusable)))),
        },
    }
    message
}

/// The result in its wire form; `Err` if no client could use it.
fn wire_result(result: Option<&JsonTree>, word: Option<&PythonMethod>) -> Result<JsonTree, String> {
    let list = word.map(|word| word.list).unwrap_or_default();
    let block = |text: JsonTree| JsonTree::object([("type", JsonTree::string("text")), ("text", text)]);
    let mut wired = match (result, list) {
        (None, _) => JsonTree::Object(Vec::new()),
        (Some(result @ JsonTree::Object(_)), _) => wire(result),
        (Some(elements @ JsonTree::List(_)), name) if !name.is_empty() => JsonTree::object([(name, wire(elements))]),
        (Some(leaf @ JsonTree::Leaf(written)), "content") => {
            let text = if written.starts_with('"') { leaf.clone() } else { JsonTree::string(written) };
            JsonTree::object([("content", JsonTree::List(vec![block(text)]))])
        }
        (Some(text @ JsonTree::Leaf(written)), "messages") if written.starts_with('"') => {
            let message = JsonTree::object([("role", JsonTree::string("user")), ("content", block(text.clone()))]);
            JsonTree::object([("messages", JsonTree::List(vec![message]))])
        }
        (Some(other), _) if word.is_none() => wire(other),
        (Some(other), _) => return Err(format!("the recorded value is no result: {other}")),
    };
    let is_extra = |(key, _): &(String, JsonTree)| ["structuredContent", "isError", "_meta"].contains(&key.as_str());
    if list == "content" && wired.members().iter().all(is_extra) {
        // Every tool result has `content`, which may be empty.
        wired.set("content", JsonTree::List(Vec::new()));
    }
    Ok(wired)
}

/// The error in its wire form, from a text, an exception as an object, or an error of JSON-RPC.
fn wire_error(error: Option<&JsonTree>) -> JsonTree {
    // An exception that contains an error of JSON-RPC.
    if let Some(inner) = error.and_then(|error| error.some("error")).filter(|inner| inner.is_object()) {
        return wire_error(Some(inner));
    }
    let error = error.map_or_else(|| JsonTree::string("the call failed; nothing else is known"), JsonTree::clone);
    let code = code(&error).cloned().unwrap_or_else(|| JsonTree::Leaf(NO_CODE.to_owned()));
    let words = ["message", "error", "detail", "args", "msg"].iter().find_map(|key| {
        let value = error.some(key)?;
        value.text().or_else(|| value.elements().first()?.text())
    });
    let message = error.text().or(words).unwrap_or_else(|| error.to_string());
    let mut wire = JsonTree::object([("code", code), ("message", JsonTree::string(&message))]);
    // A text is copied as it is, with its escapes.
    if let Some(text @ JsonTree::Leaf(_)) = error.get("message").or(Some(&error)).filter(|text| text.text().is_some()) {
        wire.set("message", text.clone());
    }
    if let Some(data) = error.some("data") {
        wire.set("data", data.clone());
    }
    wire
}

/// The code of an error, if it has one.
fn code(error: &JsonTree) -> Option<&JsonTree> {
    match error.some("error").filter(|inner| inner.is_object()) {
        Some(inner) => code(inner),
        None => error.get("code").filter(|code| matches!(code, JsonTree::Leaf(leaf) if leaf.parse::<i64>().is_ok())),
    }
}

/// Whether the code of a call's error was recorded. Python often records only a text; the code is then a placeholder.
pub fn is_code_recorded(call: &RecordedCall) -> bool {
    let Some(mut written) = export(call, None).remove("response") else { return true };
    if let Some(patch) = call.response.as_ref().and_then(|response| message_patch(&response.message)) {
        patch::apply(&mut written, &patch);
    }
    written.some("error").and_then(code).is_some()
}

/// Builds a message from this tree.
pub(super) fn message(tree: &JsonTree) -> Message {
    Message::parse(tree.to_string())
}
