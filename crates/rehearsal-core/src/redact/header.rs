//! Redacts credentials in HTTP headers.

use super::pseudonym::apply;
use super::redacted::{RedactedSecret, SecretKind};
use super::secret_key::{self, AmbiguousName};
use super::secret_scan::{RuleSet, SecretScan, after_scheme_word};
use crate::protocol::header::{LAST_EVENT_ID, METHOD, PARAM_PREFIX, PROTOCOL_VERSION, SESSION_ID, decode, encode};
use crate::trace::HttpHead;

/// Headers of the protocol, which are kept. A session id gives access to a session, but only until the server exits,
/// and messages could not be paired without it.
const NEVER_REDACTED: [&str; 4] = [SESSION_ID, PROTOCOL_VERSION, LAST_EVENT_ID, METHOD];

/// Headers that carry credentials although their names do not show it.
const CREDENTIALS: &[&str] =
    &["x-auth", "x-authentication", "www-authenticate-token", "x-forwarded-access", "x-functions-key"];

/// Headers of every request and response whose values are words and numbers of HTTP itself. The search for secrets in
/// them would be a large part of the cost of recording a call.
const PLAIN_HEADERS: [&str; 9] = [
    "accept",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "host",
    "keep-alive",
    "transfer-encoding",
];

/// Whether a head has no secrets, by one fast check of the whole head; `false` if each header must be checked.
pub(super) fn is_clean(rules: &RuleSet, head: &HttpHead) -> bool {
    if !rules.places.is_empty() || !rules.patterns.is_empty() {
        return false;
    }
    if head.target.as_ref().is_some_and(|target| target.contains(['?', '#', ';', '@'])) {
        return false;
    }
    // Names are written as in a JSON text, because the shortest names are found only with their quotes.
    let mut text = Vec::with_capacity(512);
    text.extend_from_slice(head.target.as_deref().unwrap_or_default().as_bytes());
    for (name, value) in head.headers.iter() {
        if is_one_of(name, &NEVER_REDACTED) || is_one_of(name, &PLAIN_HEADERS) {
            continue;
        }
        if is_one_of(name, CREDENTIALS) || value.starts_with(['/', '?']) || value.starts_with("=?") {
            return false;
        }
        let argument = name.get(PARAM_PREFIX.len()..).filter(|_| is_param(name));
        text.extend_from_slice(b"\n\"");
        text.extend(argument.unwrap_or(name).bytes().map(|byte| byte.to_ascii_lowercase()));
        text.extend_from_slice(b"\" ");
        text.extend_from_slice(value.as_bytes());
    }
    !rules.suspect(&text)
}

/// The value of a header without its secrets; `None` if it has none.
pub(super) fn header(rules: &RuleSet, name: &str, value: &str, hits: &mut Vec<RedactedSecret>) -> Option<String> {
    let by_user = !rules.places.is_empty() || !rules.patterns.is_empty();
    if is_one_of(name, &NEVER_REDACTED) || (!by_user && is_one_of(name, &PLAIN_HEADERS)) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let mut scan = SecretScan::new(rules, format!("header {lower}"));
    // `Mcp-Name` and `Mcp-Param-*` may be encoded in base64.
    let decoded = if lower.starts_with("mcp-") { decode(value) } else { None };
    let text = decoded.as_deref().unwrap_or(value);
    let argument = lower.get(PARAM_PREFIX.len()..).filter(|_| is_param(&lower));
    let named = argument.unwrap_or(&lower);
    let doubtful = || secret_key::ambiguous_name(named).filter(|doubt| doubt.is_secret(text)).map(AmbiguousName::kind);
    let secret = secret_key::secret(named).or_else(doubtful).filter(|_| rules.standard);
    let credentials = rules.standard && CREDENTIALS.contains(&lower.as_str());
    match secret.or(credentials.then_some(SecretKind::Authorization)) {
        Some(SecretKind::Authorization) => {
            scan.redact_range(text, after_scheme_word(text)..text.trim_end().len(), SecretKind::Authorization)
        }
        Some(SecretKind::Cookie) => scan.cookies(text, lower == "set-cookie"),
        Some(kind) => scan.redact_whole(text, kind),
        None => {
            if text.starts_with(['/', '?']) {
                scan.url(text);
            }
            scan.text(text);
        }
    }
    if scan.edits.is_empty() {
        return None;
    }
    hits.append(&mut scan.hits);
    let clean = String::from_utf8(apply(text.as_bytes(), scan.edits)).expect("pieces of text replaced by text");
    Some(if decoded.is_some() { encode(&clean).into_owned() } else { clean })
}

