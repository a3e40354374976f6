//! A side that does not read blocks only its own direction.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::fixture::{End, Fixture, GET, OK, POST};

/// Sends until the peer stops reading, and returns the number of bytes sent.
async fn fill(end: &mut End) -> usize {
    let block = [b'x'; 64 * 1024];
    let mut sent = 0;
    while let Ok(written) = timeout(Duration::from_millis(200), end.0.write(&block)).await {
        sent += written.unwrap();
        assert!(sent < 256 * 1024 * 1024, "the proxy must not buffer without a limit");
    }
    sent
}

#[tokio::test]
async fn a_client_that_does_not_read_blocks_only_its_own_server() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) = fixture.send_request(GET).await;
    server.send("HTTP/1.1 200 OK\r\n\r\n").await;
    let sent = fill(&mut server).await;
    let (mut other, mut others) = fixture.send_request(POST).await;
    others.send(OK).await;
    other.expect(OK).await;
    // The other direction of the same socket continues.
    client.send(&POST.replace("HERE", &fixture.here())).await;
    server.expect(&POST.replace("HERE", &fixture.there())).await;
    client.expect("HTTP/1.1 200 OK\r\n\r\n").await;
    let mut got = vec![0; sent];
    client.0.read_exact(&mut got).await.unwrap();
    assert!(got.iter().all(|byte| *byte == b'x'));
}

#[tokio::test]
async fn a_server_that_does_not_read_blocks_the_client() {
    let fixture = Fixture::new().await;
    let (mut client, mut server) =
        fixture.send_request("POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 999999999\r\n\r\n").await;
    let sent = fill(&mut client).await;
    server.send("HTTP/1.1 103 Early Hints\r\n\r\n").await;
    client.expect("HTTP/1.1 103 Early Hints\r\n\r\n").await;
    let mut got = vec![0; sent];
    server.0.read_exact(&mut got).await.unwrap();
}

#[tokio::test]
async fn a_hundred_concurrent_clients_get_their_own_responses() {
    let fixture = Fixture::new().await;
    let serving = async {
        for _ in 0..100 {
            let mut server = fixture.server().await;
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"!") {
                    request.push(server.0.read_u8().await.unwrap());
                }
                let body = request[request.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4..].to_vec();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                server.0.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
            });
        }
    };
    let sending = async {
        let mut clients = Vec::new();
        for number in 0..100 {
            let mut client = fixture.client().await;
            let body = format!("{number}!");
            let head = format!("POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", fixture.here(), body.len());
            client.send(&format!("{head}{body}")).await;
            clients.push((client, body));
        }
        for (mut client, body) in clients {
            client.expect(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
        }
    };
    tokio::join!(serving, sending);
}
