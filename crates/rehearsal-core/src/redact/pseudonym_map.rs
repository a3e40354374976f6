//! Applies the redactions of a recorded value to the value of a live server.
//!
//! ```text
//! recorded  {"pin": 999000123456789, "note": "in"}
//! live      {"pin": 4711, "note": "in"}   ──►   {"pin": 999000123456789, "note": "in"} if 4711 was redacted
//! ```
//!
//! A pseudonym shows that a secret was redacted, the secret's type, and which other secrets are equal. So a live value
//! can be redacted without the rules of the recording, if the secret is a whole text or number.

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::pseudonym::{all, is_number, is_pseudonym, number, pseudonym};

/// The pseudonyms in a recorded value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PseudonymMap {
    texts: HashSet<String>,
    numbers: HashSet<String>,
}

/// A scalar that may be redacted; redaction leaves other values unchanged.
enum ScalarSecret<'a> {
    Text(&'a str),
    Number(String),
}

impl<'a> ScalarSecret<'a> {
    fn from_value(value: &'a Value) -> Option<ScalarSecret<'a>> {
        match value {
            Value::Number(number) => Some(ScalarSecret::Number(number.to_string())),
            Value::String(text) => Some(ScalarSecret::Text(text)),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether it was redacted already.
    fn is_pseudonym(&self) -> bool {
        match self {
            ScalarSecret::Text(text) => is_pseudonym(text),
            ScalarSecret::Number(digits) => is_number(digits),
        }
    }
}

/// A recorded text or number that was redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedactedValue<'a> {
    /// A text: the parts before, between and after its secrets.
    Text(Vec<&'a str>),
    /// A secret number.
    Number,
}

impl<'a> RedactedValue<'a> {
    /// Parses a recorded value; `None` if it was not redacted.
    pub fn from_recorded(recorded: &'a Value) -> Option<RedactedValue<'a>> {
        match ScalarSecret::from_value(recorded)? {
            ScalarSecret::Number(digits) => is_number(&digits).then_some(RedactedValue::Number),
            ScalarSecret::Text(text) => {
                let (mut parts, mut end) = (Vec::new(), 0);
                for secret in all(text) {
                    parts.push(&text[end..secret.start]);
                    end = secret.end;
                }
                parts.push(&text[end..]);
                (parts.len() > 1).then_some(RedactedValue::Text(parts))
            }
        }
    }
}

impl PseudonymMap {
    /// Collects the pseudonyms of a recorded value.
    pub fn from_recorded(recorded: &Value) -> PseudonymMap {
        let mut found = PseudonymMap::default();
        found.find(recorded);
        found
    }

    /// Whether nothing was redacted.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.numbers.is_empty()
    }

    fn find(&mut self, value: &Value) {
        match value {
            Value::Array(elements) => elements.iter().for_each(|element| self.find(element)),
            Value::Object(fields) => fields.values().for_each(|field| self.find(field)),
            scalar => match ScalarSecret::from_value(scalar).filter(ScalarSecret::is_pseudonym) {
                Some(ScalarSecret::Text(text)) => drop(self.texts.insert(text.to_owned())),
                Some(ScalarSecret::Number(digits)) => drop(self.numbers.insert(digits)),
                None => {}
            },
        }
    }

    /// Redacts the secrets of these pseudonyms at any place in a value.
    pub fn redact(&self, value: &mut Value) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.redact(element)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact(field)),
            scalar => {
                let known = match ScalarSecret::from_value(scalar) {
                    Some(ScalarSecret::Text(text)) => {
                        Some(pseudonym(text)).filter(|it| self.texts.contains(it)).map(Value::from)
                    }
                    Some(ScalarSecret::Number(digits)) => {
                        Some(number(&digits)).filter(|it| self.numbers.contains(it)).and_then(|it| read(&it))
                    }
                    None => None,
                };
                if let Some(known) = known {
                    *scalar = known;
                }
            }
        }
    }

