//! What a JSON Schema has to say when nobody gives a value.
//!
//! ```text
//! schema ──example──► candidates, likeliest first ──► the first that the schema itself accepts
//! ```

mod example;
mod text;

pub use example::example;
