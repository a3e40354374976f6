//! Searches plain text for secrets: log lines, prose, command lines, configuration, and JSON inside of it.

use super::prefilter::{self, Signal};
use super::redacted::SecretKind;
use super::secret_key::{self, AmbiguousName};
use super::secret_scan::{SecretScan, after_scheme_word};
use super::{lines, pseudonym, token};

/// Maximum nesting of JSON texts in strings of JSON texts.
const NESTING: usize = 16;

impl SecretScan<'_> {
    /// Searches text that may contain JSON.
    pub(super) fn text(&mut self, text: &str) {
        if !self.rules.suspect(text.as_bytes()) {
            return;
        }
        // Each failed attempt to parse JSON costs time. The budget keeps the cost linear for a text full of such
        // attempts.
        let mut budget = text.len() * 4 + 1024;
        let mut done = 0;
        let mut from = 0;
        while let Some(offset) = text[from..].find(['{', '[']).filter(|_| budget > 0 && self.nesting < NESTING) {
            let open = from + offset;
            self.nesting += 1;
            let found = self.attempt(|scan| scan.json(text, open));
            self.nesting -= 1;
            match found {
                Ok(end) => {
                    self.within(text, done..open, SecretScan::plain);
                    (done, from) = (end, end);
                }
                Err(end) => {
                    budget = budget.saturating_sub(end - open);
                    from = open + 1;
                }
            }
        }
        self.within(text, done..text.len(), SecretScan::plain);
    }

    /// Searches text without JSON.
    pub(super) fn plain(&mut self, text: &str) {
        self.patterns(text);
        if !self.rules.standard {
            return;
        }
        self.commands(text);
        let mut done = 0;
        for found in prefilter::find(text.as_bytes()) {
            if found.start < done {
                continue;
            }
            let before = self.edits.len();
            match found.needle {
                Signal::Name => self.named(text, found.start, found.end, done),
                Signal::Token(_) | Signal::Jwt | Signal::Scheme | Signal::Pem => self.token(text, &found),
                Signal::Url => self.url_around(text, found.start),
                Signal::Harmless | Signal::Escape | Signal::Command => {}
            }
            done = self.edits[before..].iter().map(|edit| edit.range.end).max().unwrap_or(done);
        }
    }

    /// Searches for secrets that are recognized by their form alone.
    pub(super) fn tokens(&mut self, text: &str) {
        for found in prefilter::find(text.as_bytes()) {
            self.token(text, &found);
        }
    }

    /// Searches for the patterns of the user's rules. A match that is a pseudonym is skipped.
    fn patterns(&mut self, text: &str) {
        if self.rules.patterns.is_empty() {
            return;
        }
        let done: Vec<_> = pseudonym::all(text).collect();
        for pattern in &self.rules.patterns {
            for captures in pattern.captures_iter(text) {
                let whole = captures.get(0).expect("the whole match is always there");
                let range = captures.get(1).unwrap_or(whole).range();
                if done.iter().all(|done| range.end <= done.start || done.end <= range.start) {
                    self.redact_range(text, range, SecretKind::Rule);
                }
            }
        }
    }

    fn token(&mut self, text: &str, found: &prefilter::SignalMatch) {
        let start = found.start;
        let rest = &text[start..];
        match found.needle {
            Signal::Token(token) if begins_word(text, start) => {
                if let Some(length) = token.length(rest) {
                    // The address of a webhook is no secret, the path after it is.
                    let lead = if token.kind == SecretKind::Url { token.prefix.len() } else { 0 };
                    self.redact_range(text, start + lead..start + length, token.kind);
                }
            }
            Signal::Jwt if begins_word(text, start) && rest.starts_with("eyJ") => {
                if let Some(length) = token::jwt(rest) {
                    self.redact_range(text, start..start + length, SecretKind::Token);
                }
            }
            Signal::Scheme if begins_word(text, start) => {
                let value = found.end + (text[found.end..].len() - text[found.end..].trim_start_matches(' ').len());
                if let Some(length) = token::after_scheme(&text[value..]) {
                    self.redact_range(text, value..value + length, SecretKind::Authorization);
                }
            }
            Signal::Pem => self.private_key(text, start),
            Signal::Token(_)
            | Signal::Jwt
            | Signal::Scheme
            | Signal::Name
            | Signal::Url
            | Signal::Harmless
            | Signal::Command
            | Signal::Escape => {}
        }
    }

    /// Redacts `-----BEGIN RSA PRIVATE KEY-----`, its lines, and its end, if there is one.
    fn private_key(&mut self, text: &str, start: usize) {
        let Some(body) = lines::body(text.as_bytes(), start) else { return };
        let end = lines::end(text.as_bytes(), body);
        let inner = text[body..end].trim_matches(|edge: char| edge.is_whitespace());
        let inner_start = body + (text[body..end].len() - text[body..end].trim_start().len());
        self.redact_range(text, inner_start.min(end)..inner_start.min(end) + inner.len(), SecretKind::PrivateKey);
    }

    /// Redacts the value after the name of a secret, if there is one.
    fn named(&mut self, text: &str, start: usize, end: usize, done: usize) {
        let bytes = text.as_bytes();
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let start = start + usize::from(bytes[start] == b'"');
        let first = start - bytes[done..start].iter().rev().take_while(|byte| word(byte)).count();
        // For some names the needle includes the character that ends them.
        let end = start + bytes[start..end].iter().rposition(word).map_or(0, |last| last + 1);
        let last = end + bytes[end..].iter().take_while(|byte| word(byte)).count();
        let name = text[first..last].trim_matches(['-', '.']);
        let doubt = secret_key::ambiguous_name(name).filter(|doubt| *doubt != AmbiguousName::Tokens);
        let Some(kind) = secret_key::secret(name).or(doubt.map(AmbiguousName::kind)) else { return };
        let last = first + text[first..last].trim_end_matches(['-', '.']).len();
        let flag = text[first..].starts_with('-');
        let sentence_secret = || {
            // The word before it may change its meaning: `progress token`.
            let before = text[..first].trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
            secret_key::secret(&format!("{before} {name}")).and_then(|kind| sentence_secret(text, last, kind))
        };
        if let Some(range) = cookies(&text[last..]).filter(|_| kind == SecretKind::Cookie) {
            let set = name.eq_ignore_ascii_case("set-cookie");
            return self.within(text, last + range.start..last + range.end, |scan, text| scan.cookies(text, set));
        }
        let Some(value) = value(text, last, flag).or_else(sentence_secret) else { return };
        let signed = &text[last..value.start];
        let quoted = signed.ends_with(['"', '\'', '`']);
        let meant = |doubt: AmbiguousName| {
            let value = &text[value.start..value.end];
            let short = value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit());
            let assigned = doubt == AmbiguousName::Pass && (quoted || flag || signed.contains('=')) && !short;
            doubt.is_secret(value) && (assigned || token::looks_secret(value) || pseudonym::is_pseudonym(value))
        };
        if secret_key::secret(name).is_none() && !doubt.is_some_and(meant) {
            return;
        }
        let scheme =
            if kind == SecretKind::Authorization { after_scheme_word(&text[value.start..value.end]) } else { 0 };
        let range = value.start + scheme..value.end;
        let pwd = name.to_ascii_lowercase().ends_with("pwd");
        if !(pwd && text[range.clone()].starts_with(['/', '~'])) {
            self.redact_range(text, range, kind);
        }
    }
}

