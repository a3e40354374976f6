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
pub(crate) fn stage() -> (ClientBuilder, Peer) {
    let (near, far) = memory::pair();
    (Client::connection(near), Peer { connection: far })
}

/// The same, where the client speaks through another sender.
pub(crate) fn stage_through(through: impl FnOnce(Arc<dyn Sender>) -> Arc<dyn Sender>) -> (ClientBuilder, Peer) {
    let (near, far) = memory::pair();
    let near = Connection { sender: through(near.sender), receiver: near.receiver };
    (Client::connection(near), Peer { connection: far })
}

impl Peer {
    /// The client's next line.
    pub(crate) async fn hear(&mut self) -> String {
        match self.connection.receiver.receive().await {
            Event::Message { message, .. } => message.text().into_owned(),
            other => panic!("the client should have said something, but {other:?}"),
        }
    }

    /// Says a line.
    pub(crate) async fn say(&self, line: &str) {
        self.connection.sender.send_bytes(Channel::MAIN, Bytes::copy_from_slice(line.as_bytes())).await.unwrap();
    }

    /// Plays a transcript: expects what the client sends, and sends what the server does.
    pub(crate) async fn play(&mut self, transcript: &str) {
        for (side, text) in messages(transcript) {
            match side {
                Side::Client => assert_eq!(self.hear().await, text),
                Side::Server => self.say(&text).await,
            }
        }
    }

    /// Closes the peer's side.
    pub(crate) async fn leave(&self) {
        self.connection.sender.close().await;
    }
}

/// What the client says first in the old era, and what it hears.
pub(crate) const HANDSHAKE: &str = r#"
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"play","version":"1"}}}
    < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"2"}}}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// The `_meta` of every request in the new era.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"play","version":"1"}}"#;

/// Connects while the peer plays `script`.
pub(crate) async fn connect(builder: ClientBuilder, peer: &mut Peer, script: &str) -> Result<Client, ClientError> {
    let connecting = builder.client_info("play", "1").connect();
    let (client, ()) = tokio::join!(connecting, peer.play(script));
    client
}

/// A client of the old era, connected.
pub(crate) async fn legacy() -> (Client, Peer) {
    let (builder, mut peer) = stage();
    let builder = builder.legacy("2025-11-25".parse().unwrap());
    let client = connect(builder, &mut peer, HANDSHAKE).await.unwrap();
    (client, peer)
}

/// A client of the new era, connected.
pub(crate) async fn modern() -> (Client, Peer) {
    let (builder, mut peer) = stage();
    let client = connect(builder.modern(), &mut peer, &discovery()).await.unwrap();
    (client, peer)
}

/// What the client says first in the new era, and what it hears.
pub(crate) fn discovery() -> String {
    format!(
        "> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{{{META}}}}}\n\
         < {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{{}}}}}}"
    )
}

/// Does something with the client while the test plays the peer.
pub(crate) fn meanwhile<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work)
}
