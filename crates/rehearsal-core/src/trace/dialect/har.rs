//! HTTP archives, which browsers show as a list of requests. They are only written.
//!
//! Each exchange is written as soon as it is found. Values that depend on the bodies (sizes, durations) follow the
//! bodies, so no body is in memory.

use std::io::{self, Read, Seek, Write};
use std::time::Duration;

use super::super::{Entry, EntryBody, HttpHead, Part};
use super::external_sort::{ExternalSorter, SortKey, Sorted};
use super::json_tree::JsonTree;
use super::python_time::in_milliseconds;
use super::session_info::{SessionInfo, message_tree, messages};
use crate::exchange::Side;

/// The kinds of pieces of an exchange, in the order in which they are written.
const REQUEST_HEAD: u64 = 0;
const RESPONSE_HEAD: u64 = 1;
const REQUEST_BODY: u64 = 2;
const RESPONSE_BODY: u64 = 3;

/// Placeholder for a value that is written later. No text contains it, because JSON escapes it.
const PLACEHOLDER: char = '\0';

/// An archive that is being written.
#[derive(Debug, Default)]
pub(super) struct HarArchive {
    /// Whether any message of this session was sent over HTTP.
    http: bool,
    /// Whether an entry was written.
    begun: bool,
}

impl HarArchive {
    /// Stores the pieces of a part, by the channel that carried them.
    pub(super) fn part<S: Read + Write + Seek>(
        &mut self,
        part: &Part,
        pieces: &mut ExternalSorter<S>,
    ) -> io::Result<()> {
        if let Part::Entry(Entry { at, what: EntryBody::Http { from, channel, head }, .. }) = part {
            self.http = true;
            let kind = match from {
                Side::Client => REQUEST_HEAD,
                Side::Server => RESPONSE_HEAD,
            };
            pieces.push([channel.0, kind, 0, 0], timed(*at, &head_tree(head).to_string()))?;
        }
        for sent in messages(part) {
            let kind = match sent.from {
                Side::Client => REQUEST_BODY,
                Side::Server => RESPONSE_BODY,
            };
            let text = match message_tree(sent.message) {
                tree @ (JsonTree::Object(_) | JsonTree::List(_)) => tree.to_string(),
                JsonTree::Leaf(_) => sent.message.text().into_owned(),
            };
            let [seq, item, ..] = sent.key();
            pieces.push([sent.channel.0, kind, seq, item], timed(sent.at, &text))?;
        }
        Ok(())
    }

    /// Writes the entries of a session; `false` if it did not use HTTP.
    pub(super) fn write<S: Read + Seek>(
        &mut self,
        session: &SessionInfo,
        mut pieces: Sorted<'_, S>,
        out: &mut impl Write,
    ) -> io::Result<bool> {
        if !std::mem::take(&mut self.http) {
            return Ok(false);
        }
        while let Some([channel, ..]) = pieces.peek() {
            let mut carried = ChannelPieces { channel, pieces: &mut pieces };
            let (request, response) = (carried.head(REQUEST_HEAD)?, carried.head(RESPONSE_HEAD)?);
            if let Some(request) = request {
                let before = if std::mem::replace(&mut self.begun, true) { "," } else { &frame().0 };
                out.write_all(before.as_bytes())?;
                entry(session, &request, response.as_ref(), &mut carried, out)?;
            }
            // The remaining pieces have no head that describes their channel.
            while pieces.next_if(|[next, ..]| next == channel)?.is_some() {}
        }
        Ok(true)
    }

    /// Ends the archive.
    pub(super) fn finish(&self, out: &mut impl Write) -> io::Result<()> {
        let (before, after) = frame();
        if !self.begun {
            out.write_all(before.as_bytes())?;
        }
        out.write_all(after.as_bytes())
    }
}

/// The text before and after the entries.
fn frame() -> (String, String) {
    let creator = JsonTree::object([
        ("name", JsonTree::string("rehearse")),
        ("version", JsonTree::string(env!("CARGO_PKG_VERSION"))),
    ]);
    let log = [("version", JsonTree::string("1.2")), ("creator", creator), ("entries", JsonTree::List(vec![later()]))];
    let mut text = String::new();
    JsonTree::object([("log", JsonTree::object(log))]).pretty(&mut text, 0);
    let (before, after) = text.split_once(PLACEHOLDER).unwrap_or_default();
    (before.trim_end().to_owned(), format!("{after}\n"))
}