/// The position of a value in a text.
struct Value {
    start: usize,
    end: usize,
}

/// Finds the value of the name that ends at `at`:
///
/// ```text
/// password=hunter2   "password": "hunter2"   password: hunter2   \"password\":\"hunter2\"   <password>hunter2</password>
/// --password hunter2
/// ```
fn value(text: &str, at: usize, flag: bool) -> Option<Value> {
    let rest = &text[at..];
    if let Some(inner) = rest.strip_prefix('>') {
        let end = inner.find('<').unwrap_or(inner.len());
        return (end > 0 && inner[end..].starts_with("</")).then_some(Value { start: at + 1, end: at + 1 + end });
    }
    let closed = rest.trim_start_matches('\\').trim_start_matches(['"', '\'', '`', ']']);
    let spaced = closed.trim_start_matches([' ', '\t']);
    let signed = ["=>", ":=", "=", ":"].iter().find_map(|sign| Some((*sign, spaced.strip_prefix(sign)?)));
    let (sign, after) = match signed {
        Some(signed) => signed,
        None if flag && spaced.len() < rest.len() => (" ", spaced),
        None => return None,
    };
    // Code has comparisons with any value, so only a value with the form of a secret is one.
    let compared = sign == "=" && after.starts_with('=');
    let after = after.trim_start_matches(|first| compared && first == '=').trim_start_matches([' ', '\t']);
    // The value of a quoted name may be on the next line.
    let below = after.trim_start();
    let after = if closed.len() < rest.len() && below.starts_with(['"', '\'']) { below } else { after };
    // Python prints some strings as `u'…'` and `b'…'`.
    let after = after.strip_prefix(['u', 'b']).filter(|rest| rest.starts_with(['\'', '"'])).unwrap_or(after);
    let slashes = after.len() - after.trim_start_matches('\\').len();
    let start = text.len() - after.len();
    if let Some(length) = pseudonym::length(after) {
        return Some(Value { start, end: start + length });
    }
    if let Some(quote @ ('"' | '\'' | '`')) = after[slashes..].chars().next() {
        let start = start + slashes + 1;
        let end = closing(&text[start..], quote, slashes);
        return Some(Value { start, end: start + end });
    }
    let line = after.split(['\n', '\r']).next().unwrap_or_default().trim_end();
    let stops =
        |character: char| character.is_whitespace() || matches!(character, ';' | '&' | '"' | '\'' | '`' | '<' | '>');
    let word = &line[..line.find(stops).unwrap_or(line.len())];
    let word = word.trim_end_matches([',', ')', '}', ']']).trim_end_matches('\\');
    if word.is_empty() || is_reference(word) || is_expression(line) && !is_variable(text, at) {
        return None;
    }
    let alone = word.len() == line.trim_end_matches([',', '}', ')', ';']).len();
    let scheme = after_scheme_word(line);
    if sign != "="
        && scheme > 0
        && ["bearer", "basic", "token", "digest", "apikey"].iter().any(|known| word.eq_ignore_ascii_case(known))
    {
        let credentials =
            line[scheme..].find(|character: char| character.is_whitespace() || matches!(character, '"' | '\'' | ','));
        return Some(Value { start, end: start + scheme + credentials.unwrap_or(line.len() - scheme) });
    }
    // Prose may contain `token: the one that you got`; an assignment and a line of configuration have a value.
    let assigned = sign == "=" || sign == ":=" || (sign != " " && alone);
    let meant = (assigned && !compared) || token::looks_secret(word);
    meant.then_some(Value { start, end: start + word.len() })
}

