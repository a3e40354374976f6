//! A method that is refused, whatever is asked.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A JSON-RPC error as it goes on the wire.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// What kind of failure, for programs.
    pub code: i64,
    /// What happened, for people.
    pub message: String,
    /// Whatever else there is to say.
    #[serde(default, deserialize_with = "given")]
    pub data: Option<Value>,
}

/// A value that is `null` is not the same as none.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
