//! One finding for the user.

use std::fmt;

use serde::Serialize;

use crate::json::{Path, RawJson};
use crate::matcher::{DifferenceKind, Mismatch, first_mismatches};

/// One fact that the user should know, with a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The message: a lowercase fragment without a full stop.
    pub message: String,
    /// The kind of the difference, if the finding is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<DifferenceKind>,
    /// The place, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Location>,
    /// The mismatches, if the finding has some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<Mismatch>,
    /// The differing values, for programs: a message shows only an excerpt of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ChangedValues>,
    /// What the user can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A differing value in both states; `None` if it is absent or too large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedValues {
    /// The path of the value.
    pub path: Path,
    /// The old value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<RawJson>,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<RawJson>,
}

/// The severity of a finding, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Information.
    Note,
    /// A suspicious fact, without a failed check.
    Warning,
    /// A check failed.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

impl Finding {
    /// A check failed.
    pub fn error(message: impl Into<String>) -> Finding {
        Finding::new(Severity::Error, message)
    }

    /// A suspicious fact.
    pub fn warning(message: impl Into<String>) -> Finding {
        Finding::new(Severity::Warning, message)
    }

    /// Information.
    pub fn note(message: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, message)
    }

    fn new(severity: Severity, message: impl Into<String>) -> Finding {
        let (mismatches, values) = (Vec::new(), Vec::new());
        Finding { severity, message: message.into(), kind: None, place: None, mismatches, values, hint: None }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: Location) -> Finding {
        self.place = Some(place);
        self
    }

    /// Adds mismatches.
    #[must_use]
    pub fn because(mut self, mismatches: impl IntoIterator<Item = Mismatch>) -> Finding {
        self.mismatches.extend(mismatches);
        self
    }

    /// Sets the kind of the difference.
    #[must_use]
    pub fn of_kind(mut self, kind: DifferenceKind) -> Finding {
        self.kind = Some(kind);
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }
}

/// ```text
/// error: unexpected reply to get_forecast (message 17)
///   $.name: expected "weather", got "wether"
///   hint: did you mean `weather`?
/// ```
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.message)?;
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        // Users are shown the first of them; programs get all.
        for line in first_mismatches(&self.mismatches) {
            write!(f, "\n  {line}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The place of a finding.
///
/// ```text
/// weather.mock.yaml:4:11
/// message 17
/// arguments of get_forecast at $.city
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// A place in a user's file; lines and columns count from 1.
    File {
        /// The file as the user named it.
        file: String,
        /// The line.
        line: usize,
        /// The column, in characters.
        column: usize,
    },
    /// A message of the session.
    Message {
        /// Its sequence number in the session.
        sequence: u64,
    },
    /// A place inside a JSON value.
    Json {
        /// A description of the value: `arguments of get_forecast`.
        within: String,
        /// The path in the value.
        path: Path,
    },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Location::Message { sequence } => write!(f, "message {sequence}"),
            Location::Json { within, path } => write!(f, "{within} at {path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::matcher::Matcher;

    #[test]
    fn only_the_first_of_many_places_are_displayed() {
        let matcher = Matcher::exact(Value::from_iter(0..150));
        let shown = Finding::error("changed").because(matcher.check(&Value::from_iter(1..151))).to_string();
        assert_eq!(shown.lines().count(), 102);
        assert!(shown.ends_with("\n  and 50 more places"), "{shown}");
    }

    fn finding() -> Finding {
        let matcher = Matcher::subset(json!({"name": "weather"}));
        Finding::error("unexpected reply to get_forecast")
            .at(Location::Message { sequence: 17 })
            .because(matcher.check(&json!({"name": "wether"})))
            .hint("did you mean `weather`?")
    }

    #[test]
    fn a_finding_displays_its_message_place_reason_and_hint() {
        insta::assert_snapshot!(finding(), @r#"
        error: unexpected reply to get_forecast (message 17)
          $.name: expected "weather", got "wether"
          hint: did you mean `weather`?
        "#);
    }

    #[test]
    fn absent_members_of_a_finding_are_not_in_its_json() {
        let json = serde_json::to_value(Finding::note("no tools")).unwrap();
        assert_eq!(json, json!({"severity": "note", "message": "no tools"}));
        let json = serde_json::to_value(finding()).unwrap();
        assert_eq!(json["place"], json!({"message": {"sequence": 17}}));
        assert_eq!(json["mismatches"][0]["path"], json!("$.name"));
    }

    #[test]
    fn an_error_matters_more_than_a_warning() {
        assert!(Severity::Error > Severity::Warning && Severity::Warning > Severity::Note);
    }

    #[test]
    fn a_location_is_displayed_in_prose() {
        let file = Location::File { file: "weather.mock.yaml".to_owned(), line: 4, column: 11 };
        assert_eq!(file.to_string(), "weather.mock.yaml:4:11");
        assert_eq!(Location::Message { sequence: 17 }.to_string(), "message 17");
        let json = Location::Json { within: "arguments of get_forecast".to_owned(), path: Path::root().join("city") };
        assert_eq!(json.to_string(), "arguments of get_forecast at $.city");
    }
}
