//! Writes messages to a pipe, each whole or not at all.
//!
//! ```text
//! alone:    line ──► write
//! many:     line ─┐
//!           line ─┼─► queue ──► one task ──► one write
//!           line ─┘
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;
use tokio::sync::{Mutex as AsyncMutex, Notify, oneshot};

use crate::SendError;

/// The number of queued bytes from which a sender has to wait.
const QUEUE_LIMIT: usize = 1024 * 1024;
/// A message of this length or more is not written without waiting.
const DIRECT_WRITE_LIMIT: usize = 4096;

/// A pipe that many tasks write to.
///
/// A message in the queue is written even if its sender was dropped, so that the peer never receives two messages in
/// one line. A task empties the queue and ends when it is empty. By the time it runs, all concurrent senders have
/// queued their messages, and one write takes them all.
pub(super) struct LineWriter {
    shared: Arc<Shared>,
    /// Held by the sender that adds to the queue. The others wait for it in order of arrival, so that progress wakes
    /// one sender and not all of them.
    turn: AsyncMutex<()>,
}

struct Shared {
    /// True if the next sender is probably the only one.
    alone: Arc<AtomicBool>,
    queue: Mutex<Queue>,
    /// Notified when bytes were written or the pipe was closed.
    progress: Notify,
}

struct Queue {
    /// `None` after the pipe was closed.
    pipe: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// The error that closed the pipe; `None` if we closed it.
    broken: Option<SendError>,
    /// The bytes that are not written yet.
    rest: BytesMut,
    /// The number of bytes that were ever queued. Subtracting the rest gives the number written.
    queued: u64,
    /// Senders that wait until a number of bytes is written, in queue order.
    unwritten: VecDeque<(u64, oneshot::Sender<()>)>,
    /// The waker of the task that empties the queue; `None` if there is no such task.
    emptying: Option<Waker>,
}

impl LineWriter {
    /// `alone` comes from the reader of the same connection: whether the last message of the peer arrived alone.
    pub(super) fn new(to: impl AsyncWrite + Send + Unpin + 'static, alone: Arc<AtomicBool>) -> LineWriter {
        let (broken, queued, unwritten, emptying) = Default::default();
        let (pipe, rest) = (Some(Box::new(to) as Box<_>), BytesMut::with_capacity(4096));
        let queue = Queue { pipe, broken, rest, queued, unwritten, emptying };
        let shared = Arc::new(Shared { alone, queue: Mutex::new(queue), progress: Notify::new() });
        LineWriter { shared, turn: AsyncMutex::new(()) }
    }

    /// Writes one message with its line end, at once or in one write with concurrent messages. `None` means that it
    /// would have to wait and did nothing.
    pub(super) fn try_line(&self, message: &[u8]) -> Option<Result<(), SendError>> {
        if message.len() >= DIRECT_WRITE_LIMIT {
            return None;
        }
        if memchr::memchr(b'\n', message).is_some() {
            return Some(Err(SendError::LineEnd));
        }
        let turn = self.turn.try_lock();
        let mut queue = self.shared.queue();
        if queue.pipe.is_none() {
            return Some(Err(queue.why_closed()));
        }
        if queue.rest.len() >= QUEUE_LIMIT || turn.is_err() {
            return None;
        }
        let alone = self.shared.alone.load(Ordering::Relaxed) && queue.emptying.is_none() && queue.rest.is_empty();
        queue.put(&[message, b"\n"]);
        // The waker is a no-op: senders that wait are woken by the task that empties the queue.
        if alone && queue.poll_empty(&mut Context::from_waker(Waker::noop())).is_ready() {
            return Some(queue.broken.clone().map_or(Ok(()), Err));
        }
        self.shared.empty(&mut queue);
        Some(Ok(()))
    }

    /// True if the peer no longer reads.
    pub(super) fn is_closed(&self) -> bool {
        self.shared.queue().pipe.is_none()
    }