fn later() -> JsonTree {
    JsonTree::Leaf(PLACEHOLDER.to_string())
}

/// An HTTP head and its time.
struct Head {
    at: Duration,
    tree: JsonTree,
}

/// The pieces that one channel carried.
struct ChannelPieces<'c, 's, S> {
    channel: u64,
    pieces: &'c mut Sorted<'s, S>,
}

impl<S: Read + Seek> ChannelPieces<'_, '_, S> {
    /// The last head of a kind; others, such as `100 Continue`, may come before it.
    fn head(&mut self, kind: u64) -> io::Result<Option<Head>> {
        let mut head = None;
        while let Some((at, text)) = self.next(kind)? {
            head = Some(Head { at, tree: JsonTree::known(&text) });
        }
        Ok(head)
    }

    /// Whether another piece of this kind follows.
    fn has(&self, kind: u64) -> bool {
        self.pieces.peek().is_some_and(|key| self.is(key, kind))
    }

    fn is(&self, key: SortKey, kind: u64) -> bool {
        key[..2] == [self.channel, kind]
    }

    fn next(&mut self, kind: u64) -> io::Result<Option<(Duration, String)>> {
        if !self.has(kind) {
            return Ok(None);
        }
        let piece = self.pieces.next()?;
        Ok(piece.map(|piece| {
            let (at, text) = piece.text.split_first_chunk().unwrap_or((&[0; 8], &piece.text));
            (Duration::from_micros(u64::from_le_bytes(*at)), String::from_utf8_lossy(text).into_owned())
        }))
    }

    /// Writes the messages of a kind as the body that carried them, escaped as the contents of a JSON string. Returns
    /// its length and the time of the last message.
    fn body(&mut self, kind: u64, events: bool, out: &mut impl Write) -> io::Result<(u64, Option<Duration>)> {
        let (mut bytes, mut last, mut first) = (0, None, true);
        let mut put = |text: &str| {
            bytes += text.len() as u64;
            let quoted = JsonTree::string(text).to_string();
            out.write_all(&quoted.as_bytes()[1..quoted.len() - 1])
        };
        let mut batch = false;
        while let Some((at, text)) = self.next(kind)? {
            last = last.max(Some(at));
            if events {
                put(&format!("event: message\ndata: {text}\n\n"))?;
                continue;
            }
            // Several in one body are a batch.
            batch |= self.has(kind);
            if batch {
                put(if first { "[" } else { "," })?;
            }
            first = false;
            put(&text)?;
        }
        if batch {
            put("]")?;
        }
        Ok((bytes, last))
    }
}

/// Writes one entry.
fn entry<S: Read + Seek>(
    session: &SessionInfo,
    request: &Head,
    response: Option<&Head>,
    carried: &mut ChannelPieces<'_, '_, S>,
    out: &mut impl Write,
) -> io::Result<()> {
    let first = response.map_or(request.at, |head| head.at);
    let wait = in_milliseconds(first.saturating_sub(request.at));
    let kind = response.and_then(|head| header(&head.tree, "content-type")).unwrap_or("application/json".to_owned());
    let sends = carried.has(REQUEST_BODY);
    let entry = JsonTree::object([
        ("startedDateTime", session.time(request.at)),
        ("request", request_of(session, &request.tree, sends)),
        ("response", response_of(response.map(|head| &head.tree), &kind)),
        ("cache", JsonTree::Object(Vec::new())),
        ("timings", JsonTree::object([("send", JsonTree::from(0)), ("wait", wait), ("receive", later())])),
        ("time", later()),
    ]);
    let mut text = String::from("\n      ");
    entry.pretty(&mut text, 6);
    let mut texts = text.split(PLACEHOLDER);
    let mut rest =
        |out: &mut _| -> io::Result<()> { Write::write_all(out, texts.next().unwrap_or_default().as_bytes()) };
    rest(out)?;
    let mut size = 0;
    if sends {
        (size, _) = carried.body(REQUEST_BODY, false, out)?;
        rest(out)?;
    }
    write!(out, "{size}")?;
    rest(out)?;
    let (size, last) = carried.body(RESPONSE_BODY, kind.starts_with("text/event-stream"), out)?;
    rest(out)?;
    write!(out, "{size}")?;
    rest(out)?;
    write!(out, "{size}")?;
    rest(out)?;
    let last = last.max(response.map(|head| head.at));
    write!(out, "{}", in_milliseconds(last.unwrap_or(first).saturating_sub(first)))?;
    rest(out)?;
    write!(out, "{}", in_milliseconds(last.unwrap_or(request.at).saturating_sub(request.at)))?;
    rest(out)
}

