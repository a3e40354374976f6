//! What an authorization server knows the client by.

use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use serde_json::Value;

use super::error::OAuthError;
use super::options::OAuth;
use super::store::Login;

/// The client as it was registered before: it can be used again where nothing about it has changed.
pub(super) fn known(login: &Login, redirect_uri: &str, issuer: Option<&str>) -> Option<OAuthClientConfig> {
    let same = login.issuer.as_deref() == issuer && login.redirect_uri.as_deref() == Some(redirect_uri);
    same.then(|| client(&login.client_id, login.client_secret.clone(), redirect_uri))
}

/// The client that a login belongs to, for what needs no browser.
pub(super) fn of_login(login: &Login, server: &str) -> OAuthClientConfig {
    let redirect_uri = login.redirect_uri.as_deref().unwrap_or(server);
    client(&login.client_id, login.client_secret.clone(), redirect_uri)
}

fn client(id: &str, secret: Option<String>, redirect_uri: &str) -> OAuthClientConfig {
    let config = OAuthClientConfig::new(id, redirect_uri);
    match secret {
        Some(secret) => config.with_client_secret(secret),
        None => config,
    }
}

/// Finds, or gets, something that the authorization server knows the client by, and tells `manager`.
pub(super) async fn identify(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    oauth: &OAuth,
    redirect_uri: &str,
    scopes: &[&str],
) -> Result<OAuthClientConfig, OAuthError> {
    let reads_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    let reads_documents = reads_documents.and_then(Value::as_bool).unwrap_or(false);
    let config = match (&oauth.client, &oauth.metadata_url) {
        (Some((id, secret)), _) => client(id, secret.clone(), redirect_uri),
        (None, Some(url)) if reads_documents && is_client_id(url) => client(url, None, redirect_uri),
        (None, Some(url)) if reads_documents => {
            let what = format!("{url:?} cannot be a client's id: it must be an https URL with a path");
            return Err(AuthError::RegistrationFailed(what).into());
        }
        // It configures the client too.
        (None, _) => return Ok(manager.register_client(&oauth.name, redirect_uri, scopes).await?),
    };
    manager.configure_client(config.clone())?;
    Ok(config)
}

fn is_client_id(url: &str) -> bool {
    url.strip_prefix("https://")
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(host, path)| !host.is_empty() && !path.is_empty() && !path.contains('#'))
}
