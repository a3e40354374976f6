//! The arguments of a tool, from the command line.
//!
//! ```text
//! key=value, key:=JSON ──► Assignment ──┐
//! --args JSON|@file|- ──────────────────┴► Given ──► typed by the tool's schema ──► arguments
//! ```

mod assignment;
mod error;
mod given;
mod typed;

pub(super) use error::ArgumentsError;
pub(super) use given::Given;
pub(super) use typed::typed;
