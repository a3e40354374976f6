//! The tasks of a connection, one or more per channel, and the queue of their events.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use rehearsal_core::exchange::Channel;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::{ConnectionEnd, Event, Receiver};

/// The tasks of a connection; they end with it.
#[derive(Debug, Default)]
pub(super) struct ChannelTasks {
    running: Mutex<RunningTasks>,
}

#[derive(Debug, Default)]
struct RunningTasks {
    closed: bool,
    next: u64,
    tasks: HashMap<u64, (Option<Channel>, AbortHandle)>,
}

impl ChannelTasks {
    /// Runs `work` until it is done, its channel is stopped, or the connection is closed. Returns `false` if the
    /// connection is closed already.
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
        // A weak reference, so that a task does not keep its own connection alive.
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

    /// True if a task reads from the channel.
    pub(super) fn is_live(&self, channel: Channel) -> bool {
        self.lock().tasks.values().any(|(other, _)| *other == Some(channel))
    }

    /// Stops the tasks of a channel.
    pub(super) fn stop(&self, channel: Channel) {
        self.lock().tasks.retain(|_, (other, task)| {
            let stop = *other == Some(channel);
            if stop {
                task.abort();
            }
            !stop
        });
    }

    /// Stops all tasks, and accepts no new ones.
    pub(super) fn close(&self) {
        let mut running = self.lock();
        running.closed = true;
        for (_, (_, task)) in running.tasks.drain() {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunningTasks> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for ChannelTasks {
    fn drop(&mut self) {
        self.close();
    }
}

/// The number of events in the queue before the tasks have to wait.
pub(super) const QUEUE_CAPACITY: usize = 64;

/// Receives the events of a connection's tasks, in order.
#[derive(Debug)]
pub(super) struct HttpReceiver {
    events: mpsc::Receiver<Event>,
    ended: Option<ConnectionEnd>,
    /// Keeps the tasks running as long as either half of the connection exists.
    _tasks: Arc<ChannelTasks>,
}

impl HttpReceiver {
    pub(super) fn new(events: mpsc::Receiver<Event>, tasks: Arc<ChannelTasks>) -> HttpReceiver {
        HttpReceiver { events, ended: None, _tasks: tasks }
    }
}

impl Receiver for HttpReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if let Some(ending) = &self.ended {
            return Poll::Ready(Event::Ended(ending.clone()));
        }
        self.events.poll_recv(context).map(|event| {
            // The queue closes when we close the connection. If the peer closes it, that is an event in the queue.
            let event = event.unwrap_or(Event::Ended(ConnectionEnd::Closed));
            if let Event::Ended(ending) = &event {
                self.ended = Some(ending.clone());
            }
            event
        })
    }
}
