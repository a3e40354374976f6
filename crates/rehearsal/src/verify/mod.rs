//! Recorded requests sent to a live server, and its answers compared with the recorded ones.
//!
//! ```text
//! Moment, … ──► Plan ──► Step ──► Client ──► live answer ──┐
//!                          └────── recorded answer ────────┴──► Matcher ──► Case in the Report, Updates of the trace
//!                          └────── recorded replies to the server's questions ──► Answers
//! ```
//!
//! # Why not all at once, as they were recorded
//!
//! Requests are sent one after the other, in the order in which they were asked. What a server makes of two requests at
//! the same time may differ from run to run, and a comparison that fails now and then is worth nothing.

mod compare;
mod drift;
mod handshake;
mod listed;
mod passed_over;
mod plan;
mod questions;
mod secrets;
mod updates;
mod verification;

pub use updates::Updates;
pub use verification::{Unanswered, Verification, VerifyError, changed_questions};
