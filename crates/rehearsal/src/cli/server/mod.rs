//! Which server, how to talk to it, and what to answer when it asks.

mod answers;
mod heard;
mod options;
mod which;

pub(super) use options::{LoginOptions, store as token_store};
pub(super) use options::{OUTPUT, ServerOptions, ShownAs, no_use};
pub(super) use which::{ServerKind, check_url};
