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

use super::oauth_server::House;

/// A browser: goes where it is sent, and says where it was sent from there.
pub(crate) async fn browse(url: String) -> Result<String, String> {
    let options = HttpClientOptions::new(&url).unwrap();
    let request = Request::get(&url).body(Bytes::new()).unwrap();
    let answer = fetch(&options, request, Duration::from_secs(20)).await.map_err(|error| error.to_string())?;
    Ok(answer.headers()["location"].to_str().unwrap().to_owned())
}

/// Somebody who always consents, and how often that was asked for.
pub(crate) fn person() -> (OAuth, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let oauth = OAuth::with_visit("http://127.0.0.1:9/callback", move |url| {
        count.fetch_add(1, Ordering::Relaxed);
        browse(url)
    });
    (oauth, asked)
}

pub(crate) async fn connect(house: &House, oauth: OAuth) -> Result<Client, ClientError> {
    Client::url(house.url()).modern().oauth(oauth).connect().await
}

pub(crate) async fn call(client: &Client, tool: &str) -> String {
    client.call_tool(tool, json!({})).await.unwrap().content()
}

#[tokio::test]
async fn a_client_logs_in_when_it_is_asked_to_and_only_then() {
    let house = House::open().await;
    let (oauth, asked) = person();
    let client = connect(&house, oauth).await.unwrap();
    assert_eq!(call(&client, "read").await, "read done");
    assert_eq!(call(&client, "read").await, "read done");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let books = house.books();
    assert_eq!((books.clients.len(), &books.asked[..]), (1, &["read".to_owned()][..]));
    assert_eq!(books.knocked[0], "", "nothing is said before the server asks");
    assert!(books.knocked[1..].iter().all(|said| said.starts_with("Bearer token-")), "{:?}", books.knocked);
}

#[tokio::test]
async fn more_is_asked_for_where_more_is_needed_and_nothing_is_lost_by_it() {
    let house = House::open().await;
    let (oauth, _) = person();
    let client = connect(&house, oauth).await.unwrap();
    assert_eq!(call(&client, "write").await, "write done");
    assert_eq!(call(&client, "read").await, "read done");
    let books = house.books();
    assert_eq!(books.asked, ["read", "read write"]);
    assert_eq!(books.clients.len(), 1, "the client is the same");
}

#[tokio::test]
async fn a_token_that_is_taken_back_is_renewed_without_anybody_being_asked() {
    let house = House::open().await;
    let (oauth, asked) = person();
    let client = connect(&house, oauth).await.unwrap();
    house.books().revoke();
    assert_eq!(call(&client, "read").await, "read done");
    assert_eq!(house.books().grants, ["authorization_code", "refresh_token"]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    // Neither the token nor what it could be renewed with is good any more.
    house.books().revoke();
    house.books().refresh_tokens.clear();
    assert_eq!(call(&client, "read").await, "read done");
    assert_eq!(house.books().grants[2..], ["refresh_token", "authorization_code"]);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn calls_that_are_refused_together_log_in_once() {
    let house = House::open().await;
    let (oauth, asked) = person();
    let client = connect(&house, oauth).await.unwrap();
    house.books().revoke();
    house.books().refresh_tokens.clear();
    let calls = (0..8).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { call(&client, "read").await })
    });
    for called in calls.collect::<Vec<_>>() {
        assert_eq!(called.await.unwrap(), "read done");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn whoever_says_no_is_quoted() {
    let house = House::open().await;
    house.books().denies = true;
    let (oauth, _) = person();
    let error = connect(&house, oauth).await.unwrap_err();
    let expected = r#"server/discover needs a login: the authorization server answered "access_denied": not today"#;
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_login_takes_no_time_from_the_call_that_waits_for_it() {
    let house = House::open().await;
    let oauth = OAuth::with_visit("http://127.0.0.1:9/callback", |url| async move {
        tokio::time::sleep(Duration::from_millis(700)).await;
        browse(url).await
    });
    let builder = Client::url(house.url()).modern().oauth(oauth).timeout(Duration::from_millis(300));
    let client = builder.connect().await.unwrap();
    assert_eq!(call(&client, "read").await, "read done");
}

#[tokio::test]
async fn a_header_of_the_caller_wins() {
    let house = House::open().await;
    let (oauth, asked) = person();
    let builder = Client::url(house.url()).modern().oauth(oauth).header("Authorization", "Bearer mine");
    let error = builder.connect().await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { status: 401, .. } | ClientError::ErrorReply { .. }), "{error}");
    assert_eq!((asked.load(Ordering::Relaxed), &house.books().knocked[..]), (0, &["Bearer mine".to_owned()][..]));
}

#[tokio::test]
async fn a_program_comes_on_its_own_behalf_with_a_secret_or_a_key() {
    let house = House::open().await;
    let client = connect(&house, OAuth::with_client_secret("robot", "s3cret")).await.unwrap();
    assert_eq!(call(&client, "write").await, "write done");
    let error = connect(&house, OAuth::with_client_secret("robot", "wr0ng")).await.unwrap_err().to_string();
    assert!(error.contains("invalid_client") && !error.contains("wr0ng"), "{error}");

    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", STANDARD.encode(key.as_ref()));
    let client = connect(&house, OAuth::with_private_key("robot", pem, Algorithm::Es256)).await.unwrap();
    assert_eq!(call(&client, "read").await, "read done");
    let books = house.books();
    let claims = books.keys[0].split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["sub"], &claims["aud"]), (&json!("robot"), &json!(books.origin)));
}
