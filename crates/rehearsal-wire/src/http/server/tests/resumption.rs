//! Clients that lose a stream and resume it.

use std::time::Duration;

use rehearsal_core::exchange::Channel;
use serde_json::json;

use super::stage::*;
use crate::http::server::HttpServerOptions;

#[tokio::test]
async fn only_2025_11_25_gets_a_priming_event() {
    let options = HttpServerOptions { retry: Some(Duration::from_millis(250)), ..HttpServerOptions::default() };
    let mut stage = Stage::new(options).await;
    for (version, primes) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let (session, mut connection) = stage.session(version).await;
        let ping = request(1, "ping", json!({})).to_string();
        let mut client = stage.client().await;
        client.send(Ask::post(&ping).in_session(&session)).await;
        let (channel, _) = heard(&mut connection).await;
        say(&connection, channel, note("x")).await;
        client.answer().await;
        let priming = format!("id: {}-0\nretry: 250\ndata: ", channel.0);
        assert_eq!(client.event().await.unwrap() == priming, primes, "{version}");
    }
}

#[tokio::test]
async fn a_stream_that_is_closed_early_goes_on_when_the_client_comes_back() {
    let options = HttpServerOptions { retry: Some(Duration::from_millis(1)), ..HttpServerOptions::default() };
    let mut stage = Stage::new(options).await;
    let (session, mut connection) = stage.session("2025-11-25").await;
    let call = request(1, "tools/call", json!({"name": "test_reconnection"})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&call).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    connection.sender.close_channel(channel);
    say(&connection, channel, note("while you were away")).await;
    assert!(client.answer().await.is_stream());
    let primed = format!("{}-0", channel.0);
    assert_eq!(client.event().await.unwrap(), format!("id: {primed}\nretry: 1\ndata: "));
    assert_eq!(client.event().await, None, "nothing that was said after the closing");

    client.send(Ask::get().in_session(&session).with("last-event-id", &primed)).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await, note("while you were away"));
    say(&connection, channel, note("welcome back")).await;
    assert_eq!(client.data().await, note("welcome back"));
    say(&connection, channel, result(1)).await;
    assert_eq!(client.event().await.unwrap(), format!("event: message\nid: {}-3\ndata: {}", channel.0, result(1)));
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn an_answer_waits_for_a_client_that_lost_its_stream() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    let call = request(1, "tools/call", json!({"name": "slow"})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&call).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    say(&connection, channel, note("one")).await;
    client.answer().await;
    assert_eq!(client.data().await, note("one"));
    drop(client);

    // A disconnect does not cancel, so the next event of the application is another message.
    let told = note("from the client").to_string();
    assert_eq!(stage.ask(Ask::post(&told).in_session(&session)).await.status, 202);
    assert_eq!(heard(&mut connection).await.0, Channel::MAIN);
    say(&connection, Channel::MAIN, note("on another stream")).await;
    say(&connection, channel, note("two")).await;
    say(&connection, channel, result(1)).await;

    let last = format!("{}-1", channel.0);
    for _ in 0..2 {
        let mut back = stage.client().await;
        back.send(Ask::get().in_session(&session).with("last-event-id", &last)).await;
        assert!(back.answer().await.is_stream());
        assert_eq!(back.data().await, note("two"), "only of that stream");
        assert_eq!(back.data().await, result(1));
        assert_eq!(back.event().await, None);
    }
    let everything = format!("{}-3", channel.0);
    let mut back = stage.client().await;
    back.send(Ask::get().in_session(&session).with("last-event-id", &everything)).await;
    assert!(back.answer().await.is_stream());
    assert_eq!(back.event().await, None, "there is nothing left to say");
}

#[tokio::test]
async fn who_comes_back_takes_over_from_a_stream_that_only_seems_alive() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, connection) = stage.session("2025-06-18").await;
    let mut first = stage.client().await;
    first.send(Ask::get().in_session(&session)).await;
    first.answer().await;
    say(&connection, Channel::MAIN, note("one")).await;
    assert_eq!(first.data().await, note("one"));
    let mut second = stage.client().await;
    second.send(Ask::get().in_session(&session).with("last-event-id", "0-1")).await;
    assert!(second.answer().await.is_stream());
    assert_eq!(first.event().await, None);
    say(&connection, Channel::MAIN, note("two")).await;
    assert_eq!(second.data().await, note("two"));
}

#[tokio::test]
async fn events_that_are_no_longer_kept_are_refused_not_skipped() {
    let mut options = HttpServerOptions::default();
    options.limits.history = 2;
    let mut stage = Stage::new(options).await;
    let (session, connection) = stage.session("2025-06-18").await;
    let mut client = stage.client().await;
    client.send(Ask::get().in_session(&session)).await;
    client.answer().await;
    for at in ["1", "2", "3", "4"] {
        say(&connection, Channel::MAIN, note(at)).await;
        assert_eq!(client.data().await, note(at));
    }
    for last in ["0-1", "0-9", "0-18446744073709551615", "77-0", "nonsense", ""] {
        let answer = stage.ask(Ask::get().in_session(&session).with("last-event-id", last)).await;
        assert_eq!(answer.refusal(), (400, -32000), "{last}");
    }
    let mut back = stage.client().await;
    back.send(Ask::get().in_session(&session).with("last-event-id", "0-2")).await;
    assert!(back.answer().await.is_stream());
    assert_eq!(back.data().await, note("3"));
    assert_eq!(back.data().await, note("4"));
}

#[tokio::test]
async fn the_standing_stream_can_be_closed_early_too() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, connection) = stage.session("2025-11-25").await;
    let mut client = stage.client().await;
    client.send(Ask::get().in_session(&session)).await;
    client.answer().await;
    assert_eq!(client.event().await.unwrap(), "id: 0-0\ndata: ");
    connection.sender.close_channel(Channel::MAIN);
    assert_eq!(client.event().await, None);
    say(&connection, Channel::MAIN, note("kept")).await;
    client.send(Ask::get().in_session(&session).with("last-event-id", "0-0")).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await, note("kept"));
}
