//! Parses the directives in brackets in a task description.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Maximum length of the name of a test case, in bytes.
const ID_LIMIT: usize = 256;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Why a call has no response.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum HarnessError {
    /// The argument is missing or not a string.
    #[error("the argument `task_description` must be text with [test_case_id=ID] in it, and it is {found}")]
    NoText {
        /// The value of the argument.
        found: String,
    },
    /// No test case is named.
    #[error(
        "no [test_case_id=ID] in the task description; add it, and [mcp_responses_json=BASE64] for the responses, and \
         pass the text unchanged to the tool"
    )]
    NoTestCase,
    /// The name of the test case is invalid.
    #[error("[test_case_id=…] {why}")]
    BadTestCase {
        /// The reason.
        why: String,
    },
    /// A directive has no closing bracket.
    #[error("[{name}=… has no closing bracket; was the text cut off?")]
    Unclosed {
        /// The name of the directive.
        name: &'static str,
    },
    /// A directive occurs several times with different values.
    #[error("the task description has [{name}=…] {count} times with different values; one call is for one test case")]
    Ambiguous {
        /// The name of the directive.
        name: &'static str,
        /// How often it occurs.
        count: usize,
    },
    /// The value is not valid base64.
    #[error("[mcp_responses_json=…] of test case {test_case:?} is not base64: {why}")]
    NotBase64 {
        /// The test case.
        test_case: String,
        /// The error of the decoder.
        why: String,
    },
    /// The value is not valid JSON.
    #[error("the responses of test case {test_case:?} are not JSON: {why}")]
    NotJson {
        /// The test case.
        test_case: String,
        /// The error of the parser.
        why: String,
    },
    /// A response is invalid.
    #[error("response {number} of test case {test_case:?}: {why}")]
    BadResponse {
        /// The test case.
        test_case: String,
        /// The number of the response, from 1.
        number: usize,
        /// The error.
        why: String,
    },
    /// The test case is unknown.
    #[error(
        "no responses for test case {test_case:?}{meant}; add [mcp_responses_json=BASE64] to the task description, or load \
         them before"
    )]
    Unknown {
        /// The test case.
        test_case: String,
        /// A hint with the closest known test case, as text.
        meant: String,
    },
    /// The test case has other responses already.
    #[error(
        "test case {test_case:?} has other responses already; use a new name for every test case, or delete the \
         queue of this one first"
    )]
    DifferentResponses {
        /// The test case.
        test_case: String,
    },
    /// The queue is empty.
    #[error("no response is left for test case {test_case:?}: all {total} were used, and this is call {call}")]
    QueueEmpty {
        /// The test case.
        test_case: String,
        /// How many responses the queue had.
        total: usize,
        /// The number of this call.
        call: usize,
    },
    /// A limit is exceeded.
    #[error("{what}")]
    LimitExceeded {
        /// The limit.
        what: String,
    },
}

debug_as_display!(HarnessError);

/// The directives in a task description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directives<'a> {
    /// `[test_case_id=…]`
    pub test_case: &'a str,
    /// `[mcp_responses_json=…]`, undecoded.
    pub responses: Option<&'a str>,
}

impl<'a> Directives<'a> {
    /// Parses the directives anywhere in a text.
    pub fn read(text: &'a str) -> Result<Directives<'a>, HarnessError> {
        let test_case = only("test_case_id", text)?.ok_or(HarnessError::NoTestCase)?.trim();
        check_id(test_case)?;
        Ok(Directives { test_case, responses: only("mcp_responses_json", text)?.map(str::trim) })
    }
}

/// Checks the name of a test case.
pub(super) fn check_id(id: &str) -> Result<(), HarnessError> {
    let bad = |why: &str| Err(HarnessError::BadTestCase { why: why.to_owned() });
    match id {
        "" => bad("is empty; every test case needs a name"),
        id if id.len() > ID_LIMIT => bad("is longer than 256 bytes"),
        id if id.contains(char::is_control) => bad("has control characters in it"),
        _ => Ok(()),
    }
}

/// The value of a directive. It may occur several times with the same value, for instance in a quoted conversation.
fn only<'a>(name: &'static str, text: &'a str) -> Result<Option<&'a str>, HarnessError> {
    let start = format!("[{name}=");
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(&start) {
        let value = &text[at + start.len()..];
        let end = value.find(']').ok_or(HarnessError::Unclosed { name })?;
        found.push(&value[..end]);
    }
    match &found[..] {
        [] => Ok(None),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(Some(first)),
        several => Err(HarnessError::Ambiguous { name, count: several.len() }),
    }
}

/// Decodes base64 as models and templates write it: with or without padding, in either alphabet, with line ends.
pub(super) fn decode(test_case: &str, base64: &str) -> Result<Vec<u8>, HarnessError> {
    let compact: String = base64.chars().filter(|letter| !letter.is_whitespace()).collect();
    let decoded = match compact.contains(['-', '_']) {
        true => URL_SAFE.decode(&compact),
        false => STANDARD.decode(&compact),
    };
    let why = |error: base64::DecodeError| error.to_string();
    decoded.map_err(|error| HarnessError::NotBase64 { test_case: test_case.to_owned(), why: why(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_found_anywhere_in_the_text() {
        let read =
            Directives::read("Please [test_case_id= weather_1 ]\nfetch [mcp_responses_json=W10=], thanks").unwrap();
        assert_eq!(read, Directives { test_case: "weather_1", responses: Some("W10=") });
        assert_eq!(Directives::read("[test_case_id=a]").unwrap().responses, None);
        let again = Directives::read("[test_case_id=a] quoted: [test_case_id=a]").unwrap();
        assert_eq!(again.test_case, "a");
    }

    #[test]
    fn a_missing_or_ambiguous_directive_is_an_error() {
        let long = format!("[test_case_id={}]", "x".repeat(300));
        let table = [
            ("fetch the weather", "no [test_case_id=ID] in the task description"),
            ("[test_case_id=]", "is empty"),
            ("[test_case_id=  ]", "is empty"),
            ("[test_case_id=a", "[test_case_id=… has no closing bracket"),
            ("[test_case_id=a] [mcp_responses_json=W1", "[mcp_responses_json=… has no closing bracket"),
            ("[test_case_id=a] [test_case_id=b]", "2 times with different values"),
            ("[test_case_id=a\u{7}]", "control characters"),
            (&long, "longer than 256 bytes"),
        ];
        for (text, expected) in table {
            let error = Directives::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn base64_is_decoded_without_padding_and_with_line_ends() {
        for base64 in ["W3sidCI6ICI+Pz8ifV0=", "W3sidCI6ICI+Pz8ifV0", "W3sidCI6\nICI-Pz8i fV0="] {
            assert_eq!(decode("a", base64).unwrap(), br#"[{"t": ">??"}]"#, "{base64}");
        }
        for base64 in ["W3sidCI6I", "%%%", "W3s{}"] {
            assert!(decode("a", base64).unwrap_err().to_string().contains("is not base64"), "{base64}");
        }
    }
}
