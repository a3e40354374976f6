//! JSON Schemas in a build without the feature `json-schema`: none can be compiled.

use std::convert::Infallible;

use serde_json::Value;

use super::judge::Mismatch;
use super::parse::{MatcherError, MatcherProblem};
use crate::json::Path;

/// A compiled JSON Schema. Without the feature `json-schema` there is none.
#[derive(Debug, Clone)]
pub struct Schema(Infallible);

impl Schema {
    /// Returns an error that names the feature.
    pub fn compile(_: &Value) -> Result<Schema, MatcherError> {
        let reason = "this build has no JSON Schema; enable the feature `json-schema`".to_owned();
        Err(MatcherProblem::BadSchema { reason }.at(&Path::root()))
    }

    /// The schema before compilation.
    pub fn as_value(&self) -> &Value {
        match self.0 {}
    }

    /// Whether the schema accepts a value.
    pub fn is_valid(&self, _: &Value) -> bool {
        match self.0 {}
    }

    /// The first places where a value is invalid.
    pub fn objections(&self, _: &Value) -> Vec<String> {
        match self.0 {}
    }

    /// Every mismatch between the schema and a value.
    pub fn check(&self, _: &Value) -> Vec<Mismatch> {
        match self.0 {}
    }
}
