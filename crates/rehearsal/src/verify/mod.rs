//! Sends recorded requests to a live server, and compares its answers with the recorded ones.
//!
//! ```text
//! TimelineItem, … ──► VerificationPlan ──► PlannedCheck ──► Client ──► live answer ──┐
//!                                    ├─────── recorded answer ───────────┴──► Case in the Report, Updates of the trace
//!                                    └─────── recorded replies to server requests ──► ClientHandlers
//! ```
//!
//! # Why not concurrently, as recorded
//!
//! Requests are sent one after the other, in their recorded order. How a server handles two concurrent requests may
//! differ from run to run, and a comparison that fails at random is worth nothing.

mod compare;
mod difference_report;
mod handshake;
mod ignored_paths;
mod lists;
mod plan;
mod secrets;
mod server_requests;
mod updates;
mod verification;

pub use updates::Updates;
pub use verification::{AnswerStatus, Verification, VerifyError, count_changed_server_requests};
