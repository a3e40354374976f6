//! `rehearse logout`

use clap::Args;
use rehearsal::core::redact::shown_url;

use super::context::Context;
use super::exit::{Exit, Failure};
use super::server::{check_url, token_store};

/// Remove the stored token of a server
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct LogoutArgs {
    /// The URL of the server, as in --url
    #[arg(value_name = "URL", value_hint = clap::ValueHint::Url)]
    url: String,
}

const AFTER_HELP: &str = "\
The token is removed from this machine. No server is notified: a copy of the token
remains valid until it expires.";

impl LogoutArgs {
    /// Removes the token.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        check_url(&self.url)?;
        let removed = token_store(context)?.forget(&self.url).map_err(Failure::bad_input)?;
        let what = if removed { "removed the token of" } else { "there is no token of" };
        context.stderr.note(format_args!("{what} {}", shown_url(&self.url)));
        Ok(Exit::Ok)
    }
}
