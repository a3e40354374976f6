//! What a server gets wrong on purpose, as it stands on the wire.

use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::answer::fault::{Aftermath, Misdeed, Moment, Refused};
use rehearsal_core::exchange::Channel;
use serde_json::json;
use tokio::io::AsyncReadExt;

use super::stage::*;
use crate::http::server::{Answers, Options};
use crate::{Connection, Ending};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"text":"0123456789"}}"#;

fn answer() -> Bytes {
    Bytes::from_static(ANSWER.as_bytes())
}

fn event() -> String {
    format!("event: message\ndata: {ANSWER}\n\n")
}

fn refused(status: u16, headers: &[(&str, &str)]) -> Misdeed {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Misdeed::Refuse(Refused { status, headers, body: None, instead: Bytes::from_static(b"{\"instead\":1}") })
}

async fn wrong(connection: &Connection, channel: Channel, misdeed: Misdeed) {
    let aftermath = soon(connection.sender.misbehave(channel, misdeed)).await.unwrap();
    assert_eq!(aftermath, Aftermath::GoesOn, "a socket is not the conversation");
}

/// Everything that still comes on a socket, to its end.
async fn rest(client: &mut Client) -> String {
    let mut rest = Vec::new();
    soon(client.stream.read_to_end(&mut rest)).await.unwrap();
    String::from_utf8_lossy(&rest).into_owned()
}

/// Bytes that were written in chunks, whether or not the last chunk came.
fn unchunked(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole += &after[..length.min(after.len())];
        rest = after.get(length + 2..).unwrap_or_default();
    }
    whole
}

/// A POST of the stateless era that waits for its answer.
async fn stateless(stage: &mut Stage, connection: &mut Option<Connection>, accept: &str) -> (Client, Channel) {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let call = request(1, "tools/call", json!({"name": "t", "arguments": {}, "_meta": meta})).to_string();
    let mut client = stage.client().await;
    let ask = Ask::post(&call).with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
    client.send(ask.with("mcp-name", "t").with("accept", accept)).await;
    if connection.is_none() {
        *connection = Some(stage.accept().await);
    }
    let (channel, _) = heard(connection.as_mut().unwrap()).await;
    (client, channel)
}

const BOTH: &str = "application/json, text/event-stream";
const JSON: &str = "application/json";

/// What a misdeed looks like as the answer to a POST: the head, and every byte until the socket is closed.
async fn seen(misdeed: Misdeed, accept: &str) -> String {
    let mut stage = Stage::new(Options::default()).await;
    let mut connection = None;
    let (mut client, channel) = stateless(&mut stage, &mut connection, accept).await;
    wrong(connection.as_ref().unwrap(), channel, misdeed).await;
    let handle = stage.server.handle();
    // The end of the server is the end of sockets that stay open otherwise.
    let closing = tokio::spawn(async move { handle.shutdown().await });
    let seen = rest(&mut client).await;
    closing.abort();
    let date = seen.find("date: ").map(|at| at..at + 37);
    let mut seen = seen;
    if let Some(date) = date {
        seen.replace_range(date, "");
    }
    seen
}

#[tokio::test]
async fn a_post_is_answered_with_the_bytes_that_were_given() {
    let half = &ANSWER[..ANSWER.len() / 2];
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", ANSWER.len());
    let table = [
        (Misdeed::Answer(vec![answer()]), format!("{head}\r\n{ANSWER}")),
        (Misdeed::Disconnect { answer: answer(), moment: Moment::Before }, String::new()),
        (Misdeed::Disconnect { answer: answer(), moment: Moment::During }, format!("{head}\r\n{half}")),
        (Misdeed::Disconnect { answer: answer(), moment: Moment::After }, format!("{head}\r\n{ANSWER}")),
    ];
    for (misdeed, expected) in table {
        for accept in [BOTH, JSON] {
            let seen = seen(misdeed.clone(), accept).await;
            if matches!(misdeed, Misdeed::Disconnect { moment: Moment::After, .. }) {
                assert!(seen.contains("connection: close\r\n"), "{seen}");
            }
            // Otherwise it depends on whether the server shuts down before the head is written.
            assert_eq!(seen.replace("connection: close\r\n", ""), expected, "{misdeed:?}");
        }
    }
}

