//! The proxy translates URLs: the client stays on the proxy, and the server sees its own host.

use super::fixture::{Fixture, GET};

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

#[tokio::test]
async fn headers_with_urls_of_one_side_get_urls_of_the_other() {
    let fixture = Fixture::new().await;
    let request = "GET http://HERE/mcp HTTP/1.1\r\nhost:HERE\r\nOrigin: http://HERE\r\nReferer: http://HERE/page\r\nX: http://127.0.0.1/\r\n\r\n";
    let (mut client, mut server) = fixture.send_request(request).await;
    let answer = "HTTP/1.1 307 Moved\r\nLocation: http://THERE/other\r\n\
        WWW-Authenticate: Bearer resource_metadata=\"http://THERE/.well-known/oauth\", x=\"http://elsewhere/\"\r\n\
        Access-Control-Allow-Origin: http://THERE\r\nContent-Length: 0\r\n\r\n";
    server.send(&answer.replace("THERE", &fixture.there())).await;
    client.expect(&answer.replace("THERE", &fixture.here())).await;
}

#[tokio::test]
async fn rewritten_urls_use_the_host_that_the_client_sent() {
    let fixture = Fixture::new().await;
    let port = fixture.proxy.address().port();
    let mut client = fixture.client().await;
    client.send(&format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")).await;
    let mut server = fixture.server().await;
    server.expect(&format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", fixture.there())).await;
    server.send(&format!("HTTP/1.1 302 Found\r\nLocation: http://{}/x\r\n\r\n", fixture.there())).await;
    client.expect(&format!("HTTP/1.1 302 Found\r\nLocation: http://localhost:{port}/x\r\n\r\n")).await;
}

#[tokio::test]
async fn a_relative_endpoint_is_forwarded_byte_for_byte() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) = fixture.send_request(GET).await;
    let head = format!("{STREAM}Transfer-Encoding: chunked\r\n\r\n");
    server.send(&format!("{head}2a;x\r\nevent: endpoint\r\ndata: /messages?s=1\r\n\r\n\r\n3\r\n: a")).await;
    client.expect(&format!("{head}2a;x\r\nevent: endpoint\r\ndata: /messages?s=1\r\n\r\n\r\n3\r\n: a")).await;
}

#[tokio::test]
async fn an_absolute_endpoint_is_rewritten_and_its_chunk_resized() {
    let (here, there) = ("localhost", "127.0.0.1");
    let fixture = Fixture::new().await;
    let port = fixture.proxy.address().port();
    let mut client = fixture.client().await;
    client.send(&format!("GET /sse HTTP/1.1\r\nHost: {here}:{port}\r\n\r\n")).await;
    let mut server = fixture.server().await;
    server.expect(&format!("GET /sse HTTP/1.1\r\nHost: {}\r\n\r\n", fixture.there())).await;
    let head = format!("{STREAM}Transfer-Encoding: chunked\r\n\r\n");
    let theirs = format!("event: endpoint\ndata: http://{}/m?s=1\n\n", fixture.there());
    let ours = format!("event: endpoint\ndata: http://{here}:{port}/m?s=1\n\n");
    assert!(fixture.there().starts_with(there));
    // The event spans two chunks, and the second one contains more than the event.
    let (one, two) = theirs.split_at(20);
    server.send(&format!("{head}14\r\n{one}\r\n{:x};e\r\n{two}: pi", two.len() + 7)).await;
    client.expect(&head).await;
    client.expect(&format!("{:x}\r\n{ours}: pi", ours.len() + 7)).await;
    server.send("ng\n\r\n5\r\n: b\n\n\r\n0\r\n\r\n").await;
    client.expect("ng\n\r\n5\r\n: b\n\n\r\n0\r\n\r\n").await;
    fixture.logged("1 Done").await;
    let expected = theirs.replace('\n', "\\n");
    assert!(fixture.log.lines().contains(&format!("1 < {expected}: ping\\n: b\\n\\n")), "{:#?}", fixture.log.lines());
}

#[tokio::test]
async fn an_absolute_endpoint_in_an_unchunked_stream_is_rewritten() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) = fixture.send_request(GET).await;
    let answer = format!("{STREAM}\r\n: hi\nevent: endpoint\ndata: http://THERE/m\n\ndata: http://ELSEWHERE/m\n\n");
    let elsewhere = fixture.there();
    server.send(&answer.replace("ELSEWHERE", &elsewhere).replace("THERE", &fixture.there())).await;
    client.expect(&answer.replace("ELSEWHERE", &elsewhere).replace("THERE", &fixture.here())).await;
}

#[tokio::test]
async fn a_held_first_event_is_released_when_the_stream_ends() {
    for (framing, body, end) in
        [("Transfer-Encoding: chunked\r\n", "6\r\ndata: \r\n", "0\r\n\r\n"), ("", "data: half", "")]
    {
        let fixture = Fixture::new().await;
        let (mut client, mut server) = fixture.send_request(GET).await;
        let answer = format!("{STREAM}{framing}\r\n{body}{end}");
        server.send(&answer).await;
        drop(server);
        assert_eq!(client.rest().await, answer);
        drop(client);
        fixture.logged("1 Done").await;
    }
}
