//! How to get a token, and why there is none.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_wire::http::client::in_words;
use rmcp::transport::auth::AuthError;

use super::client_registration::{Algorithm, Key};
use super::consent::Consent;
use super::store::{StoreError, TokenStore};

/// How long a person may take to log in.
const LOGIN: Duration = Duration::from_secs(300);

/// How to get a token from a server that wants one.
///
/// Nothing happens before a server refuses a request for want of authorization. Then what the client is known by is, in this
/// order: what was [registered beforehand](OAuth::client), a [document about it](OAuth::client_metadata_url) where the
/// authorization server reads such, or a dynamic registration.
#[derive(Clone)]
pub struct OAuth {
    pub(super) grant: Grant,
    pub(super) name: String,
    pub(super) client: Option<(String, Option<String>)>,
    pub(super) metadata_url: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) store: Option<TokenStore>,
}

/// On whose behalf we come. Not to be shown: there are secrets in it.
#[derive(Clone)]
pub(super) enum Grant {
    /// A person's, who consents.
    Person(Consent),
    /// Our own, with a secret.
    Secret { id: String, secret: String },
    /// Our own, with a key.
    Key { id: String, key: Key },
}

impl OAuth {
    fn new(grant: Grant) -> OAuth {
        OAuth { grant, name: "Rehearsal".to_owned(), client: None, metadata_url: None, scopes: Vec::new(), store: None }
    }

    /// A person logs in: `show` says where, and a port of this machine waits for the browser that comes back.
    pub fn with_browser(show: impl Fn(&str) + Send + Sync + 'static) -> OAuth {
        OAuth::new(Grant::Person(Consent::Browser { show: Arc::new(show), limit: LOGIN }))
    }

    /// `visit` logs in: it goes to the address that it is given, and says to which address under `redirect_uri` it was sent
    /// back. For tests, where nobody sits at a browser.
    pub fn with_visit<F>(redirect_uri: impl Into<String>, visit: impl Fn(String) -> F + Send + Sync + 'static) -> OAuth
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let visit = Arc::new(move |url| -> rehearsal_wire::BoxFuture<'static, _> { Box::pin(visit(url)) });
        OAuth::new(Grant::Person(Consent::Visit { redirect_uri: redirect_uri.into(), visit }))
    }

    /// Nobody logs in: the client comes on its own behalf, with a secret.
    pub fn with_client_secret(id: impl Into<String>, secret: impl Into<String>) -> OAuth {
        OAuth::new(Grant::Secret { id: id.into(), secret: secret.into() })
    }

    /// Nobody logs in: the client comes on its own behalf, and signs that with a private key (PKCS#8, PEM).
    pub fn with_private_key(id: impl Into<String>, pem: impl Into<String>, algorithm: Algorithm) -> OAuth {
        OAuth::new(Grant::Key { id: id.into(), key: Key { pem: pem.into(), algorithm } })
    }

    /// The client that was registered beforehand, with its secret where it has one.
    pub fn client(self, id: impl Into<String>, secret: Option<String>) -> OAuth {
        OAuth { client: Some((id.into(), secret)), ..self }
    }

    /// Where the document is that describes this client: an `https` URL that serves as its id.
    pub fn client_metadata_url(self, url: impl Into<String>) -> OAuth {
        OAuth { metadata_url: Some(url.into()), ..self }
    }

    /// The name that a person reads on the page of the authorization server; `Rehearsal` unless given.
    pub fn client_name(self, name: impl Into<String>) -> OAuth {
        OAuth { name: name.into(), ..self }
    }

    /// Asks for these scopes; otherwise for those that the server names.
    pub fn scopes(self, scopes: impl IntoIterator<Item = impl Into<String>>) -> OAuth {
        OAuth { scopes: scopes.into_iter().map(Into::into).collect(), ..self }
    }

    /// Keeps tokens beyond this process.
    pub fn store(self, store: TokenStore) -> OAuth {
        OAuth { store: Some(store), ..self }
    }

    /// How long a person may take to log in; five minutes unless given.
    pub fn login_timeout(mut self, timeout: Duration) -> OAuth {
        if let Grant::Person(Consent::Browser { limit, .. }) = &mut self.grant {
            *limit = timeout;
        }
        self
    }
}

impl fmt::Debug for OAuth {
    /// Without anything that is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("name", &self.name).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

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
