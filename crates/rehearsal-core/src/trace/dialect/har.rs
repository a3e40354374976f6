//! HTTP archives: what a browser shows of its requests. They are only written.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::{HttpHead, What};
use super::python_time::in_milliseconds;
use super::session::{Said, Session, message_tree};
use super::tree::Tree;
use crate::exchange::{Channel, Side};

/// What one channel carried.
#[derive(Default)]
struct Exchange<'s> {
    request: Option<(Duration, &'s HttpHead)>,
    response: Option<(Duration, &'s HttpHead)>,
    sent: Vec<Said<'s>>,
    received: Vec<Said<'s>>,
}

/// The entries of a session; `None` where it was not over HTTP.
pub(super) fn entries(session: &Session) -> Option<Vec<Tree>> {
    let mut exchanges: BTreeMap<Channel, Exchange<'_>> = BTreeMap::new();
    for entry in &session.entries {
        if let What::Http { from, channel, head } = &entry.what {
            let exchange = exchanges.entry(*channel).or_default();
            match from {
                Side::Client => exchange.request = Some((entry.at, head)),
                Side::Server => exchange.response = Some((entry.at, head)),
            }
        }
    }
    if exchanges.is_empty() {
        return None;
    }
    for said in session.said() {
        let exchange = exchanges.entry(said.channel).or_default();
        match said.from {
            Side::Client => exchange.sent.push(said),
            Side::Server => exchange.received.push(said),
        }
    }
    let found = exchanges.values().filter_map(|exchange| entry(session, exchange));
    Some(found.collect())
}

/// The whole archive.
pub(super) fn archive(entries: Vec<Tree>) -> Tree {
    let creator =
        Tree::object([("name", Tree::string("rehearse")), ("version", Tree::string(env!("CARGO_PKG_VERSION")))]);
    let log = [("version", Tree::string("1.2")), ("creator", creator), ("entries", Tree::List(entries))];
    Tree::object([("log", Tree::object(log))])
}

fn entry(session: &Session, exchange: &Exchange<'_>) -> Option<Tree> {
    let (at, request) = exchange.request?;
    let last = exchange.received.iter().map(|said| said.at).chain(exchange.response.map(|(at, _)| at)).max();
    let first = exchange.response.map_or(at, |(at, _)| at);
    let wait = in_milliseconds(first.saturating_sub(at));
    let receive = in_milliseconds(last.unwrap_or(first).saturating_sub(first));
    let zero = || Tree::from(0);
    let timings = [("send", zero()), ("wait", wait), ("receive", receive)];
    Some(Tree::object([
        ("startedDateTime", session.time(at)),
        ("time", in_milliseconds(last.unwrap_or(at).saturating_sub(at))),
        ("request", request_of(session, request, &exchange.sent)),
        ("response", response_of(exchange.response.map(|(_, head)| head), &exchange.received)),
        ("cache", Tree::Object(Vec::new())),
        ("timings", Tree::object(timings)),
    ]))
}

fn request_of(session: &Session, head: &HttpHead, sent: &[Said<'_>]) -> Tree {
    let target = head.target.as_deref().unwrap_or("/");
    let origin = session.info("url").map(origin).unwrap_or_default();
    let url = format!("{origin}{target}");
    let query = target.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pair_of(name, value)
    });
    let body = body(sent, false);
    let size = Tree::from(body.len() as u64);
    let mut request = Tree::object([
        ("method", Tree::string(head.method.as_deref().unwrap_or("POST"))),
        ("url", Tree::string(&url)),
        ("httpVersion", Tree::string("HTTP/1.1")),
        ("cookies", Tree::List(Vec::new())),
        ("headers", headers(head)),
        ("queryString", Tree::List(pairs.collect())),
        ("headersSize", Tree::Leaf("-1".to_owned())),
        ("bodySize", size),
    ]);
    if !sent.is_empty() {
        let kind = header(head, "content-type").unwrap_or("application/json");
        request.set("postData", Tree::object([("mimeType", Tree::string(kind)), ("text", Tree::string(&body))]));
    }
    request
}

