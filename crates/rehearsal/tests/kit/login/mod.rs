//! Logins at an authorization server, for an MCP server that requires its tokens.

mod authorization;
mod clients;
mod oauth_server;
mod program;
mod stored;
