//! The redaction of messages, texts and traces.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::header::{header, is_clean};
use super::pseudonym::apply;
use super::redacted::{RedactedSecret, SecretKind};
use super::rule::{RedactionRule, RuleTarget};
use super::secret_scan::{RuleSet, SecretScan};
use super::token::key_material;
use crate::message::{Body, Message};
use crate::trace::{Entry, EntryBody, HttpHead, Part, PlacedMessage, RecordedCall, SessionEnd, SessionStart};

/// The rules of what is redacted. Cheap to clone and to share.
#[derive(Clone, Debug)]
pub struct Redaction {
    pub(super) rules: Arc<RuleSet>,
}

impl Default for Redaction {
    fn default() -> Redaction {
        Redaction::standard()
    }
}

impl Redaction {
    /// Redacts credentials, which are recognized by their names or their form.
    pub fn standard() -> Redaction {
        Redaction { rules: Arc::new(RuleSet { standard: true, ..RuleSet::default() }) }
    }

    /// Redacts nothing.
    pub fn none() -> Redaction {
        Redaction { rules: Arc::default() }
    }

    /// Adds a user's rule.
    #[must_use]
    pub fn with(mut self, rule: RedactionRule) -> Redaction {
        let rules = Arc::make_mut(&mut self.rules);
        match rule.0 {
            RuleTarget::Place(place) => rules.places.push(place),
            RuleTarget::Text(pattern) => rules.patterns.push(pattern),
        }
        self
    }

    /// Whether nothing is ever redacted.
    pub fn is_none(&self) -> bool {
        !self.rules.standard && self.rules.places.is_empty() && self.rules.patterns.is_empty()
    }

    /// Redacts an event, and returns it with the replaced secrets. An event without secrets is returned unchanged,
    /// without a copy.
    ///
    /// A [`EntryBody::Piece`] is checked alone. So a caller that splits a line passes each piece together with all earlier
    /// bytes of its line, so that no secret is split.
    pub fn redact_entry_body(&self, what: EntryBody) -> (EntryBody, Vec<RedactedSecret>) {
        let mut hits = Vec::new();
        if self.is_none() {
            return (what, hits);
        }
        let what = match what {
            EntryBody::Message { from, channel, message, event_id } => {
                let message = self.redact_message(&message, &mut hits).unwrap_or(message);
                EntryBody::Message { from, channel, message, event_id }
            }
            EntryBody::Http { from, channel, head } => {
                EntryBody::Http { from, channel, head: self.head(head, &mut hits) }
            }
            EntryBody::Event { channel, name, id, data, retry } => {
                let data = self.line(data, "event", &mut hits);
                EntryBody::Event { channel, name, id, data, retry }
            }
            EntryBody::ChannelEnded { channel, why } => {
                EntryBody::ChannelEnded { channel, why: why.map(|why| self.line(why, "how it ended", &mut hits)) }
            }
            EntryBody::Stderr { line } => EntryBody::Stderr { line: self.line(line, "stderr", &mut hits) },
            EntryBody::Piece { from, channel, offset, bytes } => {
                let bytes = self.bytes(&bytes, "half a line", &mut hits).map_or(bytes, Bytes::from);
                EntryBody::Piece { from, channel, offset, bytes }
            }
            EntryBody::Ended(end) => EntryBody::Ended(self.end(end, &mut hits)),
        };
        (what, hits)
    }

    /// A message without its secrets; `None` if it has none.
    pub fn message(&self, message: &Message) -> Option<Message> {
        self.redact_message(message, &mut Vec::new())
    }

    /// Whether the bytes of a message certainly have no secrets; otherwise [`message`](Redaction::message) must check
    /// it.
    pub fn is_clean(&self, message: &[u8]) -> bool {
        self.is_none() || (message.starts_with(b"{") && !self.rules.suspect(message))
    }

    /// A text without its secrets: an error to be shown, a line of a log.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.edited(text, "text", &mut Vec::new()).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// The start of a session without its secrets: command line, environment, URL, metadata.
    pub fn start(&self, start: SessionStart) -> (SessionStart, Vec<RedactedSecret>) {
        let mut hits = Vec::new();
        let server_info = self.map(start.server_info, "server_info", &mut hits);
        let metadata = self.map(start.metadata, "metadata", &mut hits);
        (SessionStart { server_info, metadata, ..start }, hits)
    }

