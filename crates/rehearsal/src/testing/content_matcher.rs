//! Expectations of a response's text.

use std::borrow::Cow;
use std::fmt;

use rehearsal_core::matcher::{Matcher, MatcherError};

use super::assertions::{fail, outcome};
use crate::client::ServerResponse;

/// An expectation of a response's text: all its patterns occur in it.
///
/// A thin way of writing [`Matcher`]s that can be a `const`. Case is ignored unless
/// [`case_sensitive`](ContentMatcher::case_sensitive) is called.
///
/// ```
/// use rehearsal::testing::ContentMatcher;
///
/// const LEARNING_LOOP: ContentMatcher = ContentMatcher::all(&["learning loop", "retrospective"]);
/// let dated = ContentMatcher::regex(r"\d{4}-\d\d-\d\d").and(LEARNING_LOOP).and(!ContentMatcher::text("draft"));
///
/// assert!(dated.matches_text("Retrospective of 2026-01-31: the Learning Loop"));
/// assert!(!dated.matches_text("A draft of 2026-01-31: learning loop, retrospective"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentMatcher {
    node: ContentNode,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ContentNode {
    Words { all: &'static [&'static str], case: ContentCase },
    Pattern { pattern: ContentPattern, case: ContentCase },
    And(Vec<ContentMatcher>),
    Or(Vec<ContentMatcher>),
    Not(Box<ContentMatcher>),
}

/// A text or a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentPattern {
    /// This text, anywhere.
    Text(Cow<'static, str>),
    /// A match of this regular expression, somewhere.
    Regex(Cow<'static, str>),
}

/// Whether `a` and `A` are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentCase {
    /// `a` and `A` are equal.
    #[default]
    Ignored,
    /// `a` and `A` differ.
    Sensitive,
}

impl ContentMatcher {
    /// Each of these texts occurs.
    pub const fn all(texts: &'static [&'static str]) -> ContentMatcher {
        ContentMatcher { node: ContentNode::Words { all: texts, case: ContentCase::Ignored } }
    }

    /// Each of these texts occurs, exactly as it is written here.
    pub const fn all_case_sensitive(texts: &'static [&'static str]) -> ContentMatcher {
        ContentMatcher { node: ContentNode::Words { all: texts, case: ContentCase::Sensitive } }
    }

    /// This text occurs.
    pub fn text(text: impl Into<Cow<'static, str>>) -> ContentMatcher {
        ContentMatcher::pattern(ContentPattern::Text(text.into()))
    }

    /// This regular expression matches somewhere.
    pub fn regex(expression: impl Into<Cow<'static, str>>) -> ContentMatcher {
        ContentMatcher::pattern(ContentPattern::Regex(expression.into()))
    }

    /// Each of these patterns occurs.
    pub fn patterns(patterns: impl IntoIterator<Item = ContentPattern>) -> ContentMatcher {
        ContentMatcher { node: ContentNode::And(patterns.into_iter().map(ContentMatcher::pattern).collect()) }
    }

    fn pattern(pattern: ContentPattern) -> ContentMatcher {
        ContentMatcher { node: ContentNode::Pattern { pattern, case: ContentCase::Ignored } }
    }

    /// Distinguishes `a` and `A`.
    pub fn case_sensitive(self) -> ContentMatcher {
        self.with_case(ContentCase::Sensitive)
    }

    /// Sets the case sensitivity of every pattern.
    pub fn with_case(self, case: ContentCase) -> ContentMatcher {
        let inside = |matchers: Vec<ContentMatcher>| matchers.into_iter().map(|m| m.with_case(case)).collect();
        let node = match self.node {
            ContentNode::Words { all, .. } => ContentNode::Words { all, case },
            ContentNode::Pattern { pattern, .. } => ContentNode::Pattern { pattern, case },
            ContentNode::And(matchers) => ContentNode::And(inside(matchers)),
            ContentNode::Or(matchers) => ContentNode::Or(inside(matchers)),
            ContentNode::Not(matcher) => ContentNode::Not(Box::new(matcher.with_case(case))),
        };
        ContentMatcher { node }
    }

    /// Both this matcher and the other match.
    pub fn and(self, other: ContentMatcher) -> ContentMatcher {
        ContentMatcher { node: ContentNode::And(vec![self, other]) }
    }

    /// This matcher or the other matches.
    pub fn or(self, other: ContentMatcher) -> ContentMatcher {
        ContentMatcher { node: ContentNode::Or(vec![self, other]) }
    }

    /// Whether a successful response's text is as expected.
    ///
    /// # Panics
    ///
    /// If a regular expression is invalid, with the place.
    #[track_caller]
    pub fn matches(&self, response: &ServerResponse) -> bool {
        response.success() && self.matches_text(&response.content())
    }

    /// Whether a text is as expected.
    ///
    /// # Panics
    ///
    /// If a regular expression is invalid, with the place.
    #[track_caller]
    pub fn matches_text(&self, text: &str) -> bool {
        self.matcher().matches(&text.into())
    }

    /// Fails unless a successful response's text is as expected.
    ///
    /// # Panics
    ///
    /// If the text does not match, with the mismatches and the whole response.
    #[track_caller]
    pub fn assert_matches(&self, response: &ServerResponse) {
        if !response.success() {
            fail(format!("a success whose text is {self}"), outcome(response), response);
        }
        let mismatches = self.matcher().check(&response.content().into());
        if !mismatches.is_empty() {
            let lines: Vec<String> = mismatches.iter().map(|m| m.to_string().replacen("$: ", "", 1)).collect();
            fail(format!("text that is {self}"), lines.join("\n          "), response);
        }
    }

    #[track_caller]
    fn matcher(&self) -> Matcher {
        match self.lowered() {
            Ok(matcher) => matcher,
            Err(error) => panic!("this content matcher cannot be used: {error}"),
        }
    }

    /// Converts the expectation to a [`Matcher`].
    fn lowered(&self) -> Result<Matcher, MatcherError> {
        let all = |matchers: &[ContentMatcher]| -> Result<Vec<Matcher>, MatcherError> {
            matchers.iter().map(ContentMatcher::lowered).collect()
        };
        Ok(match &self.node {
            ContentNode::Words { all, case } => Matcher::AllOf(all.iter().map(|text| words(text, *case)).collect()),
            ContentNode::Pattern { pattern: ContentPattern::Text(text), case } => words(text, *case),
            ContentNode::Pattern { pattern: ContentPattern::Regex(expression), case: ContentCase::Sensitive } => {
                Matcher::pattern(expression)?
            }
            ContentNode::Pattern { pattern: ContentPattern::Regex(expression), case: ContentCase::Ignored } => {
                Matcher::pattern(&format!("(?i){expression}"))?
            }
            ContentNode::And(matchers) => Matcher::AllOf(all(matchers)?),
            ContentNode::Or(matchers) => Matcher::AnyOf(all(matchers)?),
            ContentNode::Not(matcher) => !matcher.lowered()?,
        })
    }
}

