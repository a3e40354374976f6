//! A transport within one process, for tests.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use rehearsal_core::answer::fault::{Aftermath, Misdeed, Moment, half};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;
use tokio::sync::mpsc;

use crate::{BoxFuture, Connection, Ending, Event, Outgoing, Receiver, SendError, Sender, Stopped};

/// Messages in the queue before a sender has to wait.
const QUEUE: usize = 1024;

/// Builds two connections, each the peer of the other.
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
    /// `None` after the end was closed.
    to: Mutex<Option<mpsc::Sender<Message>>>,
}

impl MemorySender {
    async fn deliver(&self, message: Message) -> Result<(), SendError> {
        let to = self.to.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        to.ok_or(SendError::Closed)?.send(message).await.map_err(|_| SendError::Closed)
    }

    /// Carries out a fault. This transport has no lines, no stderr and no HTTP status: a message is whole or garbled.
    async fn wrong(&self, misdeed: Misdeed) -> Result<Aftermath, SendError> {
        let ends = matches!(misdeed, Misdeed::Disconnect { .. } | Misdeed::Cut(_));
        let said = match misdeed {
            Misdeed::Answer(answers) => answers,
            Misdeed::Half(answer) | Misdeed::Cut(answer) => vec![half(&answer)],
            Misdeed::Disconnect { moment: Moment::Before, .. } | Misdeed::Flood(_) => Vec::new(),
            Misdeed::Disconnect { answer, moment: Moment::During } => vec![half(&answer)],
            Misdeed::Disconnect { answer, moment: Moment::After } | Misdeed::ContentType { answer, .. } => vec![answer],
            Misdeed::Noise(lines) => lines.into_iter().map(Bytes::from).collect(),
            Misdeed::Drip { answer, piece, pause } => {
                let pieces = u32::try_from(answer.len().div_ceil(piece.max(1))).unwrap_or(u32::MAX);
                tokio::time::sleep(pause.saturating_mul(pieces)).await;
                vec![answer]
            }
            Misdeed::Refuse(refused) => vec![refused.instead],
        };
        for bytes in said {
            self.deliver(Message::parse(bytes)).await?;
        }
        if ends {
            self.abort();
            return Ok(Aftermath::Over);
        }
        Ok(Aftermath::GoesOn)
    }
}

impl Sender for MemorySender {
    fn open_channel(&self) -> Channel {
        Channel::MAIN
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        // Parsed again, because the receiver gets only the bytes, not the message that the sender built from them.
        Box::pin(self.deliver(Message::parse(outgoing.message.raw().clone())))
    }

    fn takes_headers(&self) -> bool {
        false
    }

    fn send_bytes(&self, _: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.deliver(Message::parse(bytes)))
    }

    fn misbehave(&self, _: Channel, misdeed: Misdeed) -> BoxFuture<'_, Result<Aftermath, SendError>> {
        Box::pin(self.wrong(misdeed))
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

    async fn heard(misdeed: Misdeed) -> (Vec<String>, Aftermath) {
        let (left, mut right) = pair();
        let aftermath = left.sender.misbehave(Channel::MAIN, misdeed).await.unwrap();
        left.sender.close().await;
        let mut heard = Vec::new();
        while let Event::Message { message, .. } = right.receiver.receive().await {
            heard.push(message.text().into_owned());
        }
        (heard, aftermath)
    }

    #[tokio::test]
    async fn misdeeds_are_messages_or_an_end() {
        let answer = || Bytes::from_static(b"{\"a\":1}");
        let disconnect = |moment| Misdeed::Disconnect { answer: answer(), moment };
        let table = [
            (Misdeed::Answer(vec![answer(), answer()]), vec!["{\"a\":1}"; 2], Aftermath::GoesOn),
            (Misdeed::Half(answer()), vec!["{\"a"], Aftermath::GoesOn),
            (Misdeed::Noise(vec!["Listening".to_owned()]), vec!["Listening"], Aftermath::GoesOn),
            (Misdeed::Flood(10), vec![], Aftermath::GoesOn),
            (disconnect(Moment::Before), vec![], Aftermath::Over),
            (disconnect(Moment::During), vec!["{\"a"], Aftermath::Over),
            (disconnect(Moment::After), vec!["{\"a\":1}"], Aftermath::Over),
            (Misdeed::Cut(answer()), vec!["{\"a"], Aftermath::Over),
        ];
        for (misdeed, expected, aftermath) in table {
            assert_eq!(
                heard(misdeed.clone()).await,
                (expected.into_iter().map(str::to_owned).collect(), aftermath),
                "{misdeed:?}"
            );
        }
    }
}
