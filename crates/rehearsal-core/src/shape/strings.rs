//! Strings that must be more than strings.

/// Whether this is a URI as far as its first characters tell: a scheme, a colon, no blanks.
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && !text.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control())
}

/// Whether this is base64 with its padding.
pub(super) fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - data.len() <= 2
        && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Whether this may be a key of `_meta`: a name, after a prefix such as `com.example/` where it has one.
pub(super) fn is_meta_key(key: &str) -> bool {
    let inner = |text: &str, also: &[char]| {
        let ends = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric());
        ends && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(&c))
    };
    let (prefix, name) = match key.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let label = |label: &str| inner(label, &['-']) && label.starts_with(|c: char| c.is_ascii_alphabetic());
    prefix.is_none_or(|prefix| prefix.split('.').all(label)) && (name.is_empty() || inner(name, &['-', '_', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_a_scheme_and_no_blanks() {
        for text in ["file:///a", "test://static-text", "data:image/png;base64,AA==", "urn:a", "a+b.c-1:x"] {
            assert!(is_uri(text), "{text}");
        }
        for text in ["", "a", "/a/b", "1a:b", ":x", "file:///a b", "a_b:c"] {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn base64_has_its_padding() {
        for text in ["", "AAAA", "AA==", "AAA=", "+/09"] {
            assert!(is_base64(text), "{text}");
        }
        for text in ["A", "AA", "A===", "====", "A A=", "AAAA=", "AA-_"] {
            assert!(!is_base64(text), "{text}");
        }
    }

    #[test]
    fn a_key_of_meta_is_a_name_after_a_prefix() {
        for key in ["progressToken", "a", "com.example/a_b.c", "io.modelcontextprotocol/related-task", "a/", "x-1"] {
            assert!(is_meta_key(key), "{key}");
        }
        for key in ["a b", "/a", "com..example/a", "_a", "a-", "1.a/x", "a/b/c"] {
            assert!(!is_meta_key(key), "{key}");
        }
    }
}
