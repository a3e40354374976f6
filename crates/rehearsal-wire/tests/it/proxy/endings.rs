//! One side disconnects, and the other side notices it in the right way.

use tokio::net::TcpListener;

use super::stage::{GET, OK, POST, Stage};

#[tokio::test]
async fn a_server_that_goes_without_a_word_is_a_bad_gateway() {
    let stage = Stage::new().await;
    let (mut client, server) = stage.asked(POST).await;
    drop(server);
    let response = client.rest().await;
    assert!(response.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{response}");
    assert!(
        response.ends_with("rehearse: the server closed the connection before it answered anything\n"),
        "{response}"
    );
    let gone = "1 UpstreamGone(\"the server closed the connection before it answered anything\")";
    assert_eq!(stage.log.lines().last().unwrap(), gone);
}

#[tokio::test]
async fn a_connection_that_was_used_before_is_just_closed_so_that_the_client_asks_again() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked(POST).await;
    server.send(OK).await;
    client.expect(OK).await;
    client.send(&POST.replace("HERE", &stage.here())).await;
    server.expect(&POST.replace("HERE", &stage.there())).await;
    drop(server);
    assert_eq!(client.rest().await, "");
    assert!(stage.log.lines().last().unwrap().starts_with("2 UpstreamGone"));
}

#[tokio::test]
async fn half_an_answer_is_half_an_answer() {
    for head in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        let stage = Stage::new().await;
        let (mut client, mut server) = stage.asked(GET).await;
        let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n3\r\nabc\r\n");
        server.send(&answer).await;
        client.expect(&answer).await;
        drop(server);
        assert_eq!(client.rest().await, "");
        assert!(stage.log.lines().last().unwrap().starts_with("1 UpstreamGone"));
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_cannot_be_taken_for_the_whole() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked(GET).await;
    server.send("HTTP/1.1 200 OK\r\n\r\nsome").await;
    client.expect("HTTP/1.1 200 OK\r\n\r\nsome").await;
    server.reset();
    client.expect_reset().await;
    assert!(stage.log.lines().last().unwrap().contains("the connection to the server broke"));
}

#[tokio::test]
async fn a_client_that_goes_takes_its_connection_along() {
    let stage = Stage::new().await;
    let (client, mut server) = stage.asked(GET).await;
    server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await;
    drop(client);
    assert_eq!(server.rest().await, "", "the server is told at once");
    drop(server);
    stage.logged("1 ClientGone").await;
}

#[tokio::test]
async fn a_client_that_breaks_off_is_gone_for_the_server_too() {
    let stage = Stage::new().await;
    let (client, mut server) = stage.asked("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 9\r\n\r\n{").await;
    client.reset();
    server.expect_reset().await;
    assert_eq!(stage.log.lines(), ["1 POST /mcp", "1 > {", "1 ClientGone"]);
}

#[tokio::test]
async fn a_client_that_only_stops_talking_still_gets_its_answer() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked(POST).await;
    client.close_writing().await;
    assert_eq!(server.rest().await, "");
    server.send(OK).await;
    drop(server);
    assert_eq!(client.rest().await, OK);
    assert_eq!(stage.log.lines().last().unwrap(), "1 Done");
}

#[tokio::test]
async fn what_a_server_said_before_it_stopped_reading_arrives() {
    let stage = Stage::new().await;
    let (mut client, mut server) =
        stage.asked("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 9000000\r\n\r\n").await;
    let answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    server.send(answer).await;
    client.expect(answer).await;
    drop(server);
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_shutdown_ends_streams_at_once_and_lets_answers_finish() {
    let stage = Stage::with(|options| options.grace = std::time::Duration::from_secs(20)).await;
    let (mut streaming, mut stream) = stage.asked(GET).await;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    stream.send(head).await;
    streaming.expect(head).await;
    let (mut asking, mut server) = stage.asked(POST).await;
    let (idle, log, address) = (stage.client().await, stage.log.clone(), stage.proxy.address());
    let Stage { proxy, listener, .. } = stage;
    let ended = tokio::spawn(proxy.shutdown());
    assert_eq!(streaming.rest().await, "");
    assert_eq!(stream.rest().await, "");
    server.send(OK).await;
    asking.expect(OK).await;
    assert_eq!(asking.rest().await, "");
    drop((asking, idle, listener));
    ended.await.unwrap();
    assert!(TcpListener::bind(address).await.is_ok() || tokio::net::TcpStream::connect(address).await.is_err());
    let lines = log.lines();
    assert!(lines.contains(&"1 Stopped".to_owned()) && lines.contains(&"2 Done".to_owned()), "{lines:#?}");
}

#[tokio::test]
async fn a_proxy_that_is_dropped_tells_whoever_watches() {
    let stage = Stage::new().await;
    let (mut client, server) = stage.asked(POST).await;
    let Stage { proxy, log, .. } = stage;
    drop(proxy);
    assert_eq!(client.rest().await, "");
    drop(server);
    assert_eq!(log.lines().last().unwrap(), "1 Stopped");
}
