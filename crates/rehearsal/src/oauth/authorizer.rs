//! Authorization at one server: when a token is requested, renewed and sent.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, StatusCode};
use rehearsal_wire::http::client::{Authorize, HttpClientOptions, RetryDecision, fetch};
use rehearsal_wire::{BoxFuture, HttpMeta};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest,
    WWWAuthenticateParams,
};
use tokio::sync::Mutex;

use super::client_registration::client_of_login;
use super::login::LoginFlow;
use super::login_cache::LoginCache;
use super::options::{OAuth, OAuthError};
use super::token_store::Login;

/// A token that expires within this many seconds is renewed before it is used. A quarter of the lifetime, if that is
/// shorter.
const RENEW_MARGIN: u64 = 30;

/// Authorizes the client at one server. Requests that are sent during a login wait for it.
pub(crate) struct Authorizer {
    oauth: OAuth,
    options: HttpClientOptions,
    cache: LoginCache,
    manager: Mutex<AuthorizationManager>,
}

impl Authorizer {
    /// Creates an authorizer for the server of `options`.
    pub(crate) async fn new(oauth: OAuth, options: HttpClientOptions) -> Result<Authorizer, OAuthError> {
        let server = options.url.to_string();
        let cache = LoginCache::new(&server, oauth.store.clone());
        let fetcher = Arc::new(OAuthHttp { options: options.clone() });
        let mut manager = AuthorizationManager::new_with_oauth_http_client(&server, fetcher).await?;
        manager.set_credential_store(cache.clone());
        Ok(Authorizer { oauth, options, cache, manager: Mutex::new(manager) })
    }

    /// The current token, renewed if it is old. A token that cannot be renewed is sent anyway, and the server decides.
    async fn token(&self) -> Result<Option<HeaderValue>, OAuthError> {
        let mut manager = self.manager.lock().await;
        let login = match self.cache.get() {
            Some(login) => Some(login),
            None => self.cache.reload()?,
        };
        let Some(login) = login else { return Ok(None) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if login.is_old(now, RENEW_MARGIN) && login.has_refresh_token() {
            let _lock = self.cache.lock().await?;
            if let Some(login) = self.cache.reload()?.filter(|login| login.is_old(now, RENEW_MARGIN)) {
                let metadata = self.discover(&mut manager, None).await?;
                self.refresh(&mut manager, &metadata, &login).await?;
            }
        }
        Ok(self.cache.get().and_then(|login| header(&login)))
    }

    async fn handle_challenge(&self, sent: Option<&HeaderValue>, head: &HttpMeta) -> Result<RetryDecision, OAuthError> {
        let mut manager = self.manager.lock().await;
        let lock = self.cache.lock().await?;
        let login = self.cache.reload()?;
        if login.as_ref().and_then(header).is_some_and(|token| Some(&token) != sent) {
            return Ok(RetryDecision::Yes); // another request or process has logged in already
        }
        let challenge = challenge(&head.headers);
        let scopes = match head.status {
            Some(StatusCode::UNAUTHORIZED) => Vec::new(),
            _ => match scopes_to_request(challenge.as_deref(), login.as_ref()) {
                Some(scopes) => scopes,
                None => return Ok(RetryDecision::No),
            },
        };
        let metadata = self.discover(&mut manager, challenge.as_deref()).await?;
        if let Some(login) = login {
            // Credentials of one authorization server are never sent to another.
            if login.issuer.is_some() && login.issuer != metadata.issuer {
                self.cache.forget()?;
            } else if scopes.is_empty() && self.refresh(&mut manager, &metadata, &login).await? == RetryDecision::Yes {
                return Ok(RetryDecision::Yes);
            }
        }
        drop(lock); // a user may take minutes
        let (oauth, cache, options) = (&self.oauth, &self.cache, &self.options);
        let mut flow = LoginFlow { oauth, manager: &mut manager, metadata: &metadata, cache, options };
        flow.log_in(scopes).await?;
        Ok(RetryDecision::Yes)
    }

    async fn discover(
        &self,
        manager: &mut AuthorizationManager,
        challenge: Option<&str>,
    ) -> Result<AuthorizationMetadata, OAuthError> {
        let found = manager.resolve_metadata_from_challenge(challenge).await?;
        manager.set_metadata(found.metadata.clone());
        Ok(found.metadata)
    }

    /// Renews a token, if it has a refresh token of this issuer.
    async fn refresh(
        &self,
        manager: &mut AuthorizationManager,
        metadata: &AuthorizationMetadata,
        login: &Login,
    ) -> Result<RetryDecision, OAuthError> {
        let same = login.issuer.is_none() || login.issuer == metadata.issuer;
        if !same || !login.has_refresh_token() {
            return Ok(RetryDecision::No);
        }
        manager.configure_client(client_of_login(login, &self.options.url.to_string()))?;
        match manager.refresh_token().await {
            Ok(_) => Ok(RetryDecision::Yes),
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(RetryDecision::No),
            Err(error) => Err(error.into()),
        }
    }
}

/// `Bearer …`, marked as sensitive. `None` if the token is not valid in a header.
fn header(login: &Login) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", login.access_token())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The `Bearer` challenge of the server, verbatim.
fn challenge(headers: &HeaderMap) -> Option<String> {
    let mut challenges = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    challenges.find(|value| value.to_ascii_lowercase().contains("bearer")).map(str::to_owned)
}

/// The scopes to request if those of a login are insufficient: the earlier ones and those in the challenge. `None` if
/// the challenge has no new scope, because another request would change nothing.
fn scopes_to_request(challenge: Option<&str>, login: Option<&Login>) -> Option<Vec<String>> {
    let nowhere = oauth2::url::Url::parse("http://localhost/").ok()?;
    let params = WWWAuthenticateParams::parse(challenge?, &nowhere);
    if !params.is_insufficient_scope() {
        return None;
    }
    let mut scopes = login.map(|login| login.scopes.clone()).unwrap_or_default();
    let before = scopes.len();
    for scope in params.scope.as_deref().unwrap_or_default().split_ascii_whitespace() {
        if !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
        }
    }
    (scopes.len() > before).then_some(scopes)
}

impl Authorize for Authorizer {
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>> {
        Box::pin(async { self.token().await.map_err(|error| error.to_string()) })
    }

    fn refused<'a>(
        &'a self,
        sent: Option<&'a HeaderValue>,
        head: &'a HttpMeta,
    ) -> BoxFuture<'a, Result<RetryDecision, String>> {
        Box::pin(async move { self.handle_challenge(sent, head).await.map_err(|error| error.to_string()) })
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("oauth", &self.oauth).finish_non_exhaustive()
    }
}

/// The timeout of each request that has none.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends the requests of a login with our client, so that certificates and limits are those of the server's connection.
/// Redirects are not followed.
pub(super) struct OAuthHttp {
    pub(super) options: HttpClientOptions,
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let limit = request.timeout.unwrap_or(REQUEST_TIMEOUT);
            let fetched = fetch(&self.options, request.request.map(Bytes::from), limit).await?;
            Ok(fetched.map(Vec::from))
        })
    }
}