/// The request without its body and body size, which are written later.
fn request_of(session: &SessionInfo, head: &JsonTree, sends: bool) -> JsonTree {
    let target = head.get("target").and_then(JsonTree::text).unwrap_or_else(|| "/".to_owned());
    let origin = session.start.server_info.get("url").and_then(|url| url.as_str()).map(origin).unwrap_or_default();
    let url = format!("{origin}{target}");
    let query = target.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pair_of(name, value)
    });
    let mut request = JsonTree::object([
        ("method", head.some("method").cloned().unwrap_or_else(|| JsonTree::string("POST"))),
        ("url", JsonTree::string(&url)),
        ("httpVersion", JsonTree::string("HTTP/1.1")),
        ("cookies", JsonTree::List(Vec::new())),
        ("headers", head.get("headers").cloned().unwrap_or_else(|| JsonTree::List(Vec::new()))),
        ("queryString", JsonTree::List(pairs.collect())),
        ("headersSize", JsonTree::Leaf("-1".to_owned())),
    ]);
    if sends {
        let kind = header(head, "content-type").unwrap_or_else(|| "application/json".to_owned());
        let text = JsonTree::Leaf(format!("\"{PLACEHOLDER}\""));
        request.set("postData", JsonTree::object([("mimeType", JsonTree::string(&kind)), ("text", text)]));
    }
    request.set("bodySize", later());
    request
}

/// The response without its body and sizes, which are written later.
fn response_of(head: Option<&JsonTree>, kind: &str) -> JsonTree {
    let text = JsonTree::Leaf(format!("\"{PLACEHOLDER}\""));
    let member = |key: &str| head.and_then(|head| head.some(key)).cloned();
    JsonTree::object([
        ("status", member("status").unwrap_or_else(|| JsonTree::from(0))),
        ("statusText", JsonTree::string("")),
        ("httpVersion", JsonTree::string("HTTP/1.1")),
        ("cookies", JsonTree::List(Vec::new())),
        ("headers", member("headers").unwrap_or_else(|| JsonTree::List(Vec::new()))),
        ("content", JsonTree::object([("mimeType", JsonTree::string(kind)), ("text", text), ("size", later())])),
        ("redirectURL", JsonTree::string("")),
        ("headersSize", JsonTree::Leaf("-1".to_owned())),
        ("bodySize", later()),
    ])
}

/// A time and a text as one stored piece.
fn timed(at: Duration, text: &str) -> Vec<u8> {
    let micros = u64::try_from(at.as_micros()).unwrap_or(u64::MAX);
    [&micros.to_le_bytes(), text.as_bytes()].concat()
}

/// A head with its headers in the form of an archive.
fn head_tree(head: &HttpHead) -> JsonTree {
    let text = |text: &Option<String>| text.as_deref().map_or_else(JsonTree::null, JsonTree::string);
    let headers = head.headers.iter().map(|(name, value)| pair_of(name, value));
    JsonTree::object([
        ("method", text(&head.method)),
        ("target", text(&head.target)),
        ("status", head.status.map_or_else(JsonTree::null, |status| JsonTree::from(u64::from(status)))),
        ("headers", JsonTree::List(headers.collect())),
    ])
}

fn pair_of(name: &str, value: &str) -> JsonTree {
    JsonTree::object([("name", JsonTree::string(name)), ("value", JsonTree::string(value))])
}

fn header(head: &JsonTree, name: &str) -> Option<String> {
    let headers = head.get("headers").map(JsonTree::elements).unwrap_or_default();
    let named = |pair: &&JsonTree| {
        pair.get("name").and_then(JsonTree::text).is_some_and(|found| found.eq_ignore_ascii_case(name))
    };
    headers.iter().find(named)?.get("value")?.text()
}

/// `https://example.com` of `https://example.com/mcp`.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find('/').map_or(url, |end| &url[..start + end])
}

