//! Authorization for servers that require it: OAuth 2.1 as in MCP.
//!
//! ```text
//! request ──► 401 and a challenge ──► metadata ──► registration ──► consent ──► token ──► the request again
//!                                        │                             ▲
//!                403, more scope ────────┼─────────────────────────────┘
//!                token too old ──────────┴──► refresh ──► token
//! ```
//!
//! `rmcp` implements the steps. This module decides when each of them is taken, how the user consents and where
//! tokens are stored.
//!
//! ```no_run
//! # async fn example() -> Result<(), rehearsal::client::ClientError> {
//! use rehearsal::Client;
//! use rehearsal::oauth::{OAuth, TokenStore};
//!
//! let oauth = OAuth::with_browser(|url| eprintln!("log in at {url}")).store(TokenStore::at("/home/me/.tokens"));
//! let client = Client::url("https://mcp.example/mcp").oauth(oauth).connect().await?;
//! # Ok(())
//! # }
//! ```

mod authorizer;
mod client_registration;
mod consent;
mod login;
mod login_cache;
mod options;
mod token_store;

pub(crate) use authorizer::Authorizer;
pub use client_registration::Algorithm;
pub use options::{OAuth, OAuthError};
pub use token_store::{StoreError, TokenStore};
