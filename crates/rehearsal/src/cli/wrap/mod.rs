//! `rehearse wrap` and `rehearse unwrap`: the servers of a client's configuration, recorded and not.
//!
//! ```text
//! "command": "npx", "args": ["-y", "server"]
//!      wrap ──► "command": "/…/rehearse", "args": ["record", …, "--", "npx", "-y", "server"]      unwrap ──► as it was
//! ```
//!
//! Only the words of the command are touched, in the text as it is: spacing, comments and whatever else is in the file
//! stay.

mod config;
mod error;
mod unwrap;
#[expect(clippy::module_inception, reason = "the verb is the same in the CLI, the module, and the function")]
mod wrap;

pub(super) use error::WrapError;
pub(super) use unwrap::Unwrap;
pub(super) use wrap::Wrap;
