//! Schemas that are compiled when they are first needed.

use std::sync::OnceLock;

use serde_json::Value;

use crate::matcher::Schema;

/// A JSON Schema that is compiled when it is first needed, so that ten thousand tools cost nothing at the start.
#[derive(Debug)]
pub(super) struct LazySchema {
    written: Value,
    compiled: OnceLock<Result<Schema, String>>,
}

impl LazySchema {
    pub(super) fn new(written: Value) -> LazySchema {
        LazySchema { written, compiled: OnceLock::new() }
    }

    /// As it was written.
    pub(super) fn written(&self) -> &Value {
        &self.written
    }

    fn compiled(&self) -> Result<&Schema, &String> {
        self.compiled.get_or_init(|| Schema::compile(&self.written).map_err(|error| error.to_string())).as_ref()
    }

    /// Whether it accepts a value; one that cannot be used accepts everything.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.compiled().map_or(true, |schema| schema.is_valid(value))
    }

    /// What is wrong with a value, a line each.
    pub(super) fn check(&self, value: &Value) -> Vec<String> {
        match self.compiled() {
            Ok(schema) if schema.is_valid(value) => Vec::new(),
            Ok(schema) => schema.check(value).iter().map(ToString::to_string).collect(),
            Err(why) => vec![format!("the schema itself cannot be used: {why}")],
        }
    }
}
