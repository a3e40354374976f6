//! What a server says about itself to clients of one version.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::script::Located;

/// What the handshake says in a version, exactly as it goes on the wire there.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Introduced {
    /// Who the server is, before 2026-07-28.
    pub server: Option<Located<Map<String, Value>>>,
    /// What it can do.
    pub capabilities: Option<Located<Map<String, Value>>>,
}
