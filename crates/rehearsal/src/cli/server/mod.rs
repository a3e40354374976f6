//! Which server, how to stderr to it, and what to answer when it asks.

mod answer_args;
mod elicitation;
mod live_output;
mod server_args;
mod target;

pub(super) use server_args::{LoginArgs, store as token_store};
pub(super) use server_args::{OUTPUT, ServerArgs, ShownAs, no_use};
pub(super) use target::{ServerKind, check_url};