/// Whether a header repeats an argument; its name follows the prefix.
fn is_param(name: &str) -> bool {
    name.get(..PARAM_PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PARAM_PREFIX))
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}

impl SecretScan<'_> {
    /// Redacts `name=value; name=value`, or in `Set-Cookie` one such pair with its attributes. The names stay.
    pub(super) fn cookies(&mut self, text: &str, set: bool) {
        let mut at = 0;
        for pair in text.split(';').take(if set { 1 } else { usize::MAX }) {
            let name = pair.find('=').map_or(0, |equals| equals + 1);
            let value = pair[name..].trim();
            let start = at + name + (pair[name..].len() - pair[name..].trim_start().len());
            self.redact_range(text, start..start + value.len(), SecretKind::Cookie);
            at += pair.len() + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules() -> RuleSet {
        RuleSet { standard: true, ..RuleSet::default() }
    }

    fn head(target: &str, headers: &[(impl AsRef<str>, impl AsRef<str>)]) -> HttpHead {
        let headers = headers.iter().map(|(name, value)| (name, value)).collect();
        HttpHead { method: Some("POST".into()), target: Some(target.into()), status: None, headers }
    }

    #[test]
    fn an_ordinary_head_is_clean_at_first_sight() {
        let headers = [("Host", "127.0.0.1:9"), ("Mcp-Name", "echo"), ("Mcp-Session-Id", "8d6f"), ("Accept", "*/*")];
        assert!(is_clean(&rules(), &head("/mcp", &headers)));
        assert!(!is_clean(&rules(), &head("/mcp?key=1", &headers)));
        for name in [
            "Authorization",
            "X-Api-kEy",
            "x-auth",
            "X-Functions-Key",
            "Cookie",
            "pin",
            "Mcp-Param-pin",
            "X-Pass",
            "X-Custom-Auth",
            "X-Signature",
            "Authentication",
        ] {
            assert!(!is_clean(&rules(), &head("/mcp", &[(name, "12345")])), "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_head_that_the_quick_check_accepts_has_no_secret(
            target in prop::collection::vec(prop::sample::select(PIECES), 0..4),
            headers in prop::collection::vec(
                (prop::collection::vec(prop::sample::select(PIECES), 1..3), prop::collection::vec(prop::sample::select(PIECES), 0..4)),
                0..4,
            ),
        ) {
            let headers: Vec<_> = headers.into_iter().map(|(name, value)| (name.concat(), value.concat())).collect();
            let (rules, head) = (rules(), head(&target.concat(), &headers));
            if is_clean(&rules, &head) {
                for (name, value) in head.headers.iter() {
                    prop_assert_eq!(header(&rules, name, value, &mut Vec::new()), None, "{}: {}", name, value);
                }
                let mut scan = SecretScan::new(&rules, "url");
                let target = head.target.unwrap_or_default();
                scan.url(&target);
                scan.text(&target);
                prop_assert!(scan.edits.is_empty(), "{}", target);
            }
        }
    }

    const PIECES: &[&str] = &[
        "/mcp",
        "?",
        "key",
        "Key",
        "kEy",
        "=",
        "api",
        "-",
        "x-",
        "X-",
        "auth",
        "Authorization",
        "Bearer ",
        "token",
        "TOKEN",
        "abc123",
        "pin",
        "otp",
        "code",
        "cookie",
        "set-cookie",
        "mcp-param-",
        "password",
        "=?base64?aHVudGVyMg==?=",
        "://",
        "user:pw@",
        "host",
        "sk-proj-abcdefghijklmnop1234567890",
        "eyJ",
        " ",
        ";",
        "#",
        "functions",
        "access",
        "secret",
        "x-auth",
        "pass",
        "pat",
        "signature",
        "authentication",
        "1234",
    ];
}
