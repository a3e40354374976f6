//! What a string must contain: a text, or a match of a regular expression.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::matcher::Matcher;
use super::parse::MatcherProblem;

/// The largest compiled expression that is accepted, in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// A regular expression that must be found somewhere in a string, in time linear in its length.
///
/// ```text
/// /^B/      /^b/i
/// ```
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    case: TextCase,
}

/// Whether a comparison is case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextCase {
    Sensitive,
    Insensitive,
}

impl Pattern {
    pub(super) fn compile(written: &str, case: TextCase) -> Result<Pattern, MatcherProblem> {
        let regex =
            RegexBuilder::new(written).case_insensitive(case == TextCase::Insensitive).size_limit(SIZE_LIMIT).build();
        match regex {
            Ok(regex) => Ok(Pattern { regex, case }),
            Err(error) => {
                let text = error.to_string();
                // A syntax error shows the expression on several lines; its last line has the reason.
                let last = text.lines().last().unwrap_or(&text);
                let reason = last.trim_start_matches("error: ").to_owned();
                Err(MatcherProblem::BadPattern { reason })
            }
        }
    }

    /// Whether the expression is found in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The expression as the user wrote it.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    pub(super) fn case(&self) -> TextCase {
        self.case
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = match self.case {
            TextCase::Sensitive => "",
            TextCase::Insensitive => "i",
        };
        write!(f, "/{}/{flags}", self.as_str())
    }
}

/// An item to be contained: a substring of a string, an element of an array, or a key or subset of an object.
#[derive(Debug, Clone)]
pub enum Contains {
    /// A text: part of a string, an element of an array, or a key of an object.
    Text(SearchText),
    /// A matcher for some element of an array, or for the object as a whole.
    Element(Matcher),
}

/// A text to be contained.
#[derive(Debug, Clone)]
pub struct SearchText {
    written: String,
    /// The lowercase form, if the search is case-insensitive.
    lowercase: Option<String>,
}

impl SearchText {
    pub(super) fn new(written: impl Into<String>, case: TextCase) -> SearchText {
        let written = written.into();
        let lowercase = match case {
            TextCase::Sensitive => None,
            TextCase::Insensitive => Some(written.to_lowercase()),
        };
        SearchText { written, lowercase }
    }

    /// Whether a string contains the text.
    pub fn is_in(&self, string: &str) -> bool {
        match &self.lowercase {
            None => string.contains(&self.written),
            Some(lowercase) => string.to_lowercase().contains(lowercase),
        }
    }

    /// Whether a string equals the text.
    pub fn equals(&self, string: &str) -> bool {
        match &self.lowercase {
            None => string == self.written,
            Some(lowercase) => string.to_lowercase() == *lowercase,
        }
    }

    pub(super) fn case(&self) -> TextCase {
        match self.lowercase {
            None => TextCase::Sensitive,
            Some(_) => TextCase::Insensitive,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.written
    }
}

impl fmt::Display for SearchText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Value::from(self.written.as_str()))?;
        match self.case() {
            TextCase::Sensitive => Ok(()),
            TextCase::Insensitive => f.write_str(" in any case"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_anywhere_unless_it_is_anchored() {
        let pattern = Pattern::compile("erge", TextCase::Sensitive).unwrap();
        assert!(pattern.is_match("Bergen"));
        let pattern = Pattern::compile("^berg", TextCase::Insensitive).unwrap();
        assert!(pattern.is_match("Bergen"));
        assert_eq!(pattern.to_string(), "/^berg/i");
    }

    #[test]
    fn the_error_of_a_bad_pattern_is_one_line() {
        for (written, reason) in [("(", "unclosed group"), (r"(a)\1", "backreferences are not supported")] {
            let problem = Pattern::compile(written, TextCase::Sensitive).unwrap_err();
            let reason = reason.to_owned();
            assert_eq!(problem, MatcherProblem::BadPattern { reason });
        }
    }

    #[test]
    fn a_pattern_that_compiles_to_megabytes_is_refused() {
        let problem = Pattern::compile(r"\w{1000}{100}", TextCase::Sensitive).unwrap_err();
        assert!(problem.to_string().contains("size limit"), "{problem}");
    }

    #[test]
    fn case_matters_unless_ignore_case_is_set() {
        let exact = SearchText::new("rain", TextCase::Sensitive);
        assert!(exact.is_in("heavy rain") && !exact.is_in("Rain"));
        let loose = SearchText::new("ÅRE", TextCase::Insensitive);
        assert!(loose.is_in("i Åre") && loose.equals("åre") && !loose.equals("i Åre"));
        assert_eq!(loose.to_string(), "\"ÅRE\" in any case");
    }
}