    /// A part of a trace without its secrets.
    pub fn part(&self, part: Part) -> (Part, Vec<RedactedSecret>) {
        match part {
            Part::Start(start) => {
                let (start, hits) = self.start(start);
                (Part::Start(start), hits)
            }
            Part::Call(call) => {
                let mut hits = Vec::new();
                let mut placed = |placed: PlacedMessage| {
                    let message = self.redact_message(&placed.message, &mut hits).unwrap_or(placed.message);
                    PlacedMessage { message, ..placed }
                };
                let request = placed(call.request);
                let response = call.response.map(placed);
                (Part::Call(Box::new(RecordedCall { request, response, ..*call })), hits)
            }
            Part::Entry(entry) => {
                let (what, hits) = self.redact_entry_body(entry.what);
                (Part::Entry(Entry { what, ..entry }), hits)
            }
            Part::Finish { ended_at, end } => {
                let mut hits = Vec::new();
                let end = end.map(|end| self.end(end, &mut hits));
                (Part::Finish { ended_at, end }, hits)
            }
        }
    }

    fn redact_message(&self, message: &Message, hits: &mut Vec<RedactedSecret>) -> Option<Message> {
        let raw = message.raw();
        match message.body() {
            Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Batch(_) => {
                self.bytes(raw, "", hits).map(Message::parse)
            }
            Body::Garbled(garbled) => {
                let clean = self.bytes(raw, "garbled", hits)?;
                Some(match garbled.reason.truncation() {
                    Some(_) => Message::garbled(clean, garbled.reason.clone()),
                    // The reason is found again, in a text without secrets.
                    None => Message::parse(clean),
                })
            }
        }
    }

    fn head(&self, head: HttpHead, hits: &mut Vec<RedactedSecret>) -> HttpHead {
        if is_clean(&self.rules, &head) {
            return head;
        }
        let target = head.target.map(|target| {
            let mut scan = SecretScan::new(&self.rules, "url");
            if self.rules.standard {
                scan.url(&target);
            }
            scan.text(&target);
            finish(scan, target, hits)
        });
        let mut clean = |name, value| header(&self.rules, name, value, hits).map_or(Cow::Borrowed(value), Cow::Owned);
        let headers = head.headers.iter().map(|(name, value)| (name, clean(name, value))).collect();
        HttpHead { target, headers, ..head }
    }

    fn end(&self, end: SessionEnd, hits: &mut Vec<RedactedSecret>) -> SessionEnd {
        match end {
            SessionEnd::Failed { why } => SessionEnd::Failed { why: self.line(why, "how it ended", hits) },
            SessionEnd::ClientClosed { .. }
            | SessionEnd::ServerExited { .. }
            | SessionEnd::Stopped
            | SessionEnd::Recovered => end,
        }
    }

    fn map(&self, map: Map<String, Value>, place: &str, hits: &mut Vec<RedactedSecret>) -> Map<String, Value> {
        if self.is_none() {
            return map;
        }
        let text = Value::Object(map).to_string();
        let clean = self.line(text, place, hits);
        serde_json::from_str(&clean).expect("edits keep an object an object")
    }

    fn line(&self, line: String, place: &str, hits: &mut Vec<RedactedSecret>) -> String {
        self.edited(&line, place, hits).unwrap_or(line)
    }

    fn edited(&self, text: &str, place: &str, hits: &mut Vec<RedactedSecret>) -> Option<String> {
        let clean = self.bytes(text.as_bytes(), place, hits)?;
        Some(String::from_utf8(clean).expect("pieces of text replaced by text"))
    }

    /// Redacts bytes that are one JSON value, a text, or nearly one of them.
    fn bytes(&self, bytes: &[u8], place: &str, hits: &mut Vec<RedactedSecret>) -> Option<Vec<u8>> {
        let mut clean = self.once(bytes, place, hits)?;
        // A pseudonym may change how the text around it is parsed, so the search is repeated until nothing changes.
        for _ in 0..MAX_PASSES {
            match self.once(&clean, place, hits) {
                Some(cleaner) => clean = cleaner,
                None => break,
            }
        }
        Some(clean)
    }

    fn once(&self, bytes: &[u8], place: &str, hits: &mut Vec<RedactedSecret>) -> Option<Vec<u8>> {
        let suspect = self.rules.suspect(bytes) || (self.rules.standard && key_material(bytes));
        if !suspect {
            return None;
        }
        let text = same_length(bytes);
        let mut scan = SecretScan::new(&self.rules, place);
        let whole = scan.json(&text, 0).is_ok_and(|end| text[end..].trim_ascii().is_empty());
        if !whole {
            // A partial message, or none: the edits that the walk found are kept, and the rest is searched as text for
            // names.
            scan.path.clear();
            scan.text(&text);
            if self.rules.standard && key_material(bytes) {
                let start = text.len() - text.trim_ascii_start().len();
                scan.redact_range(&text, start..text.trim_ascii_end().len(), SecretKind::PrivateKey);
            }
        }
        if scan.edits.is_empty() {
            return None;
        }
        hits.append(&mut scan.hits);
        Some(apply(bytes, scan.edits))
    }
}

