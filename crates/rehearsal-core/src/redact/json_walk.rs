//! Searches JSON for secrets, by the keys of values.

use super::redacted::SecretKind;
use super::secret_key::{self, AmbiguousName};
use super::secret_scan::SecretScan;
use crate::json::{Segment, leads_to};

/// How a value is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueMode {
    /// Search it.
    Inspect,
    /// Redact it, whatever its type.
    Hide(SecretKind),
    /// Its name is ambiguous: a text may be secret, an object has names of its own.
    Doubt(AmbiguousName),
    /// Keep it, because it belongs to the protocol.
    Keep,
}

/// An object or array around the current value.
struct Level {
    array: bool,
    /// Whether it is an array in an array, such as a header and its value.
    pair: bool,
    mode: ValueMode,
    /// In an array: the type of secret, if the last element was a flag such as `--token`.
    flag: Option<SecretKind>,
    /// In an array: whether the last element was `-u` or `--user`.
    user: bool,
    /// In an object: the type of secret that `name` or `key` gives to `value`. In a pair: the type that the first
    /// element gives to the second.
    named: Option<SecretKind>,
    /// In an object or a pair: the range of that value.
    value: Option<std::ops::Range<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

/// Keys directly in `params` and `result` that belong to the protocol.
const PROTOCOL: &[&str] = &[
    "progressToken",
    "cursor",
    "nextCursor",
    "requestState",
    "requestId",
    "taskId",
    "protocolVersion",
    "elicitationId",
    "resultType",
    "name",
];

const SCHEMAS: &[&str] =
    &["inputSchema", "outputSchema", "requestedSchema", "input_schema", "output_schema", "requested_schema"];

/// Keys of a schema below which there are the names of arguments, not their values.
const DEFINITIONS: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

impl SecretScan<'_> {
    /// Searches the JSON value that begins at `start`. Returns the position of its end, or of the first invalid byte;
    /// the edits up to there are kept. A string that is cut off by the end of the text is searched too.
    pub(super) fn json(&mut self, text: &str, start: usize) -> Result<usize, usize> {
        let bytes = text.as_bytes();
        let mut stack: Vec<Level> = Vec::new();
        let mut next = Next::Value;
        let mut mode = self.mode(ValueMode::Inspect);
        let mut at = start;
        loop {
            at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let Some(&byte) = bytes.get(at) else { return Err(at) };
            let ended = match (next, byte) {
                (Next::Value | Next::ValueOrEnd, b'{' | b'[') => {
                    let array = byte == b'[';
                    let pair = array && stack.last().is_some_and(|level| level.array);
                    stack.push(Level { array, pair, mode, flag: None, user: false, named: None, value: None });
                    if array {
                        self.path.push(Segment::Index(0));
                        mode = self.mode(mode);
                    }
                    next = if array { Next::ValueOrEnd } else { Next::KeyOrEnd };
                    at += 1;
                    continue;
                }
                (Next::ValueOrEnd, b']') | (Next::KeyOrEnd, b'}') => true,
                (Next::CommaOrEnd, b']') if stack.last().is_some_and(|level| level.array) => true,
                (Next::CommaOrEnd, b'}') if stack.last().is_some_and(|level| !level.array) => true,
                (Next::CommaOrEnd, b',') => {
                    let level = stack.last().ok_or(at)?;
                    mode = level.mode;
                    if level.array {
                        if let Some(Segment::Index(index)) = self.path.last_mut() {
                            *index += 1;
                        }
                        mode = self.mode(mode);
                        next = Next::Value;
                    } else {
                        self.path.pop();
                        next = Next::Key;
                    }
                    at += 1;
                    continue;
                }
                (Next::Key | Next::KeyOrEnd, b'"') => {
                    let level = stack.last().ok_or(at)?.mode;
                    let (end, closed) = string_end(bytes, at + 1);
                    self.key(text, at + 1..end);
                    mode = self.mode(level);
                    at = end + usize::from(closed);
                    at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                    if bytes.get(at) != Some(&b':') {
                        return Err(at);
                    }
                    at += 1;
                    next = Next::Value;
                    continue;
                }
                (Next::Value | Next::ValueOrEnd, b'"') => {
                    let (end, closed) = string_end(bytes, at + 1);
                    self.string(text, at + 1..end, mode, stack.last_mut());
                    if !closed {
                        return Err(end);
                    }
                    at = end + 1;
                    false
                }
                (Next::Value | Next::ValueOrEnd, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                    let end = at + bytes[at..].iter().take_while(|byte| is_literal(**byte)).count();
                    self.literal(text, at..end, mode)?;
                    at = end;
                    false
                }
                (Next::Value | Next::ValueOrEnd | Next::Key | Next::KeyOrEnd | Next::CommaOrEnd, _) => return Err(at),
            };
            if ended {
                at += 1;
                let level = stack.pop().ok_or(at)?;
                self.end(text, &level, next);
            }
            if stack.is_empty() {
                return Ok(at);
            }
            next = Next::CommaOrEnd;
        }
    }