fn words(text: &str, case: ContentCase) -> Matcher {
    match case {
        ContentCase::Ignored => Matcher::contains_in_any_case(text),
        ContentCase::Sensitive => Matcher::contains(text),
    }
}

impl std::ops::Not for ContentMatcher {
    type Output = ContentMatcher;

    fn not(self) -> ContentMatcher {
        ContentMatcher { node: ContentNode::Not(Box::new(self)) }
    }
}

impl fmt::Display for ContentMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lowered() {
            Ok(matcher) => matcher.fmt(f),
            Err(error) => error.fmt(f),
        }
    }
}

impl From<&'static str> for ContentPattern {
    fn from(text: &'static str) -> ContentPattern {
        ContentPattern::Text(Cow::Borrowed(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONST: ContentMatcher = ContentMatcher::all(&["Work Log", "entry"]);
    const STRICT: ContentMatcher = ContentMatcher::all_case_sensitive(&["Work Log"]);

    #[test]
    fn case_counts_only_if_it_is_requested() {
        assert!(CONST.matches_text("an ENTRY of the work log"));
        assert!(!CONST.matches_text("the work log"));
        assert!(STRICT.matches_text("Work Log") && !STRICT.matches_text("work log"));
        assert!(ContentMatcher::regex("^WORK").matches_text("work"));
        assert!(!ContentMatcher::regex("^WORK").case_sensitive().matches_text("work"));
    }

    #[test]
    fn expectations_combine() {
        let either = ContentMatcher::text("a").or(ContentMatcher::text("b"));
        assert!(either.matches_text("b") && !either.matches_text("c"));
        let neither = !either;
        assert!(neither.matches_text("c") && !neither.matches_text("a"));
        let both = ContentMatcher::patterns(["a".into(), ContentPattern::Regex("b+".into())]);
        assert!(both.matches_text("abb") && !both.matches_text("a"));
    }

    #[test]
    #[should_panic(expected = "this content matcher cannot be used")]
    fn a_broken_expression_is_reported() {
        ContentMatcher::regex("(").matches_text("x");
    }
}
