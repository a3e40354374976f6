//! Why nobody is logged in.

use rehearsal_wire::http::client::in_words;
use rmcp::transport::auth::AuthError;

use super::store::StoreError;

/// Why nobody is logged in.
#[derive(Debug, thiserror::Error)]
pub enum OAuthError {
    /// Discovery, registration or the exchange of a token failed.
    #[error("{}", in_words(.0))]
    Protocol(#[from] AuthError),
    /// The person, or the authorization server, said no.
    #[error("the authorization server answered {error:?}{}", because(.description))]
    Denied {
        /// `access_denied`, for example.
        error: String,
        /// What it says beside that.
        description: Option<String>,
    },
    /// Nobody consented in time.
    #[error("nobody logged in within {} s", .after.as_secs_f64())]
    TimedOut {
        /// How long was waited.
        after: std::time::Duration,
    },
    /// Whoever should visit the authorization server could not.
    #[error("the consent could not be asked for: {why}")]
    NoConsent {
        /// Why not.
        why: String,
    },
    /// The private key cannot be used.
    #[error("the private key cannot be used: {why}")]
    BadKey {
        /// Why not.
        why: String,
    },
    /// The tokens could not be kept or found.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn because(description: &Option<String>) -> String {
    description.as_ref().map(|text| format!(": {text}")).unwrap_or_default()
}