/// Finds the value of a name in a sentence, without a sign between them; the value must have the form of a secret.
///
/// ```text
/// login failed with token 9aF2kQ71xVb0LmZe4tRw: expired
/// ```
fn sentence_secret(text: &str, at: usize, kind: SecretKind) -> Option<Value> {
    let rest = text[at..].strip_prefix(' ')?;
    let after_is = rest.strip_prefix("is ").filter(|_| kind == SecretKind::Password);
    if let Some(after_is) = after_is.and_then(|rest| rest.split(['\n', '\r']).next()) {
        // `the password is hunter2`, not `the password is sha256 of …`.
        let word = after_is.trim().trim_end_matches(['.', ',', ';', '!']);
        let start = at + " is ".len() + (after_is.len() - after_is.trim_start().len());
        if !word.contains(char::is_whitespace) && token::looks_secret(word) {
            return Some(Value { start, end: start + word.len() });
        }
    }
    let rest = rest.strip_prefix("is ").unwrap_or(rest).trim_start_matches(['"', '\'', '`', '(']);
    let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"_-+/=.~".contains(byte));
    let word = &rest[..rest.bytes().position(|byte| ends(&byte)).unwrap_or(rest.len())];
    let word = word.trim_end_matches('.');
    let start = text.len() - rest.len();
    token::looks_random(word).then_some(Value { start, end: start + word.len() })
}

