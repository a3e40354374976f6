//! An upstream behind TLS, and one on IPv6 or `localhost`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::fixture::{End, Fixture, OK, POST};

fn acceptor() -> (TlsAcceptor, Bytes) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), Bytes::copy_from_slice(cert.der()))
}

#[tokio::test]
async fn a_tls_server_is_reachable_over_plain_http() {
    let (acceptor, certificate) = acceptor();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = format!("localhost:{}", listener.local_addr().unwrap().port());
    let fixture = Fixture::with(|options| {
        options.upstream = format!("https://{there}/mcp").parse().unwrap();
        options.root_certificates = vec![certificate];
    })
    .await;
    let request = POST.replace("HERE", &there);
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let mut got = vec![0; request.len()];
        stream.read_exact(&mut got).await.unwrap();
        assert_eq!(String::from_utf8(got).unwrap(), request);
        stream.write_all(format!("HTTP/1.1 200 OK\r\nLocation: https://{there}/x\r\n\r\n[]").as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    });
    let mut client = fixture.client().await;
    client.send(&POST.replace("HERE", &fixture.here())).await;
    serving.await.unwrap();
    assert_eq!(client.rest().await, format!("HTTP/1.1 200 OK\r\nLocation: http://{}/x\r\n\r\n[]", fixture.here()));
}

#[tokio::test]
async fn an_untrusted_certificate_is_a_bad_gateway() {
    let ((acceptor, _), (_, other)) = (acceptor(), acceptor());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = format!("localhost:{}", listener.local_addr().unwrap().port());
    let fixture = Fixture::with(|options| {
        options.upstream = format!("https://{there}/mcp").parse().unwrap();
        options.root_certificates = vec![other];
    })
    .await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let _ = acceptor.accept(stream).await;
    });
    let mut client = fixture.client().await;
    client.send(&POST.replace("HERE", &fixture.here())).await;
    let response = client.rest().await;
    assert!(response.starts_with("HTTP/1.1 502 Bad Gateway") && response.contains("certificate"), "{response}");
}

#[tokio::test]
async fn servers_on_ipv4_ipv6_and_localhost_are_reached() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        // On a machine without IPv6 there is nothing to test here.
        let Ok(listener) = TcpListener::bind(address).await else { continue };
        let local = listener.local_addr().unwrap();
        let name = format!("localhost:{}", local.port());
        let known = tokio::net::lookup_host(&name).await.unwrap().any(|address| address == local);
        for there in [local.to_string(), if known { name } else { local.to_string() }] {
            let fixture = Fixture::with(|options| {
                options.upstream = format!("http://{there}/mcp").parse().unwrap();
                options.listen = address.parse().unwrap();
            })
            .await;
            assert_eq!(fixture.proxy.url(), format!("http://{}/mcp", fixture.here()));
            let mut client = fixture.client().await;
            client.send(&POST.replace("HERE", &fixture.here())).await;
            let accepted = tokio::time::timeout(Duration::from_secs(20), listener.accept()).await;
            let mut server = End(accepted.expect("a connection").unwrap().0);
            server.expect(&POST.replace("HERE", &there)).await;
            server.send(OK).await;
            client.expect(OK).await;
        }
    }
}
