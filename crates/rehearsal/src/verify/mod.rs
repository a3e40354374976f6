//! Sends recorded requests to a live server, and compares its answers with the recorded ones.
//!
//! ```text
//! Moment, … ──► Plan ──► Step ──► Client ──► live answer ──┐
//!                          └────── recorded answer ────────┴──► Matcher ──► Case in the Report, Updates of the trace
//!                          └────── recorded replies to server requests ──► Answers
//! ```
//!
//! # Why not concurrently, as recorded
//!
//! Requests are sent one after the other, in their recorded order. How a server handles two concurrent requests may
//! differ from run to run, and a comparison that fails at random is worth nothing.

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
pub use verification::{AnswerStatus, Verification, VerifyError, changed_questions};
