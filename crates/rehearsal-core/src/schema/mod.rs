//! Builds example values and TypeScript types from JSON Schemas, and schemas from values.
//!
//! ```text
//! schema ──shapes──► alternatives ──generator──► candidates, likeliest first ──► the first that the schema accepts
//! values ──infer──► schema ──typescript──► type
//! ```

mod array_example;
mod example;
mod generator;
mod infer;
mod number_example;
mod object_example;
mod pattern_example;
mod shape;
mod string_example;
mod subschema;
pub mod typescript;

pub use example::{NoExample, example, example_or_reason};
pub use infer::infer;
