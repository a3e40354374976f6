//! What the tasks of a connection found out, in order.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::tasks::Tasks;
use crate::{Ending, Event, Receiver};

/// How many events wait before the tasks that make them do.
pub(super) const QUEUE: usize = 64;

/// What the tasks of a connection found out, in order.
#[derive(Debug)]
pub(super) struct HttpReceiver {
    events: mpsc::Receiver<Event>,
    ended: Option<Ending>,
    /// The tasks run while anybody holds an end of the connection.
    _tasks: Arc<Tasks>,
}

impl HttpReceiver {
    pub(super) fn new(events: mpsc::Receiver<Event>, tasks: Arc<Tasks>) -> HttpReceiver {
        HttpReceiver { events, ended: None, _tasks: tasks }
    }
}

impl Receiver for HttpReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if let Some(ending) = &self.ended {
            return Poll::Ready(Event::Ended(ending.clone()));
        }
        self.events.poll_recv(context).map(|event| {
            // The queue closes when we do; a peer that ends the conversation is an event of its own.
            let event = event.unwrap_or(Event::Ended(Ending::Closed));
            if let Event::Ended(ending) = &event {
                self.ended = Some(ending.clone());
            }
            event
        })
    }
}
