//! The facts and rules of MCP traffic: messages, recordings, checks and answers.
//!
//! ```text
//! bytes ──► Message ──► Exchange ──► Session                     what happened
//! Request ──► answer chain ──► Reply   (or refuse, or forward)   what should happen
//! ```
//!
//! This crate has no I/O, no clock, no randomness and no runtime: they come in as values. A module uses only those
//! before it: json, message, protocol, exchange, matcher, schema, trace, redact, report, shape,
//! script, answer.

pub mod answer;
pub mod duration;
pub mod exchange;
pub mod json;
pub mod matcher;
pub mod message;
pub mod protocol;
pub mod redact;
pub mod report;
pub mod schema;
pub mod script;
pub mod shape;
pub mod suggest;
pub mod trace;
