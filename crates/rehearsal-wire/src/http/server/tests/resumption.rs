//! Clients that lose a stream and resume it.

use std::time::Duration;

use rehearsal_core::exchange::Channel;
use serde_json::json;

use super::fixture::*;
use crate::http::server::HttpServerOptions;

#[tokio::test]
async fn only_2025_11_25_gets_a_priming_event() {
    let options = HttpServerOptions { retry: Some(Duration::from_millis(250)), ..HttpServerOptions::default() };
    let mut fixture = Fixture::new(options).await;
    for (version, primes) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let (session, mut connection) = fixture.session(version).await;
        let ping = request(1, "ping", json!({})).to_string();
        let mut client = fixture.client().await;
        client.send(HttpRequest::post(&ping).in_session(&session)).await;
        let (channel, _) = next_message(&mut connection).await;
        send(&connection, channel, note("x")).await;
        client.answer().await;
        let priming = format!("id: {}-0\nretry: 250\ndata: ", channel.0);
        assert_eq!(client.event().await.unwrap() == priming, primes, "{version}");
    }
}

#[tokio::test]
async fn a_stream_closed_by_the_application_can_be_resumed() {
    let options = HttpServerOptions { retry: Some(Duration::from_millis(1)), ..HttpServerOptions::default() };
    let mut fixture = Fixture::new(options).await;
    let (session, mut connection) = fixture.session("2025-11-25").await;
    let call = request(1, "tools/call", json!({"name": "test_reconnection"})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&call).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    connection.sender.close_channel(channel);
    send(&connection, channel, note("while you were away")).await;
    assert!(client.answer().await.is_stream());
    let primed = format!("{}-0", channel.0);
    assert_eq!(client.event().await.unwrap(), format!("id: {primed}\nretry: 1\ndata: "));
    assert_eq!(client.event().await, None, "no message from after the close");

    client.send(HttpRequest::get().in_session(&session).with("last-event-id", &primed)).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await, note("while you were away"));
    send(&connection, channel, note("welcome back")).await;
    assert_eq!(client.data().await, note("welcome back"));
    send(&connection, channel, result(1)).await;
    assert_eq!(client.event().await.unwrap(), format!("event: message\nid: {}-3\ndata: {}", channel.0, result(1)));
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn a_response_waits_for_a_client_that_lost_its_stream() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let call = request(1, "tools/call", json!({"name": "slow"})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&call).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, note("one")).await;
    client.answer().await;
    assert_eq!(client.data().await, note("one"));
    drop(client);

    // A disconnect does not cancel, so the next event of the application is another message.
    let notification = note("from the client").to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&notification).in_session(&session)).await.status, 202);
    assert_eq!(next_message(&mut connection).await.0, Channel::MAIN);
    send(&connection, Channel::MAIN, note("on another stream")).await;
    send(&connection, channel, note("two")).await;
    send(&connection, channel, result(1)).await;

    let last = format!("{}-1", channel.0);
    for _ in 0..2 {
        let mut back = fixture.client().await;
        back.send(HttpRequest::get().in_session(&session).with("last-event-id", &last)).await;
        assert!(back.answer().await.is_stream());
        assert_eq!(back.data().await, note("two"), "only events of that stream");
        assert_eq!(back.data().await, result(1));
        assert_eq!(back.event().await, None);
    }
    let everything = format!("{}-3", channel.0);
    let mut back = fixture.client().await;
    back.send(HttpRequest::get().in_session(&session).with("last-event-id", &everything)).await;
    assert!(back.answer().await.is_stream());
    assert_eq!(back.event().await, None, "no message is missing");
}

#[tokio::test]
async fn a_resuming_client_replaces_its_older_stream() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, connection) = fixture.session("2025-06-18").await;
    let mut first = fixture.client().await;
    first.send(HttpRequest::get().in_session(&session)).await;
    first.answer().await;
    send(&connection, Channel::MAIN, note("one")).await;
    assert_eq!(first.data().await, note("one"));
    let mut second = fixture.client().await;
    second.send(HttpRequest::get().in_session(&session).with("last-event-id", "0-1")).await;
    assert!(second.answer().await.is_stream());
    assert_eq!(first.event().await, None);
    send(&connection, Channel::MAIN, note("two")).await;
    assert_eq!(second.data().await, note("two"));
}

#[tokio::test]
async fn resuming_after_a_dropped_event_is_refused() {
    let mut options = HttpServerOptions::default();
    options.limits.history = 2;
    let mut fixture = Fixture::new(options).await;
    let (session, connection) = fixture.session("2025-06-18").await;
    let mut client = fixture.client().await;
    client.send(HttpRequest::get().in_session(&session)).await;
    client.answer().await;
    for at in ["1", "2", "3", "4"] {
        send(&connection, Channel::MAIN, note(at)).await;
        assert_eq!(client.data().await, note(at));
    }
    for last in ["0-1", "0-9", "0-18446744073709551615", "77-0", "nonsense", ""] {
        let answer = fixture.fetch(HttpRequest::get().in_session(&session).with("last-event-id", last)).await;
        assert_eq!(answer.refusal(), (400, -32000), "{last}");
    }
    let mut back = fixture.client().await;
    back.send(HttpRequest::get().in_session(&session).with("last-event-id", "0-2")).await;
    assert!(back.answer().await.is_stream());
    assert_eq!(back.data().await, note("3"));
    assert_eq!(back.data().await, note("4"));
}

#[tokio::test]
async fn a_get_stream_closed_by_the_application_can_be_resumed() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, connection) = fixture.session("2025-11-25").await;
    let mut client = fixture.client().await;
    client.send(HttpRequest::get().in_session(&session)).await;
    client.answer().await;
    assert_eq!(client.event().await.unwrap(), "id: 0-0\ndata: ");
    connection.sender.close_channel(Channel::MAIN);
    assert_eq!(client.event().await, None);
    send(&connection, Channel::MAIN, note("kept")).await;
    client.send(HttpRequest::get().in_session(&session).with("last-event-id", "0-0")).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await, note("kept"));
}