    /// Sets the path to this key.
    fn key(&mut self, text: &str, range: std::ops::Range<usize>) {
        let mut key = String::new();
        self.within_string(text, range, |scan, name| {
            key.push_str(name);
            if scan.rules.standard {
                scan.tokens(name);
            }
        });
        self.path.push(Segment::Key(key));
    }

    fn end(&mut self, text: &str, level: &Level, next: Next) {
        let last = if level.array || next == Next::CommaOrEnd { self.path.pop() } else { None };
        if level.array && last != Some(Segment::Index(1)) {
            return;
        }
        if let (Some(kind), Some(value)) = (level.named, level.value.clone()) {
            self.path.push(if level.array { Segment::Index(1) } else { Segment::Key("value".to_owned()) });
            self.within_string(text, value, |scan, text| scan.redact_whole(text, kind));
            self.path.pop();
        }
    }

    fn string(&mut self, text: &str, range: std::ops::Range<usize>, mode: ValueMode, level: Option<&mut Level>) {
        let flagged = level.as_ref().and_then(|level| level.flag);
        let user = level.as_ref().is_some_and(|level| level.user);
        let mut flag = None;
        let mut user_next = false;
        let mut named = None;
        let pair = level.as_ref().is_some_and(|level| level.pair);
        let pairs = self.rules.standard && level.as_ref().is_some_and(|level| !level.array || level.pair);
        let role = if pairs { self.path.last().and_then(role) } else { None };
        match (mode, flagged) {
            (ValueMode::Keep, _) => {}
            (ValueMode::Hide(kind), _) | (ValueMode::Inspect | ValueMode::Doubt(_), Some(kind)) => {
                self.within_string(text, range.clone(), |scan, text| scan.redact_whole(text, kind));
            }
            (ValueMode::Doubt(doubt), None) if doubt.is_secret(&text[range.clone()]) => {
                self.within_string(text, range.clone(), |scan, text| scan.redact_whole(text, doubt.kind()));
            }
            (ValueMode::Inspect | ValueMode::Doubt(_), None) => {
                self.within_string(text, range.clone(), |scan, text| {
                    if scan.rules.standard {
                        flag = flag_name(text).and_then(name_of_secret);
                        let name = if pair { name_of_header } else { name_of_secret };
                        named = role.filter(|role| *role == MemberRole::Name).and_then(|_| name(text));
                        if user {
                            scan.user(text, 0..text.len());
                        }
                        user_next = matches!(text, "-u" | "--user" | "--proxy-user");
                    }
                    scan.text(text);
                })
            }
        }
        if let Some(level) = level {
            level.flag = flag.filter(|_| level.array);
            level.user = user_next && level.array;
            level.named = level.named.or(named);
            if role == Some(MemberRole::Value) && mode == ValueMode::Inspect {
                level.value = Some(range);
            }
        }
    }

    fn literal(&mut self, text: &str, range: std::ops::Range<usize>, mode: ValueMode) -> Result<(), usize> {
        let literal = &text[range.clone()];
        if matches!(literal, "true" | "false" | "null") {
            return Ok(());
        }
        if serde_json::from_str::<&serde_json::value::RawValue>(literal).is_err() {
            return Err(range.start);
        }
        let matched = || self.rules.patterns.iter().any(|pattern| pattern.is_match(literal));
        match mode {
            ValueMode::Keep => {}
            // A `token` or a `pass` that is a small number is a count.
            ValueMode::Hide(SecretKind::Token) | ValueMode::Doubt(AmbiguousName::Pass | AmbiguousName::Pat)
                if !is_long_number(literal) => {}
            ValueMode::Doubt(doubt @ (AmbiguousName::Pass | AmbiguousName::Pat)) => {
                self.hide_number(text, range, doubt.kind())
            }
            ValueMode::Hide(kind) => self.hide_number(text, range, kind),
            ValueMode::Inspect | ValueMode::Doubt(_) if matched() => self.hide_number(text, range, SecretKind::Rule),
            ValueMode::Inspect | ValueMode::Doubt(_) => {}
        }
        Ok(())
    }

