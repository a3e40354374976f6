//! Redacts credentials in URLs.

use super::pseudonym::apply;
use super::pseudonym::is_pseudonym;
use super::redacted::SecretKind;
use super::secret_key;
use super::secret_scan::{RuleSet, SecretScan};

/// The text that users are shown in place of a secret.
const MASK: &str = "***";

/// Names of query parameters that are secrets only in a query.
const QUERY: &[&str] = &[
    "key",
    "sig",
    "signature",
    "code",
    "auth",
    "x-amz-signature",
    "x-amz-credential",
    "x-goog-signature",
    "x-goog-credential",
    "sas",
    "pass",
    "pw",
    "pat",
];

impl SecretScan<'_> {
    /// Redacts a URL inside a text; its `://` is at `middle`.
    pub(super) fn url_around(&mut self, text: &str, middle: usize) {
        let scheme = text[..middle]
            .bytes()
            .rev()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
            .count();
        let start = middle - scheme;
        let stops =
            |character: char| character.is_whitespace() || matches!(character, '"' | '<' | '>' | '`' | '\\' | '|');
        let end = middle + text[middle..].find(stops).unwrap_or(text.len() - middle);
        self.within(text, start..end, SecretScan::url);
    }

    /// Redacts a whole URL, or the path and query of one.
    pub(super) fn url(&mut self, url: &str) {
        if let Some(middle) = url.find("://") {
            self.userinfo(url, middle);
        }
        let Some(query) = url.find(['?', '#', ';']) else { return };
        let mut at = query + 1;
        for pair in url[query + 1..].split(['&', ';', '?', '#']) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let start = at + name.len() + 1;
            at += pair.len() + 1;
            let kind = match secret_key::secret(name) {
                Some(kind) => kind,
                None if QUERY.iter().any(|known| known.eq_ignore_ascii_case(name)) => SecretKind::Url,
                None => continue,
            };
            // The closing bracket or quote of a sentence may follow the URL.
            let value = if value.ends_with(']') { value } else { value.trim_end_matches([')', ',', '\'', '.']) };
            if !value.is_empty() {
                self.redact_range(url, start..start + value.len(), kind);
            }
        }
    }

    /// Redacts `user:password@` between the scheme and the host.
    fn userinfo(&mut self, url: &str, middle: usize) {
        let scheme = &url[..middle];
        let start = middle + 3;
        let rest = &url[start..];
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        let userinfo = match authority.rfind('@') {
            Some(at) => &authority[..at],
            // A password with an unescaped `/`: the text after the colon is no port.
            None => match (authority.split_once(':'), rest.rfind('@')) {
                (Some((_, port)), Some(at)) if !port.is_empty() && !port.bytes().all(|byte| byte.is_ascii_digit()) => {
                    &rest[..at]
                }
                _ => return,
            },
        };
        if is_pseudonym(userinfo) {
            return;
        }
        match userinfo.split_once(':') {
            Some((user, password)) => {
                self.redact_range(url, start + user.len() + 1..start + user.len() + 1 + password.len(), SecretKind::Url)
            }
            // A user name alone is often a token for a web server; in `ssh://git@host` it is only a name.
            None if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") => {
                self.redact_range(url, start..start + userinfo.len(), SecretKind::Url);
            }
            None => {}
        }
    }
}

/// A URL, or a text that is nearly one, for users: in errors, on a terminal, in a log.
///
/// ```
/// # use rehearsal_core::redact::shown_url;
/// assert_eq!(shown_url("http://joe:hunter2@host/mcp?key=sesame&x=1"), "http://joe:***@host/mcp?key=***&x=1");
/// assert_eq!(shown_url("joe:hunter2@host/mcp"), "joe:***@host/mcp");
/// assert_eq!(shown_url("http://127.0.0.1:3000/mcp"), "http://127.0.0.1:3000/mcp");
/// ```
pub fn shown_url(url: &str) -> String {
    // Without a scheme it is no URL, but it may still contain a password.
    let scheme = if url.contains("://") { "" } else { "http://" };
    let whole = format!("{scheme}{url}");
    let rules = RuleSet { standard: true, ..RuleSet::default() };
    let mut scan = SecretScan::new(&rules, "url");
    scan.url(&whole);
    scan.edits.iter_mut().for_each(|edit| edit.with = MASK.to_owned());
    let shown = apply(whole.as_bytes(), scan.edits);
    String::from_utf8_lossy(shown.strip_prefix(scheme.as_bytes()).unwrap_or(&shown)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redacted_url_has_no_secret_even_if_it_is_invalid() {
        let broken = [
            "http://joe:hunter2@h/",
            "http://hunter2@h/",
            "joe:hunter2@h",
            "ftp://joe:hunter2@h/",
            "http://joe:hunter2@ho st/",
            "http://joe:hunter2@/mcp",
            "http://joe:hun/ter2@h/",
            "http://joe:hunter2@",
            "https://h/?token=hunter2&x=1",
            "h/mcp?api_key=hunter2",
        ];
        for url in broken {
            let shown = shown_url(url);
            assert!(!shown.contains("ter2") && shown.contains(MASK), "{url}: {shown}");
        }
        for url in ["", "http://[::1]:9/a?x=1#y", "localhost:3000", "http://é/", "://", "@"] {
            assert_eq!(shown_url(url), url);
        }
    }
}
