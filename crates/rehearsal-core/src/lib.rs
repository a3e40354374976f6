//! The facts and rules of MCP traffic: messages, recordings, checks and answers.
//!
//! ```text
//! bytes ──► Message ──► Exchange ──► Session                     what happened
//! Request ──► answer chain ──► Reply   (or refuse, or forward)   what should happen
//! ```
//!
//! This crate has no I/O, no clock, no randomness and no runtime: they come in as values. A module uses only those
//! before it: causes, json, duration, suggest, message, protocol, exchange, transport_fault, matcher, schema, trace, redact,
//! report, shape, script, answer.
//!
//! # Features
//!
//! - `traces`: `trace`, `redact`, `report` and `shape`.
//! - `mocks`: `script` and `answer`; needs `traces` and `json-schema`.
//! - `json-schema`: the matcher operator `schema`.

#![cfg_attr(
    not(feature = "mocks"),
    allow(dead_code, unused_imports, reason = "the modules of the features use what is private to the crate")
)]

/// Implements `Debug` like `Display`, with the causes that it leaves out, because `unwrap` and `expect` print `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($($error:ty),+) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::causes::write_with_causes(self, f)
            }
        }
    )+};
}

#[cfg(feature = "mocks")]
pub mod answer;
#[doc(hidden)]
pub mod causes;
pub mod duration;
pub mod exchange;
pub mod json;
pub mod matcher;
pub mod message;
pub mod protocol;
#[cfg(feature = "traces")]
pub mod redact;
#[cfg(feature = "traces")]
pub mod report;
#[cfg(feature = "json-schema")]
pub mod schema;
#[cfg(feature = "mocks")]
pub mod script;
#[cfg(feature = "traces")]
pub mod shape;
pub mod suggest;
#[cfg(feature = "traces")]
pub mod trace;
pub mod transport_fault;
