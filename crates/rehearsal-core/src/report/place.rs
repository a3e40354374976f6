//! Where a finding is.

use std::fmt;

use serde::Serialize;

use crate::json::Path;

/// What a finding points at.
///
/// ```text
/// weather.mock.yaml:4:11
/// message 17
/// arguments of get_forecast at $.city
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A place in a file that somebody wrote; lines and columns count from 1.
    File {
        /// The file as the user named it.
        file: String,
        /// The line.
        line: usize,
        /// The column, in characters.
        column: usize,
    },
    /// A message of the conversation.
    Message {
        /// Its sequence number in the session.
        sequence: u64,
    },
    /// A place inside a JSON value.
    Json {
        /// What the value is, in words: `arguments of get_forecast`.
        within: String,
        /// Where in it.
        path: Path,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Place::Message { sequence } => write!(f, "message {sequence}"),
            Place::Json { within, path } => write!(f, "{within} at {path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_people_say_it() {
        let file = Place::File { file: "weather.mock.yaml".to_owned(), line: 4, column: 11 };
        assert_eq!(file.to_string(), "weather.mock.yaml:4:11");
        assert_eq!(Place::Message { sequence: 17 }.to_string(), "message 17");
        let json = Place::Json { within: "arguments of get_forecast".to_owned(), path: Path::root().join("city") };
        assert_eq!(json.to_string(), "arguments of get_forecast at $.city");
    }
}
