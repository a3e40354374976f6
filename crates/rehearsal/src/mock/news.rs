//! What clients may want to know, and who listens.
//!
//! ```text
//! tell ──► Ear, Ear, …      each at its own pace
//! tell_in_order ──► the same, and waits until those have passed it on who keep pace
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rehearsal_core::answer::Change;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// How many changes wait for a slow subscriber before it misses the oldest.
const CHANGES: usize = 256;

/// How long a play waits for those who do not read what they are told.
const SLOW_LISTENER: Duration = Duration::from_secs(1);

/// Something that clients may want to know.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// Something changed.
    Changed(Change),
    /// A task is further than it was.
    Task(String),
}

/// What is told: news, or the number of what was told until here.
#[derive(Clone, Debug)]
enum Told {
    News(News),
    Mark(u64),
}

/// Where news come from.
#[derive(Debug)]
pub(super) struct Newsroom {
    told: broadcast::Sender<Told>,
    marks: AtomicU64,
    listeners: Mutex<Vec<Weak<Heard>>>,
}

/// How far somebody has listened.
#[derive(Debug)]
struct Heard {
    mark: watch::Sender<u64>,
    /// Whether a play has waited for it in vain; it is not waited for again before it has heard everything.
    late: AtomicBool,
}

/// Somebody who listens.
#[derive(Debug)]
pub(super) struct Ear {
    told: broadcast::Receiver<Told>,
    heard: Arc<Heard>,
}

impl Default for Newsroom {
    fn default() -> Newsroom {
        Newsroom { told: broadcast::Sender::new(CHANGES), marks: AtomicU64::new(0), listeners: Mutex::default() }
    }
}

impl Newsroom {
    /// Listens from now on.
    pub(super) fn listen(&self) -> Ear {
        let heard = Arc::new(Heard { mark: watch::Sender::new(0), late: AtomicBool::new(false) });
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&heard));
        Ear { told: self.told.subscribe(), heard }
    }

    /// Tells everybody who wants to know; nobody listening is not a failure.
    pub(super) fn tell(&self, news: News) {
        let _ = self.told.send(Told::News(news));
    }

    /// The same, and returns when everybody has passed it on: what is said next comes later on every pipe. Whoever does
    /// not read holds others up once, and not for long.
    pub(super) async fn tell_in_order(&self, news: News) {
        self.tell(news);
        let mark = self.marks.fetch_add(1, Ordering::SeqCst) + 1;
        let waited_for = self.keeping_pace();
        let _ = self.told.send(Told::Mark(mark));
        let deadline = Instant::now() + SLOW_LISTENER;
        for (listener, mut heard) in waited_for {
            // That it is gone is as good.
            let waited = tokio::time::timeout_at(deadline, heard.wait_for(|heard| *heard >= mark)).await;
            if waited.is_err()
                && let Some(listener) = listener.upgrade()
            {
                listener.late.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Those who were not late the last time; nobody is kept alive by this.
    fn keeping_pace(&self) -> Vec<(Weak<Heard>, watch::Receiver<u64>)> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let all = listeners.iter().filter_map(|listener| Some((listener, listener.upgrade()?)));
        let in_time = all.filter(|(_, heard)| !heard.late.load(Ordering::SeqCst));
        in_time.map(|(listener, heard)| (listener.clone(), heard.mark.subscribe())).collect()
    }
}

impl Ear {
    /// What happens next; whoever is too slow misses some, and everything told says only "look again". What was given
    /// before counts as passed on.
    pub(super) async fn next(&mut self) -> News {
        loop {
            match self.told.recv().await {
                Ok(Told::News(news)) => return news,
                Ok(Told::Mark(mark)) => {
                    self.heard.mark.send_modify(|heard| *heard = mark.max(*heard));
                    if self.told.is_empty() {
                        self.heard.late.store(false, Ordering::SeqCst);
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                // The server outlives its sessions, so this is never reached; waiting for ever is right if it were.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change() -> News {
        News::Changed(Change::Tools)
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_where_nobody_listens() {
        let newsroom = Newsroom::default();
        let began = Instant::now();
        newsroom.tell_in_order(change()).await;
        drop(newsroom.listen());
        newsroom.tell_in_order(change()).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_listen_holds_others_up_once_until_it_has_caught_up() {
        let newsroom = Arc::new(Newsroom::default());
        let mut deaf = newsroom.listen();
        let mut ear = newsroom.listen();
        let (passed_on, mut heard) = watch::channel(0);
        let listening = tokio::spawn(async move {
            loop {
                ear.next().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                passed_on.send_modify(|count| *count += 1);
            }
        });
        let began = Instant::now();
        for told in 1..=20 {
            newsroom.tell_in_order(change()).await;
            assert_eq!(*heard.borrow_and_update(), told, "who listens is waited for");
        }
        assert!(began.elapsed() < SLOW_LISTENER + Duration::from_millis(100), "{:?}", began.elapsed());
        // It reads everything, and is waited for again.
        for _ in 0..20 {
            deaf.next().await;
        }
        let _ = tokio::time::timeout(Duration::from_millis(1), deaf.next()).await;
        let again = Instant::now();
        newsroom.tell_in_order(change()).await;
        assert_eq!(again.elapsed(), SLOW_LISTENER);
        listening.abort();
    }
}
