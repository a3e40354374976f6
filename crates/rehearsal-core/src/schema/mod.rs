//! Builds example values from JSON Schemas, and schemas from values.
//!
//! ```text
//! schema ──example──► candidates, likeliest first ──► the first that the schema itself accepts
//! ```

mod example;
mod infer;
mod string_example;

pub use example::example;
pub use infer::infer;
