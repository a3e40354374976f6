//! Shapes as people say them.

use super::table::{Named, Shape, Table};
use crate::protocol::Revision;

impl Table {
    /// What should be there, in words: `a string`, `"public" or "private"`, `an object`.
    pub(super) fn words(&self, shape: &Shape, revision: Revision) -> String {
        match shape {
            Shape::Any => "a value".to_owned(),
            Shape::Kind(kind) => kind.with_article().to_owned(),
            Shape::Count => "an integer from 0".to_owned(),
            Shape::Share => "a number from 0 to 1".to_owned(),
            Shape::Uri => "a URI".to_owned(),
            Shape::Base64 => "base64".to_owned(),
            Shape::Word(word) => format!("\"{word}\""),
            Shape::List { .. } => "an array".to_owned(),
            Shape::Meta | Shape::Map(_) | Shape::AllOf(_) => "an object".to_owned(),
            Shape::OneOf(_) => {
                let known = self.alternatives(shape).into_iter().filter(|one| self.knows(one, revision));
                let mut words: Vec<String> = Vec::new();
                for word in known.map(|one| self.words(one, revision)) {
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
                listed(&words)
            }
            Shape::Named(name) => match self.named.get(name) {
                Some(Named::Alias(shape)) => self.words(shape, revision),
                Some(Named::Type { .. }) | None => "an object".to_owned(),
            },
        }
    }
}

/// `a`, `a or b`, `a, b or c`
pub(super) fn listed(words: &[String]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The candidate that is the same word written in another way: `mime_type`, `mimetype` and `MimeType` are `mimeType`.
pub(super) fn same_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
    let wanted = plain(word);
    candidates.into_iter().find(|candidate| *candidate != word && plain(candidate) == wanted)
}
