//! Finds the answer to a request in a trace without reading the trace.
//!
//! ```text
//! head │ slots: key → group │ groups: exchanges of one key, in order │ exchanges │ events │ sessions
//! ```
//!
//! A look-up reads one slot, one group and one exchange, whatever the size of the trace. Each record has a checksum
//! that is tested when the record is read, so a damaged file never produces an answer. The file is next to the trace.
//! It is built again if the trace has changed, or if damage is found before the first answer.

mod builder;
mod event_digest;
mod lookup;
mod open;
mod records;
mod writer;

pub(super) use lookup::{ExchangeGroup, Index, method_key, refused_key, subject_key};
pub use open::IndexError;
pub(super) use open::{Existing, fingerprint, open};
pub(super) use records::{SessionFacts, damaged};