    /// Writes one message with its line end.
    pub(super) async fn line(&self, message: &Bytes) -> Result<(), SendError> {
        if memchr::memchr(b'\n', message).is_some() {
            return Err(SendError::LineEnd);
        }
        self.write(&[message, b"\n"]).await
    }

    /// Writes bytes unchanged.
    pub(super) async fn bytes(&self, bytes: &Bytes) -> Result<(), SendError> {
        self.write(&[bytes]).await
    }

    /// Writes bytes in pieces with pauses; other senders wait until all of them are written.
    pub(super) async fn write_slowly(&self, bytes: &Bytes, piece: usize, pause: Duration) -> Result<(), SendError> {
        let _turn = self.turn.lock().await;
        for (at, piece) in bytes.chunks(piece.max(1)).enumerate() {
            if at > 0 {
                tokio::time::sleep(pause).await;
            }
            let written = self.put(&[piece]).await?;
            self.wait_for(written).await?;
        }
        Ok(())
    }

    async fn write(&self, parts: &[&[u8]]) -> Result<(), SendError> {
        let turn = self.turn.lock().await;
        let written = self.put(parts).await?;
        drop(turn);
        self.wait_for(written).await
    }

    /// Queues bytes as soon as there is room. The returned receiver resolves when they are written. The caller holds
    /// the turn.
    async fn put(&self, parts: &[&[u8]]) -> Result<oneshot::Receiver<()>, SendError> {
        loop {
            let progress = self.shared.progress.notified();
            {
                let mut queue = self.shared.queue();
                if queue.pipe.is_none() {
                    return Err(queue.why_closed());
                }
                if queue.rest.len() < QUEUE_LIMIT {
                    queue.put(parts);
                    let (sender, written) = oneshot::channel();
                    let end = queue.queued;
                    queue.unwritten.push_back((end, sender));
                    self.shared.empty(&mut queue);
                    return Ok(written);
                }
            }
            progress.await;
        }
    }

    async fn wait_for(&self, written: oneshot::Receiver<()>) -> Result<(), SendError> {
        written.await.map_err(|_| self.shared.queue().why_closed())
    }

    /// Closes the pipe; a peer that reads sees the end of the stream.
    ///
    /// Waits until the queue is empty, so the caller needs a time limit.
    pub(super) async fn close(&self) {
        loop {
            let progress = self.shared.progress.notified();
            {
                let queue = self.shared.queue();
                if queue.pipe.is_none() || queue.emptying.is_none() {
                    break;
                }
            }
            progress.await;
        }
        self.shared.close();
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        let emptying = {
            let mut queue = self.queue();
            queue.pipe = None;
            queue.unwritten.clear();
            queue.emptying.take()
        };
        emptying.into_iter().for_each(Waker::wake);
        self.progress.notify_waiters();
    }

    /// Makes sure that a task empties the queue.
    fn empty(self: &Arc<Self>, queue: &mut Queue) {
        if queue.emptying.is_none() {
            queue.emptying = Some(Waker::noop().clone());
            let shared = self.clone();
            tokio::spawn(poll_fn(move |context| {
                let mut queue = shared.queue();
                let done = queue.poll_empty(context);
                queue.emptying = done.is_pending().then(|| context.waker().clone());
                drop(queue);
                shared.progress.notify_waiters();
                done
            }));
        }
    }
}