#[tokio::test]
async fn half_an_answer_is_followed_by_silence() {
    for (accept, expected) in
        [(BOTH, &ANSWER[..ANSWER.len() / 2]), ("text/event-stream", &event()[..event().len() / 2])]
    {
        let mut stage = Stage::new(Options { keep_alive: Duration::from_millis(1), ..Options::default() }).await;
        let mut connection = None;
        let (mut client, channel) = stateless(&mut stage, &mut connection, accept).await;
        wrong(connection.as_ref().unwrap(), channel, Misdeed::Half(answer())).await;
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains(expected) {
            let mut piece = [0; 1024];
            let length = soon(client.stream.read(&mut piece)).await.unwrap();
            assert_ne!(length, 0, "{:?}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&piece[..length]);
        }
        let more = tokio::time::timeout(Duration::from_millis(50), client.stream.read_u8()).await;
        assert!(more.is_err(), "not even a sign of life: {more:?}");
    }
}

#[tokio::test]
async fn two_answers_need_a_stream_where_there_can_be_one() {
    let twice = Misdeed::Answer(vec![answer(), answer()]);
    let streamed = seen(twice.clone(), BOTH).await;
    let (head, body) = streamed.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    assert_eq!(unchunked(body), event().repeat(2));
    assert!(seen(twice, JSON).await.ends_with(&format!("\r\n\r\n{ANSWER}\n{ANSWER}")));
}

#[tokio::test]
async fn a_status_comes_with_its_headers_and_body() {
    let mut connection = None;
    let mut stage = Stage::new(Options::default()).await;
    let table = [
        (refused(401, &[("www-authenticate", "Bearer realm=\"x\"")]), 401, "Unauthorized", "www-authenticate"),
        (refused(429, &[("retry-after", "7")]), 429, "Too Many Requests", "retry-after"),
        (refused(500, &[("x-one", "1")]), 500, "Internal Server Error", "x-one"),
        (refused(502, &[("server", "nginx")]), 502, "Bad Gateway", "server"),
    ];
    for (misdeed, status, body, header) in table {
        let (mut client, channel) = stateless(&mut stage, &mut connection, BOTH).await;
        wrong(connection.as_ref().unwrap(), channel, misdeed).await;
        let head = client.answer().await;
        assert_eq!(head.status, status);
        assert!(head.headers.contains_key(header), "{:?}", head.headers);
        assert_eq!(chunk(&mut client).await, body);
    }
}

async fn chunk(client: &mut Client) -> String {
    let mut read = String::new();
    while !read.ends_with("0\r\n\r\n") {
        read.push(soon(client.stream.read_u8()).await.unwrap() as char);
    }
    unchunked(&read)
}

#[tokio::test]
async fn a_session_that_is_said_to_be_unknown_is_over() {
    let mut stage = Stage::new(Options::default()).await;
    let (session, mut connection) = stage.session("2025-11-25").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&ping).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    wrong(&connection, channel, refused(404, &[])).await;
    assert_eq!(client.answer().await.status, 404);
    assert!(chunk(&mut client).await.contains("-32001"));
    assert_eq!(ended(&mut connection).await, Ending::Closed);
    assert_eq!(stage.ask(Ask::post(&ping).in_session(&session)).await.status, 404);
}

#[tokio::test]
async fn an_answer_can_claim_to_be_something_else() {
    let misdeed = Misdeed::ContentType { answer: answer(), content_type: "text/html".to_owned() };
    let seen = seen(misdeed, BOTH).await;
    let (head, body) = seen.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: text/html"), "{head}");
    assert_eq!(unchunked(body), ANSWER);
}

#[tokio::test]
async fn a_drip_is_the_whole_answer_in_small_pieces() {
    let misdeed = Misdeed::Drip { answer: answer(), piece: 7, pause: Duration::from_millis(1) };
    assert!(seen(misdeed.clone(), JSON).await.ends_with(ANSWER));
    let streamed = seen(misdeed, "text/event-stream").await;
    let (_, body) = streamed.split_once("\r\n\r\n").unwrap();
    assert!(body.starts_with("7\r\nevent: \r\n7\r\n"), "{body}");
    assert_eq!(unchunked(body), event());
}

#[tokio::test]
async fn noise_comes_before_the_answer_and_makes_a_stream() {
    for misdeed in [Misdeed::Noise(vec!["Listening".to_owned(), "on 80".to_owned()]), Misdeed::Flood(100_000)] {
        let mut stage = Stage::new(Options::default()).await;
        let mut connection = None;
        let (mut client, channel) = stateless(&mut stage, &mut connection, BOTH).await;
        let connection = connection.unwrap();
        let sender = connection.sender.clone();
        let flood = misdeed.clone();
        let flooding = tokio::spawn(async move { sender.misbehave(channel, flood).await.unwrap() });
        let head = client.answer().await;
        assert!(head.is_stream());
        let _ = soon(flooding).await.unwrap();
        say(&connection, channel, serde_json::from_str(ANSWER).unwrap()).await;
        let seen = chunk(&mut client).await;
        let noise = seen.strip_suffix(&event()).unwrap();
        match misdeed {
            Misdeed::Noise(_) => {
                assert_eq!(noise, "event: message\ndata: Listening\n\nevent: message\ndata: on 80\n\n")
            }
            _ => {
                assert!(noise.len() >= 100_000);
                assert!(noise.lines().all(|line| line.is_empty() || line.starts_with(": ")));
            }
        }
    }
}

