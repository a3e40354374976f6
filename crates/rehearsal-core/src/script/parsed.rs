//! Values of a file with their parsed form.

use std::sync::OnceLock;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::schema_of::schema_of;
use crate::matcher::{Matcher, MatcherError, Schema};

/// A written value and its parsed form. It is parsed once, so the check of the file and its use have the same result.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    /// The written value.
    pub written: Value,
    result: OnceLock<Result<T, Box<MatcherError>>>,
}

impl<T: ParseValue> Parsed<T> {
    /// The parsed form, or the error.
    pub fn parsed(&self) -> Result<&T, &MatcherError> {
        let result = self.result.get_or_init(|| T::parse_value(&self.written).map_err(Box::new));
        result.as_ref().map_err(|error| &**error)
    }
}

/// The parsed form of a value.
pub trait ParseValue: Sized {
    /// Parses a value.
    fn parse_value(written: &Value) -> Result<Self, MatcherError>;
}

impl ParseValue for Matcher {
    fn parse_value(written: &Value) -> Result<Matcher, MatcherError> {
        Matcher::parse(written)
    }
}

impl ParseValue for Schema {
    fn parse_value(written: &Value) -> Result<Schema, MatcherError> {
        Schema::compile(written)
    }
}

/// A matcher for arguments, or for input responses by name: its top-level keys are names, unless all of them are
/// operators for a whole object.
#[derive(Clone, Debug)]
pub struct When(pub Matcher);

impl ParseValue for When {
    fn parse_value(written: &Value) -> Result<When, MatcherError> {
        match written {
            Value::Object(fields) => Matcher::parse_arguments(fields, |_| false).map(When),
            _ => Matcher::parse(written).map(When),
        }
    }
}

impl Parsed<When> {
    /// Sets which keys are names of arguments, before the matcher is first parsed.
    pub(super) fn set_argument_names(&self, is_name: impl Fn(&str) -> bool) {
        if let Value::Object(fields) = &self.written
            && fields.keys().any(|key| is_name(key))
        {
            let result = Matcher::parse_arguments(fields, is_name).map(When).map_err(Box::new);
            // Another thread may have set the same.
            let _ = self.result.set(result);
        }
    }
}

impl<'de, T: ParseValue> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parsed<T>, D::Error> {
        Ok(Parsed { written: Value::deserialize(deserializer)?, result: OnceLock::new() })
    }
}

schema_of!([T] Parsed<T> = Value);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::script::read;

    thread_local! {
        static PARSED: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Debug)]
    struct Counted;

    impl ParseValue for Counted {
        fn parse_value(_: &Value) -> Result<Counted, MatcherError> {
            PARSED.set(PARSED.get() + 1);
            Ok(Counted)
        }
    }

    #[test]
    fn a_value_is_parsed_once_and_not_while_the_file_is_read() {
        let values: Vec<Parsed<Counted>> = read("m.yaml", "[{ a: 1 }, 2]").unwrap();
        assert_eq!((PARSED.get(), &values[1].written), (0, &2.into()));
        for _ in 0..3 {
            assert!(values.iter().all(|it| it.parsed().is_ok()));
        }
        assert_eq!(PARSED.get(), 2);
    }
}
