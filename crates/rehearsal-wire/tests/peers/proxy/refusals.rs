//! Requests that are not forwarded, and the proxy's responses to them.

use std::time::Duration;

use rehearsal_wire::http::server::AllowedHosts;
use tokio::net::TcpListener;

use super::fixture::{Fixture, GET, OK, POST};

/// Returns the status and the text of a refusal.
fn refusal(response: &str) -> (&str, &str) {
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("connection: close") && head.contains(&format!("content-length: {}", body.len())), "{head}");
    (head.split_once(' ').unwrap().1.split("\r\n").next().unwrap(), body.trim_end())
}

#[tokio::test]
async fn foreign_and_ambiguous_requests_never_reach_the_server() {
    let fixture = Fixture::with(|options| options.limits.head = 300).await;
    let table = [
        (
            "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "403 Forbidden",
            "Forbidden: host \"evil.example\": neither localhost, nor an IP address, nor allowed by --allow-host",
        ),
        (
            "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n",
            "403 Forbidden",
            "Forbidden: origin \"https://evil.example\": neither on this machine, nor allowed by --allow-host",
        ),
        (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "400 Bad Request",
            "both Content-Length and Transfer-Encoding",
        ),
        ("nonsense\r\n\r\n", "400 Bad Request", "this is not HTTP/1.1: invalid token"),
        (
            "CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "405 Method Not Allowed",
            "a reverse proxy does not support CONNECT",
        ),
        (
            &format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(300)),
            "431 Request Header Fields Too Large",
            "a head of more than 300 bytes",
        ),
        (
            &format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(300)),
            "431 Request Header Fields Too Large",
            "a head of more than 300 bytes",
        ),
    ];
    for (request, status, why) in table {
        let mut client = fixture.client().await;
        client.send(request).await;
        assert_eq!(refusal(&client.rest().await), (status, format!("rehearse: {why}").as_str()), "{request:.60}");
    }
    assert_eq!(fixture.log.lines(), [""; 0]);
    let unused = tokio::time::timeout(Duration::ZERO, fixture.listener.accept()).await;
    assert!(unused.is_err(), "a connection reached the server");
}

#[tokio::test]
async fn listed_hosts_and_origins_are_accepted() {
    let fixture = Fixture::with(|options| {
        options.hosts = AllowedHosts::Named(vec!["box.example".to_owned()]);
        options.origins = AllowedHosts::Named(vec!["https://app.example".to_owned()]);
    })
    .await;
    let mut client = fixture.client().await;
    client.send("GET / HTTP/1.1\r\nHost: box.example:80\r\nOrigin: https://app.example\r\n\r\n").await;
    let expected = format!("GET / HTTP/1.1\r\nHost: {}\r\nOrigin: https://app.example\r\n\r\n", fixture.there());
    fixture.server().await.expect(&expected).await;
}

#[tokio::test]
async fn a_refusal_follows_the_responses_to_earlier_requests() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    client.send(&format!("{POST}{GET}nonsense\r\n\r\n").replace("HERE", &fixture.here())).await;
    let mut server = fixture.server().await;
    server.expect(&format!("{POST}{GET}").replace("HERE", &fixture.there())).await;
    server.send(OK).await;
    client.expect(OK).await;
    server.send(OK).await;
    client.expect(OK).await;
    assert_eq!(refusal(&client.rest().await).0, "400 Bad Request");
    assert_eq!(server.rest().await, "");
}

#[tokio::test]
async fn an_invalid_chunk_ends_the_request() {
    let fixture = Fixture::new().await;
    let head = "POST /mcp HTTP/1.1\r\nHost: HERE\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
    let (mut client, mut server) = fixture.send_request(head).await;
    client.send("zz\r\n").await;
    let why = "the body is not validly chunked: a chunk without a size";
    assert_eq!(refusal(&client.rest().await), ("400 Bad Request", format!("rehearse: {why}").as_str()));
    assert_eq!(server.rest().await, "");
    assert_eq!(fixture.log.lines().last().unwrap(), &format!("1 Refused({why:?})"));
}

#[tokio::test]
async fn an_incomplete_head_times_out() {
    let fixture = Fixture::with(|options| options.limits.head_timeout = Duration::from_millis(20)).await;
    let mut client = fixture.client().await;
    client.send("GET / HTTP/1.1\r\n").await;
    assert_eq!(refusal(&client.rest().await).0, "408 Request Timeout");
    assert_eq!(fixture.client().await.rest().await, "", "a client that sends nothing");
}

#[tokio::test]
async fn an_unreachable_server_is_a_bad_gateway() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let fixture = Fixture::with(|options| options.upstream = format!("http://{unused}/mcp").parse().unwrap()).await;
    let mut client = fixture.client().await;
    client.send(&POST.replace("HERE", &fixture.here())).await;
    let response = client.rest().await;
    let (status, why) = refusal(&response);
    assert_eq!(status, "502 Bad Gateway");
    assert!(why.starts_with(&format!("rehearse: cannot connect to {unused}: Connection refused")), "{why}");
    assert!(fixture.log.lines().last().unwrap().starts_with("1 UpstreamFailed"), "{:?}", fixture.log.lines());
}

#[tokio::test]
async fn binding_a_used_address_reports_the_cause() {
    let fixture = Fixture::new().await;
    let mut options =
        rehearsal_wire::http::proxy::HttpProxyOptions::new(fixture.proxy.address(), "http://localhost/").unwrap();
    options.grace = Duration::ZERO;
    let error = rehearsal_wire::http::proxy::HttpProxy::bind(options, std::sync::Arc::new(fixture.log.clone()))
        .await
        .unwrap_err();
    let why = error.to_string();
    assert!(why.starts_with(&format!("cannot listen on {}: Address already in use", fixture.here())), "{why}");
}
