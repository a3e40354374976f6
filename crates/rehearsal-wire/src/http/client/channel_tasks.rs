//! The tasks of a connection, one or more for each channel, and the events that they produce, in order.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use rehearsal_core::exchange::Channel;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::{Ending, Event, Receiver};

/// The tasks of a connection; none outlives it.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    closed: bool,
    next: u64,
    tasks: HashMap<u64, (Option<Channel>, AbortHandle)>,
}

impl Tasks {
    /// Runs `work` until it is done, its channel is stopped or the connection is over. `false` if that is over already.
    pub(super) fn spawn(
        self: &Arc<Self>,
        channel: Option<Channel>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        let mut running = self.lock();
        if running.closed {
            return false;
        }
        let number = running.next;
        running.next += 1;
        // Weak, so that a task does not keep its own connection alive.
        let tasks = Arc::downgrade(self);
        let task = tokio::spawn(async move {
            work.await;
            if let Some(tasks) = tasks.upgrade() {
                tasks.lock().tasks.remove(&number);
            }
        });
        running.tasks.insert(number, (channel, task.abort_handle()));
        true
    }

    /// Whether something reads from a channel.
    pub(super) fn is_live(&self, channel: Channel) -> bool {
        self.lock().tasks.values().any(|(other, _)| *other == Some(channel))
    }

    /// Stops what reads from a channel.
    pub(super) fn stop(&self, channel: Channel) {
        self.lock().tasks.retain(|_, (other, task)| {
            let stop = *other == Some(channel);
            if stop {
                task.abort();
            }
            !stop
        });
    }

    /// Stops everything, for ever.
    pub(super) fn close(&self) {
        let mut running = self.lock();
        running.closed = true;
        for (_, (_, task)) in running.tasks.drain() {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.close();
    }
}

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
