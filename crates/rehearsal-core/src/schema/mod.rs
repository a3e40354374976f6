//! Builds example values from JSON Schemas.
//!
//! ```text
//! schema ──shapes──► alternatives ──generator──► candidates, likeliest first ──► the first that the schema accepts
//! ```

mod array_example;
mod example;
mod generator;
mod number_example;
mod object_example;
mod pattern_example;
mod shape;
mod string_example;
mod subschema;

pub use example::{NoExample, example, example_or_reason};
