//! The arguments of a tool or a prompt, from the command line.
//!
//! ```text
//! key=value, key:=JSON ──► Assignment ──┐
//! --args JSON|@file|- ──────────────────┴► Given ──► typed by the tool's schema ──► arguments
//! ```

mod assignment;
mod error;
mod given;
mod typed;

pub(super) use error::{ArgumentsError, Taker};
pub(super) use given::{Arguments, Given};
pub(super) use typed::Signature;
