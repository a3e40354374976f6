//! Finds the answer to a request in a trace without reading the trace.
//!
//! ```text
//! head │ slots: key → group │ groups: exchanges of one key, in order │ exchanges │ things │ sessions
//! ```
//!
//! A look-up reads one slot, one group and one exchange, whatever the size of the trace. Each record has a checksum
//! that is tested when the record is read, so a damaged file never produces an answer. The file is next to the trace.
//! It is built again if the trace has changed, or if damage is found before the first answer.

mod collect;
mod digest;
mod layout;
mod lookup;
mod open;
mod write;

pub(super) use layout::{SessionFacts, damaged};
pub(super) use lookup::{ExchangeGroup, Index, method_key, refused_key, subject_key};
pub use open::IndexError;
pub(super) use open::{Existing, fingerprint, open};
