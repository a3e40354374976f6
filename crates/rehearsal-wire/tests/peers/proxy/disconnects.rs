//! One side disconnects, and the other side notices it in the right way.

use tokio::net::TcpListener;

use super::fixture::{Fixture, GET, OK, POST};

#[tokio::test]
async fn a_server_that_closes_without_a_response_is_a_bad_gateway() {
    let fixture = Fixture::new().await;
    let (mut client, server) = fixture.send_request(POST).await;
    drop(server);
    let response = client.rest().await;
    assert!(response.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{response}");
    assert!(
        response.ends_with("rehearse: the server closed the connection before it answered anything\n"),
        "{response}"
    );
    let expected = "1 UpstreamFailed(\"the server closed the connection before it answered anything\")";
    assert_eq!(fixture.log.lines().last().unwrap(), expected);
}

#[tokio::test]
async fn a_reused_connection_is_closed_so_that_the_client_retries() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) = fixture.send_request(POST).await;
    server.send(OK).await;
    client.expect(OK).await;
    client.send(&POST.replace("HERE", &fixture.here())).await;
    server.expect(&POST.replace("HERE", &fixture.there())).await;
    drop(server);
    assert_eq!(client.rest().await, "");
    assert!(fixture.log.lines().last().unwrap().starts_with("2 UpstreamFailed"));
}

#[tokio::test]
async fn a_partial_response_is_forwarded_as_partial() {
    for head in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        let fixture = Fixture::new().await;
        let (mut client, mut server) = fixture.send_request(GET).await;
        let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n3\r\nabc\r\n");
        server.send(&answer).await;
        client.expect(&answer).await;
        drop(server);
        assert_eq!(client.rest().await, "");
        assert!(fixture.log.lines().last().unwrap().starts_with("1 UpstreamFailed"));
    }
}

#[tokio::test]
async fn a_response_that_breaks_resets_the_client_connection() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) = fixture.send_request(GET).await;
    server.send("HTTP/1.1 200 OK\r\n\r\nsome").await;
    client.expect("HTTP/1.1 200 OK\r\n\r\nsome").await;
    server.reset();
    client.expect_reset().await;
    assert!(fixture.log.lines().last().unwrap().contains("the connection to the server broke"));
}

#[tokio::test]
async fn a_client_that_disconnects_closes_its_upstream_connection() {
    let fixture = Fixture::new().await;
    let (client, mut server) = fixture.send_request(GET).await;
    server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await;
    drop(client);
    assert_eq!(server.rest().await, "", "the server sees the close at once");
    drop(server);
    fixture.logged("1 ClientClosed").await;
}

#[tokio::test]
async fn a_client_that_resets_also_resets_the_server() {
    let fixture = Fixture::new().await;
    let (client, mut server) =
        fixture.send_request("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 9\r\n\r\n{").await;
    client.reset();
    server.expect_reset().await;
    assert_eq!(fixture.log.lines(), ["1 POST /mcp", "1 > {", "1 ClientClosed"]);
}

#[tokio::test]
async fn a_client_that_closes_only_its_writing_side_gets_its_response() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) = fixture.send_request(POST).await;
    client.close_writing().await;
    assert_eq!(server.rest().await, "");
    server.send(OK).await;
    drop(server);
    assert_eq!(client.rest().await, OK);
    assert_eq!(fixture.log.lines().last().unwrap(), "1 Done");
}

#[tokio::test]
async fn a_response_from_before_the_server_stopped_reading_arrives() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) =
        fixture.send_request("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 9000000\r\n\r\n").await;
    let answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    server.send(answer).await;
    client.expect(answer).await;
    drop(server);
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn shutdown_ends_streams_at_once_and_completes_responses() {
    let fixture = Fixture::with(|options| options.grace = std::time::Duration::from_secs(20)).await;
    let (mut streaming, mut stream) = fixture.send_request(GET).await;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    stream.send(head).await;
    streaming.expect(head).await;
    let (mut posting, mut server) = fixture.send_request(POST).await;
    let (idle, log, address) = (fixture.client().await, fixture.log.clone(), fixture.proxy.address());
    let Fixture { proxy, listener, .. } = fixture;
    let ended = tokio::spawn(proxy.shutdown());
    assert_eq!(streaming.rest().await, "");
    assert_eq!(stream.rest().await, "");
    server.send(OK).await;
    posting.expect(OK).await;
    assert_eq!(posting.rest().await, "");
    drop((posting, idle, listener));
    ended.await.unwrap();
    assert!(TcpListener::bind(address).await.is_ok() || tokio::net::TcpStream::connect(address).await.is_err());
    let lines = log.lines();
    assert!(lines.contains(&"1 Stopped".to_owned()) && lines.contains(&"2 Done".to_owned()), "{lines:#?}");
}

#[tokio::test]
async fn dropping_the_proxy_reports_a_stop_to_the_observer() {
    let fixture = Fixture::new().await;
    let (mut client, server) = fixture.send_request(POST).await;
    let Fixture { proxy, log, .. } = fixture;
    drop(proxy);
    assert_eq!(client.rest().await, "");
    drop(server);
    assert_eq!(log.lines().last().unwrap(), "1 Stopped");
}
