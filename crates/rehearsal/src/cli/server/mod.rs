//! Which server, how to talk to it, and what to answer when it asks.

mod answers;
mod container;
mod error;
mod heard;
mod login;
mod options;
mod which;

pub(super) use error::{ServerError, listen_hints};
pub(super) use login::{LoginOptions, store as token_store};
pub(super) use options::{OUTPUT, ServerOptions, ShownAs};
pub(super) use which::{Reached, check_url};
