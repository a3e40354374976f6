//! Records a transport of the official Rust SDK.

use std::borrow::Cow;
use std::future::Future;

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::Message;
use rehearsal_core::trace::{EntryBody, SessionEnd};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Recorder, SessionRecorder};

/// Records all messages of a transport of `rmcp`, of a client or of a server, and changes nothing.
///
/// ```ignore
/// let recorder = Recorder::builder().trace("trace.jsonl").build();
/// let transport = TokioChildProcess::new(Command::new("my-server"))?;
/// let client = ().serve(record::intercept(transport, &recorder)).await?;     // was: ().serve(transport)
/// client.list_all_tools().await?;                                            // recorded, like everything else
/// ```
///
/// The SDK reads and writes messages itself. What is recorded of a received message is its serialization by the SDK.
/// Only `rehearse record` records noise between messages.
pub fn intercept<T>(transport: T, recorder: &Recorder) -> Intercepted<T> {
    let mut server_info = Map::new();
    server_info.insert("transport".to_owned(), Value::from("rmcp"));
    Intercepted::new(transport, recorder.start(server_info))
}

/// A transport that is recorded. See [`intercept`].
#[derive(Debug)]
pub struct Intercepted<T> {
    transport: T,
    session: SessionRecorder,
}

impl<T> Intercepted<T> {
    /// Records a transport into this session, which may be started later: messages before that are not recorded.
    pub fn new(transport: T, session: SessionRecorder) -> Intercepted<T> {
        Intercepted { transport, session }
    }

    /// The session.
    pub fn session(&self) -> &SessionRecorder {
        &self.session
    }

    fn put(&self, from: Side, message: &impl Serialize) {
        // What cannot be serialized cannot be sent either, and the transport reports that.
        if let Ok(raw) = serde_json::to_vec(message) {
            let message = Message::parse(raw);
            self.session.put([EntryBody::Message { from, channel: Channel::MAIN, message, event_id: None }]);
        }
    }
}

fn side<R: ServiceRole>() -> Side {
    match R::IS_CLIENT {
        true => Side::Client,
        false => Side::Server,
    }
}

impl<R: ServiceRole, T: Transport<R>> Transport<R> for Intercepted<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(&mut self, item: TxJsonRpcMessage<R>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.put(side::<R>(), &item);
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<R>> {
        let received = self.transport.receive().await;
        match &received {
            Some(message) => self.put(side::<R>().other(), message),
            // The peer has disconnected. The exit status of a server is unknown here.
            None => self.session.end(match side::<R>() {
                Side::Client => SessionEnd::ServerExited { status: None, signal: None },
                Side::Server => SessionEnd::ClientClosed { status: None },
            }),
        }
        received
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        let closed = self.transport.close().await;
        self.session.end(match side::<R>() {
            Side::Client => SessionEnd::ClientClosed { status: None },
            Side::Server => SessionEnd::ServerExited { status: None, signal: None },
        });
        closed
    }
}
