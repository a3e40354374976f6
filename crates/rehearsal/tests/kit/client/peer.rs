//! The server of a client in the same process, played from a transcript.

use std::sync::Arc;

use bytes::Bytes;
use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientError};
use rehearsal::core::exchange::{Channel, Side};
use rehearsal::wire::{Connection, Event, Sender, memory};
use tokio::task::JoinHandle;

use crate::transcript::messages;

/// The peer of a client in the same process.
pub(crate) struct Peer {
    connection: Connection,
}

/// A client that is not connected yet, and its peer.
pub(crate) fn unconnected() -> (ClientBuilder, Peer) {
    let (near, far) = memory::pair();
    (Client::connection(near), Peer { connection: far })
}

/// A client that is not connected yet and sends through another sender, and its peer.
pub(crate) fn unconnected_with_sender(
    through: impl FnOnce(Arc<dyn Sender>) -> Arc<dyn Sender>,
) -> (ClientBuilder, Peer) {
    let (near, far) = memory::pair();
    let near = Connection { sender: through(near.sender), receiver: near.receiver };
    (Client::connection(near), Peer { connection: far })
}

impl Peer {
    /// Receives the client's next line.
    pub(crate) async fn receive(&mut self) -> String {
        match self.connection.receiver.receive().await {
            Event::Message { message, .. } => message.text().into_owned(),
            other => panic!("the client should have sent a message, but {other:?}"),
        }
    }

    /// Sends a line.
    pub(crate) async fn send(&self, line: &str) {
        self.connection.sender.send_bytes(Channel::MAIN, Bytes::copy_from_slice(line.as_bytes())).await.unwrap();
    }

    /// Plays a transcript: expects what the client sends, and sends what the server does.
    pub(crate) async fn play(&mut self, transcript: &str) {
        for (side, text) in messages(transcript) {
            match side {
                Side::Client => assert_eq!(self.receive().await, text),
                Side::Server => self.send(&text).await,
            }
        }
    }

    /// Closes the peer's side.
    pub(crate) async fn leave(&self) {
        self.connection.sender.close().await;
    }
}

/// The handshake of the handshake era.
pub(crate) const HANDSHAKE: &str = r#"
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"play","version":"1"}}}
    < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"2"}}}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// The `_meta` of every request of the modern era.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"play","version":"1"}}"#;

/// Connects while the peer plays `script`.
pub(crate) async fn connect(builder: ClientBuilder, peer: &mut Peer, script: &str) -> Result<Client, ClientError> {
    let connecting = builder.client_info("play", "1").connect();
    let (client, ()) = tokio::join!(connecting, peer.play(script));
    client
}

/// A connected client of the handshake era.
pub(crate) async fn legacy() -> (Client, Peer) {
    let (builder, mut peer) = unconnected();
    let builder = builder.legacy("2025-11-25".parse().unwrap());
    let client = connect(builder, &mut peer, HANDSHAKE).await.unwrap();
    (client, peer)
}

/// A connected client of the modern era.
pub(crate) async fn modern() -> (Client, Peer) {
    let (builder, mut peer) = unconnected();
    let client = connect(builder.modern(), &mut peer, &discovery()).await.unwrap();
    (client, peer)
}

/// The discovery of the modern era.
pub(crate) fn discovery() -> String {
    format!(
        "> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{{{META}}}}}\n\
         < {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{{}}}}}}"
    )
}

/// Runs `work` with the client while the test plays the peer.
pub(crate) fn meanwhile<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work)
}