#[tokio::test]
async fn noise_stands_in_front_of_json_where_that_is_all_the_client_takes() {
    for (misdeed, length) in
        [(Misdeed::Noise(vec!["Listening".to_owned()]), 10), (Misdeed::Flood(20_000_000), 20_000_000)]
    {
        let mut stage = Stage::new(Options::default()).await;
        let mut connection = None;
        let (mut client, channel) = stateless(&mut stage, &mut connection, JSON).await;
        let connection = connection.unwrap();
        wrong(&connection, channel, misdeed).await;
        say(&connection, channel, serde_json::from_str(ANSWER).unwrap()).await;
        let answer = client.answer().await;
        assert_eq!(answer.body.len(), length + ANSWER.len());
        assert!(answer.body.ends_with(ANSWER));
    }
}

#[tokio::test]
async fn a_stream_that_was_cut_goes_on_for_whoever_comes_back() {
    for (version, answers) in [
        ("2025-03-26", Answers::Lazy),
        ("2025-06-18", Answers::Events),
        ("2025-11-25", Answers::Lazy),
        ("2025-11-25", Answers::Events),
    ] {
        let mut stage = Stage::new(Options { answers, ..Options::default() }).await;
        let (session, mut connection) = stage_session(&mut stage, version).await;
        let ping = request(1, "ping", json!({})).to_string();
        let mut client = stage.client().await;
        client.send(Ask::post(&ping).in_session(&session)).await;
        let (channel, _) = heard(&mut connection).await;
        wrong(&connection, channel, Misdeed::Cut(answer())).await;
        assert!(client.answer().await.is_stream());
        let seen = unchunked(&rest(&mut client).await);
        let last = format!("{}-0", channel.0);
        assert!(seen.contains(&format!("id: {last}\n")), "{version}: {seen}");
        assert!(!seen.ends_with("\n\n") && !seen.contains(ANSWER), "{version}: {seen}");
        let mut back = stage.client().await;
        back.send(Ask::get().in_session(&session).with("last-event-id", &last)).await;
        assert!(back.answer().await.is_stream());
        assert_eq!(back.data().await.to_string(), ANSWER, "{version}");
        assert_eq!(back.event().await, None);
    }
}

