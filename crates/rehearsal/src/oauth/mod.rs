//! Logging in to servers that ask for it: OAuth 2.1 as MCP uses it.
//!
//! ```text
//! request ──► 401 and a challenge ──► metadata ──► registration ──► consent ──► token ──► the request again
//!                                        │                             ▲
//!                403, more scope ────────┼─────────────────────────────┘
//!                token too old ──────────┴──► refresh ──► token
//! ```
//!
//! The steps are `rmcp`'s; here is decided when each of them is taken, who consents and where tokens are kept.
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

mod assertion;
mod authority;
mod consent;
mod error;
mod fetch;
mod identity;
mod login;
mod options;
mod query;
mod shelf;
mod store;

pub use assertion::Algorithm;
pub(crate) use authority::Authority;
pub use error::OAuthError;
pub use options::OAuth;
pub use store::{StoreError, TokenStore};
