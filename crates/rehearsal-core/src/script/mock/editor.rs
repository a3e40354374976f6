//! The format for editors.

use serde_json::Value;

use super::MockFile;

/// The JSON Schema of a mock file: editors complete and check from it.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(MockFile);
    schema.insert("title".to_owned(), "A mock of an MCP server (*.mock.yaml)".into());
    schema.into()
}
