//! TypeScript types of JSON Schemas, as text.
//!
//! ```text
//! schema ──SchemaTypes──► TypeExpression ──► text, and the named types that it refers to
//! ```

mod comment;
mod conversion;
mod name;
mod schema_types;
mod type_expression;

pub use comment::doc_comment;
pub use name::{pascal_case, property_name};
pub use schema_types::{SchemaType, SchemaTypes, TypeUse};
