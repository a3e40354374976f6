//! A regular expression that remembers how it was written.

use std::fmt;

use regex::{Regex, RegexBuilder};

use super::error::Problem;

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
    case: Case,
}

/// Whether `A` and `a` are the same letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Matters,
    Ignored,
}

impl Pattern {
    pub(super) fn compile(written: &str, case: Case) -> Result<Pattern, Problem> {
        let regex = RegexBuilder::new(written).case_insensitive(case == Case::Ignored).size_limit(SIZE_LIMIT).build();
        match regex {
            Ok(regex) => Ok(Pattern { regex, case }),
            Err(error) => {
                let text = error.to_string();
                // A syntax error draws the expression over several lines; the last one says what is wrong.
                let last = text.lines().last().unwrap_or(&text);
                let reason = last.trim_start_matches("error: ").to_owned();
                Err(Problem::BadPattern { reason })
            }
        }
    }

    /// Whether the expression is found in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    pub(super) fn case(&self) -> Case {
        self.case
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = match self.case {
            Case::Matters => "",
            Case::Ignored => "i",
        };
        write!(f, "/{}/{flags}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_anywhere_unless_it_is_anchored() {
        let pattern = Pattern::compile("erge", Case::Matters).unwrap();
        assert!(pattern.is_match("Bergen"));
        let pattern = Pattern::compile("^berg", Case::Ignored).unwrap();
        assert!(pattern.is_match("Bergen"));
        assert_eq!(pattern.to_string(), "/^berg/i");
    }

    #[test]
    fn a_bad_pattern_says_why_on_one_line() {
        for (written, reason) in [("(", "unclosed group"), (r"(a)\1", "backreferences are not supported")] {
            let problem = Pattern::compile(written, Case::Matters).unwrap_err();
            let reason = reason.to_owned();
            assert_eq!(problem, Problem::BadPattern { reason });
        }
    }

    #[test]
    fn a_pattern_that_compiles_to_megabytes_is_refused() {
        let problem = Pattern::compile(r"\w{1000}{100}", Case::Matters).unwrap_err();
        assert!(problem.to_string().contains("size limit"), "{problem}");
    }
}
