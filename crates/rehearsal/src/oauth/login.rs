//! One login, from metadata to token.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use oauth2::url::form_urlencoded;
use rehearsal_wire::http::client::{HttpClientOptions, fetch};
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig,
    OAuthTokenResponse,
};

use super::client_registration::{SigningKey, identify, known};
use super::consent::Consent;
use super::login_cache::LoginCache;
use super::options::{Grant, OAuth, OAuthError};
use super::token_store::Login;

/// How long to wait for the response of the token endpoint.
const TOKEN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);
const OFFLINE_ACCESS: &str = "offline_access";

/// The parts of a login.
pub(super) struct LoginFlow<'a> {
    pub(super) oauth: &'a OAuth,
    pub(super) manager: &'a mut AuthorizationManager,
    pub(super) metadata: &'a AuthorizationMetadata,
    pub(super) cache: &'a LoginCache,
    /// How to connect to the server.
    pub(super) options: &'a HttpClientOptions,
}

impl LoginFlow<'_> {
    /// Logs in with `scopes`, or with those that the server requires.
    pub(super) async fn log_in(&mut self, scopes: Vec<String>) -> Result<(), OAuthError> {
        let scopes = if !scopes.is_empty() {
            self.with_offline_access(scopes)
        } else if !self.oauth.scopes.is_empty() {
            self.with_offline_access(self.oauth.scopes.clone())
        } else {
            self.manager.select_initial_scopes(&[]).await
        };
        match &self.oauth.grant {
            Grant::User(consent) => self.request_consent(consent, scopes).await,
            Grant::Secret { id, secret } => {
                let config = ClientCredentialsConfig::ClientSecret {
                    client_id: id.clone(),
                    client_secret: secret.clone(),
                    scopes: scopes.clone(),
                    resource: Some(self.options.url.to_string()),
                };
                self.manager.validate_client_credentials_metadata(&config)?;
                self.manager.configure_client_credentials(&config)?;
                self.manager.exchange_client_credentials(&config).await?;
                Ok(self.cache.amend(|login| login.scopes = scopes)?)
            }
            Grant::Key { id, key } => self.use_assertion(id, key, scopes).await,
        }
    }

    /// The scopes with `offline_access`, if the authorization server offers it: some return refresh tokens only then.
    fn with_offline_access(&self, mut scopes: Vec<String>) -> Vec<String> {
        let offered = self.metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE_ACCESS);
        if offered && !scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
            scopes.push(OFFLINE_ACCESS.to_owned());
        }
        scopes
    }

    async fn request_consent(&mut self, consent: &Consent, scopes: Vec<String>) -> Result<(), OAuthError> {
        let last_login = self.cache.get();
        let last_uri = last_login.as_ref().and_then(|login| login.redirect_uri.clone());
        let prompt = consent.prepare(last_uri.as_deref()).await?;
        let redirect_uri = prompt.redirect_uri();
        let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let issuer = self.metadata.issuer.as_deref();
        let config = match last_login.and_then(|login| known(&login, &redirect_uri, issuer)) {
            Some(config) => {
                self.manager.configure_client(config.clone())?;
                config
            }
            None => identify(self.manager, self.metadata, self.oauth, &redirect_uri, &scope_names).await?,
        };
        let url = self.manager.get_authorization_url(&scope_names).await?;
        let visited = prompt.request(&url).await?;
        let callback = read(&visited)?;
        let issuer = callback.issuer.as_deref();
        self.manager.exchange_code_for_token_with_issuer(&callback.code, &callback.csrf_token, issuer).await?;
        Ok(self.cache.amend(|login| {
            (login.client_secret, login.redirect_uri) = (config.client_secret, Some(redirect_uri));
            login.scopes = scopes;
        })?)
    }

    /// Gets a token for an assertion that the client signs.
    async fn use_assertion(&mut self, id: &str, key: &SigningKey, scopes: Vec<String>) -> Result<(), OAuthError> {
        let audience = self.metadata.issuer.as_deref().unwrap_or(&self.metadata.token_endpoint);
        let mut form = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer".to_owned()),
            ("client_assertion", key.assertion(id, audience)?),
            ("resource", self.options.url.to_string()),
        ];
        if !scopes.is_empty() {
            form.push(("scope", scopes.join(" ")));
        }
        let failed = |why: String| OAuthError::Protocol(AuthError::ClientCredentialsError(why));
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = Request::post(&self.metadata.token_endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(Bytes::from(form))
            .map_err(|error| failed(error.to_string()))?;
        let answer = fetch(self.options, request, TOKEN_TIMEOUT).await.map_err(|error| failed(error.to_string()))?;
        if !answer.status().is_success() {
            return Err(failed(format!(
                "the token endpoint answered {}: {}",
                answer.status(),
                error_text(answer.body())
            )));
        }
        let token: OAuthTokenResponse = serde_json::from_slice(answer.body())
            .map_err(|_| failed("the token endpoint sent a response without a token".to_owned()))?;
        let mut login = Login::new(&self.options.url.to_string(), id.to_owned(), token);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        (login.issuer, login.received_at, login.scopes) = (self.metadata.issuer.clone(), Some(now), scopes);
        Ok(self.cache.store(login)?)
    }
}

/// The error and its description in the response of an endpoint, and nothing else of the response.
fn error_text(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |key: &str| body.get(key).and_then(serde_json::Value::as_str);
    [text("error"), text("error_description")].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Parses the address that the browser was redirected to.
fn read(visited: &str) -> Result<AuthorizationCallback, OAuthError> {
    if let Some(error) = parameter(visited, "error") {
        return Err(OAuthError::Denied { error, description: parameter(visited, "error_description") });
    }
    Ok(AuthorizationCallback::from_redirect_url(visited)?)
}

/// A parameter of an address, decoded.
pub(super) fn parameter(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_login_is_reported_with_the_description_of_the_server() {
        let visited = "http://127.0.0.1:1/callback?error=access_denied&error_description=not+by+me%21&state=s";
        let error = read(visited).unwrap_err().to_string();
        assert_eq!(error, r#"the authorization server answered "access_denied": not by me!"#);
    }

    #[test]
    fn a_parameter_is_decoded() {
        assert_eq!(parameter("http://h/?x=1&y=a%26b%3Dc%2Bd+%C3%BC#z=3", "y").as_deref(), Some("a&b=c+d ü"));
        assert_eq!(parameter("http://h/?x=100%25%20%zz", "x").as_deref(), Some("100% %zz"));
        assert_eq!(parameter("http://h/", "x"), None);
    }
}
