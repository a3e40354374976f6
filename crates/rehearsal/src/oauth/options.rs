//! The options of a login, and its errors.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_wire::http::client::join_causes;
use rmcp::transport::auth::AuthError;

use super::client_registration::{Algorithm, SigningKey};
use super::consent::Consent;
use super::token_store::{StoreError, TokenStore};

/// The default time for a user to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);

/// How to get a token for a server that requires one.
///
/// Nothing is sent before a server refuses a request because it lacks authorization. The client id is then, in this
/// order: the one that was [registered beforehand](OAuth::client), the URL of a [metadata
/// document](OAuth::client_metadata_url) if the authorization server supports such documents, or the result of a
/// dynamic registration.
#[derive(Clone)]
pub struct OAuth {
    pub(super) grant: Grant,
    pub(super) name: String,
    pub(super) client: Option<(String, Option<String>)>,
    pub(super) metadata_url: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) store: Option<TokenStore>,
}

/// The grant, and its credentials. It has no `Debug`, because it contains secrets.
#[derive(Clone)]
pub(super) enum Grant {
    /// A user consents.
    User(Consent),
    /// The client authorizes itself, with a secret.
    Secret { id: String, secret: String },
    /// The client authorizes itself, with a key.
    Key { id: String, key: SigningKey },
}

impl OAuth {
    fn new(grant: Grant) -> OAuth {
        OAuth { grant, name: "Rehearsal".to_owned(), client: None, metadata_url: None, scopes: Vec::new(), store: None }
    }

    /// A user logs in: `show` prints the address, and a port of this machine waits for the redirect of the browser.
    pub fn with_browser(show: impl Fn(&str) + Send + Sync + 'static) -> OAuth {
        OAuth::new(Grant::User(Consent::Browser { show: Arc::new(show), limit: LOGIN_TIMEOUT }))
    }

    /// A function logs in, for tests without a browser. `visit` requests the address that it gets, and returns the
    /// address under `redirect_uri` that it was redirected to.
    pub fn with_visit<F>(redirect_uri: impl Into<String>, visit: impl Fn(String) -> F + Send + Sync + 'static) -> OAuth
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let visit = Arc::new(move |url| -> rehearsal_wire::BoxFuture<'static, _> { Box::pin(visit(url)) });
        OAuth::new(Grant::User(Consent::Visit { redirect_uri: redirect_uri.into(), visit }))
    }

    /// Authorizes the client itself, without a user, with a client secret.
    pub fn with_client_secret(id: impl Into<String>, secret: impl Into<String>) -> OAuth {
        OAuth::new(Grant::Secret { id: id.into(), secret: secret.into() })
    }

    /// Authorizes the client itself, without a user, with an assertion that is signed with a private key (PKCS#8, PEM).
    pub fn with_private_key(id: impl Into<String>, pem: impl Into<String>, algorithm: Algorithm) -> OAuth {
        OAuth::new(Grant::Key { id: id.into(), key: SigningKey { pem: pem.into(), algorithm } })
    }

    /// The id of a registered client, and its secret if it has one.
    pub fn client(self, id: impl Into<String>, secret: Option<String>) -> OAuth {
        OAuth { client: Some((id.into(), secret)), ..self }
    }

    /// The URL of the document that describes this client: an `https` URL, which is its id.
    pub fn client_metadata_url(self, url: impl Into<String>) -> OAuth {
        OAuth { metadata_url: Some(url.into()), ..self }
    }

    /// The client name on the page of the authorization server; `Rehearsal` by default.
    pub fn client_name(self, name: impl Into<String>) -> OAuth {
        OAuth { name: name.into(), ..self }
    }

    /// Requests these scopes; by default those that the server requires.
    pub fn scopes(self, scopes: impl IntoIterator<Item = impl Into<String>>) -> OAuth {
        OAuth { scopes: scopes.into_iter().map(Into::into).collect(), ..self }
    }

    /// Stores tokens for later processes.
    pub fn store(self, store: TokenStore) -> OAuth {
        OAuth { store: Some(store), ..self }
    }

    /// How long a user may take to log in; five minutes by default.
    pub fn login_timeout(mut self, timeout: Duration) -> OAuth {
        if let Grant::User(Consent::Browser { limit, .. }) = &mut self.grant {
            *limit = timeout;
        }
        self
    }
}

impl fmt::Debug for OAuth {
    /// Prints no secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("name", &self.name).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

/// Why the login failed.
#[derive(thiserror::Error)]
pub enum OAuthError {
    /// Discovery, registration or the exchange of a token failed.
    #[error("{}", join_causes(.0))]
    Protocol(#[from] AuthError),
    /// The user or the authorization server refused.
    #[error("the authorization server answered {error:?}{}", because(.description))]
    Denied {
        /// `access_denied`, for example.
        error: String,
        /// Its `error_description`.
        description: Option<String>,
    },
    /// The user did not consent in time.
    #[error("no login within {} s", .after.as_secs_f64())]
    TimedOut {
        /// The time limit.
        after: std::time::Duration,
    },
    /// The authorization server could not be visited.
    #[error("cannot request the consent: {why}")]
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
    /// The tokens cannot be stored or read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

debug_as_display!(OAuthError);

fn because(description: &Option<String>) -> String {
    description.as_ref().map(|text| format!(": {text}")).unwrap_or_default()
}
