//! Logging in, against an authorization server and a server that wants its tokens, both started here.

mod authorization;
mod clients;
mod oauth_server;
mod program;
mod stored;
