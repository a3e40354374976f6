//! Logins that outlive their client.

use std::sync::atomic::Ordering;

use rehearsal::client::RenewingToken;
use rehearsal::oauth::TokenStore;

use super::clients::{call, connect, user};
use super::oauth_server::OAuthServer;

#[tokio::test]
async fn the_next_client_uses_the_stored_login() {
    let (server, folder) = (OAuthServer::start().await, tempfile::tempdir().unwrap());
    let store = TokenStore::at(folder.path().join("tokens"));
    let (oauth, consents) = user();
    for _ in 0..3 {
        let client = connect(&server, oauth.clone().store(store.clone())).await.unwrap();
        assert_eq!(call(&client, "read").await, "read done");
    }
    assert_eq!((consents.load(Ordering::Relaxed), server.state().clients.len()), (1, 1));
    assert!(store.forget(&server.url()).unwrap());
    connect(&server, oauth.store(store)).await.unwrap();
    assert_eq!(consents.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn an_expired_token_is_renewed_before_it_is_used() {
    let (server, folder) = (OAuthServer::start().await, tempfile::tempdir().unwrap());
    let store = TokenStore::at(folder.path());
    let (oauth, consents) = user();
    connect(&server, oauth.clone().store(store.clone())).await.unwrap();
    let file = store.file(&server.url());
    let text = std::fs::read_to_string(&file).unwrap();
    let received = text.lines().find(|line| line.contains("received_at")).unwrap();
    std::fs::write(&file, text.replace(received, "\"received_at\": 1000,")).unwrap();
    server.state().authorizations.clear();
    let client = connect(&server, oauth.store(store)).await.unwrap();
    assert_eq!(call(&client, "read").await, "read done");
    let oauth_state = server.state();
    assert_eq!(oauth_state.grants, ["authorization_code", "refresh_token"]);
    assert!(
        oauth_state.authorizations.iter().all(|header| header == &oauth_state.authorizations[0]),
        "the expired token is not sent: {:?}",
        oauth_state.authorizations
    );
    assert_eq!(consents.load(Ordering::Relaxed), 1);
}

/// The authorization server accepts every refresh token once, and refuses its second use.
#[tokio::test]
async fn clients_that_share_a_login_renew_it_once() {
    let (server, folder) = (OAuthServer::start().await, tempfile::tempdir().unwrap());
    let store = TokenStore::at(folder.path());
    let (oauth, consents) = user();
    let oauth = oauth.store(store);
    let (one, other) = (connect(&server, oauth.clone()).await.unwrap(), connect(&server, oauth).await.unwrap());
    server.state().revoke();
    let (first, second) = tokio::join!(call(&one, "read"), call(&other, "read"));
    assert_eq!((first.as_str(), second.as_str()), ("read done", "read done"));
    assert_eq!(server.state().grants, ["authorization_code", "refresh_token"]);
    assert_eq!(consents.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_stored_login_is_sent_only_to_its_own_server() {
    let (server, folder) = (OAuthServer::start().await, tempfile::tempdir().unwrap());
    let store = TokenStore::at(folder.path());
    let (oauth, consents) = user();
    connect(&server, oauth.clone().store(store.clone())).await.unwrap();
    let file = store.file(&server.url());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(&server.state().origin.clone(), "http://127.0.0.1:1")).unwrap();
    // The file has the login of another server now, so the client ignores it.
    connect(&server, oauth.clone().store(store.clone())).await.unwrap();
    assert_eq!(consents.load(Ordering::Relaxed), 2);

    let text = std::fs::read_to_string(&file).unwrap();
    let issuer = format!(r#""issuer": "{}""#, server.state().origin);
    assert!(text.contains(&issuer), "{text}");
    std::fs::write(&file, text.replace(&issuer, r#""issuer": "http://127.0.0.1:1""#)).unwrap();
    server.state().revoke();
    let before = server.state().grants.len();
    connect(&server, oauth.store(store)).await.unwrap();
    assert_eq!(
        server.state().grants[before..],
        ["authorization_code"],
        "a refresh token of another issuer is not sent"
    );
    assert_eq!((consents.load(Ordering::Relaxed), server.state().clients.len()), (3, 3), "nor is its client id");
}

#[tokio::test]
async fn callers_that_build_their_own_requests_get_a_token() {
    let server = OAuthServer::start().await;
    let (oauth, _) = user();
    let token = RenewingToken::get(&server.url(), oauth).await.unwrap();
    let header = token.header().borrow().clone().unwrap();
    assert!(server.state().scopes_of(header.to_str().unwrap()).is_some());
    assert!(!format!("{header:?} {token:?}").contains("token-"), "the token is not shown");
}
