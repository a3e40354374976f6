//! Messages that the transport did not take at once.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;
use tokio::sync::Notify;

/// How many bytes may wait for a client that does not read. Beyond it, the server stops reading from that client.
const MAX_BYTES: usize = 16 << 20;
/// What a waiting message costs beside its bytes.
const OVERHEAD: usize = 200;

/// The messages that wait, in their order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    sent: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<(Channel, Message)>,
    bytes: usize,
    /// Whether a task sends the messages.
    is_sending: bool,
}

impl Outbox {
    /// Adds a message. Returns whether the caller must start sending.
    pub(super) fn push(&self, channel: Channel, message: Message) -> bool {
        let mut queue = self.queue();
        queue.bytes += message.raw().len() + OVERHEAD;
        queue.messages.push_back((channel, message));
        !std::mem::replace(&mut queue.is_sending, true)
    }

    /// The next message to send; `None` ends the sending.
    pub(super) fn next(&self) -> Option<(Channel, Message)> {
        let mut queue = self.queue();
        let next = queue.messages.pop_front();
        match &next {
            Some((_, message)) => queue.bytes -= message.raw().len() + OVERHEAD,
            None => queue.is_sending = false,
        }
        drop(queue);
        self.sent.notify_waiters();
        next
    }

    /// Whether messages wait.
    pub(super) fn is_empty(&self) -> bool {
        !self.queue().is_sending
    }

    /// Returns once there is room for more.
    pub(super) async fn has_room(&self) {
        loop {
            let sent = self.sent.notified();
            if self.queue().bytes <= MAX_BYTES {
                return;
            }
            sent.await;
        }
    }

    /// Whether the server must stop reading.
    pub(super) fn is_full(&self) -> bool {
        self.queue().bytes > MAX_BYTES
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
