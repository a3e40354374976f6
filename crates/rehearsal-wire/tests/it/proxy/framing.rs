//! The bytes forwarded are the bytes received, whatever their framing.

use std::time::Duration;

use super::stage::{GET, Log, OK, POST, Stage};

#[tokio::test]
async fn a_length_passes_in_both_directions_and_the_socket_is_used_again() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked(POST).await;
    server.send(OK).await;
    client.expect(OK).await;
    client.send(&GET.replace("HERE", &stage.here())).await;
    server.expect(&GET.replace("HERE", &stage.there())).await;
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
    assert_eq!(stage.log.lines(), expected);
}

#[tokio::test]
async fn chunks_extensions_and_trailers_pass_as_they_came() {
    let stage = Stage::new().await;
    let head = "POST /mcp HTTP/1.1\r\nHost: HERE\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n";
    let body = "1;a=b\r\n{\r\n0001 ;c\r\n}\r\n000\r\nX: y\r\nZ:w\r\n\r\n";
    let (mut client, mut server) = stage.asked(&format!("{head}{body}")).await;
    let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    server.send(&answer).await;
    client.expect(&answer).await;
    stage.logged("1 Done").await;
    assert_eq!(stage.log.lines(), ["1 POST /mcp", "1 > {}", "1 >.", "1 200", "1 < {}", "1 <.", "1 Done"]);
}

#[tokio::test]
async fn bytes_pass_as_they_come_and_not_when_a_message_is_whole() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 5\r\n\r\n").await;
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
    stage.logged("1 Done").await;
    let expected = ["1 POST /mcp", "1 > abcde", "1 >.", "1 200", "1 < xyz", "1 <.", "1 Done"];
    assert_eq!(stage.log.lines(), expected);
}

#[tokio::test]
async fn a_body_that_ends_with_the_connection_passes_until_then() {
    for version in ["1.0", "1.1"] {
        let stage = Stage::new().await;
        let (mut client, mut server) = stage.asked(GET).await;
        let answer = format!("HTTP/{version} 200 OK\r\n\r\nwhat");
        server.send(&answer).await;
        client.expect(&answer).await;
        server.send("ever").await;
        client.expect("ever").await;
        drop(server);
        assert_eq!(client.rest().await, "");
        drop(client);
        assert_eq!(stage.log.lines(), ["1 GET /mcp", "1 >.", "1 200", "1 < whatever", "1 <.", "1 Done"]);
    }
}

#[tokio::test]
async fn responses_that_have_no_body_have_none() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked("HEAD /mcp HTTP/1.1\r\nHost: HERE\r\n\r\n").await;
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
    ];
    for answer in answers {
        server.send(answer).await;
        client.expect(answer).await;
        client.send(&GET.replace("HERE", &stage.here())).await;
        server.expect(&GET.replace("HERE", &stage.there())).await;
    }
}

#[tokio::test]
async fn a_client_that_waits_to_be_told_to_continue_is() {
    let stage = Stage::new().await;
    let head = "POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    let (mut client, mut server) = stage.asked(head).await;
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    server.send(early).await;
    client.expect(early).await;
    client.send("{}").await;
    server.expect("{}").await;
    server.send(OK).await;
    client.expect(OK).await;
    stage.logged("1 Done").await;
    let expected = ["1 POST /mcp", "1 103", "1 100", "1 > {}", "1 >.", "1 200", "1 < []", "1 <.", "1 Done"];
    assert_eq!(stage.log.lines(), expected);
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_a_row() {
    let stage = Stage::with(|options| options.limits.pipelined = 3).await;
    let mut client = stage.client().await;
    client.send(&[POST, GET].concat().repeat(10).replace("HERE", &stage.here())).await;
    let mut server = stage.server().await;
    for number in 0..10 {
        server.expect(&[POST, GET].concat().replace("HERE", &stage.there())).await;
        let answers = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}HTTP/1.1 204 No\r\n\r\n");
        server.send(&answers).await;
        client.expect(&answers).await;
    }
    stage.logged("20 Done").await;
    let lines = stage.log.lines();
    for number in 0..10 {
        assert!(lines.contains(&format!("{} < {number}", 2 * number + 1)), "{lines:#?}");
    }
}

