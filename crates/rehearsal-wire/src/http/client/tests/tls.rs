//! The client over TLS, with a certificate that only the test trusts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::message::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::http::client::{self, ConnectError, HttpClientOptions};
use crate::{ChannelEnd, Event, Outgoing};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// Starts a server with a fixed response, and returns its port and its certificate.
async fn server() -> (u16, Bytes) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = Vec::new();
            while !request.ends_with(PING.as_bytes()) {
                request.push(stream.read_u8().await.unwrap());
            }
            let length = PONG.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(format!("{head}{PONG}").as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        }
    });
    (port, Bytes::copy_from_slice(cert.der()))
}

async fn first_event(options: HttpClientOptions) -> Event {
    let mut connection = client::connect(options).unwrap();
    let channel = connection.sender.open_channel();
    connection.sender.send(Outgoing::new(channel, Message::parse(PING))).await.unwrap();
    connection.receiver.receive().await
}

#[tokio::test]
async fn a_server_with_a_trusted_certificate_is_accepted() {
    let (port, certificate) = server().await;
    let mut options = HttpClientOptions::new(&format!("https://localhost:{port}/mcp")).unwrap();
    options.root_certificates.push(certificate);
    let Event::Message { message, .. } = first_event(options).await else { panic!("no answer") };
    assert_eq!(message.raw(), PONG);
}

#[tokio::test]
async fn a_server_with_an_untrusted_certificate_or_wrong_name_is_refused() {
    let (port, certificate) = server().await;
    let (_, other) = server().await;
    let table = [("localhost", other, "invalid peer certificate"), ("127.0.0.1", certificate, "not valid for name")];
    for (host, root, expected) in table {
        let mut options = HttpClientOptions::new(&format!("https://{host}:{port}/mcp")).unwrap();
        options.root_certificates.push(root);
        match first_event(options).await {
            Event::ChannelEnded { end: ChannelEnd::Broken { why }, .. } => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_tls_handshake_that_never_completes_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut options = HttpClientOptions::new(&format!("https://localhost:{port}/mcp")).unwrap();
    options.root_certificates.push(server().await.1);
    options.connect_timeout = Duration::from_millis(20);
    match first_event(options).await {
        Event::ChannelEnded { end: ChannelEnd::Broken { why }, .. } => {
            assert_eq!(why, format!("cannot connect to localhost:{port}: not connected within 20ms"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_invalid_root_certificate_is_refused_at_once() {
    for (text, why) in [("nonsense", "BadEncoding"), ("-----BEGIN NOTHING-----", "missing section end marker")] {
        let mut options = HttpClientOptions::new("https://localhost/mcp").unwrap();
        options.root_certificates.push(Bytes::from_static(text.as_bytes()));
        let error = client::connect(options).unwrap_err();
        assert!(matches!(error, ConnectError::BadCertificate { number: 1, .. }));
        assert!(error.to_string().contains(why), "{error}");
    }
}
