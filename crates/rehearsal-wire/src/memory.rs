//! Two ends in one process, for tests.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;
use tokio::sync::mpsc;

use crate::{BoxFuture, Connection, Ending, Event, Outgoing, Receiver, SendError, Sender, Stopped};

/// How many messages wait before a sender does.
const QUEUE: usize = 1024;

/// Two connections, each the peer of the other.
pub fn pair() -> (Connection, Connection) {
    let (to_right, from_left) = mpsc::channel(QUEUE);
    let (to_left, from_right) = mpsc::channel(QUEUE);
    let end = |to, from| Connection {
        sender: Arc::new(MemorySender { to: Mutex::new(Some(to)) }),
        receiver: Box::new(MemoryReceiver { from }),
    };
    (end(to_right, from_right), end(to_left, from_left))
}

#[derive(Debug)]
struct MemorySender {
    /// `None` once closed.
    to: Mutex<Option<mpsc::Sender<Message>>>,
}

impl MemorySender {
    async fn deliver(&self, message: Message) -> Result<(), SendError> {
        let to = self.to.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        to.ok_or(SendError::Closed)?.send(message).await.map_err(|_| SendError::Closed)
    }
}

impl Sender for MemorySender {
    fn open_channel(&self) -> Channel {
        Channel::MAIN
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        // Parsed again, because what arrives is what the bytes say and not what the sender thinks they do.
        Box::pin(self.deliver(Message::parse(outgoing.message.raw().clone())))
    }

    fn takes_headers(&self) -> bool {
        false
    }

    fn send_bytes(&self, _: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.deliver(Message::parse(bytes)))
    }

    fn abort(&self) {
        self.to.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    }

    fn close(&self) -> BoxFuture<'_, Stopped> {
        self.abort();
        Box::pin(async { Stopped::Gone })
    }
}

#[derive(Debug)]
struct MemoryReceiver {
    from: mpsc::Receiver<Message>,
}

impl Receiver for MemoryReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        self.from.poll_recv(context).map(|message| match message {
            Some(message) => Event::Message { channel: Channel::MAIN, message, head: None },
            None => Event::Ended(Ending::PeerClosed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_one_end_says_the_other_hears_and_the_end_is_told() {
        let (left, mut right) = pair();
        left.sender.send_bytes(Channel::MAIN, Bytes::from_static(b"noise")).await.unwrap();
        let Event::Message { message, .. } = right.receiver.receive().await else { panic!("no message") };
        assert_eq!(message.raw(), "noise");
        left.sender.close().await;
        assert!(matches!(right.receiver.receive().await, Event::Ended(Ending::PeerClosed)));
        assert!(left.sender.send_bytes(Channel::MAIN, Bytes::new()).await.is_err());
    }
}
