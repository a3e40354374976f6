//! Describes a matcher briefly, for the "expected" of a message.

use std::fmt::{self, Write};

use super::matcher::Matcher;
use super::pattern::Contains;
use crate::json::{DEFAULT_EXCERPT, excerpt};

/// Maximum length of a description, in bytes.
const TEXT_LIMIT: usize = 160;

/// ```text
/// a string matching /^B/
/// an object with {city: "Oslo", days: a number >= 1}
/// ```
impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut brief = LimitedText(String::new());
        let cut = describe(self, &mut brief).is_err();
        f.write_str(&brief.0)?;
        if cut { f.write_str("…") } else { Ok(()) }
    }
}

/// A text that stops growing at the limit, so that a huge matcher costs no more than the part that is shown.
struct LimitedText(String);

impl Write for LimitedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT_LIMIT - self.0.len();
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let fitting = text
            .char_indices()
            .map(|(start, character)| start + character.len_utf8())
            .take_while(|end| *end <= room)
            .last()
            .unwrap_or(0);
        self.0.push_str(&text[..fitting]);
        Err(fmt::Error)
    }
}

fn describe(matcher: &Matcher, f: &mut LimitedText) -> fmt::Result {
    match matcher {
        Matcher::Any => f.write_str("anything"),
        Matcher::Absent => f.write_str("nothing"),
        Matcher::Exact(value) => f.write_str(&excerpt(value, DEFAULT_EXCERPT)),
        Matcher::Object(fields) if fields.is_empty() => f.write_str("an object"),
        Matcher::Object(fields) => {
            f.write_str("an object with {")?;
            for (position, (key, matcher)) in fields.iter().enumerate() {
                let comma = if position == 0 { "" } else { ", " };
                write!(f, "{comma}{key}: ")?;
                describe(matcher, f)?;
            }
            f.write_str("}")
        }
        Matcher::Array(matchers) => {
            f.write_str("[")?;
            list(matchers, ", ", f)?;
            f.write_str("]")
        }
        Matcher::Each(matcher) => {
            f.write_str("an array in which each element is ")?;
            describe(matcher, f)
        }
        Matcher::Contains(contains) => {
            f.write_str("something containing ")?;
            match contains.as_ref() {
                Contains::Text(text) => write!(f, "{text}"),
                Contains::Element(matcher) => describe(matcher, f),
            }
        }
        Matcher::Pattern(pattern) => write!(f, "a string matching {pattern}"),
        Matcher::Type(kind) => f.write_str(kind.with_article()),
        Matcher::Schema(_) => f.write_str("a value that the schema accepts"),
        Matcher::Range(range) => write!(f, "a number {range}"),
        Matcher::Length(range) => match range.single() {
            Some(length) => write!(f, "a length of {length}"),
            None => write!(f, "a length {range}"),
        },
        Matcher::At(at) => {
            describe(at.matcher(), f)?;
            write!(f, " at {}", at.as_str())
        }
        Matcher::AnyOf(matchers) => list(matchers, " or ", f),
        Matcher::AllOf(matchers) => list(matchers, " and ", f),
        Matcher::Not(matcher) => {
            f.write_str("anything but ")?;
            describe_part(matcher, f)
        }
    }
}

fn list(matchers: &[Matcher], between: &str, f: &mut LimitedText) -> fmt::Result {
    let separated = between == ", ";
    for (position, matcher) in matchers.iter().enumerate() {
        if position > 0 {
            f.write_str(between)?;
        }
        if separated {
            describe(matcher, f)?;
        } else {
            describe_part(matcher, f)?;
        }
    }
    Ok(())
}

/// A part of a description that joins several matchers, in brackets if it joins several itself.
fn describe_part(matcher: &Matcher, f: &mut LimitedText) -> fmt::Result {
    match matcher {
        Matcher::AnyOf(_) | Matcher::AllOf(_) => {
            f.write_str("(")?;
            describe(matcher, f)?;
            f.write_str(")")
        }
        single => describe(single, f),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_matcher_is_described_in_a_few_words() {
        for (written, text) in [
            (json!("Oslo"), "\"Oslo\""),
            (json!({}), "an object"),
            (json!({"a": 1, "b": {"gte": 1, "lt": 9}}), "an object with {a: 1, b: a number >= 1 and < 9}"),
            (json!([1, {"type": "string"}]), "[1, a string]"),
            (json!({"each": {"type": "null"}}), "an array in which each element is null"),
            (json!({"contains": "x", "ignore_case": true}), "something containing \"x\" in any case"),
            (json!({"matches": "^B"}), "a string matching /^B/"),
            (json!({"length": 3}), "a length of 3"),
            (json!({"length": {"gte": 1}}), "a length >= 1"),
            (json!({"at": {"$.a": 1}}), "1 at $.a"),
            (json!({"not": {"any_of": [1, 2]}}), "anything but (1 or 2)"),
            (json!({"present": false}), "nothing"),
        ] {
            assert_eq!(Matcher::parse(&written).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_huge_matcher_is_described_briefly() {
        let matcher = Matcher::subset(json!({"key": vec!["åå"; 500]}));
        let text = matcher.to_string();
        assert!(text.len() <= TEXT_LIMIT + '…'.len_utf8() && text.ends_with('…'), "{text}");
        let mut deep = Matcher::Any;
        for _ in 0..60 {
            deep = Matcher::AnyOf(vec![deep.clone(), deep]);
            if deep.to_string().len() > TEXT_LIMIT {
                return;
            }
        }
        panic!("never cut");
    }
}
