//! Builds example values from JSON Schemas.
//!
//! ```text
//! schema ──example──► candidates, likeliest first ──► the first that the schema itself accepts
//! ```

mod example;
mod string_example;

pub use example::example;
