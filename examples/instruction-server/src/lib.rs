//! A typed client for the instruction server, and matchers for what it answers.
//!
//! ```no_run
//! use instruction_server::{InstructionClient, LEARNING_LOOP_MATCHER};
//! use rehearsal::Client;
//! use rehearsal::testing::assert_success;
//!
//! # async fn example() -> Result<(), rehearsal::client::ClientError> {
//! let client = Client::command("instruction-server").connect().await?;
//! let response = client.route_instructions("I'm done with this task").limit(2).await?;
//! assert_success(&response);
//! LEARNING_LOOP_MATCHER.assert_matches(&response);
//! # Ok(())
//! # }
//! ```

mod client;
mod matchers;

pub use client::{GetInstructions, InstructionClient, RouteInstructions, SearchInstructions, SwitchEngine};
pub use matchers::{CHECKLIST_MATCHER, LEARNING_LOOP_MATCHER, WORK_LOG_MATCHER};
