//! The proxy translates URLs: the client stays on the proxy, and the server sees its own host.

use super::stage::{GET, Stage};

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

#[tokio::test]
async fn headers_that_name_the_one_side_name_the_other() {
    let stage = Stage::new().await;
    let ask = "GET http://HERE/mcp HTTP/1.1\r\nhost:HERE\r\nOrigin: http://HERE\r\nReferer: http://HERE/page\r\nX: http://127.0.0.1/\r\n\r\n";
    let (mut client, mut server) = stage.asked(ask).await;
    let answer = "HTTP/1.1 307 Moved\r\nLocation: http://THERE/other\r\n\
        WWW-Authenticate: Bearer resource_metadata=\"http://THERE/.well-known/oauth\", x=\"http://elsewhere/\"\r\n\
        Access-Control-Allow-Origin: http://THERE\r\nContent-Length: 0\r\n\r\n";
    server.send(&answer.replace("THERE", &stage.there())).await;
    client.expect(&answer.replace("THERE", &stage.here())).await;
}

#[tokio::test]
async fn the_name_by_which_the_client_knows_the_proxy_is_kept() {
    let stage = Stage::new().await;
    let port = stage.proxy.address().port();
    let mut client = stage.client().await;
    client.send(&format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")).await;
    let mut server = stage.server().await;
    server.expect(&format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", stage.there())).await;
    server.send(&format!("HTTP/1.1 302 Found\r\nLocation: http://{}/x\r\n\r\n", stage.there())).await;
    client.expect(&format!("HTTP/1.1 302 Found\r\nLocation: http://localhost:{port}/x\r\n\r\n")).await;
}

#[tokio::test]
async fn a_relative_endpoint_passes_byte_for_byte() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked(GET).await;
    let head = format!("{STREAM}Transfer-Encoding: chunked\r\n\r\n");
    server.send(&format!("{head}2a;x\r\nevent: endpoint\r\ndata: /messages?s=1\r\n\r\n\r\n3\r\n: a")).await;
    client.expect(&format!("{head}2a;x\r\nevent: endpoint\r\ndata: /messages?s=1\r\n\r\n\r\n3\r\n: a")).await;
}

#[tokio::test]
async fn a_whole_endpoint_is_moved_and_its_chunk_gets_the_right_size() {
    let (here, there) = ("localhost", "127.0.0.1");
    let stage = Stage::new().await;
    let port = stage.proxy.address().port();
    let mut client = stage.client().await;
    client.send(&format!("GET /sse HTTP/1.1\r\nHost: {here}:{port}\r\n\r\n")).await;
    let mut server = stage.server().await;
    server.expect(&format!("GET /sse HTTP/1.1\r\nHost: {}\r\n\r\n", stage.there())).await;
    let head = format!("{STREAM}Transfer-Encoding: chunked\r\n\r\n");
    let theirs = format!("event: endpoint\ndata: http://{}/m?s=1\n\n", stage.there());
    let ours = format!("event: endpoint\ndata: http://{here}:{port}/m?s=1\n\n");
    assert!(stage.there().starts_with(there));
    // The event spans two chunks, and the second one contains more than the event.
    let (one, two) = theirs.split_at(20);
    server.send(&format!("{head}14\r\n{one}\r\n{:x};e\r\n{two}: pi", two.len() + 7)).await;
    client.expect(&head).await;
    client.expect(&format!("{:x}\r\n{ours}: pi", ours.len() + 7)).await;
    server.send("ng\n\r\n5\r\n: b\n\n\r\n0\r\n\r\n").await;
    client.expect("ng\n\r\n5\r\n: b\n\n\r\n0\r\n\r\n").await;
    stage.logged("1 Done").await;
    let told = theirs.replace('\n', "\\n");
    assert!(stage.log.lines().contains(&format!("1 < {told}: ping\\n: b\\n\\n")), "{:#?}", stage.log.lines());
}

#[tokio::test]
async fn a_whole_endpoint_in_a_stream_without_chunks_is_moved_too() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked(GET).await;
    let answer = format!("{STREAM}\r\n: hi\nevent: endpoint\ndata: http://THERE/m\n\ndata: http://ELSEWHERE/m\n\n");
    let elsewhere = stage.there();
    server.send(&answer.replace("ELSEWHERE", &elsewhere).replace("THERE", &stage.there())).await;
    client.expect(&answer.replace("ELSEWHERE", &elsewhere).replace("THERE", &stage.here())).await;
}

#[tokio::test]
async fn what_is_held_back_of_a_first_event_comes_when_the_stream_ends() {
    for (framing, body, end) in
        [("Transfer-Encoding: chunked\r\n", "6\r\ndata: \r\n", "0\r\n\r\n"), ("", "data: half", "")]
    {
        let stage = Stage::new().await;
        let (mut client, mut server) = stage.asked(GET).await;
        let answer = format!("{STREAM}{framing}\r\n{body}{end}");
        server.send(&answer).await;
        drop(server);
        assert_eq!(client.rest().await, answer);
        drop(client);
        stage.logged("1 Done").await;
    }
}