    /// Redacts each live value at whose path the recorded value was redacted: it is a secret too, even if it is another
    /// one.
    pub fn redact_same_places(recorded: &Value, live: &mut Value) {
        match (recorded, live) {
            (Value::Array(recorded), Value::Array(live)) => {
                recorded.iter().zip(live).for_each(|(recorded, live)| PseudonymMap::redact_same_places(recorded, live));
            }
            (Value::Object(recorded), Value::Object(live)) => {
                for (key, live) in live {
                    if let Some(recorded) = recorded.get(key) {
                        PseudonymMap::redact_same_places(recorded, live);
                    }
                }
            }
            (recorded, live) => {
                let was_redacted = ScalarSecret::from_value(recorded).is_some_and(|secret| secret.is_pseudonym());
                let secret = ScalarSecret::from_value(live).filter(|secret| was_redacted && !secret.is_pseudonym());
                let pseudonym = match secret {
                    Some(ScalarSecret::Text(text)) => Some(Value::from(pseudonym(text))),
                    Some(ScalarSecret::Number(digits)) => read(&number(&digits)),
                    None => None,
                };
                if let Some(pseudonym) = pseudonym {
                    *live = pseudonym;
                }
            }
        }
    }
}

fn read(digits: &str) -> Option<Value> {
    digits.parse::<u64>().ok().map(Number::from).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::redact::{Redaction, RedactionRule};
    use serde_json::json;

    /// The recorded form of this result.
    fn recorded(result: &Value) -> Value {
        let message = Message::parse(json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string());
        let rule: RedactionRule = "$.result.hidden".parse().unwrap();
        let clean = Redaction::standard().with(rule).message(&message).unwrap();
        let clean: Value = serde_json::from_slice(clean.raw()).unwrap();
        clean["result"].clone()
    }

    #[test]
    fn redacted_strings_and_numbers_are_recognized_in_live_values() {
        let live = json!({"hidden": [{"a": 4711, "b": "x", "c": true, "d": null, "e": -0.5}], "shown": 4711});
        let recorded = recorded(&live);
        assert_eq!(recorded["hidden"][0]["c"], true);
        let pseudonyms = PseudonymMap::from_recorded(&recorded);
        assert!(!pseudonyms.is_empty());
        let mut redacted = live.clone();
        pseudonyms.redact(&mut redacted);
        assert_eq!(redacted["hidden"], recorded["hidden"]);
        let mut both = recorded.clone();
        pseudonyms.redact(&mut both);
        assert_eq!(redacted, both, "what is shown elsewhere is the same on both sides");
    }

    #[test]
    fn a_redacted_text_has_the_parts_around_its_secrets() {
        let parts = |value: Value| match RedactedValue::from_recorded(&value) {
            Some(RedactedValue::Text(parts)) => Some(parts.join("·")),
            Some(RedactedValue::Number) | None => None,
        };
        let secret = pseudonym("hunter2");
        assert_eq!(parts(secret.clone().into()).as_deref(), Some("·"));
        assert_eq!(parts(format!("a://{secret}@b?c={secret}").into()).as_deref(), Some("a://·@b?c=·"));
        assert_eq!(parts("[redacted:none]".into()), None);
        assert_eq!(RedactedValue::from_recorded(&read(&number("4711")).unwrap()), Some(RedactedValue::Number));
        assert_eq!(RedactedValue::from_recorded(&json!(4711)), None);
    }

    #[test]
    fn another_secret_gets_another_pseudonym() {
        let recorded = recorded(&json!({"hidden": {"pin": 4711, "name": "x"}, "shown": 1}));
        let mut live = json!({"hidden": {"pin": 4712, "name": "y"}, "shown": 2});
        PseudonymMap::redact_same_places(&recorded, &mut live);
        assert_eq!(live["shown"], 2);
        assert!(is_number(&live["hidden"]["pin"].to_string()) && live["hidden"]["pin"] != recorded["hidden"]["pin"]);
        assert!(is_pseudonym(live["hidden"]["name"].as_str().unwrap()));
    }
}
