//! Matches URIs with URI templates such as `notes://{id}/text`.

use regex::Regex;
use serde_json::{Map, Value};

/// A URI template (RFC 6570) that matches URIs: `{name}` matches a segment, `{+name}` and `{#name}` any text.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    /// `None` matches no URI.
    pattern: Option<Regex>,
    variables: Vec<String>,
}

impl UriTemplate {
    /// Parses a URI template.
    pub fn read(written: &str) -> Result<UriTemplate, String> {
        let (mut pattern, mut variables, mut rest) = (String::from("^"), Vec::new(), written);
        while let Some(start) = rest.find('{') {
            pattern.push_str(&regex::escape(&rest[..start]));
            let end = rest[start..].find('}').ok_or("unclosed `{`")? + start;
            let expression = &rest[start + 1..end];
            let (operator, names) = match expression.chars().next() {
                Some(first) if "+#./;?&".contains(first) => (Some(first), &expression[1..]),
                _ => (None, expression),
            };
            let names: Vec<_> = names.split(',').map(|name| name.trim_end_matches('*')).collect();
            let is_name =
                |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
            if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
                return Err(format!("{wrong:?} in `{{{expression}}}` is not a variable name"));
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

    /// A template that matches no URI.
    pub(in crate::answer) fn nothing() -> UriTemplate {
        UriTemplate { pattern: None, variables: Vec::new() }
    }

    /// The variables in the order of the template.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The values of the variables for which the template expands to this URI.
    pub fn matches(&self, uri: &str) -> Option<Map<String, Value>> {
        let captures = self.pattern.as_ref()?.captures(uri)?;
        let mut values = Map::new();
        for (index, name) in self.variables.iter().enumerate() {
            if let Some(value) = captures.get(index + 1) {
                values.insert(name.clone(), percent_decoded(value.as_str())?.into());
            }
        }
        Some(values)
    }
}

/// The regular expression for an expression of the template, with one group for each variable.
fn expansion(operator: Option<char>, names: &[&str]) -> String {
    let segment = "([^/?#&,;=]+)";
    let joined = |separator: &str, group: &str| names.iter().map(|_| group).collect::<Vec<_>>().join(separator);
    let named = |first: char| {
        let pair = |(index, name): (usize, &&str)| {
            let mark = if index == 0 {
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

/// Decodes percent-encoding: `Ada` for `%41da`; `None` if it is invalid or not UTF-8.
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
    fn a_uri_template_matches_uris_and_returns_the_variables() {
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
            let values = UriTemplate::read(pattern).unwrap().matches(uri);
            assert_eq!(values.map(Value::Object), expected, "{pattern} {uri}");
        }
        assert!(UriTemplate::read("notes://{id").is_err());
        assert!(UriTemplate::read("notes://{}").is_err());
    }
}
