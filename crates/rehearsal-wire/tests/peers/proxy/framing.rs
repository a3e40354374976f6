//! The bytes forwarded are the bytes received, whatever their framing.

use std::time::Duration;

use super::fixture::{Fixture, GET, Log, OK, POST};

#[tokio::test]
async fn bodies_with_a_length_pass_both_ways_and_the_socket_is_reused() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) = fixture.send_request(POST).await;
    server.send(OK).await;
    client.expect(OK).await;
    client.send(&GET.replace("HERE", &fixture.here())).await;
    server.expect(&GET.replace("HERE", &fixture.there())).await;
    let answer = "HTTP/1.1 404 \r\ncontent-LENGTH:0\r\nX:\t y \r\n\r\n";
    server.send(answer).await;
    client.expect(answer).await;
    drop(client);
    assert_eq!(server.rest().await, "");
    let expected = [
        "1 POST /mcp",
        "1 > {}",
        "1 >.",
        "1 200",
        "1 < []",
        "1 <.",
        "1 Done",
        "2 GET /mcp",
        "2 >.",
        "2 404",
        "2 <.",
        "2 Done",
    ];
    assert_eq!(fixture.log.lines(), expected);
}

#[tokio::test]
async fn chunks_extensions_and_trailers_pass_unchanged() {
    let fixture = Fixture::new().await;
    let head = "POST /mcp HTTP/1.1\r\nHost: HERE\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n";
    let body = "1;a=b\r\n{\r\n0001 ;c\r\n}\r\n000\r\nX: y\r\nZ:w\r\n\r\n";
    let (mut client, mut server) = fixture.send_request(&format!("{head}{body}")).await;
    let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    server.send(&answer).await;
    client.expect(&answer).await;
    fixture.logged("1 Done").await;
    assert_eq!(fixture.log.lines(), ["1 POST /mcp", "1 > {}", "1 >.", "1 200", "1 < {}", "1 <.", "1 Done"]);
}

#[tokio::test]
async fn bytes_are_forwarded_before_their_message_is_complete() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) =
        fixture.send_request("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 5\r\n\r\n").await;
    for letter in ["a", "b", "c", "d", "e"] {
        client.send(letter).await;
        server.expect(letter).await;
    }
    for piece in
        ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "3", "\r\n", "x", "yz", "\r", "\n0\r\n", "\r\n"]
    {
        server.send(piece).await;
        client.expect(piece).await;
    }
    fixture.logged("1 Done").await;
    let expected = ["1 POST /mcp", "1 > abcde", "1 >.", "1 200", "1 < xyz", "1 <.", "1 Done"];
    assert_eq!(fixture.log.lines(), expected);
}

#[tokio::test]
async fn a_body_that_ends_with_the_connection_passes_until_then() {
    for version in ["1.0", "1.1"] {
        let fixture = Fixture::new().await;
        let (mut client, mut server) = fixture.send_request(GET).await;
        let answer = format!("HTTP/{version} 200 OK\r\n\r\nwhat");
        server.send(&answer).await;
        client.expect(&answer).await;
        server.send("ever").await;
        client.expect("ever").await;
        drop(server);
        assert_eq!(client.rest().await, "");
        drop(client);
        assert_eq!(fixture.log.lines(), ["1 GET /mcp", "1 >.", "1 200", "1 < whatever", "1 <.", "1 Done"]);
    }
}

#[tokio::test]
async fn responses_that_have_no_body_have_none() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) = fixture.send_request("HEAD /mcp HTTP/1.1\r\nHost: HERE\r\n\r\n").await;
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
    ];
    for answer in answers {
        server.send(answer).await;
        client.expect(answer).await;
        client.send(&GET.replace("HERE", &fixture.here())).await;
        server.expect(&GET.replace("HERE", &fixture.there())).await;
    }
}

#[tokio::test]
async fn an_expect_100_continue_request_gets_its_100() {
    let fixture = Fixture::new().await;
    let head = "POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    let (mut client, mut server) = fixture.send_request(head).await;
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    server.send(early).await;
    client.expect(early).await;
    client.send("{}").await;
    server.expect("{}").await;
    server.send(OK).await;
    client.expect(OK).await;
    fixture.logged("1 Done").await;
    let expected = ["1 POST /mcp", "1 103", "1 100", "1 > {}", "1 >.", "1 200", "1 < []", "1 <.", "1 Done"];
    assert_eq!(fixture.log.lines(), expected);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let fixture = Fixture::with(|options| options.limits.pipelined = 3).await;
    let mut client = fixture.client().await;
    client.send(&[POST, GET].concat().repeat(10).replace("HERE", &fixture.here())).await;
    let mut server = fixture.server().await;
    for number in 0..10 {
        server.expect(&[POST, GET].concat().replace("HERE", &fixture.there())).await;
        let answers = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}HTTP/1.1 204 No\r\n\r\n");
        server.send(&answers).await;
        client.expect(&answers).await;
    }
    fixture.logged("20 Done").await;
    let lines = fixture.log.lines();
    for number in 0..10 {
        assert!(lines.contains(&format!("{} < {number}", 2 * number + 1)), "{lines:#?}");
    }
}