/// A session, also where even the handshake is answered with a stream.
async fn stage_session(stage: &mut Stage, version: &str) -> (String, Connection) {
    let mut client = stage.client().await;
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    client.send(Ask::post(&request(0, "initialize", params).to_string())).await;
    let mut connection = stage.accept().await;
    let (channel, _) = heard(&mut connection).await;
    say(&connection, channel, json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": version}})).await;
    let answer = client.answer().await;
    (answer.headers["mcp-session-id"].clone(), connection)
}

#[tokio::test]
async fn a_stream_that_runs_goes_wrong_in_the_middle() {
    let table = [
        (Misdeed::Answer(vec![Bytes::from_static(b"oops")]), "event: message\ndata: oops\n\n".to_owned()),
        (Misdeed::Disconnect { answer: answer(), moment: Moment::Before }, String::new()),
        (Misdeed::Disconnect { answer: answer(), moment: Moment::During }, event()[..event().len() / 2].to_owned()),
        (Misdeed::Disconnect { answer: answer(), moment: Moment::After }, event()),
        (Misdeed::Cut(answer()), event()[..event().len() / 2].to_owned()),
        (Misdeed::Drip { answer: answer(), piece: 9, pause: Duration::ZERO }, event()),
        (refused(500, &[]), "event: message\ndata: {\"instead\":1}\n\n".to_owned()),
        (
            Misdeed::ContentType { answer: answer(), content_type: "text/html".to_owned() },
            event().replace("event: message", "event: text/html"),
        ),
    ];
    for (misdeed, expected) in table {
        let mut stage = Stage::new(Options::default()).await;
        let mut connection = None;
        let (mut client, channel) = stateless(&mut stage, &mut connection, BOTH).await;
        let connection = connection.unwrap();
        say(&connection, channel, note("first")).await;
        assert!(client.answer().await.is_stream());
        assert_eq!(client.data().await, note("first"));
        wrong(&connection, channel, misdeed.clone()).await;
        let handle = stage.server.handle();
        let closing = tokio::spawn(async move { handle.shutdown().await });
        assert_eq!(unchunked(&rest(&mut client).await), expected, "{misdeed:?}");
        closing.abort();
        assert!(try_say(&connection, channel, note("too late")).await.is_err());
    }
}

#[tokio::test]
async fn over_http_sse_the_stream_of_all_answers_goes_wrong() {
    let half = &event()[..event().len() / 2];
    let table = [
        (Misdeed::Answer(vec![Bytes::from_static(b"oops")]), "event: message\ndata: oops\n\n", true),
        (Misdeed::Noise(vec!["Listening".to_owned()]), "event: message\ndata: Listening\n\n", true),
        (Misdeed::Half(answer()), half, true),
        (refused(500, &[]), "event: message\ndata: {\"instead\":1}\n\n", true),
        (Misdeed::Disconnect { answer: answer(), moment: Moment::During }, half, false),
        (Misdeed::Disconnect { answer: answer(), moment: Moment::Before }, "", false),
        (Misdeed::Cut(answer()), half, false),
    ];
    for (misdeed, expected, goes_on) in table {
        let mut stage = Stage::new(Options::default()).await;
        let mut client = stage.client().await;
        client.send(Ask::get().to("/sse")).await;
        assert!(client.answer().await.is_stream());
        let endpoint = client.event().await.unwrap();
        let endpoint = endpoint.strip_prefix("event: endpoint\ndata: ").unwrap().to_owned();
        let mut connection = stage.accept().await;
        let ping = request(1, "ping", json!({})).to_string();
        assert_eq!(stage.ask(Ask::post(&ping).to(&endpoint)).await.status, 202);
        let (channel, _) = heard(&mut connection).await;
        wrong(&connection, channel, misdeed.clone()).await;
        if goes_on {
            say(&connection, channel, note("on")).await;
            connection.sender.close().await;
        }
        let seen = unchunked(&rest_of_stream(&mut client, goes_on).await);
        let on = format!("event: message\ndata: {}\n\n", note("on"));
        assert_eq!(seen, format!("{expected}{}", if goes_on { on.as_str() } else { "" }), "{misdeed:?}");
        if !goes_on {
            assert_eq!(ended(&mut connection).await, Ending::PeerClosed);
        }
    }
}

async fn rest_of_stream(client: &mut Client, has_proper_end: bool) -> String {
    let mut read = String::new();
    while !(has_proper_end && read.ends_with("\r\n0\r\n\r\n")) {
        match soon(client.stream.read_u8()).await {
            Ok(byte) => read.push(byte as char),
            Err(_) => break,
        }
    }
    read
}

#[tokio::test]
async fn a_post_of_http_sse_can_be_refused_where_it_waits_for_the_application() {
    let options = Options { hold_posts: Some(Duration::from_secs(60)), ..Options::default() };
    let mut stage = Stage::new(options).await;
    let mut listening = stage.client().await;
    listening.send(Ask::get().to("/sse")).await;
    listening.answer().await;
    let endpoint = listening.event().await.unwrap();
    let endpoint = endpoint.strip_prefix("event: endpoint\ndata: ").unwrap().to_owned();
    let mut connection = stage.accept().await;
    let ping = |id| request(id, "ping", json!({})).to_string();
    let (one, two) = (ping(1), ping(2));
    let mut client = stage.client().await;
    client.send(Ask::post(&one).to(&endpoint)).await;
    let (channel, _) = heard(&mut connection).await;
    let instead = Bytes::from(result(1).to_string());
    let headers = vec![("retry-after".to_owned(), "7".to_owned())];
    let refused = Refused { status: 429, headers, body: None, instead: instead.clone() };
    wrong(&connection, channel, Misdeed::Refuse(refused.clone())).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.body.as_str()), (429, "Too Many Requests"));
    assert_eq!(answer.headers["retry-after"], "7");

    client.send(Ask::post(&two).to(&endpoint)).await;
    heard(&mut connection).await;
    say(&connection, channel, note("a word")).await;
    assert_eq!(client.answer().await.status, 202, "the first word lets it go");
    assert_eq!(listening.data().await, note("a word"));
    wrong(&connection, channel, Misdeed::Refuse(refused)).await;
    assert_eq!(listening.data().await, result(1), "too late for a status");
}
