//! Whether, and how, to log in.

use std::time::Duration;

use clap::Args;
use rehearsal::oauth::{OAuth, TokenStore};

use crate::cli::context::Context;
use crate::cli::failure::Failure;

const LOGIN: &str = "Logging in";
/// Where a secret is looked for: command lines are seen by everybody on a machine.
const SECRET: &str = "REHEARSE_CLIENT_SECRET";

/// Whether, and how, to log in to a server that is reached by a URL.
#[derive(Args, Debug)]
pub(crate) struct LoginOptions {
    /// Log in where the server asks for it (OAuth), and keep the token for the next time
    #[arg(long, help_heading = LOGIN)]
    pub(crate) login: bool,

    /// How long somebody may take to log in
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = rehearsal::core::duration::read, requires = "login", help_heading = LOGIN)]
    login_timeout: Duration,

    /// Ask for this scope; may be repeated [default: those that the server names]
    #[arg(long, value_name = "SCOPE", requires = "login", help_heading = LOGIN)]
    scope: Vec<String>,

    /// The client that was registered beforehand; its secret, if any, is in REHEARSE_CLIENT_SECRET
    #[arg(long, value_name = "ID", requires = "login", help_heading = LOGIN)]
    client_id: Option<String>,
}

impl LoginOptions {
    /// How to log in; `None` where nobody should.
    pub(crate) fn oauth(&self, context: &Context) -> Result<Option<OAuth>, Failure> {
        if !self.login {
            return Ok(None);
        }
        let talk = context.talk.clone();
        let oauth = OAuth::with_browser(move |url| {
            talk.say("the server wants to know who you are; log in here:");
            talk.say(format_args!("  {url}"));
            talk.say("waiting for the browser to come back (on another machine: give the address where it ends to curl here)");
        });
        let oauth = oauth.login_timeout(self.login_timeout).scopes(&self.scope).store(store(context)?);
        Ok(Some(match &self.client_id {
            Some(id) => oauth.client(id, context.variable(SECRET)),
            None => oauth,
        }))
    }
}

/// Where tokens are kept: `$XDG_STATE_HOME/rehearsal/tokens`.
pub(crate) fn store(context: &Context) -> Result<TokenStore, Failure> {
    let set = |name: &str| context.variable(name).filter(|value| value.starts_with('/'));
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.local/state")));
    state.map(|state| TokenStore::at(format!("{state}/rehearsal/tokens"))).ok_or_else(|| {
        Failure::bad_input("--login: no place to keep the token: neither XDG_STATE_HOME nor HOME is set")
    })
}