#[tokio::test]
async fn an_answer_before_the_question_is_whole_passes() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.asked("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 4\r\n\r\n{").await;
    server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await;
    client.expect("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await;
    client.send(&format!("}}..{}", GET.replace("HERE", &stage.here()))).await;
    server.expect(&format!("}}..{}", GET.replace("HERE", &stage.there()))).await;
    server.send(OK).await;
    client.expect(OK).await;
    stage.logged("2 Done").await;
    let first: Vec<String> = stage.log.lines().into_iter().filter(|line| line.starts_with('1')).collect();
    assert_eq!(first, ["1 POST /mcp", "1 > {", "1 413", "1 <.", "1 > }..", "1 >.", "1 Done"]);
}

#[tokio::test]
async fn another_protocol_passes_once_both_agree_on_it() {
    let stage = Stage::new().await;
    let ask = "GET /ws HTTP/1.1\r\nHost: HERE\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
    let (mut client, mut server) = stage.asked(ask).await;
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
    assert_eq!(stage.log.lines(), ["1 GET /ws", "1 >.", "1 101", "1 Upgraded"]);
}

#[tokio::test]
async fn what_is_not_http_passes_to_the_client_and_is_told() {
    for (answer, why) in [
        ("SSH-2.0-OpenSSH_9.2\r\n\r\nmore", "the response is not HTTP/1.1"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense", "the response is not in chunks as it says"),
    ] {
        let stage = Stage::new().await;
        let (mut client, mut server) = stage.asked(GET).await;
        server.send(answer).await;
        client.expect(answer).await;
        drop(server);
        assert_eq!(client.rest().await, "");
        let lines = stage.log.lines();
        assert!(lines.last().unwrap().contains(why), "{lines:#?}");
    }
}

#[tokio::test]
async fn a_head_of_the_servers_beyond_the_limit_passes_all_the_same() {
    let stage = Stage::with(|options| options.limits.head = 256).await;
    let (mut client, mut server) = stage.asked(GET).await;
    let answer = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(300));
    server.send(&answer).await;
    drop(server);
    assert_eq!(client.rest().await, answer);
}

#[tokio::test]
async fn whoever_watches_may_hold_a_request_back_until_it_is_whole_but_not_for_ever() {
    let log = Log { hold: true, ..Log::default() };
    let stage = Stage::watched_by(log, |_| {}).await;
    let mut client = stage.client().await;
    let (head, body) = POST.split_once("{").unwrap();
    client.send(&format!("{head}{{").replace("HERE", &stage.here())).await;
    stage.logged("1 > {").await;
    client.send(body).await;
    let mut server = stage.server().await;
    server.expect(&POST.replace("HERE", &stage.there())).await;
    server.send(OK).await;
    client.expect(OK).await;
    let long = "x".repeat(70_000);
    client.send(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 70001\r\n\r\n{long}", stage.here())).await;
    server.expect(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 70001\r\n\r\n", stage.there())).await;
    server.expect(&long).await;
}

#[tokio::test]
async fn a_client_that_waits_for_an_answer_before_it_says_the_rest_gets_one() {
    let stage = Stage::watched_by(Log { hold: true, ..Log::default() }, |_| {}).await;
    let mut client = stage.client().await;
    client.send(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\nsome", stage.here())).await;
    let mut server = stage.server().await;
    server.expect(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\nsome", stage.there())).await;
    stage.logged("1 released").await;
    let early = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    server.send(early).await;
    client.expect(early).await;
}

#[tokio::test]
async fn a_client_that_says_a_little_again_and_again_is_held_back_no_longer_than_one_that_is_silent() {
    let stage = Stage::watched_by(Log { hold: true, ..Log::default() }, |_| {}).await;
    let mut client = stage.client().await;
    // The paused clock does not advance automatically, because some task below is always active.
    tokio::time::pause();
    client.send(&format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\n", stage.here())).await;
    for said in ["1 > x", "1 > xx", "1 > xxx", "1 > xxxx"] {
        client.send("x").await;
        while !stage.log.lines().iter().any(|line| line == said || line == "1 released") {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(Duration::from_millis(1500)).await;
    }
    assert!(stage.log.lines().contains(&"1 released".to_owned()), "{:#?}", stage.log.lines());
}