/// The position of the quote that closes one behind `slashes` backslashes; the end of the text if there is none.
fn closing(text: &str, quote: char, slashes: usize) -> usize {
    let mut from = 0;
    while let Some(offset) = text[from..].find(quote) {
        let at = from + offset;
        let before = text[..at].len() - text[..at].trim_end_matches('\\').len();
        if before <= slashes {
            return at - before;
        }
        from = at + 1;
    }
    text.len()
}

/// Whether a word is a reference or a placeholder: `$TOKEN`, `${TOKEN}`, `<your token>` and similar.
fn is_reference(word: &str) -> bool {
    let stars = !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X'));
    stars
        || word.starts_with("${")
        || word.starts_with("{{")
        || (word.starts_with('$') && word[1..].bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        || matches!(word, "null" | "None" | "none" | "true" | "false" | "True" | "False" | "undefined")
}

/// Whether a line is code that computes a secret: `await getToken()`, `new Token(…)`, `config.get("token")`,
/// `process.env.TOKEN`.
fn is_expression(line: &str) -> bool {
    let is_word = |character: char| character.is_ascii_alphanumeric() || "_.".contains(character);
    let (name, rest) = line.split_at(line.find(|character| !is_word(character)).unwrap_or(line.len()));
    if ["await", "new", "yield", "typeof", "async", "function", "lambda"].contains(&name) {
        return rest.starts_with(' ');
    }
    let is_called = || {
        let after = rest.strip_prefix('(').and_then(|inner| Some(inner.split_once(')')?.1));
        after.is_some_and(|after| !after.starts_with(|first: char| first.is_alphanumeric()))
    };
    ["process.env.", "os.environ", "self.", "this."].iter().any(|first| name.starts_with(first))
        || name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && is_called()
}

/// Whether a name in capitals ends at `at`, directly followed by the sign and the value, as in `DB_PASSWORD=pa(ss)!`:
/// such a value may contain parentheses.
fn is_variable(text: &str, at: usize) -> bool {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let name = text[..at].rsplit(|character| !is_word(character)).next().unwrap_or_default();
    let is_assigned = text[at..].strip_prefix('=').is_some_and(|value| !value.starts_with([' ', '\t', '=']));
    is_assigned && !name.contains(|character: char| character.is_ascii_lowercase())
}

/// The cookies of a header line, up to its end or to the closing quote around it.
///
/// ```text
/// Cookie: theme=dark; session="8f14e45f"
/// ```
fn cookies(after_name: &str) -> Option<std::ops::Range<usize>> {
    let line = after_name.strip_prefix(':')?.trim_start_matches(' ');
    let name = &line[..line.find('=')?];
    if name.is_empty() || name.contains(|character: char| character.is_whitespace() || "\"';,{}".contains(character)) {
        return None;
    }
    let mut opened = false;
    let is_end = |(at, byte): (usize, u8)| match byte {
        b'"' if opened || line.as_bytes()[..at].ends_with(b"=") => {
            opened = !opened;
            false
        }
        b'"' | b'\'' | b'`' | b'\n' | b'\r' | b'\\' => true,
        _ => false,
    };
    let start = after_name.len() - line.len();
    Some(start..start + line.bytes().enumerate().position(is_end).unwrap_or(line.len()))
}

/// Whether a word begins here: `sk-` in `task-` does not.
fn begins_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
}
