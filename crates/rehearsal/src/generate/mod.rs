//! Turns a recording into a mock file or a program that users edit.
//!
//! ```text
//! Recording ──► ServerModel (what the server is, what it lists, what it answers) ──► mock file, Rust, Python
//! ```

mod learner;
mod mock_file;
mod program_data;
mod python;
mod recorded_call;
mod request_rules;
mod roots_requests;
mod rule_name;
mod rust;
mod secret;
mod server_model;

pub use learner::{Learner, TooLarge};
pub use mock_file::generate_mock;
pub use program_data::TemplateError;
pub use python::generate_python;
pub use rust::generate_rust;
pub use server_model::{
    DistinctRequest, Generated, LeftOut, ListedItems, ModelAnswer, PrecedingEvent, RecordedInputRequest, RecordedReply,
    ServerModel,
};