/// Maximum number of searches of a text with secrets.
const MAX_PASSES: usize = 8;

fn finish(mut scan: SecretScan<'_>, text: String, hits: &mut Vec<RedactedSecret>) -> String {
    if scan.edits.is_empty() {
        return text;
    }
    hits.append(&mut scan.hits);
    String::from_utf8(apply(text.as_bytes(), scan.edits)).expect("pieces of text replaced by text")
}

/// The bytes as text with the same positions; a byte that is not UTF-8 becomes a control character.
fn same_length(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{1a}'));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Channel, Side};
    use crate::message::GarbledReason;
    use crate::redact::pseudonym;
    use proptest::prelude::*;
    use serde_json::json;

    /// Secrets that are recognized by their form at any place.
    const BY_FORM: &[&str] = &[
        "sk-proj-abcdefghijklmnop1234567890",
        "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AA",
        "sk_live_51H8abcDEF123456",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "gho_0123456789abcdefghijABCDEFGHIJ012345",
        "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789",
        "glpat-abcDEF123456ghiJKL78",
        "xoxb-123456789012-123456789012-abcdefghijklmnop",
        "xoxp-123456789012-abcdefABCDEF",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "ya29.a0AfH6SMBx1234567890abcdefg",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3ODkwMTIzNDU2Nzg5",
        "hf_abcdefghijklmnopqrstuvwxyz01234567",
        "SG.abcdefghijklmnop12345.ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefg",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    ];

    /// Secrets that are recognized only by their names.
    const BY_NAME: &[&str] =
        &["hunter2", "correct horse battery", "p@ss\"w\\ord", "пароль", "a/b+c==", "tab\there", "12"];

    const NAMES: &[&str] = &[
        "password",
        "api_key",
        "apiKey",
        "access_token",
        "clientSecret",
        "AWS_SECRET_ACCESS_KEY",
        "private_key",
        "passphrase",
        "refresh_token",
        "X-Api-Key",
        "GITHUB_TOKEN",
        "db.password",
    ];

    fn message(text: &str) -> EntryBody {
        let message = Message::parse(text.to_owned());
        EntryBody::Message { from: Side::Client, channel: Channel::MAIN, message, event_id: None }
    }

    fn shown(what: &EntryBody) -> String {
        match what {
            EntryBody::Message { message, .. } => message.text().into_owned(),
            EntryBody::Http { head, .. } => format!("{head:?}"),
            EntryBody::Event { data, .. } => data.clone(),
            EntryBody::ChannelEnded { why, .. } => why.clone().unwrap_or_default(),
            EntryBody::Stderr { line } => line.clone(),
            EntryBody::Piece { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
            EntryBody::Ended(end) => format!("{end:?}"),
        }
    }

    fn head(target: &str, headers: &[(&str, &str)]) -> EntryBody {
        let headers = headers.iter().copied().collect();
        let head = HttpHead { method: Some("POST".into()), target: Some(target.into()), status: None, headers };
        EntryBody::Http { from: Side::Client, channel: Channel(1), head }
    }

    /// Asserts that the secret was replaced by its pseudonym, and that a second redaction changes nothing.
    #[track_caller]
    fn assert_redacted(what: EntryBody, secret: &str) -> EntryBody {
        let before = shown(&what);
        let (clean, hits) = Redaction::standard().redact_entry_body(what);
        let text = shown(&clean);
        assert!(!text.contains(secret), "{secret} is still in {text}");
        let escaped = Value::from(secret).to_string();
        assert!(!text.contains(escaped.trim_matches('"')), "{secret} is still in {text}");
        assert!(text.contains("[redacted:"), "{before} ==> {text}");
        assert!(!hits.is_empty());
        assert!(hits.iter().all(|hit| !hit.place.contains(secret)), "{hits:?}");
        let again = Redaction::standard().redact_entry_body(clean.clone());
        assert_eq!(again, (clean.clone(), vec![]), "a second time changes nothing");
        clean
    }

    fn call(arguments: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": arguments}})
            .to_string()
    }

    fn result(result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string()
    }

    fn text_result(text: &str) -> String {
        result(&json!({"content": [{"type": "text", "text": text}]}))
    }

    #[test]
    fn a_secret_with_a_known_form_is_found_everywhere() {
        for secret in BY_FORM {
            assert_redacted(message(&call(&json!({"anything": secret}))), secret);
            assert_redacted(message(&call(&json!({"list": ["a", [secret]]}))), secret);
            assert_redacted(message(&call(&json!({"text": format!("use {secret}, please")}))), secret);
            assert_redacted(message(&call(&json!({"text": format!("line\n{secret}\n")}))), secret);
            assert_redacted(message(&text_result(&json!({"deep": {"json": [secret]}}).to_string())), secret);
            assert_redacted(
                message(&text_result(&json!({"text": json!({"x": secret}).to_string()}).to_string())),
                secret,
            );
            assert_redacted(message(&text_result(&format!("Result: {} (end)", json!({"x": secret})))), secret);
            assert_redacted(message(&result(&json!({ *secret: 1 }))), secret);
            assert_redacted(message(&format!("INFO starting with {secret}")), secret);
            assert_redacted(message(&format!("{{\"jsonrpc\":\"2.0\",\"params\":{{\"x\":\"{secret}")), secret);
            assert_redacted(EntryBody::Stderr { line: format!("token is {secret}") }, secret);
            assert_redacted(
                EntryBody::Stderr { line: json!({"level": "info", "msg": format!("got {secret}")}).to_string() },
                secret,
            );
            assert_redacted(EntryBody::Ended(SessionEnd::Failed { why: format!("cannot connect: {secret}") }), secret);
            assert_redacted(
                EntryBody::ChannelEnded { channel: Channel(1), why: Some(format!("refused {secret}")) },
                secret,
            );
            assert_redacted(head("/mcp", &[("X-Whatever", secret)]), secret);
            assert_redacted(head("/mcp", &[("Authorization", &format!("Bearer {secret}"))]), secret);
            assert_redacted(head(&format!("/mcp?x={secret}"), &[]), secret);
            let event = |data| EntryBody::Event { channel: Channel(1), name: None, id: None, data, retry: None };
            assert_redacted(event(format!("{{\"x\":\"{secret}\"}}")), secret);
            let error = json!({"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":format!("bad key {secret}"),"data":{"k":secret}}});
            assert_redacted(message(&error.to_string()), secret);
            let note =
                json!({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":secret}});
            assert_redacted(message(&note.to_string()), secret);
        }
    }

    #[test]
    fn a_secret_under_a_secret_name_is_found_everywhere() {
        for secret in BY_NAME {
            for name in NAMES {
                assert_redacted(message(&call(&json!({ *name: secret }))), secret);
                assert_redacted(message(&call(&json!({"deep": [{ *name: [{"v": secret}] }]}))), secret);
                assert_redacted(message(&text_result(&json!({ *name: secret }).to_string())), secret);
                let twice = json!({"text": json!({ *name: secret }).to_string()}).to_string();
                assert_redacted(message(&text_result(&twice)), secret);
                assert_redacted(message(&text_result(&format!("Echo: {}", json!({ *name: secret })))), secret);
                assert_redacted(message(&call(&json!({"env": [{"name": name, "value": secret}]}))), secret);
                assert_redacted(message(&call(&json!({"env": [{"value": secret, "key": name}]}))), secret);
                assert_redacted(EntryBody::Stderr { line: json!({ *name: secret }).to_string() }, secret);
                assert_redacted(EntryBody::Stderr { line: format!("config: {}", json!({ *name: secret })) }, secret);
                let torn = json!({ *name: secret }).to_string();
                assert_redacted(message(torn.trim_end_matches(['"', '}'])), secret);
            }
        }
        for name in NAMES {
            for (form, secret) in [
                (format!("{name}=hunter2"), "hunter2"),
                (format!("export {name}='hunter 2'; run"), "hunter 2"),
                (format!("{name}: correcthorse"), "correcthorse"),
                (format!("{name} = \"correct horse\""), "correct horse"),
                (format!("{{'{name}': 'hunter2', 'a': 1}}"), "hunter2"),
                (format!("\\\"{name}\\\":\\\"hunter2\\\""), "hunter2"),
                (format!("<{name}>hunter2</{name}>"), "hunter2"),
                (format!("Server=x;{name}=hunter2;Database=y"), "hunter2"),
                (format!("{{\"{name}\": hunter2}}"), "hunter2"),
                (format!("--{name} hunter2 --verbose"), "hunter2"),
                (format!("https://example.com/a?b=1&{name}=hunter2&c=2"), "hunter2"),
            ] {
                assert_redacted(EntryBody::Stderr { line: form.clone() }, secret);
                assert_redacted(message(&text_result(&form)), secret);
                assert_redacted(message(&form), secret);
            }
        }
    }

    #[test]
    fn secrets_under_names_of_two_meanings_are_found() {
        for name in ["pass", "db_pass", "SMTP_PASS", "auth", "authentication", "authorization_code", "code_verifier"]
            .iter()
            .chain(&["seed_phrase", "mnemonic", "security_answer", "pat", "signature"])
        {
            assert_redacted(message(&call(&json!({ *name: "ZZSECRET37" }))), "ZZSECRET37");
            assert_redacted(message(&text_result(&json!({ *name: "ZZSECRET37" }).to_string())), "ZZSECRET37");
            assert_redacted(EntryBody::Stderr { line: format!("{name}=ZZSECRET37") }, "ZZSECRET37");
        }
        assert_redacted(message(&call(&json!({"tokens": ["ZZSECRET37"]}))), "ZZSECRET37");
        for header in ["Authorization", "cookie", "X-Api-Key", "X-Auth-Token"] {
            assert_redacted(message(&call(&json!({"headers": [["a", "b"], [header, "ZZSECRET37"]]}))), "ZZSECRET37");
            assert_redacted(EntryBody::Stderr { line: format!(r#"sent [["{header}", "ZZSECRET37"]]"#) }, "ZZSECRET37");
        }
        let number = Redaction::standard().message(&Message::parse(call(&json!({"token": 123_456_789})))).unwrap();
        assert!(!number.text().contains("123456789"), "{number:?}");
        for name in ["X-Custom-Auth", "X-Pass", "Authentication", "X-Signature"] {
            assert_redacted(head("/mcp", &[(name, "ZZSECRET37")]), "ZZSECRET37");
        }
        assert_redacted(head("/mcp?pass=ZZSECRET37", &[]), "ZZSECRET37");
        assert_redacted(head("/mcp?pw=ZZSECRET37", &[]), "ZZSECRET37");
        for words in [&["--pass", "ZZ37"][..], &["--db-pass=ZZ37"], &["-u", "me:ZZ37"], &["--user", "me:ZZ37"]] {
            assert_redacted(message(&call(&json!({"args": words}))), "ZZ37");
        }
        for text in [
            "DB_PASS=ZZ37x",
            "export SMTP_PASS=ZZ37x",
            "pass: ZZ37x",
            "pass = ZZ37x",
            "run --pass ZZ37x now",
            "run --db-pass=ZZ37x now",
            "curl -u u:ZZ37x https://x",
            "curl -s --user u:ZZ37x https://x",
            "curl -H 'X-Api-Key: k' -u 'u:ZZ37x' https://x",
            "mysql -uroot -pZZ37x db",
            "mysqldump -pZZ37x db",
            "sshpass -p ZZ37x ssh me@host",
            "the password is ZZ37x.",
            "{\n \"api_key\":\n   \"ZZ37x\"",
            "> GET /a\n> Cookie: a=1; sid=ZZ37x\n> Host: x",
            "curl -H 'Cookie: a=1; b=\"x y\"; sid=ZZ37x' https://x",
            "if (token === \"ZZ37x\") {",
            "password = \"await ZZ37x\"",
            "DB_PASSWORD=ZZ37x(y)!",
        ] {
            assert_redacted(EntryBody::Stderr { line: text.to_owned() }, "ZZ37x");
            assert_redacted(message(&text_result(text)), "ZZ37x");
        }
    }

    #[test]
    fn ordinary_words_are_kept() {
        for text in [
            "the pass: two of three",
            "tests: pass: 12, fail: 3",
            "pass: ok",
            "# pass 12",
            "server -p 8080",
            "mkdir -p dir/a1b2c3",
            "docker run -u 1000:1000 image",
            "docker run --user node:node image",
            "sshpass -e ssh -p 2222 me@host",
            "mysql -u root -p",
            "curl -u me https://x",
            "curl https://x:8080/a",
            "the password is required",
            "the password is sha256 hashed",
            "auth: required",
            "auth service started, compass: north1234",
            "author: Kafka1924 signature: two pens",
            "const token = await getToken();",
            "if (password === undefined) {",
            "if password == stored:",
            "let apiKey = config.get(\"a\") || fallback;",
            "token = process.env.MY_TOKEN",
            "secret = new Secret(name)",
            "connect(password=read())",
            "Set-Cookie: ; Path=/; HttpOnly",
        ] {
            assert_eq!(Redaction::standard().text(text), text);
            let text = text_result(text);
            assert_eq!(Redaction::standard().message(&Message::parse(text.clone())), None, "{text}");
        }
        for value in [
            json!({"pass": true, "passed": "all of them", "compass": "north", "author": "Kafka", "oauth_enabled": true, "auth": null}),
            json!({"pass": 12, "tokens": 123_456_789, "max_tokens": 4_000_000, "inputTokens": 1_000_000, "totalToken": 1_000_000}),
            json!({"tokens": ["hello", "world", 15496], "auth": {"type": "oauth2", "url": "/a"}, "auth_type": "x"}),
            json!({"signature": "fn main() -> Result<(), Error>", "args": ["-u", "1000:1000", "-p", "8080", "mkdir", "-p", "dir"]}),
            json!({"authentication": "bearer", "first_pass": "done", "path": "/etc/x", "pattern": "a+"}),
            json!({"rows": [["password", "string"], ["pass", "12"], ["authorization", "cookie", "date"]], "required": ["api_key", "name"]}),
        ] {
            let text = result(&value);
            assert_eq!(Redaction::standard().message(&Message::parse(text.clone())), None, "{text}");
        }
    }

    #[test]
    fn session_metadata_has_no_secrets() {
        let server_info = json!({
            "command": "npx", "arguments": ["-y", "server", "--api-key", "k-123", "--token=t-456", "-e", "DB_PASSWORD=p-789", "https://me:u-012@host/x?sig=s-345"],
            "env": {"GITHUB_TOKEN": "g-678", "PWD": "/home/me", "OLDPWD": "/tmp", "PATH": "/bin", "MYSQL_PWD": "m-901"},
            "url": "https://host/mcp?access_token=a-234&page=2",
        });
        let Value::Object(server_info) = server_info else { panic!() };
        let Value::Object(metadata) = json!({"who": "me", "secret": "x-567", "n": 1.5}) else { panic!() };
        let start = SessionStart { session_id: "s".into(), server_info, started_at: None, metadata };
        let (clean, hits) = Redaction::standard().start(start);
        let text =
            Value::Object(clean.server_info.clone()).to_string() + &Value::Object(clean.metadata.clone()).to_string();
        for secret in ["k-123", "t-456", "p-789", "u-012", "s-345", "g-678", "m-901", "a-234", "x-567"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        for kept in [
            "\"-y\"",
            "--api-key",
            "--token=",
            "DB_PASSWORD=",
            "https://me:",
            "/home/me",
            "\"/tmp\"",
            "/bin",
            "page=2",
            "1.5",
        ] {
            assert!(text.contains(kept), "{kept} not in {text}");
        }
        assert_eq!(hits.len(), 9, "{hits:?}");
        assert_eq!(Redaction::standard().start(clean.clone()), (clean, vec![]));
    }

    #[test]
    fn headers_keep_their_shape() {
        for (name, value, expected) in [
            ("Authorization", "Bearer abc", format!("Bearer {}", pseudonym("abc"))),
            ("authorization", "Basic dTpw", format!("Basic {}", pseudonym("dTpw"))),
            ("Proxy-Authorization", "abc", pseudonym("abc")),
            ("Cookie", "a=1; b=\"x y\"", format!("a={}; b={}", pseudonym("1"), pseudonym("\"x y\""))),
            ("Set-Cookie", "sid=abc; Path=/; HttpOnly", format!("sid={}; Path=/; HttpOnly", pseudonym("abc"))),
            ("X-Api-Key", "abc", pseudonym("abc")),
            ("X-Amz-Security-Token", "abc", pseudonym("abc")),
            ("Mcp-Param-Token", "=?base64?w6k=?=", pseudonym("é")),
            ("Mcp-Param-Region", "us-east", "us-east".into()),
            (
                "Mcp-Session-Id",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln".into(),
            ),
            ("Location", "/cb?code=abc&state=x", format!("/cb?code={}&state=x", pseudonym("abc"))),
            ("Content-Type", "application/json", "application/json".into()),
        ] {
            let (clean, _) = Redaction::standard().redact_entry_body(head("/mcp", &[(name, value)]));
            let EntryBody::Http { head: clean_head, .. } = &clean else { panic!() };
            assert_eq!(clean_head.headers.iter().collect::<Vec<_>>(), [(name, expected.as_str())]);
            assert_eq!(Redaction::standard().redact_entry_body(clean.clone()).0, clean);
        }
    }

    #[test]
    fn a_secret_in_a_sentence_is_found_without_a_separator() {
        let secret = "9aF2kQ71xVb0LmZe4tRw";
        for sentence in ["login failed with token @: expired", "invalid API_KEY '@'.", "your password is @", "token @."]
        {
            let text = sentence.replace('@', secret);
            assert_redacted(message(&text_result(&text)), secret);
        }
        let kept = "the token that was given in 2026-07-28 has progress token 9aF2kQ71xVb0LmZe4tRw; see secret /etc/x/0123456789abcd";
        assert_eq!(Redaction::standard().text(kept), kept);
    }

    #[test]
    fn everything_but_the_secret_keeps_its_bytes() {
        let odd = r#" { "id":1 ,"jsonrpc":"2.0","method":"x","params":{"\u0070assword" : "\u0068unter2","n":1.50e+1, "t":"{\"a\\u00e9\":\/\"x\",\"api_key\": \"k\"}" ,"pin":1234,"token":7} } "#;
        let clean = Redaction::standard().message(&Message::parse(odd)).unwrap();
        let expected = odd
            .replace(r"\u0068unter2", &pseudonym("hunter2"))
            .replace("\"pin\":1234", &format!("\"pin\":{}", crate::redact::pseudonym::number("1234")));
        // The text of `t` is no JSON (`\/` before a quote), so its key is found as in any text.
        assert_eq!(clean.text(), expected.replace(r#"\"k\""#, &format!("\\\"{}\\\"", pseudonym("k"))));
        assert!(clean.as_request().is_some());
    }

    #[test]
    fn equal_secrets_have_one_pseudonym() {
        let expected = pseudonym("ghp_0123456789abcdefghijABCDEFGHIJ012345");
        for text in [
            call(&json!({"token": "ghp_0123456789abcdefghijABCDEFGHIJ012345"})),
            call(&json!({"x": "Bearer ghp_0123456789abcdefghijABCDEFGHIJ012345"})),
            text_result("GITHUB_TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345"),
            text_result("https://x:ghp_0123456789abcdefghijABCDEFGHIJ012345@github.com/a/b"),
        ] {
            let clean = Redaction::standard().message(&Message::parse(text)).unwrap();
            assert!(clean.text().contains(&expected), "{clean:?}");
        }
    }

    #[test]
    fn members_of_the_protocol_are_never_redacted() {
        let jwt = BY_FORM[17];
        let schema = json!({"type": "object", "properties": {"password": {"type": "string", "default": "hunter2"}, "token": {"type": "string"}}});
        for text in [
            json!({"jsonrpc":"2.0","id":jwt,"method":"tools/call","params":{"name":"get_token","_meta":{"progressToken":jwt,"io.modelcontextprotocol/subscriptionId":jwt},"arguments":{}}}),
            json!({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"abc","progress":1}}),
            json!({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":jwt}}),
            json!({"jsonrpc":"2.0","id":1,"result":{"nextCursor":jwt,"requestState":jwt,"tools":[{"name":"login","inputSchema":schema,"outputSchema":schema}]}}),
            json!({"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Your password?","requestedSchema":schema}}),
            json!({"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":100,"messages":[]}}),
            json!({"jsonrpc":"2.0","id":1,"result":{"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3},"keyboard":"us","key":"value","tokenize":"yes","token":3,"nextPageToken":"abc"}}),
            json!({"jsonrpc":"2.0","id":1,"result":{"openapi":{"properties":{"password":{"type":"string"}}}}}),
            json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":jwt}}),
            json!({"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","description":"token: the token that you got. Bearer authentication is needed; see https://example.com/docs?page=2#key"}]}}),
            json!({"jsonrpc":"2.0","id":1,"result":{"hasPassword":true,"password":null,"secret":"","passwordRequired":"yes"}}),
        ] {
            let text = text.to_string();
            let clean = Redaction::standard().message(&Message::parse(text.clone()));
            assert_eq!(clean.map(|clean| clean.text().into_owned()), None, "{text}");
        }
        let batch = r#"[{"jsonrpc":"2.0","id":"Bearer abcdefgh1234","method":"x","params":{"password":"a"}}]"#;
        let clean = Redaction::standard().message(&Message::parse(batch)).unwrap();
        assert_eq!(clean.text(), batch.replace("\"a\"", &format!("\"{}\"", pseudonym("a"))));
    }

    #[test]
    fn a_private_key_is_found_whole_cut_off_and_line_by_line() {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        for end in ["\n-----END PRIVATE KEY-----\n", "", "\n"] {
            let key = format!("-----BEGIN PRIVATE KEY-----\n{body}\n{body}{end}");
            assert_redacted(message(&call(&json!({"text": key}))), body);
            assert_redacted(message(&call(&json!({"privateKey": key}))), body);
            assert_redacted(EntryBody::Stderr { line: key }, body);
        }
        assert_redacted(EntryBody::Stderr { line: body.to_owned() }, body);
        assert_redacted(message(body), body);
        let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let (line, hits) = Redaction::standard().redact_entry_body(EntryBody::Stderr { line: digest.to_owned() });
        assert_eq!((shown(&line).as_str(), hits.len()), (digest, 0));
    }

    #[test]
    fn bytes_that_are_not_text_keep_their_place() {
        let raw = [b"\xff\xfe password=hunter2 \x80".as_slice()].concat();
        let message = Message::parse(raw);
        let clean = Redaction::standard().message(&message).unwrap();
        let expected = [b"\xff\xfe password=".as_slice(), pseudonym("hunter2").as_bytes(), b" \x80"].concat();
        assert_eq!(clean.raw(), &expected);
        let half = Message::garbled(r#"{"password":"hunter2"#, GarbledReason::PartialLine);
        let clean = Redaction::standard().message(&half).unwrap();
        assert_eq!(clean.as_garbled().unwrap().reason, GarbledReason::PartialLine);
    }

    #[test]
    fn user_rules_apply_with_or_without_the_standard_rules() {
        let text =
            call(&json!({"ssn": "123-45-6789", "list": [{"iban": 42}], "note": "id 987-65-4321", "password": "x"}));
        let rule = |text: &str| RedactionRule::parse(text).unwrap();
        let clean = |redaction: Redaction| {
            redaction.message(&Message::parse(text.clone())).map(|clean| clean.text().into_owned())
        };
        let by_place = clean(Redaction::none().with(rule("$.params.arguments.ssn"))).unwrap();
        assert_eq!(by_place, text.replace("123-45-6789", &pseudonym("123-45-6789")));
        let deep = clean(Redaction::none().with(rule("$..iban"))).unwrap();
        assert!(!deep.contains("42"), "{deep}");
        let by_pattern = clean(Redaction::none().with(rule(r"\d{3}-\d{2}-\d{4}"))).unwrap();
        assert_eq!(by_pattern.matches("[redacted:").count(), 2);
        let group = clean(Redaction::none().with(rule(r"id (\d+)-"))).unwrap();
        assert!(group.contains(&format!("id {}-65", pseudonym("987"))), "{group}");
        let both = clean(Redaction::standard().with(rule("$.params.arguments.*"))).unwrap();
        assert_eq!(both.matches("[redacted:").count(), 3, "{both}");
        assert_eq!(clean(Redaction::none()), None);
    }

    #[test]
    fn each_redacted_secret_has_a_kind_and_a_place() {
        let text = call(&json!({"user": {"password": "x"}, "rows": [{"t": "Bearer abcdef123456"}]}));
        let (_, hits) = Redaction::standard().redact_entry_body(message(&text));
        let expected = [
            (SecretKind::Password, "$.params.arguments.user.password"),
            (SecretKind::Authorization, "$.params.arguments.rows[*].t"),
        ];
        assert_eq!(hits, expected.map(|(kind, place)| RedactedSecret { kind, place: place.into() }));
    }

    fn leaf() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            prop::sample::select(BY_FORM.to_vec()).prop_map(Value::from),
            "[a-z ]{0,6}(password|token|api key|secret)[=: ]{1,2}[a-zA-Z0-9\"{}\\[\\]\\\\/@:]{0,12}"
                .prop_map(Value::from),
            "https?://[a-z:@/?&=#%.]{0,20}".prop_map(Value::from),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let key = prop_oneof![
            any::<String>(),
            "[a-z]{1,6}",
            prop::sample::select(vec![
                "password",
                "token",
                "name",
                "value",
                "args",
                "secret",
                "_meta",
                "inputSchema",
                "pin"
            ])
            .prop_map(str::to_owned),
        ];
        leaf().prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner.clone()), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
                inner.prop_map(|inner| Value::from(inner.to_string())),
            ]
        })
    }

    fn same_shape(left: &Value, right: &Value) -> bool {
        match (left, right) {
            (Value::Null, Value::Null)
            | (Value::Number(_), Value::Number(_))
            | (Value::String(_), Value::String(_)) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Array(left), Value::Array(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_shape(left, right))
            }
            (Value::Object(left), Value::Object(right)) => {
                left.len() == right.len()
                    && left.values().zip(right.values()).all(|(left, right)| same_shape(left, right))
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn redacted_json_keeps_its_shape_and_redaction_is_idempotent(arguments in value()) {
            let text = call(&arguments);
            let redaction = Redaction::standard().with(RedactionRule::parse("z+").unwrap());
            if let Some(clean) = redaction.message(&Message::parse(text.clone())) {
                prop_assert!(clean.as_request().is_some());
                let (before, after): (Value, Value) = (serde_json::from_str(&text).unwrap(), serde_json::from_slice(clean.raw()).unwrap());
                prop_assert!(same_shape(&before, &after), "{} {}", before, after);
                let again = redaction.message(&clean);
                prop_assert_eq!(again.map(|again| again.text().into_owned()), None, "{}", clean.text());
            }
        }

        #[test]
        fn no_text_panics_and_redaction_is_idempotent(text in "([a-z]{0,4}(password|token|Bearer |://|secret|-----BEGIN |eyJ|\"|'|\\\\|=|:|@|\\{|\\[|\\}|[?&#;<> \n]|[A-Za-z0-9]{1,12})){0,12}") {
            let redaction = Redaction::standard();
            let once = redaction.text(&text).into_owned();
            prop_assert_eq!(redaction.text(&once).into_owned(), once);
        }

        #[test]
        fn data_without_secrets_stays_unchanged(words in prop::collection::vec("[a-fh-z]{1,8}", 0..20), number: i64) {
            let text = call(&json!({"query": words.join(" "), "limit": number, "items": words}));
            prop_assert_eq!(Redaction::standard().message(&Message::parse(text)), None);
        }
    }
}