impl Queue {
    fn put(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.rest.extend_from_slice(part);
            self.queued += part.len() as u64;
        }
    }

    fn written(&self) -> u64 {
        self.queued - self.rest.len() as u64
    }

    fn why_closed(&self) -> SendError {
        self.broken.clone().unwrap_or(SendError::Closed)
    }

    /// Writes until the queue is empty or the pipe is broken.
    fn poll_empty(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let done = self.poll_write(context);
        let written = self.written();
        while self.unwritten.front().is_some_and(|(end, _)| *end <= written) {
            // Fails if the sender was dropped; then it does not wait.
            self.unwritten.pop_front().map(|(_, sender)| sender.send(()));
        }
        match ready!(done) {
            Ok(()) => {}
            Err(error) => {
                self.pipe = None;
                self.unwritten.clear();
                self.broken = Some(match error.kind() {
                    io::ErrorKind::BrokenPipe => SendError::Closed,
                    _ => SendError::Failed { why: error.to_string() },
                });
            }
        }
        if self.rest.is_empty() && self.rest.capacity() > QUEUE_LIMIT {
            self.rest = BytesMut::with_capacity(4096);
        }
        Poll::Ready(())
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(pipe) = &mut self.pipe else { return Poll::Ready(Ok(())) };
        while !self.rest.is_empty() {
            let written = ready!(Pin::new(&mut *pipe).poll_write(context, &self.rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if written == self.rest.len() {
                // Unlike `advance`, this frees the whole buffer for the next messages.
                self.rest.clear();
            } else {
                self.rest.advance(written);
            }
        }
        Pin::new(pipe).poll_flush(context)
    }
}

impl fmt::Debug for LineWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWriter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tokio::io::AsyncReadExt;

    fn writer(to: impl AsyncWrite + Send + Unpin + 'static) -> LineWriter {
        LineWriter::new(to, Arc::new(AtomicBool::new(true)))
    }

    #[tokio::test]
    async fn a_sender_that_times_out_does_not_split_a_line() {
        let (near, mut far) = tokio::io::duplex(8);
        let writer = writer(near);
        let long = Bytes::from_static(b"a long first message");
        let timed_out = tokio::time::timeout(Duration::from_millis(5), writer.line(&long)).await;
        assert!(timed_out.is_err());
        let short = Bytes::from_static(b"second");
        let read = async {
            let mut read = String::new();
            far.read_to_string(&mut read).await.unwrap();
            read
        };
        let write = async {
            writer.line(&short).await.unwrap();
            writer.close().await;
        };
        let (read, ()) = tokio::join!(read, write);
        assert_eq!(read, "a long first message\nsecond\n");
        assert!(matches!(writer.line(&short).await, Err(SendError::Closed)));
    }

    #[tokio::test]
    async fn senders_wait_for_a_slow_write() {
        let (near, mut far) = tokio::io::duplex(1024);
        let writer = writer(near);
        let (slow, quick) = (Bytes::from_static(b"drop by drop\n"), Bytes::from_static(b"quick"));
        let slow_write = writer.write_slowly(&slow, 2, Duration::from_millis(1));
        let line = async {
            tokio::task::yield_now().await;
            assert!(writer.try_line(b"at once").is_none());
            writer.line(&quick).await
        };
        let (written, sent) = tokio::join!(slow_write, line);
        assert!(written.is_ok() && sent.is_ok());
        writer.close().await;
        let mut read = String::new();
        far.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "drop by drop\nquick\n");
    }

    #[tokio::test]
    async fn a_line_end_inside_a_message_is_refused() {
        let writer = writer(tokio::io::sink());
        assert!(matches!(writer.line(&Bytes::from_static(b"{\n}")).await, Err(SendError::LineEnd)));
        assert!(matches!(writer.try_line(b"{\n}"), Some(Err(SendError::LineEnd))));
    }

    /// Records every write separately.
    #[derive(Clone, Default)]
    struct Writes(Arc<Mutex<Vec<String>>>);

    impl AsyncWrite for Writes {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.0.lock().unwrap().push(String::from_utf8_lossy(bytes).into_owned());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn concurrent_messages_are_one_write() {
        let writes = Writes::default();
        let writer = writer(writes.clone());
        let [one, two, three] = ["one", "two", "three"].map(Bytes::from);
        let (one, two, three) = tokio::join!(writer.line(&one), writer.line(&two), writer.line(&three));
        assert!(one.is_ok() && two.is_ok() && three.is_ok());
        assert_eq!(*writes.0.lock().unwrap(), ["one\ntwo\nthree\n"]);
    }

    #[tokio::test]
    async fn a_lone_sender_writes_directly_and_message_order_is_kept() {
        let (writes, alone) = (Writes::default(), Arc::new(AtomicBool::new(true)));
        let writer = LineWriter::new(writes.clone(), alone.clone());
        assert!(matches!(writer.try_line(b"alone"), Some(Ok(()))));
        assert_eq!(*writes.0.lock().unwrap(), ["alone\n"]);
        alone.store(false, Ordering::Relaxed);
        assert!(matches!(writer.try_line(b"one"), Some(Ok(()))));
        alone.store(true, Ordering::Relaxed);
        assert!(matches!(writer.try_line(b"two"), Some(Ok(()))));
        writer.line(&Bytes::from_static(b"three")).await.unwrap();
        assert_eq!(*writes.0.lock().unwrap(), ["alone\n", "one\ntwo\nthree\n"]);
    }

    #[tokio::test]
    async fn messages_for_a_full_pipe_are_written_later_in_order() {
        let (near, mut far) = tokio::io::duplex(8);
        let writer = writer(near);
        assert!(matches!(writer.try_line(b"12345678"), Some(Ok(()))));
        assert!(matches!(writer.try_line(b"more"), Some(Ok(()))));
        let mut read = String::new();
        let (_, ()) = tokio::join!(far.read_to_string(&mut read), writer.close());
        assert_eq!(read, "12345678\nmore\n");
    }

    #[tokio::test]
    async fn try_line_fails_when_the_queue_is_full() {
        let (near, _far) = tokio::io::duplex(8);
        let writer = writer(near);
        assert!(writer.try_line(&[b'x'; DIRECT_WRITE_LIMIT]).is_none());
        let queued = (0..).take_while(|_| writer.try_line(&[b'x'; 1000]).is_some()).count();
        assert_eq!(queued, (QUEUE_LIMIT + 8).div_ceil(1001));
    }

    #[tokio::test]
    async fn progress_wakes_only_the_senders_that_can_continue() {
        const SENDERS: usize = 1000;
        let (near, mut far) = tokio::io::duplex(4096);
        let (writer, polls) = (Arc::new(writer(near)), Arc::new(AtomicUsize::new(0)));
        let mut senders = tokio::task::JoinSet::new();
        for _ in 0..SENDERS {
            let (writer, polls) = (writer.clone(), polls.clone());
            senders.spawn(async move {
                let line = Bytes::from(vec![b'x'; 4 * QUEUE_LIMIT / SENDERS]);
                let mut sending = std::pin::pin!(writer.line(&line));
                poll_fn(|context| {
                    polls.fetch_add(1, Ordering::Relaxed);
                    sending.as_mut().poll(context)
                })
                .await
            });
        }
        let mut read = vec![0; SENDERS * (4 * QUEUE_LIMIT / SENDERS + 1)];
        far.read_exact(&mut read).await.unwrap();
        while let Some(sent) = senders.join_next().await {
            sent.unwrap().unwrap();
        }
        // Each sender is polled when it starts, when it gets the turn, and when its line is written; the one with the
        // turn also waits for room.
        let polls = polls.load(Ordering::Relaxed);
        assert!(polls < 10 * SENDERS, "{polls} polls");
    }

    #[tokio::test]
    async fn senders_wait_for_a_peer_that_does_not_read_until_it_closes() {
        let (near, far) = tokio::io::duplex(8);
        let writer = Arc::new(writer(near));
        let senders: Vec<_> = (0..10)
            .map(|_| {
                let writer = writer.clone();
                tokio::spawn(async move { writer.line(&Bytes::from(vec![b'x'; QUEUE_LIMIT / 4])).await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(writer.shared.queue().rest.len() < 2 * QUEUE_LIMIT, "the queue is bounded");
        drop(far);
        for sender in senders {
            assert!(matches!(sender.await.unwrap(), Err(SendError::Closed)));
        }
        assert!(matches!(writer.line(&Bytes::from_static(b"late")).await, Err(SendError::Closed)));
        assert!(matches!(writer.try_line(b"late"), Some(Err(SendError::Closed))));
    }
}
