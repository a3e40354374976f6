//! The consent of a user.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_wire::BoxFuture;
use rehearsal_wire::http::oauth_callback::CallbackListener;

use super::login::parameter;
use super::options::OAuthError;

/// How the consent is obtained.
#[derive(Clone)]
pub(super) enum Consent {
    /// The user opens the address in a browser, which is redirected to a port of this machine.
    Browser { show: Arc<dyn Fn(&str) + Send + Sync>, limit: Duration },
    /// A function visits the address and returns the address that it was redirected to.
    Visit { redirect_uri: String, visit: VisitFn },
}

pub(super) type VisitFn = Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// A consent that is ready to be requested.
pub(super) enum ConsentPrompt<'a> {
    Browser { show: &'a (dyn Fn(&str) + Send + Sync), limit: Duration, listener: CallbackListener },
    Visit { redirect_uri: &'a str, visit: &'a VisitFn },
}

impl Consent {
    /// Prepares the consent; `last_redirect_uri` is that of the last login.
    pub(super) async fn prepare(&self, last_redirect_uri: Option<&str>) -> Result<ConsentPrompt<'_>, OAuthError> {
        match self {
            Consent::Browser { show, limit } => {
                let port = last_redirect_uri.and_then(|uri| uri.parse::<http::Uri>().ok()?.port_u16());
                let bound = CallbackListener::bind(port).await;
                let listener = bound
                    .map_err(|error| OAuthError::NoConsent { why: format!("cannot listen on 127.0.0.1: {error}") })?;
                Ok(ConsentPrompt::Browser { show: &**show, limit: *limit, listener })
            }
            Consent::Visit { redirect_uri, visit } => Ok(ConsentPrompt::Visit { redirect_uri, visit }),
        }
    }
}

impl ConsentPrompt<'_> {
    /// The URI that the browser is redirected to.
    pub(super) fn redirect_uri(&self) -> String {
        match self {
            ConsentPrompt::Browser { listener, .. } => listener.uri(),
            ConsentPrompt::Visit { redirect_uri, .. } => (*redirect_uri).to_owned(),
        }
    }

    /// Requests the consent. Returns the whole address that the browser was redirected to.
    pub(super) async fn request(&self, url: &str) -> Result<String, OAuthError> {
        match self {
            ConsentPrompt::Browser { show, limit, listener } => {
                let state = parameter(url, "state").unwrap_or_default();
                show(url);
                let visited = tokio::time::timeout(*limit, listener.wait_for(&state)).await;
                let visited = visited.map_err(|_| OAuthError::TimedOut { after: *limit })?;
                visited.map_err(|error| OAuthError::NoConsent { why: error.to_string() })
            }
            ConsentPrompt::Visit { visit, .. } => {
                visit(url.to_owned()).await.map_err(|why| OAuthError::NoConsent { why })
            }
        }
    }
}

impl fmt::Debug for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Consent::Browser { limit, .. } => f.debug_struct("Browser").field("limit", limit).finish_non_exhaustive(),
            Consent::Visit { redirect_uri, .. } => {
                f.debug_struct("Visit").field("redirect_uri", redirect_uri).finish_non_exhaustive()
            }
        }
    }
}