fn response_of(head: Option<&HttpHead>, received: &[Said<'_>]) -> Tree {
    let kind = head.and_then(|head| header(head, "content-type")).unwrap_or("application/json");
    let body = body(received, kind.starts_with("text/event-stream"));
    let size = Tree::from(body.len() as u64);
    let content = [("size", size.clone()), ("mimeType", Tree::string(kind)), ("text", Tree::string(&body))];
    Tree::object([
        ("status", Tree::from(head.and_then(|head| head.status).map_or(0, u64::from))),
        ("statusText", Tree::string("")),
        ("httpVersion", Tree::string("HTTP/1.1")),
        ("cookies", Tree::List(Vec::new())),
        ("headers", head.map_or_else(|| Tree::List(Vec::new()), headers)),
        ("content", Tree::object(content)),
        ("redirectURL", Tree::string("")),
        ("headersSize", Tree::Leaf("-1".to_owned())),
        ("bodySize", size),
    ])
}

/// The messages as they must have stood in the body.
fn body(said: &[Said<'_>], events: bool) -> String {
    let texts = said.iter().map(|said| match message_tree(said.message) {
        tree @ (Tree::Object(_) | Tree::List(_)) => tree.to_string(),
        Tree::Leaf(_) => said.message.text().into_owned(),
    });
    match (events, said.len()) {
        (true, _) => texts.map(|text| format!("event: message\ndata: {text}\n\n")).collect(),
        (false, 0 | 1) => texts.collect(),
        // Several in one body are a batch.
        (false, _) => format!("[{}]", texts.collect::<Vec<_>>().join(",")),
    }
}

fn headers(head: &HttpHead) -> Tree {
    Tree::List(head.headers.iter().map(|(name, value)| pair_of(name, value)).collect())
}

fn pair_of(name: &str, value: &str) -> Tree {
    Tree::object([("name", Tree::string(name)), ("value", Tree::string(value))])
}

fn header<'h>(head: &'h HttpHead, name: &str) -> Option<&'h str> {
    head.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// `https://example.com` of `https://example.com/mcp`.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find('/').map_or(url, |end| &url[..start + end])
}

#[cfg(test)]
mod tests {
    use super::super::super::{Call, Entry, Placed, Start};
    use super::*;
    use crate::message::Message;

    #[test]
    fn an_exchange_over_http_is_an_entry_with_its_bodies() {
        let server_info = serde_json::json!({"url": "https://example.com/mcp"});
        let start = Start {
            session_id: "s".to_owned(),
            server_info: server_info.as_object().unwrap().clone(),
            started_at: Some("2026-07-28T12:00:00Z".parse().unwrap()),
            metadata: serde_json::Map::new(),
        };
        let mut session = Session::new(start);
        assert!(entries(&session).is_none(), "nothing was over HTTP");
        let placed = |seq, at, text: &str| Placed {
            channel: Channel(1),
            ..Placed::new(seq, Duration::from_millis(at), Message::parse(text.to_owned()))
        };
        let head = |from, seq, at, method: Option<&str>, status| {
            let kind = if from == Side::Client { "application/json" } else { "text/event-stream" };
            let head = HttpHead {
                method: method.map(str::to_owned),
                target: method.map(|_| "/mcp?page=2".to_owned()),
                status,
                headers: vec![("Content-Type".to_owned(), kind.to_owned())],
            };
            Entry::new(seq, Duration::from_millis(at), What::Http { from, channel: Channel(1), head })
        };
        session.entries =
            vec![head(Side::Client, 0, 5, Some("POST"), None), head(Side::Server, 2, 10, None, Some(200))];
        session.calls = vec![Call {
            asker: Side::Client,
            request: placed(1, 5, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            response: Some(placed(3, 25, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)),
        }];
        let entries = entries(&session).unwrap();
        let entry = entries[0].value();
        assert_eq!(entry["startedDateTime"], "2026-07-28T12:00:00.005Z");
        assert_eq!(entry["time"], 20);
        assert_eq!(entry["request"]["url"], "https://example.com/mcp?page=2");
        assert_eq!(entry["request"]["queryString"][0]["value"], "2");
        assert_eq!(entry["request"]["postData"]["text"], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(entry["response"]["status"], 200);
        let body = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
        assert_eq!(entry["response"]["content"]["text"], body);
        assert_eq!(entry["timings"], serde_json::json!({"send": 0, "wait": 5, "receive": 15}));
        assert_eq!(archive(entries).value()["log"]["version"], "1.2");
    }
}
