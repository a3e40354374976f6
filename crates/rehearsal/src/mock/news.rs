//! Changes that clients may want to know, and the subscribers that are sent them.
//!
//! ```text
//! tell ──► Ear, Ear, …      each at its own pace
//! tell_in_order ──► the same, and waits until they have passed it on
//! ```

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rehearsal_core::answer::Change;
use tokio::sync::mpsc;

/// How many changes wait for a slow subscriber before it misses the newest.
const CHANGES: usize = 256;

/// How long a play waits for subscribers that do not read.
const SLOW_LISTENER: Duration = Duration::from_secs(1);

/// Something that clients may want to know.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// Something changed.
    Changed(Change),
    /// A task is further than it was.
    Task(String),
}

/// Where news come from: the queue of each subscriber.
#[derive(Debug, Default)]
pub(super) struct Newsroom(Mutex<Vec<mpsc::Sender<Told>>>);

/// News for one subscriber.
#[derive(Debug)]
struct Told {
    news: News,
    /// Dropped when the subscriber has passed the news on.
    passing: Option<mpsc::Sender<()>>,
}

/// The subscriber's end of its queue.
#[derive(Debug)]
pub(super) struct Ear {
    told: mpsc::Receiver<Told>,
    /// Held while the last news are passed on.
    passing: Option<mpsc::Sender<()>>,
}

impl Newsroom {
    /// Subscribes from now on.
    pub(super) fn listen(&self) -> Ear {
        let (sender, told) = mpsc::channel(CHANGES);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        Ear { told, passing: None }
    }

    /// Sends news to every subscriber.
    pub(super) fn tell(&self, news: News) {
        self.send(&news, None);
    }

    /// Sends news to every subscriber, and returns when they have passed it on: what is sent next comes later on every pipe.
    pub(super) async fn tell_in_order(&self, news: News) {
        let (passing, mut passed) = mpsc::channel(1);
        self.send(&news, Some(&passing));
        drop(passing);
        // A subscriber that does not read holds others up, but not for long.
        let _ = tokio::time::timeout(SLOW_LISTENER, passed.recv()).await;
    }

    fn send(&self, news: &News, passing: Option<&mpsc::Sender<()>>) {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| !subscriber.is_closed());
        for subscriber in &*subscribers {
            // A subscriber that has older news to read is not waited for.
            let is_in_time = subscriber.capacity() == subscriber.max_capacity();
            let passing = passing.filter(|_| is_in_time).cloned();
            // Where the queue is full, what it has says "look again" as well.
            let _ = subscriber.try_send(Told { news: news.clone(), passing });
        }
    }
}

impl Ear {
    /// What happens next. What was returned before counts as passed on.
    pub(super) async fn next(&mut self) -> News {
        self.passing = None;
        match self.told.recv().await {
            Some(Told { news, passing }) => {
                self.passing = passing;
                news
            }
            // The server outlives its sessions, so this is never reached; waiting for ever is right if it were.
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

    fn change() -> News {
        News::Changed(Change::Tools)
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_without_subscribers_does_not_wait() {
        let newsroom = Newsroom::default();
        let began = Instant::now();
        newsroom.tell_in_order(change()).await;
        drop(newsroom.listen());
        newsroom.tell_in_order(change()).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscriber_that_does_not_read_holds_others_up_once() {
        let newsroom = Newsroom::default();
        let deaf = newsroom.listen();
        let mut ear = newsroom.listen();
        let count = Arc::new(AtomicUsize::new(0));
        let passed_on = Arc::clone(&count);
        let listening = tokio::spawn(async move {
            loop {
                ear.next().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                passed_on.fetch_add(1, Ordering::SeqCst);
            }
        });
        let began = Instant::now();
        for told in 1..=20 {
            newsroom.tell_in_order(change()).await;
            assert_eq!(count.load(Ordering::SeqCst), told, "a subscriber that reads is waited for");
        }
        assert!(began.elapsed() < SLOW_LISTENER + Duration::from_millis(100), "{:?}", began.elapsed());
        listening.abort();
        drop(deaf);
    }
}
