//! The headers of one HTTP head.

use std::fmt;

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
    /// None yet, with room for so many, together so long.
    pub fn with_capacity(count: usize, bytes: usize) -> Headers {
        Headers { text: String::with_capacity(bytes), ends: Vec::with_capacity(count) }
    }

    /// One more.
    pub fn push(&mut self, name: &str, value: &str) {
        self.text.push_str(name);
        let name_end = self.text.len();
        self.text.push_str(value);
        self.ends.push((name_end, self.text.len()));
    }

    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name_end, end)| {
            let name = &self.text[std::mem::replace(&mut start, end)..name_end];
            (name, &self.text[name_end..end])
        })
    }

    /// The values of all headers of this name, however it is spelled.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().filter_map(move |&(name_end, end)| {
            let other = &self.text.as_bytes()[std::mem::replace(&mut start, end)..name_end];
            other.eq_ignore_ascii_case(name.as_bytes()).then(|| &self.text[name_end..end])
        })
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

    proptest! {
        #[test]
        fn names_and_values_come_back_in_their_order(pairs: Vec<(String, String)>) {
            let headers: Headers = pairs.iter().map(|(name, value)| (name, value)).collect();
            let back: Vec<_> = headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(back, pairs);
        }
    }
}
