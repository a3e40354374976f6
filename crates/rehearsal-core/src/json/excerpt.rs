//! Values on one line, shortened for messages.

use std::io;

use serde_json::Value;

/// Maximum length of a value in a message, in bytes.
pub const DEFAULT_EXCERPT: usize = 80;

/// How many bytes of the common beginning of two strings are shown before their difference.
const LEAD: usize = 16;

/// A value on one line, cut on a character boundary after about `limit` bytes and ended with `…`.
///
/// ```text
/// {"city":"Oslo","forecast":[{"day":"Monday","rain":12},{"day":"Tues…
/// ```
///
/// The cost depends only on the length that is shown, not on the size of the value.
pub fn excerpt(value: &Value, limit: usize) -> String {
    let mut bounded = LimitedWriter { bytes: Vec::new(), limit };
    let cut = serde_json::to_writer(&mut bounded, value).is_err();
    let whole = match std::str::from_utf8(&bounded.bytes) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    };
    bounded.bytes.truncate(whole);
    let mut text = String::from_utf8(bounded.bytes).expect("cut where UTF-8 is still valid");
    if cut {
        text.push('…');
    }
    text
}

/// Two different strings, each quoted on one line, both cut so that their first difference is shown.
///
/// ```text
/// "…and in the evening rain"      "…and in the evening snow"
/// ```
pub fn difference(left: &str, right: &str, limit: usize) -> (String, String) {
    let (left, right) = (Value::from(left).to_string(), Value::from(right).to_string());
    let shared = left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count();
    // Strings with an early difference are shown from their beginning.
    let start = if shared < limit / 2 { 0 } else { floor_char_boundary(&left, shared - LEAD.min(shared)) };
    (window(&left, start, limit), window(&right, start, limit))
}

/// Cuts `limit` bytes out of a text that is already quoted.
fn window(quoted: &str, start: usize, limit: usize) -> String {
    let end = floor_char_boundary(quoted, quoted.len().min(start + limit));
    let before = if start == 0 { "" } else { "\"…" };
    let after = if end == quoted.len() { "" } else { "…" };
    format!("{before}{}{after}", &quoted[start..end])
}

fn floor_char_boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// A writer that stops at its limit, so that a huge value is never printed in full.
struct LimitedWriter {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.limit.saturating_sub(self.bytes.len());
        if bytes.len() > room {
            self.bytes.extend_from_slice(&bytes[..room]);
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_short_value_is_displayed_completely() {
        assert_eq!(excerpt(&json!({"a": [1, "b"]}), 80), r#"{"a":[1,"b"]}"#);
    }

    #[test]
    fn a_long_value_is_cut_on_a_character_boundary() {
        assert_eq!(excerpt(&json!("blåbær"), 4), "\"bl…");
        assert_eq!(excerpt(&json!("blåbær"), 5), "\"blå…");
    }

    #[test]
    fn line_breaks_are_escaped_so_that_a_message_stays_on_its_line() {
        assert_eq!(excerpt(&json!("a\nb"), 80), r#""a\nb""#);
    }

    #[test]
    fn long_strings_are_displayed_from_their_first_difference() {
        let story = "rain ".repeat(40);
        let (left, right) = difference(&format!("{story}Oslo"), &format!("{story}Bergen"), 40);
        assert_eq!(left, "\"… rain rain rain Oslo\"");
        assert_eq!(right, "\"… rain rain rain Bergen\"");
    }

    #[test]
    fn short_strings_are_displayed_from_their_start() {
        let pair = difference("weather", "wether", 40);
        assert_eq!(pair, ("\"weather\"".to_owned(), "\"wether\"".to_owned()));
    }

    proptest! {
        #[test]
        fn an_excerpt_is_never_much_longer_than_its_limit(text: String, limit in 0usize..60) {
            let shown = excerpt(&Value::from(text), limit);
            prop_assert!(shown.len() <= limit + '…'.len_utf8());
        }

        #[test]
        fn different_strings_have_different_excerpts(shared: String, left: String, right: String) {
            prop_assume!(left != right);
            let (left, right) = (shared.clone() + &left, shared + &right);
            let (left, right) = difference(&left, &right, 40);
            prop_assert_ne!(left, right);
        }
    }
}
