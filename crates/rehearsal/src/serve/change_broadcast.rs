//! Delivers change notices to the subscribed clients.
//!
//! ```text
//! send ──► ChangeReceiver, ChangeReceiver, …      each at its own pace
//! send_and_wait ──► the same, and waits until they have sent it
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rehearsal_core::answer::ChangeNotice;
use serde_json::Value;
use tokio::sync::mpsc;

/// How many events wait for a slow subscriber; beyond it, it misses the newest.
const QUEUE_LENGTH: usize = 256;

/// How long a responder waits for subscribers that do not read.
const RECEIVER_TIMEOUT: Duration = Duration::from_secs(1);

/// What subscribed clients are notified of.
#[derive(Clone, Debug)]
pub(super) enum BroadcastEvent {
    /// A list or a resource changed.
    Change(ChangeNotice),
    /// The status of a task changed: its id, and the params of the notification.
    Task(String, Arc<Value>),
}

/// The queue of each subscriber.
#[derive(Debug, Default)]
pub(super) struct ChangeBroadcast(Mutex<Vec<mpsc::Sender<BroadcastItem>>>);

/// BroadcastEvent for one subscriber.
#[derive(Debug)]
struct BroadcastItem {
    event: BroadcastEvent,
    /// Dropped when the subscriber has sent it.
    passing: Option<mpsc::Sender<()>>,
}

/// The subscriber's end of its queue.
#[derive(Debug)]
pub(super) struct ChangeReceiver {
    items: mpsc::Receiver<BroadcastItem>,
    /// Held until the last event was sent.
    passing: Option<mpsc::Sender<()>>,
}

impl ChangeBroadcast {
    /// Subscribes from now on.
    pub(super) fn subscribe(&self) -> ChangeReceiver {
        let (sender, items) = mpsc::channel(QUEUE_LENGTH);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        ChangeReceiver { items, passing: None }
    }

    /// Sends an event to every subscriber.
    pub(super) fn send(&self, event: BroadcastEvent) {
        self.deliver(&event, None);
    }

    /// Sends an event to every subscriber, and returns when they have sent it: what is sent next arrives later at every client.
    pub(super) async fn send_and_wait(&self, event: BroadcastEvent) {
        let (passing, mut passed) = mpsc::channel(1);
        self.deliver(&event, Some(&passing));
        drop(passing);
        // A subscriber that does not read holds others up, but not for long.
        let _ = tokio::time::timeout(RECEIVER_TIMEOUT, passed.recv()).await;
    }

    fn deliver(&self, event: &BroadcastEvent, passing: Option<&mpsc::Sender<()>>) {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| !subscriber.is_closed());
        for subscriber in &*subscribers {
            // A subscriber with older events in its queue is not waited for.
            let has_read_all = subscriber.capacity() == subscriber.max_capacity();
            let passing = passing.filter(|_| has_read_all).cloned();
            // If the queue is full, the events in it report a change as well.
            let _ = subscriber.try_send(BroadcastItem { event: event.clone(), passing });
        }
    }
}

impl ChangeReceiver {
    /// The next event. The previous one counts as sent.
    pub(super) async fn next(&mut self) -> BroadcastEvent {
        self.passing = None;
        match self.items.recv().await {
            Some(BroadcastItem { event, passing }) => {
                self.passing = passing;
                event
            }
            // The server outlives its connections, so this is never reached.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::Instant;

    fn change() -> BroadcastEvent {
        BroadcastEvent::Change(ChangeNotice::Tools)
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_without_subscribers_does_not_wait() {
        let broadcast = ChangeBroadcast::default();
        let began = Instant::now();
        broadcast.send_and_wait(change()).await;
        drop(broadcast.subscribe());
        broadcast.send_and_wait(change()).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscriber_that_does_not_read_holds_others_up_once() {
        let broadcast = ChangeBroadcast::default();
        let unread = broadcast.subscribe();
        let mut receiver = broadcast.subscribe();
        let count = Arc::new(AtomicUsize::new(0));
        let received = Arc::clone(&count);
        let reading = tokio::spawn(async move {
            loop {
                receiver.next().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                received.fetch_add(1, Ordering::SeqCst);
            }
        });
        let began = Instant::now();
        for sent in 1..=20 {
            broadcast.send_and_wait(change()).await;
            assert_eq!(count.load(Ordering::SeqCst), sent, "a subscriber that reads is waited for");
        }
        assert!(began.elapsed() < RECEIVER_TIMEOUT + Duration::from_millis(100), "{:?}", began.elapsed());
        reading.abort();
        drop(unread);
    }
}