    /// How the value at the current path is treated, inside a value with the mode `parent`.
    fn mode(&self, parent: ValueMode) -> ValueMode {
        if self.rules.places.iter().any(|place| leads_to(place, self.message_path())) {
            return ValueMode::Hide(SecretKind::Rule);
        }
        match parent {
            ValueMode::Keep | ValueMode::Hide(_) => parent,
            ValueMode::Inspect | ValueMode::Doubt(_) if self.keeps() => ValueMode::Keep,
            ValueMode::Doubt(_) if matches!(self.path.last(), Some(Segment::Index(_))) => parent,
            ValueMode::Inspect | ValueMode::Doubt(_) if !self.rules.standard => ValueMode::Inspect,
            ValueMode::Inspect | ValueMode::Doubt(_) => match self.path.as_slice() {
                [.., Segment::Key(parent), Segment::Key(_)] if DEFINITIONS.contains(&parent.as_str()) => {
                    ValueMode::Inspect
                }
                [.., Segment::Key(name)] => match (secret_key::secret(name), secret_key::ambiguous_name(name)) {
                    (Some(kind), _) => ValueMode::Hide(kind),
                    (None, Some(doubt)) => ValueMode::Doubt(doubt),
                    (None, None) => ValueMode::Inspect,
                },
                [.., Segment::Index(_)] | [] => ValueMode::Inspect,
            },
        }
    }

    /// The path in the message; a batch holds several messages.
    fn message_path(&self) -> &[Segment] {
        match self.path.as_slice() {
            [Segment::Index(_), rest @ ..] => rest,
            path => path,
        }
    }

    /// Whether the current path belongs to the protocol.
    fn keeps(&self) -> bool {
        let Some(Segment::Key(last)) = self.path.last() else { return false };
        if SCHEMAS.contains(&last.as_str()) {
            return true;
        }
        if !self.place.is_empty() {
            return false;
        }
        match self.message_path() {
            [Segment::Key(key)] => matches!(key.as_str(), "jsonrpc" | "id" | "method"),
            [Segment::Key(part), Segment::Key(key)] if part == "params" || part == "result" => {
                PROTOCOL.contains(&key.as_str())
            }
            [.., Segment::Key(meta), Segment::Key(key)] if meta == "_meta" => {
                key == "progressToken" || key.starts_with("io.modelcontextprotocol/")
            }
            [..] => false,
        }
    }
}

/// The role of a member in an object with a name and a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberRole {
    /// `{"name": "API_KEY", …`
    Name,
    /// `… "value": "…"}`
    Value,
}

fn role(segment: &Segment) -> Option<MemberRole> {
    let key = match segment {
        Segment::Key(key) => key,
        Segment::Index(0) => return Some(MemberRole::Name),
        Segment::Index(1) => return Some(MemberRole::Value),
        Segment::Index(_) => return None,
    };
    match key.to_ascii_lowercase().as_str() {
        "name" | "key" | "header" | "field" | "variable" => Some(MemberRole::Name),
        "value" | "val" => Some(MemberRole::Value),
        _ => None,
    }
}

/// The type of secret with this name, if the name is itself a value: `{"name": "pass", "value": "x"}`, `--pass x`.
fn name_of_secret(name: &str) -> Option<SecretKind> {
    let doubtful = || {
        secret_key::ambiguous_name(name)
            .filter(|doubt| matches!(doubt, AmbiguousName::Pass | AmbiguousName::Pat))
            .map(AmbiguousName::kind)
    };
    secret_key::secret(name).or_else(doubtful)
}

/// The type of secret in a header with this name. A pair of other words, such as `["password", "string"]`, may mean
/// anything.
fn name_of_header(name: &str) -> Option<SecretKind> {
    let kind = secret_key::secret(name)?;
    (matches!(kind, SecretKind::Authorization | SecretKind::Cookie | SecretKind::ApiKey) || name.contains('-'))
        .then_some(kind)
}

/// Whether a number has six digits or more, as a one-time code has.
fn is_long_number(literal: &str) -> bool {
    literal.len() >= 6 && literal.bytes().all(|byte| byte.is_ascii_digit())
}

/// `token` of `--token` or `-token`; `None` for any other text.
fn flag_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!name.is_empty() && name.bytes().all(word)).then_some(name)
}

/// The end of a string, and whether its closing quote is present.
fn string_end(bytes: &[u8], start: usize) -> (usize, bool) {
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return (at, true),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    (bytes.len(), false)
}

fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}