#[tokio::test]
async fn a_response_before_the_end_of_its_request_passes() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) =
        fixture.send_request("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 4\r\n\r\n{").await;
    server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await;
    client.expect("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await;
    client.send(&format!("}}..{}", GET.replace("HERE", &fixture.here()))).await;
    server.expect(&format!("}}..{}", GET.replace("HERE", &fixture.there()))).await;
    server.send(OK).await;
    client.expect(OK).await;
    fixture.logged("2 Done").await;
    let first: Vec<String> = fixture.log.lines().into_iter().filter(|line| line.starts_with('1')).collect();
    assert_eq!(first, ["1 POST /mcp", "1 > {", "1 413", "1 <.", "1 > }..", "1 >.", "1 Done"]);
}

#[tokio::test]
async fn an_upgraded_protocol_is_forwarded_unparsed() {
    let fixture = Fixture::new().await;
    let request = "GET /ws HTTP/1.1\r\nHost: HERE\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
    let (mut client, mut server) = fixture.send_request(request).await;
    server.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhello\n").await;
    client.expect("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhello\n").await;
    client.send("POST that is none\r\n\r\n\0").await;
    server.expect("POST that is none\r\n\r\n\0").await;
    server.send("HTTP/9 nor this\r\n\r\n").await;
    client.expect("HTTP/9 nor this\r\n\r\n").await;
    client.close_writing().await;
    assert_eq!(server.rest().await, "");
    server.send("bye").await;
    drop(server);
    assert_eq!(client.rest().await, "bye");
    assert_eq!(fixture.log.lines(), ["1 GET /ws", "1 >.", "1 101", "1 Upgraded"]);
}

#[tokio::test]
async fn a_response_that_is_not_http_is_forwarded_and_reported() {
    for (answer, why) in [
        ("SSH-2.0-OpenSSH_9.2\r\n\r\nmore", "the response is not HTTP/1.1"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense", "the response is not validly chunked"),
    ] {
        let fixture = Fixture::new().await;
        let (mut client, mut server) = fixture.send_request(GET).await;
        server.send(answer).await;
        client.expect(answer).await;
        drop(server);
        assert_eq!(client.rest().await, "");
        let lines = fixture.log.lines();
        assert!(lines.last().unwrap().contains(why), "{lines:#?}");
    }
}

#[tokio::test]
async fn a_response_head_beyond_the_limit_is_still_forwarded() {
    let fixture = Fixture::with(|options| options.limits.head = 256).await;
    let (mut client, mut server) = fixture.send_request(GET).await;
    let answer = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(300));
    server.send(&answer).await;
    drop(server);
    assert_eq!(client.rest().await, answer);
}

#[tokio::test]
async fn the_observer_may_hold_a_request_until_it_is_complete() {
    let log = Log { hold: true, ..Log::default() };
    let fixture = Fixture::with_log(log, |_| {}).await;
    let mut client = fixture.client().await;
    let (head, body) = POST.split_once("{").unwrap();
    client.send(&format!("{head}{{").replace("HERE", &fixture.here())).await;
    fixture.logged("1 > {").await;
    client.send(body).await;
    let mut server = fixture.server().await;
    server.expect(&POST.replace("HERE", &fixture.there())).await;
    server.send(OK).await;
    client.expect(OK).await;
    let long = "x".repeat(70_000);
    client
        .send(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 70001\r\n\r\n{long}", fixture.here()))
        .await;
    server.expect(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 70001\r\n\r\n", fixture.there())).await;
    server.expect(&long).await;
}

#[tokio::test]
async fn held_bytes_are_released_for_a_client_that_waits_for_a_response() {
    let fixture = Fixture::with_log(Log { hold: true, ..Log::default() }, |_| {}).await;
    let mut client = fixture.client().await;
    client.send(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\nsome", fixture.here())).await;
    let mut server = fixture.server().await;
    server.expect(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\nsome", fixture.there())).await;
    fixture.logged("1 released").await;
    let early = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    server.send(early).await;
    client.expect(early).await;
}

#[tokio::test]
async fn sending_more_bytes_does_not_extend_the_hold() {
    let fixture = Fixture::with_log(Log { hold: true, ..Log::default() }, |_| {}).await;
    let mut client = fixture.client().await;
    // The paused clock does not advance automatically, because some task below is always active.
    tokio::time::pause();
    client.send(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\n", fixture.here())).await;
    for expected in ["1 > x", "1 > xx", "1 > xxx", "1 > xxxx"] {
        client.send("x").await;
        while !fixture.log.lines().iter().any(|line| line == expected || line == "1 released") {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(Duration::from_millis(1500)).await;
    }
    assert!(fixture.log.lines().contains(&"1 released".to_owned()), "{:#?}", fixture.log.lines());
}
