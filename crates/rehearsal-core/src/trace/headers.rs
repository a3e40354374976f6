//! The headers of one HTTP head.

use std::fmt;
use std::ops::Range;

/// Names and values of headers as they came, in order.
///
/// All in one text: whoever records HTTP sees two heads a call, and a string for each name and value would be half of
/// what that costs.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    text: String,
    /// Where each name and its value end; the next name begins there.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// Those of a head as it came; bytes that are not UTF-8 are shown as `�`.
    pub fn lossy<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone) -> Headers {
        let bytes = fields.clone().map(|(name, value)| name.len() + value.len()).sum();
        let (mut text, mut ends) = (Vec::with_capacity(bytes), Vec::with_capacity(fields.clone().count()));
        for (name, value) in fields.clone() {
            text.extend_from_slice(name.as_bytes());
            let name_end = text.len();
            text.extend_from_slice(value);
            ends.push((name_end, text.len()));
        }
        // One look at all of them; half a letter at the end of a value must not be made whole by the next.
        match String::from_utf8(text) {
            Ok(text) if ends.iter().all(|(_, end)| text.is_char_boundary(*end)) => Headers { text, ends },
            _ => fields.map(|(name, value)| (name, String::from_utf8_lossy(value))).collect(),
        }
    }

    /// One more.
    fn push(&mut self, name: &str, value: &str) {
        self.text.push_str(name);
        let name_end = self.text.len();
        self.text.push_str(value);
        self.ends.push((name_end, self.text.len()));
    }

    /// Where name and value of each stand.
    fn places(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name_end, end)| (std::mem::replace(&mut start, end)..name_end, name_end..end))
    }

    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places().map(|(name, value)| (&self.text[name], &self.text[value]))
    }

    /// The values of all headers of this name, however it is spelled.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_named = move |place: Range<usize>| self.text.as_bytes()[place].eq_ignore_ascii_case(name.as_bytes());
        self.places().filter_map(move |(name, value)| is_named(name).then(|| &self.text[value]))
    }

    /// The value of the first header of this name, however it is spelled.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All names and values, one behind the other.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Headers {
        let mut headers = Headers::default();
        pairs.into_iter().for_each(|(name, value)| headers.push(name.as_ref(), value.as_ref()));
        headers
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_found_however_it_is_spelled() {
        let headers: Headers = [("Accept", "a"), ("x", ""), ("aCCept", "b")].into_iter().collect();
        assert_eq!((headers.get("accept"), headers.get("X"), headers.get("")), (Some("a"), Some(""), None));
        assert_eq!(headers.all("ACCEPT").collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn half_a_letter_stays_half_a_letter() {
        let half = |fields: &[(&'static str, &'static [u8])]| Headers::lossy(fields.iter().copied());
        let headers = half(&[("a", b"\xc3"), ("", b"\xa9"), ("b", "é".as_bytes())]);
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("a", "�"), ("", "�"), ("b", "é")]);
    }

    proptest! {
        #[test]
        fn whatever_came_is_kept_as_text(fields: Vec<(String, Vec<u8>)>) {
            let headers = Headers::lossy(fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())));
            let texts = fields.iter().map(|(name, value)| (name, String::from_utf8_lossy(value)));
            prop_assert_eq!(headers, texts.collect());
        }

        #[test]
        fn names_and_values_come_back_in_their_order(pairs: Vec<(String, String)>) {
            let headers: Headers = pairs.iter().map(|(name, value)| (name, value)).collect();
            let back: Vec<_> = headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(back, pairs);
        }
    }
}
