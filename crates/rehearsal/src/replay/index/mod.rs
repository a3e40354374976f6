//! Where in a trace the answer to a request is, without reading the trace.
//!
//! ```text
//! head │ slots: key → group │ groups: exchanges of one key, in order │ exchanges │ things │ sessions
//! ```
//!
//! A look-up reads a slot, a group and an exchange, however many there are. Each record has a seal, which is tested when the record
//! is read, so no damage to the file is ever taken for an answer. The file lies beside the trace and is built again when the
//! trace is another than it was, or when damage is seen before anything was answered.

mod collect;
mod digest;
mod layout;
mod lookup;
mod open;
mod write;

pub(super) use layout::{Facts, damaged};
pub(super) use lookup::{Group, Index, about_key, method_key, refused_key};
pub use open::IndexError;
pub(super) use open::{Existing, fingerprint, open};
