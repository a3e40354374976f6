//! Logins that outlive their client.

use std::sync::atomic::Ordering;

use rehearsal::client::RenewingToken;
use rehearsal::oauth::TokenStore;

use super::clients::{call, connect, person};
use super::oauth_server::House;

#[tokio::test]
async fn the_next_client_is_logged_in_already() {
    let (house, folder) = (House::open().await, tempfile::tempdir().unwrap());
    let store = TokenStore::at(folder.path().join("tokens"));
    let (oauth, asked) = person();
    for _ in 0..3 {
        let client = connect(&house, oauth.clone().store(store.clone())).await.unwrap();
        assert_eq!(call(&client, "read").await, "read done");
    }
    assert_eq!((asked.load(Ordering::Relaxed), house.books().clients.len()), (1, 1));
    assert!(store.forget(&house.url()).unwrap());
    connect(&house, oauth.store(store)).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_token_that_has_ended_is_renewed_before_it_is_used() {
    let (house, folder) = (House::open().await, tempfile::tempdir().unwrap());
    let store = TokenStore::at(folder.path());
    let (oauth, asked) = person();
    connect(&house, oauth.clone().store(store.clone())).await.unwrap();
    let file = store.file(&house.url());
    let text = std::fs::read_to_string(&file).unwrap();
    let received = text.lines().find(|line| line.contains("received_at")).unwrap();
    std::fs::write(&file, text.replace(received, "\"received_at\": 1000,")).unwrap();
    house.books().knocked.clear();
    let client = connect(&house, oauth.store(store)).await.unwrap();
    assert_eq!(call(&client, "read").await, "read done");
    let books = house.books();
    assert_eq!(books.grants, ["authorization_code", "refresh_token"]);
    assert!(
        books.knocked.iter().all(|said| said == &books.knocked[0]),
        "the old one is not shown: {:?}",
        books.knocked
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

/// The authorization server takes every refresh token once: whoever comes second with the same one is refused.
#[tokio::test]
async fn clients_that_share_a_login_renew_it_once() {
    let (house, folder) = (House::open().await, tempfile::tempdir().unwrap());
    let store = TokenStore::at(folder.path());
    let (oauth, asked) = person();
    let oauth = oauth.store(store);
    let (one, other) = (connect(&house, oauth.clone()).await.unwrap(), connect(&house, oauth).await.unwrap());
    house.books().revoke();
    let (first, second) = tokio::join!(call(&one, "read"), call(&other, "read"));
    assert_eq!((first.as_str(), second.as_str()), ("read done", "read done"));
    assert_eq!(house.books().grants, ["authorization_code", "refresh_token"]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_login_goes_to_nobody_but_who_gave_it() {
    let (house, folder) = (House::open().await, tempfile::tempdir().unwrap());
    let store = TokenStore::at(folder.path());
    let (oauth, asked) = person();
    connect(&house, oauth.clone().store(store.clone())).await.unwrap();
    let file = store.file(&house.url());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(&house.books().origin.clone(), "http://127.0.0.1:1")).unwrap();
    // The file is about another server now, so it is as if there were none.
    connect(&house, oauth.clone().store(store.clone())).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2);

    let text = std::fs::read_to_string(&file).unwrap();
    let issuer = format!(r#""issuer": "{}""#, house.books().origin);
    assert!(text.contains(&issuer), "{text}");
    std::fs::write(&file, text.replace(&issuer, r#""issuer": "http://127.0.0.1:1""#)).unwrap();
    house.books().revoke();
    let before = house.books().grants.len();
    connect(&house, oauth.store(store)).await.unwrap();
    assert_eq!(house.books().grants[before..], ["authorization_code"], "a refresh token of somebody else stays here");
    assert_eq!((asked.load(Ordering::Relaxed), house.books().clients.len()), (3, 3), "so does the client's id");
}

#[tokio::test]
async fn whoever_makes_its_own_requests_gets_a_token_too() {
    let house = House::open().await;
    let (oauth, _) = person();
    let token = RenewingToken::get(&house.url(), oauth).await.unwrap();
    let header = token.header().borrow().clone().unwrap();
    assert!(house.books().scopes_of(header.to_str().unwrap()).is_some());
    assert!(!format!("{header:?} {token:?}").contains("token-"), "it is not shown");
}