#[cfg(test)]
mod tests {
    use super::super::super::{Format, PlacedMessage, RecordedCall, SessionStart};
    use super::super::RecordingWriter;
    use super::*;
    use crate::exchange::Channel;
    use crate::message::Message;
    use std::io::Cursor;

    fn head(from: Side, seq: u64, at: u64, method: Option<&str>, status: Option<u16>) -> Part {
        let kind = if from == Side::Client { "application/json" } else { "text/event-stream" };
        let head = HttpHead {
            method: method.map(str::to_owned),
            target: method.map(|_| "/mcp?page=2".to_owned()),
            status,
            headers: [("Content-Type", kind)].into_iter().collect(),
        };
        let what = EntryBody::Http { from, channel: Channel(1), head };
        Part::Entry(Entry::new(seq, Duration::from_millis(at), what))
    }

    fn call(seq: u64, at: u64, id: u64) -> Part {
        let placed = |seq, at, text: String| PlacedMessage {
            channel: Channel(1),
            ..PlacedMessage::new(seq, Duration::from_millis(at), Message::parse(text))
        };
        Part::Call(Box::new(RecordedCall {
            asker: Side::Client,
            request: placed(seq, at, format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)),
            response: Some(placed(
                seq + 2,
                at + 20,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"\"\n"}}}}"#),
            )),
        }))
    }

    fn archive(parts: &[Part]) -> serde_json::Value {
        let server_info = serde_json::json!({"url": "https://example.com/mcp"});
        let start = SessionStart {
            session_id: "s".to_owned(),
            server_info: server_info.as_object().unwrap().clone(),
            started_at: Some("2026-07-28T12:00:00Z".parse().unwrap()),
            metadata: serde_json::Map::new(),
        };
        let mut writer = RecordingWriter::new(Format::Har, Vec::new(), Cursor::new(Vec::new())).unwrap();
        writer.part(&Part::Start(start)).unwrap();
        parts.iter().for_each(|part| writer.part(part).unwrap());
        writer.part(&Part::Finish { ended_at: None, end: None }).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        let archive: serde_json::Value = serde_json::from_str(&text).unwrap();
        // Indented, like every file that users read.
        let mut pretty = String::new();
        JsonTree::known(&text).pretty(&mut pretty, 0);
        assert_eq!(text, format!("{pretty}\n"));
        archive
    }

    #[test]
    fn an_exchange_over_http_is_an_entry_with_its_bodies() {
        let archive = archive(&[
            call(1, 5, 1),
            head(Side::Client, 0, 5, Some("POST"), None),
            head(Side::Server, 2, 10, None, Some(200)),
        ]);
        assert_eq!(archive["log"]["version"], "1.2");
        let entry = &archive["log"]["entries"][0];
        assert_eq!(entry["startedDateTime"], "2026-07-28T12:00:00.005Z");
        assert_eq!(entry["time"], 20);
        assert_eq!(entry["request"]["url"], "https://example.com/mcp?page=2");
        assert_eq!(entry["request"]["queryString"][0]["value"], "2");
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(entry["request"]["postData"]["text"], request);
        assert_eq!(entry["request"]["bodySize"], request.len());
        assert_eq!(entry["response"]["status"], 200);
        let body = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"\\\"\\n\"}}\n\n";
        assert_eq!(entry["response"]["content"]["text"], body);
        assert_eq!(entry["response"]["content"]["size"], body.len());
        assert_eq!(entry["timings"], serde_json::json!({"send": 0, "wait": 5, "receive": 15}));
    }

    #[test]
    fn several_messages_in_one_body_are_a_batch() {
        let archive = archive(&[call(2, 5, 2), call(1, 5, 1), head(Side::Client, 0, 5, Some("POST"), None)]);
        let entry = &archive["log"]["entries"][0];
        let request: serde_json::Value =
            serde_json::from_str(entry["request"]["postData"]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&request[0]["id"], &request[1]["id"]), (&1.into(), &2.into()));
        assert_eq!(entry["response"]["status"], 0);
        assert_eq!(archive["log"]["entries"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn an_exchange_without_bodies_has_none() {
        let archive = archive(&[head(Side::Client, 0, 5, Some("GET"), None)]);
        let request = &archive["log"]["entries"][0]["request"];
        assert!(request.get("postData").is_none());
        assert_eq!(request["bodySize"], 0);
    }
}
