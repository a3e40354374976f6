//! Options of the verbs that connect to a server: the server, the connection, and the answers to its requests.

mod answer_args;
mod elicitation;
mod live_output;
mod server_args;
mod target;

pub(super) use server_args::{LoginArgs, OUTPUT, ServerArgs, ShownAs, no_use, token_store};
pub(super) use target::{ServerKind, check_url};
