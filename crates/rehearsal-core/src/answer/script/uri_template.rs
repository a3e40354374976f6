//! Which URIs a pattern such as `notes://{id}/text` stands for.

use regex::Regex;
use serde_json::{Map, Value};

/// RFC 6570 read backwards, as far as that is clear: `{name}` is a segment, `{+name}` and `{#name}` anything.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    /// `None` is a pattern that fits nothing.
    pattern: Option<Regex>,
    variables: Vec<String>,
}

impl UriTemplate {
    /// Reads a pattern.
    pub fn read(written: &str) -> Result<UriTemplate, String> {
        let (mut pattern, mut variables, mut rest) = (String::from("^"), Vec::new(), written);
        while let Some(start) = rest.find('{') {
            pattern.push_str(&regex::escape(&rest[..start]));
            let end = rest[start..].find('}').ok_or("a `{` without its `}`")? + start;
            let expression = &rest[start + 1..end];
            let (operator, names) = match expression.chars().next() {
                Some(first) if "+#./;?&".contains(first) => (Some(first), &expression[1..]),
                _ => (None, expression),
            };
            let names: Vec<_> = names.split(',').map(|name| name.trim_end_matches('*')).collect();
            let is_name =
                |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
            if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
                return Err(format!("`{{{expression}}}` has no variable in it that could be called {wrong:?}"));
            }
            pattern.push_str(&expansion(operator, &names));
            variables.extend(names.iter().map(|name| (*name).to_owned()));
            rest = &rest[end + 1..];
        }
        pattern.push_str(&regex::escape(rest));
        pattern.push('$');
        let pattern = Regex::new(&pattern).map_err(|error| error.to_string())?;
        Ok(UriTemplate { pattern: Some(pattern), variables })
    }

    /// The pattern of no URI.
    pub(in crate::answer) fn nothing() -> UriTemplate {
        UriTemplate { pattern: None, variables: Vec::new() }
    }

    /// The variables in the order of the pattern.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The values that make the pattern this URI.
    pub fn matches(&self, uri: &str) -> Option<Map<String, Value>> {
        let found = self.pattern.as_ref()?.captures(uri)?;
        let mut values = Map::new();
        for (at, name) in self.variables.iter().enumerate() {
            if let Some(value) = found.get(at + 1) {
                values.insert(name.clone(), percent_decoded(value.as_str())?.into());
            }
        }
        Some(values)
    }
}

/// What an expression can become, with one group for each variable.
fn expansion(operator: Option<char>, names: &[&str]) -> String {
    let segment = "([^/?#&,;=]+)";
    let joined = |separator: &str, group: &str| names.iter().map(|_| group).collect::<Vec<_>>().join(separator);
    let named = |first: char| {
        let pair = |(at, name): (usize, &&str)| {
            let mark = if at == 0 {
                first
            } else if first == ';' {
                ';'
            } else {
                '&'
            };
            format!("(?:{}{}=([^&#;]*))?", regex::escape(&mark.to_string()), regex::escape(name))
        };
        names.iter().enumerate().map(pair).collect::<String>()
    };
    match operator {
        Some('+') => joined(",", "(.+)"),
        Some('#') => format!("#{}", joined(",", "(.+)")),
        Some('.') => format!(r"\.{}", joined(r"\.", r"([^/?#&,;=.]+)")),
        Some('/') => format!("/{}", joined("/", segment)),
        Some(first @ (';' | '?' | '&')) => named(first),
        Some(_) | None => joined(",", segment),
    }
}

/// The text behind `%41da`; `None` where it is no text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pattern_is_read_backwards() {
        for (pattern, uri, expected) in [
            ("test://template/{id}/data", "test://template/123/data", Some(json!({"id": "123"}))),
            ("test://template/{id}/data", "test://template/a/b/data", None),
            ("notes://{id}", "notes://J%C3%BCrgen%20K", Some(json!({"id": "Jürgen K"}))),
            ("notes://{id}", "notes://%zz", None),
            ("notes://{id}", "notes://", None),
            ("file:///{+path}", "file:///a/b.txt", Some(json!({"path": "a/b.txt"}))),
            ("search://x{?q,page}", "search://x?q=a&page=2", Some(json!({"q": "a", "page": "2"}))),
            ("search://x{?q,page}", "search://x?q=a", Some(json!({"q": "a"}))),
            ("a.b://{x,y}", "a.b://1,2", Some(json!({"x": "1", "y": "2"}))),
            ("a.b://{x}", "aXb://1", None),
        ] {
            let found = UriTemplate::read(pattern).unwrap().matches(uri);
            assert_eq!(found.map(Value::Object), expected, "{pattern} {uri}");
        }
        assert!(UriTemplate::read("notes://{id").is_err());
        assert!(UriTemplate::read("notes://{}").is_err());
    }
}
