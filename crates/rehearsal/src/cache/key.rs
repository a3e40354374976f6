//! The identity of a call's arguments.

use std::fmt;

use rehearsal_core::json::canonical;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The SHA-256 of the canonical form of a call's arguments. The order of members and the spelling of numbers do not count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgumentsKey([u8; 32]);

impl ArgumentsKey {
    /// Builds the key. `null` counts as no arguments, `{}`.
    pub fn new(arguments: &Value) -> ArgumentsKey {
        let mut text = String::new();
        match arguments {
            Value::Null => canonical(&Value::Object(Map::new()), &mut text),
            arguments => canonical(arguments, &mut text),
        }
        ArgumentsKey(Sha256::digest(text.as_bytes()).into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ArgumentsKey {
    /// The first 12 digits, which identify an entry for users.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ArgumentsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_members_and_the_spelling_of_numbers_do_not_count() {
        let key = ArgumentsKey::new(&json!({"a": 1, "b": {"c": 2.0}}));
        assert_eq!(key, ArgumentsKey::new(&json!({"b": {"c": 2}, "a": 1})));
        assert_ne!(key, ArgumentsKey::new(&json!({"b": {"c": "2"}, "a": 1})));
        assert_eq!(ArgumentsKey::new(&Value::Null), ArgumentsKey::new(&json!({})));
    }
}
