//! Clients of the library.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use rehearsal::Client;
use rehearsal::client::ClientError;
use rehearsal::oauth::{Algorithm, OAuth};
use rehearsal::wire::http::client::{HttpClientOptions, fetch};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

use super::oauth_server::OAuthServer;

/// Opens a URL like a browser; returns the URL of the redirect.
pub(crate) async fn browse(url: String) -> Result<String, String> {
    let options = HttpClientOptions::new(&url).unwrap();
    let request = Request::get(&url).body(Bytes::new()).unwrap();
    let answer = fetch(&options, request, Duration::from_secs(20)).await.map_err(|error| error.to_string())?;
    Ok(answer.headers()["location"].to_str().unwrap().to_owned())
}

/// A user who always consents, and the number of consents.
pub(crate) fn user() -> (OAuth, Arc<AtomicUsize>) {
    let consents = Arc::new(AtomicUsize::new(0));
    let count = consents.clone();
    let oauth = OAuth::with_visit("http://127.0.0.1:9/callback", move |url| {
        count.fetch_add(1, Ordering::Relaxed);
        browse(url)
    });
    (oauth, consents)
}

pub(crate) async fn connect(server: &OAuthServer, oauth: OAuth) -> Result<Client, ClientError> {
    Client::url(server.url()).modern().oauth(oauth).connect().await
}

pub(crate) async fn call(client: &Client, tool: &str) -> String {
    client.call_tool(tool, json!({})).await.unwrap().content()
}

#[tokio::test]
async fn a_client_logs_in_only_after_an_authorization_challenge() {
    let server = OAuthServer::start().await;
    let (oauth, consents) = user();
    let client = connect(&server, oauth).await.unwrap();
    assert_eq!(call(&client, "read").await, "read done");
    assert_eq!(call(&client, "read").await, "read done");
    assert_eq!(consents.load(Ordering::Relaxed), 1);
    let oauth_state = server.state();
    assert_eq!((oauth_state.clients.len(), &oauth_state.scopes[..]), (1, &["read".to_owned()][..]));
    assert_eq!(oauth_state.authorizations[0], "", "the first request has no token");
    assert!(
        oauth_state.authorizations[1..].iter().all(|header| header.starts_with("Bearer token-")),
        "{:?}",
        oauth_state.authorizations
    );
}

#[tokio::test]
async fn a_client_requests_missing_scopes_and_keeps_the_granted_ones() {
    let server = OAuthServer::start().await;
    let (oauth, _) = user();
    let client = connect(&server, oauth).await.unwrap();
    assert_eq!(call(&client, "write").await, "write done");
    assert_eq!(call(&client, "read").await, "read done");
    let oauth_state = server.state();
    assert_eq!(oauth_state.scopes, ["read", "read write"]);
    assert_eq!(oauth_state.clients.len(), 1, "the client is registered once");
}

#[tokio::test]
async fn a_revoked_token_is_renewed_without_a_new_consent() {
    let server = OAuthServer::start().await;
    let (oauth, consents) = user();
    let client = connect(&server, oauth).await.unwrap();
    server.state().revoke();
    assert_eq!(call(&client, "read").await, "read done");
    assert_eq!(server.state().grants, ["authorization_code", "refresh_token"]);
    assert_eq!(consents.load(Ordering::Relaxed), 1);

    // Both the token and its refresh token are revoked.
    server.state().revoke();
    server.state().refresh_tokens.clear();
    assert_eq!(call(&client, "read").await, "read done");
    assert_eq!(server.state().grants[2..], ["refresh_token", "authorization_code"]);
    assert_eq!(consents.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn calls_that_are_refused_together_log_in_once() {
    let server = OAuthServer::start().await;
    let (oauth, consents) = user();
    let client = connect(&server, oauth).await.unwrap();
    server.state().revoke();
    server.state().refresh_tokens.clear();
    let calls = (0..8).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { call(&client, "read").await })
    });
    for called in calls.collect::<Vec<_>>() {
        assert_eq!(called.await.unwrap(), "read done");
    }
    assert_eq!(consents.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_refused_consent_is_reported_with_its_reason() {
    let server = OAuthServer::start().await;
    server.state().denies = true;
    let (oauth, _) = user();
    let error = connect(&server, oauth).await.unwrap_err();
    let expected = r#"server/discover needs a login: the authorization server answered "access_denied": not today"#;
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_login_does_not_count_towards_the_timeout_of_the_call() {
    let server = OAuthServer::start().await;
    let oauth = OAuth::with_visit("http://127.0.0.1:9/callback", |url| async move {
        tokio::time::sleep(Duration::from_millis(700)).await;
        browse(url).await
    });
    let builder = Client::url(server.url()).modern().oauth(oauth).timeout(Duration::from_millis(300));
    let client = builder.connect().await.unwrap();
    assert_eq!(call(&client, "read").await, "read done");
}

#[tokio::test]
async fn an_authorization_header_of_the_caller_takes_precedence() {
    let server = OAuthServer::start().await;
    let (oauth, consents) = user();
    let builder = Client::url(server.url()).modern().oauth(oauth).header("Authorization", "Bearer mine");
    let error = builder.connect().await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { status: 401, .. } | ClientError::ErrorReply { .. }), "{error}");
    assert_eq!(
        (consents.load(Ordering::Relaxed), &server.state().authorizations[..]),
        (0, &["Bearer mine".to_owned()][..])
    );
}

#[tokio::test]
async fn client_credentials_work_with_a_secret_or_a_key() {
    let server = OAuthServer::start().await;
    let client = connect(&server, OAuth::with_client_secret("robot", "s3cret")).await.unwrap();
    assert_eq!(call(&client, "write").await, "write done");
    let error = connect(&server, OAuth::with_client_secret("robot", "wr0ng")).await.unwrap_err().to_string();
    assert!(error.contains("invalid_client") && !error.contains("wr0ng"), "{error}");

    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", STANDARD.encode(key.as_ref()));
    let client = connect(&server, OAuth::with_private_key("robot", pem, Algorithm::Es256)).await.unwrap();
    assert_eq!(call(&client, "read").await, "read done");
    let oauth_state = server.state();
    let claims = oauth_state.keys[0].split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["sub"], &claims["aud"]), (&json!("robot"), &json!(oauth_state.origin)));
}
