//! The two halves of a conversation that the application holds.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::answer::fault::{Aftermath, Misdeed};
use rehearsal_core::exchange::Channel;
use tokio::sync::mpsc;

use super::session::{Queued, Session};
use crate::{BoxFuture, Connection, Ending, Event, Outgoing, Receiver, SendError, Sender, Stopped};

/// The connection of a conversation.
pub(super) fn connection(session: Arc<Session>, events: mpsc::UnboundedReceiver<Queued>) -> Connection {
    let held = Arc::new(Held(session));
    Connection {
        sender: Arc::new(SessionSender { held: held.clone() }),
        receiver: Box::new(SessionReceiver { held, events }),
    }
}

/// A conversation that somebody holds: it ends when both halves are dropped.
#[derive(Debug)]
struct Held(Arc<Session>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.end(Ending::Closed);
    }
}

#[derive(Debug)]
struct SessionSender {
    held: Arc<Held>,
}

impl Sender for SessionSender {
    /// A question of the server that belongs to no request goes on the standing stream.
    fn open_channel(&self) -> Channel {
        Channel::MAIN
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.held.0.send(outgoing))
    }

    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.held.0.send_bytes(channel, bytes))
    }

    fn misbehave(&self, channel: Channel, misdeed: Misdeed) -> BoxFuture<'_, Result<Aftermath, SendError>> {
        Box::pin(self.held.0.misbehave(channel, misdeed))
    }

    fn close_channel(&self, channel: Channel) {
        self.held.0.close_channel(channel, None);
    }

    fn close_channel_for(&self, channel: Channel, retry: Duration) {
        self.held.0.close_channel(channel, Some(retry));
    }

    fn abort(&self) {
        self.held.0.end(Ending::Closed);
    }

    fn close(&self) -> BoxFuture<'_, Stopped> {
        self.abort();
        Box::pin(async { Stopped::Gone })
    }
}

#[derive(Debug)]
struct SessionReceiver {
    held: Arc<Held>,
    events: mpsc::UnboundedReceiver<Queued>,
}

impl Receiver for SessionReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        self.events.poll_recv(context).map(|queued| match queued {
            Some(queued) => queued.event,
            None => Event::Ended(self.held.0.ending().cloned().unwrap_or(Ending::Closed)),
        })
    }
}
