//! Credentials in HTTP headers.

use super::edit::apply;
use super::hit::{Hit, Kind};
use super::key;
use super::scan::{Rules, Scan, after_scheme_word};
use crate::protocol::header::{LAST_EVENT_ID, METHOD, PARAM_PREFIX, PROTOCOL_VERSION, SESSION_ID, decode, encode};

/// Headers that the protocol reads. A session id opens a session, but one that ends with the server, and nothing would
/// pair without it.
const KEPT: [&str; 4] = [SESSION_ID, PROTOCOL_VERSION, LAST_EVENT_ID, METHOD];

/// Headers that carry credentials and are not called so.
const CREDENTIALS: &[&str] =
    &["x-auth", "x-authentication", "www-authenticate-token", "x-forwarded-access", "x-functions-key"];

/// Headers of every request and response whose values are words and numbers of HTTP itself. Looking for secrets in them
/// would be a good part of what recording a call costs.
const PLAIN: [&str; 8] = [
    "accept",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "transfer-encoding",
];

/// The value of a header without its secrets; `None` where there are none.
pub(super) fn header(rules: &Rules, name: &str, value: &str, hits: &mut Vec<Hit>) -> Option<String> {
    let is_one_of = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    let by_user = !rules.places.is_empty() || !rules.patterns.is_empty();
    if is_one_of(&KEPT) || (!by_user && is_one_of(&PLAIN)) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let mut scan = Scan::new(rules, format!("header {lower}"));
    // `Mcp-Name` and `Mcp-Param-*` may be written in base64.
    let decoded = if lower.starts_with("mcp-") { decode(value) } else { None };
    let text = decoded.as_deref().unwrap_or(value);
    let argument = lower.strip_prefix(&PARAM_PREFIX.to_ascii_lowercase());
    let secret = key::secret(argument.unwrap_or(&lower)).filter(|_| rules.standard);
    let credentials = rules.standard && CREDENTIALS.contains(&lower.as_str());
    match secret.or(credentials.then_some(Kind::Authorization)) {
        Some(Kind::Authorization) => {
            scan.hide(text, after_scheme_word(text)..text.trim_end().len(), Kind::Authorization)
        }
        Some(Kind::Cookie) => scan.cookies(text, lower == "set-cookie"),
        Some(kind) => scan.hide_whole(text, kind),
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

impl Scan<'_> {
    /// `name=value; name=value`, or in `Set-Cookie` one of them and its attributes. The names stay.
    fn cookies(&mut self, text: &str, set: bool) {
        let mut at = 0;
        for pair in text.split(';').take(if set { 1 } else { usize::MAX }) {
            let name = pair.find('=').map_or(0, |equals| equals + 1);
            let value = pair[name..].trim();
            let start = at + name + (pair[name..].len() - pair[name..].trim_start().len());
            self.hide(text, start..start + value.len(), Kind::Cookie);
            at += pair.len() + 1;
        }
    }
}
