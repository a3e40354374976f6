//! A transport within one process, for tests.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;
use rehearsal_core::transport_fault::{AfterFault, DisconnectAt, TransportFault, first_half};
use tokio::sync::mpsc;

use crate::{BoxFuture, Connection, ConnectionEnd, Event, Outgoing, Receiver, SendError, Sender, StopOutcome};

/// Messages in the queue before a sender has to wait.
const QUEUE_CAPACITY: usize = 1024;

/// Builds two connections, each the peer of the other.
pub fn pair() -> (Connection, Connection) {
    let (to_right, from_left) = mpsc::channel(QUEUE_CAPACITY);
    let (to_left, from_right) = mpsc::channel(QUEUE_CAPACITY);
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
    async fn apply_fault(&self, fault: TransportFault) -> Result<AfterFault, SendError> {
        let ends = matches!(fault, TransportFault::Disconnect { .. } | TransportFault::CutStream(_));
        let messages = match fault {
            TransportFault::RawAnswers(answers) => answers,
            TransportFault::Truncate(answer) | TransportFault::CutStream(answer) => vec![first_half(&answer)],
            TransportFault::Disconnect { at: DisconnectAt::Before, .. } | TransportFault::Flood(_) => Vec::new(),
            TransportFault::Disconnect { answer, at: DisconnectAt::During } => vec![first_half(&answer)],
            TransportFault::Disconnect { answer, at: DisconnectAt::After }
            | TransportFault::ContentType { answer, .. } => vec![answer],
            TransportFault::Noise(lines) => lines.into_iter().map(Bytes::from).collect(),
            TransportFault::SlowWrite { answer, piece, pause } => {
                let pieces = u32::try_from(answer.len().div_ceil(piece.max(1))).unwrap_or(u32::MAX);
                tokio::time::sleep(pause.saturating_mul(pieces)).await;
                vec![answer]
            }
            TransportFault::HttpStatus(refused) => vec![refused.fallback_error],
        };
        for bytes in messages {
            self.deliver(Message::parse(bytes)).await?;
        }
        if ends {
            self.abort();
            return Ok(AfterFault::Closed);
        }
        Ok(AfterFault::Continue)
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

    fn inject_fault(&self, _: Channel, fault: TransportFault) -> BoxFuture<'_, Result<AfterFault, SendError>> {
        Box::pin(self.apply_fault(fault))
    }

    fn abort(&self) {
        self.to.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    }

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        self.abort();
        Box::pin(async { StopOutcome::AlreadyExited })
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
            None => Event::Ended(ConnectionEnd::PeerClosed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_and_the_close_reach_the_other_end() {
        let (left, mut right) = pair();
        left.sender.send_bytes(Channel::MAIN, Bytes::from_static(b"noise")).await.unwrap();
        let Event::Message { message, .. } = right.receiver.receive().await else { panic!("no message") };
        assert_eq!(message.raw(), "noise");
        left.sender.close().await;
        assert!(matches!(right.receiver.receive().await, Event::Ended(ConnectionEnd::PeerClosed)));
        assert!(left.sender.send_bytes(Channel::MAIN, Bytes::new()).await.is_err());
    }

    async fn deliver_fault(fault: TransportFault) -> (Vec<String>, AfterFault) {
        let (left, mut right) = pair();
        let after = left.sender.inject_fault(Channel::MAIN, fault).await.unwrap();
        left.sender.close().await;
        let mut received = Vec::new();
        while let Event::Message { message, .. } = right.receiver.receive().await {
            received.push(message.text().into_owned());
        }
        (received, after)
    }

    #[tokio::test]
    async fn a_fault_is_a_message_or_a_close() {
        let answer = || Bytes::from_static(b"{\"a\":1}");
        let disconnect = |at| TransportFault::Disconnect { answer: answer(), at };
        let table = [
            (TransportFault::RawAnswers(vec![answer(), answer()]), vec!["{\"a\":1}"; 2], AfterFault::Continue),
            (TransportFault::Truncate(answer()), vec!["{\"a"], AfterFault::Continue),
            (TransportFault::Noise(vec!["Listening".to_owned()]), vec!["Listening"], AfterFault::Continue),
            (TransportFault::Flood(10), vec![], AfterFault::Continue),
            (disconnect(DisconnectAt::Before), vec![], AfterFault::Closed),
            (disconnect(DisconnectAt::During), vec!["{\"a"], AfterFault::Closed),
            (disconnect(DisconnectAt::After), vec!["{\"a\":1}"], AfterFault::Closed),
            (TransportFault::CutStream(answer()), vec!["{\"a"], AfterFault::Closed),
        ];
        for (fault, expected, after) in table {
            assert_eq!(
                deliver_fault(fault.clone()).await,
                (expected.into_iter().map(str::to_owned).collect(), after),
                "{fault:?}"
            );
        }
    }
}
