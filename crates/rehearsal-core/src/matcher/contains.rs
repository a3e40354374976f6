//! Something that must be found inside a value.

use std::fmt;

use serde_json::Value;

use super::matcher::Matcher;
use super::pattern::Case;

/// A part to be found: a substring of a string, an element of an array, or a key or subset of an object.
#[derive(Debug, Clone)]
pub enum Contains {
    /// A text: part of a string, an element of an array, or a key of an object.
    Text(Text),
    /// A matcher that some element of an array, or the object as a whole, must satisfy.
    Element(Matcher),
}

/// A text to look for.
#[derive(Debug, Clone)]
pub struct Text {
    written: String,
    /// The lowercase form, when case does not matter.
    lowercase: Option<String>,
}

impl Text {
    pub(super) fn new(written: impl Into<String>, case: Case) -> Text {
        let written = written.into();
        let lowercase = match case {
            Case::Matters => None,
            Case::Ignored => Some(written.to_lowercase()),
        };
        Text { written, lowercase }
    }

    /// Whether a string has the text in it.
    pub fn is_in(&self, string: &str) -> bool {
        match &self.lowercase {
            None => string.contains(&self.written),
            Some(lowercase) => string.to_lowercase().contains(lowercase),
        }
    }

    /// Whether a string is the text.
    pub fn is(&self, string: &str) -> bool {
        match &self.lowercase {
            None => string == self.written,
            Some(lowercase) => string.to_lowercase() == *lowercase,
        }
    }

    pub(super) fn case(&self) -> Case {
        match self.lowercase {
            None => Case::Matters,
            Some(_) => Case::Ignored,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.written
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Value::from(self.written.as_str()))?;
        match self.case() {
            Case::Matters => Ok(()),
            Case::Ignored => f.write_str(" in any case"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_ignored_only_when_asked() {
        let exact = Text::new("rain", Case::Matters);
        assert!(exact.is_in("heavy rain") && !exact.is_in("Rain"));
        let loose = Text::new("ÅRE", Case::Ignored);
        assert!(loose.is_in("i Åre") && loose.is("åre") && !loose.is("i Åre"));
        assert_eq!(loose.to_string(), "\"ÅRE\" in any case");
    }
}
