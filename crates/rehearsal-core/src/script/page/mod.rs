//! YAML as people would write it: short things on one line, long ones in blocks, what stands twice written once, comments
//! above what they are about.
//!
//! # Why not the serializer of serde-saphyr
//!
//! It has no comments between the elements of a list, and no way to write `{ type: string }` on one line where it fits.

mod names;
mod text;
mod written;

pub(crate) use written::{Element, Key, Node, written};
