//! Forwards between one client socket and its upstream socket.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::exchanges::Exchanges;
use super::http_proxy::{ExchangeEnd, HttpProxyLimits, ProxyTap};
use super::request_head::ForwardRules;
use super::requests::{ErrorResponse, NextStep, Requests};
use super::responses::Responses;
use super::upstream::{ProxyUpstream, Stream};

/// The size of one read, in bytes.
const READ_SIZE: usize = 32 * 1024;
/// How long an incomplete request may be held.
const HOLD_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a client may take to close the connection after the proxy has closed its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The state shared by all sockets of a proxy.
pub(super) struct SocketRelay {
    pub(super) rules: Arc<ForwardRules>,
    pub(super) tap: Arc<dyn ProxyTap>,
    pub(super) upstream: ProxyUpstream,
    pub(super) limits: HttpProxyLimits,
    pub(super) grace: Duration,
}

/// The state shared by the two directions of one socket.
#[derive(Default)]
struct Shared {
    exchanges: Mutex<Exchanges>,
    /// Notified when a response has arrived.
    responded: Notify,
    /// True if no more requests follow: the socket closes after the last response.
    last: AtomicBool,
    /// True if the client closed its writing side. If only streams are pending, that counts as a disconnect.
    client_closed: AtomicBool,
}

/// How the client's socket is closed.
enum SocketClose {
    /// After the proxy's own response, if there is one, with an orderly close.
    Graceful(Option<ErrorResponse>),
    /// With a reset, so that the client does not take a partial response for a complete one.
    Abort,
    /// Without a response, because the client has disconnected.
    Silent,
}

/// Forwards between one client socket and the upstream, until one side ends.
pub(super) async fn forward(relay: Arc<SocketRelay>, mut client: TcpStream, socket: u64, stop: watch::Receiver<bool>) {
    // Otherwise each chunk of a stream waits for the acknowledgement of the previous one: 40 ms each.
    let _ = client.set_nodelay(true);
    match relay.run(&mut client, socket, stop).await {
        SocketClose::Graceful(refusal) => {
            let _ = timeout(CLOSE_TIMEOUT, close(&mut client, refusal)).await;
        }
        SocketClose::Abort => drop(client.set_zero_linger()),
        SocketClose::Silent => {}
    }
}

/// Sends the proxy's own response and waits for the client to close. Closing a socket with unread bytes resets it, and
/// the response would be lost.
async fn close(client: &mut TcpStream, refusal: Option<ErrorResponse>) -> io::Result<()> {
    if let Some(refusal) = refusal {
        client.write_all(&refusal.response()).await?;
    }
    client.shutdown().await?;
    let mut unread = vec![0; 4096];
    while client.read(&mut unread).await? > 0 {}
    Ok(())
}

impl SocketRelay {
    async fn run(&self, client: &mut TcpStream, socket: u64, mut stop: watch::Receiver<bool>) -> SocketClose {
        let shared = Shared::default();
        let requests = Requests::new(self.rules.clone(), self.tap.clone(), socket, self.limits.pipelined);
        let (mut from_client, to_client) = client.split();
        let head_timeout = self.limits.head_timeout;
        let deadline = Some(Instant::now() + head_timeout);
        let (input, out) = (Vec::new(), Vec::new());
        let mut upward =
            ClientToUpstream { requests, shared: &shared, input, out, head_timeout, deadline, held_until: None };
        // The upstream connection opens only when a client has sent bytes that may be forwarded.
        let first = tokio::select! {
            first = upward.fill(&mut from_client) => first,
            () = wait_until_set(&mut stop) => return SocketClose::Silent,
        };
        if upward.out.is_empty() || matches!(first, Err(UpEnd::ClientClosed)) {
            return match first {
                Ok(()) | Err(UpEnd::ClientClosed | UpEnd::ClientBroke | UpEnd::UpstreamBroke) => {
                    shared.exchanges().end(&ExchangeEnd::ClientClosed);
                    SocketClose::Silent
                }
                Err(UpEnd::Refused(refusal)) => {
                    shared.exchanges().end(&ExchangeEnd::Refused(refusal.why.clone()));
                    SocketClose::Graceful(Some(refusal))
                }
            };
        }
        let upstream = tokio::select! {
            upstream = self.upstream.connect() => upstream,
            () = wait_until_set(&mut stop) => return SocketClose::Silent,
        };
        let mut pump = Pump { relay: self, shared: &shared, stop, refusal: None };
        match upstream {
            Ok(Stream::Plain(mut stream)) => {
                let (from_upstream, to_upstream) = stream.split();
                let close = pump.run(upward, first, from_client, to_upstream, from_upstream, to_client).await;
                if let SocketClose::Abort = close {
                    let _ = stream.set_zero_linger();
                }
                close
            }
            Ok(Stream::Tls(stream)) => {
                let (from_upstream, to_upstream) = tokio::io::split(*stream);
                pump.run(upward, first, from_client, to_upstream, from_upstream, to_client).await
            }
            Err(why) => {
                shared.exchanges().end(&ExchangeEnd::UpstreamFailed(why.clone()));
                SocketClose::Graceful(Some(ErrorResponse::bad_gateway(why)))
            }
        }
    }
}

/// Runs both directions concurrently.
struct Pump<'a> {
    relay: &'a SocketRelay,
    shared: &'a Shared,
    stop: watch::Receiver<bool>,
    /// The proxy's own response, to send after the pending responses.
    refusal: Option<ErrorResponse>,
}

impl Pump<'_> {
    async fn run(
        &mut self,
        upward: ClientToUpstream<'_>,
        first: Result<(), UpEnd>,
        from_client: ReadHalf<'_>,
        to_upstream: impl AsyncWrite + Unpin,
        from_upstream: impl AsyncRead + Unpin,
        to_client: WriteHalf<'_>,
    ) -> SocketClose {
        let responses = Responses::new(self.relay.rules.clone());
        let downward = UpstreamToClient { responses, shared: self.shared, input: Vec::new(), out: Vec::new() };
        let mut up = pin!(upward.run(first, from_client, to_upstream));
        let mut down = pin!(downward.run(from_upstream, to_client));
        let mut sending = true;
        let mut grace = pin!(tokio::time::sleep(Duration::MAX));
        let (mut stopping, mut finished) = (false, false);
        loop {
            tokio::select! {
                biased;
                end = &mut up, if sending => {
                    sending = false;
                    match end {
                        UpEnd::ClientClosed if self.shared.exchanges().len() == 0 && !self.shared.is_upgraded() => {
                            return SocketClose::Silent;
                        }
                        // The server may still respond. If its connection broke, it may have sent the reason before.
                        UpEnd::ClientClosed | UpEnd::UpstreamBroke => {}
                        UpEnd::ClientBroke => return self.end_exchanges(&ExchangeEnd::ClientClosed, SocketClose::Abort),
                        UpEnd::Refused(refusal) => {
                            self.shared.exchanges().refuse(&refusal.why);
                            self.refusal = Some(refusal);
                            if self.shared.finish_up() {
                                return SocketClose::Graceful(self.refusal.take());
                            }
                        }
                    }
                }
                end = &mut down => return match end {
                    DownEnd::Closed => self.upstream_closed("the server closed the connection"),
                    DownEnd::Broke(why) => self.upstream_broke(&why),
                    DownEnd::ClientBroke => self.end_exchanges(&ExchangeEnd::ClientClosed, SocketClose::Abort),
                    DownEnd::Finished if stopping => self.end_as_stopped(SocketClose::Graceful(None)),
                    DownEnd::Finished => SocketClose::Graceful(self.refusal.take()),
                },
                () = wait_until_set(&mut self.stop), if !stopping => {
                    (stopping, finished) = (true, self.shared.finish_up());
                    if !finished {
                        grace.as_mut().reset(Instant::now() + self.relay.grace);
                    }
                }
                // If one side closed before the stop, that close is handled first.
                () = tokio::task::yield_now(), if finished => return self.end_as_stopped(SocketClose::Silent),
                () = &mut grace, if stopping => return self.end_as_stopped(SocketClose::Silent),
            }
        }
    }

    fn end_exchanges(&self, over: &ExchangeEnd, close: SocketClose) -> SocketClose {
        self.shared.exchanges().end(over);
        close
    }

    fn end_as_stopped(&self, close: SocketClose) -> SocketClose {
        let client_closed = self.shared.client_closed.load(Ordering::Relaxed);
        self.end_exchanges(if client_closed { &ExchangeEnd::ClientClosed } else { &ExchangeEnd::Stopped }, close)
    }

    /// Handles the end of the upstream connection.
    fn upstream_closed(&self, what: &str) -> SocketClose {
        let mut exchanges = self.shared.exchanges();
        let (unanswered, answered) = (exchanges.len() > 0, exchanges.answered);
        let when = if answered { "before it had answered" } else { "before it answered anything" };
        let why = format!("{what} {when}");
        exchanges.end(&ExchangeEnd::UpstreamFailed(why.clone()));
        if unanswered && !answered {
            return SocketClose::Graceful(Some(ErrorResponse::bad_gateway(why)));
        }
        // After an earlier response the client must see a closed connection. It then repeats the request, as it does
        // when a server closes an idle connection at the moment it is used.
        SocketClose::Graceful(None)
    }

    fn upstream_broke(&self, why: &str) -> SocketClose {
        match self.upstream_closed(&format!("the connection to the server broke ({why})")) {
            SocketClose::Graceful(None) => SocketClose::Abort,
            close => close,
        }
    }
}

impl Shared {
    fn exchanges(&self) -> MutexGuard<'_, Exchanges> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_upgraded(&self) -> bool {
        self.exchanges().upgraded
    }

    /// Notes that no more requests follow, and returns whether every response was sent.
    fn finish_up(&self) -> bool {
        self.last.store(true, Ordering::Relaxed);
        self.is_finished()
    }

    fn is_finished(&self) -> bool {
        self.last.load(Ordering::Relaxed) && self.exchanges().is_quiet()
    }
}

/// The direction from the client to the upstream.
struct ClientToUpstream<'a> {
    requests: Requests,
    shared: &'a Shared,
    input: Vec<u8>,
    /// The bytes that were parsed and not sent yet.
    out: Vec<u8>,
    head_timeout: Duration,
    /// The time limit of the head that is being read.
    deadline: Option<Instant>,
    /// When the held bytes are forwarded, complete or not.
    held_until: Option<Instant>,
}

enum UpEnd {
    ClientClosed,
    ClientBroke,
    UpstreamBroke,
    Refused(ErrorResponse),
}

impl ClientToUpstream<'_> {
    async fn run(
        mut self,
        mut filled: Result<(), UpEnd>,
        mut from_client: ReadHalf<'_>,
        mut to_upstream: impl AsyncWrite + Unpin,
    ) -> UpEnd {
        loop {
            if !self.out.is_empty() {
                if to_upstream.write_all(&self.out).await.is_err() || to_upstream.flush().await.is_err() {
                    return UpEnd::UpstreamBroke;
                }
                self.out.clear();
            }
            match filled {
                Ok(()) => filled = self.fill(&mut from_client).await,
                Err(UpEnd::ClientClosed) => {
                    self.shared.client_closed.store(true, Ordering::Relaxed);
                    let _ = to_upstream.shutdown().await;
                    return UpEnd::ClientClosed;
                }
                Err(end) => return end,
            }
        }
    }

    /// Reads until there are bytes to send.
    async fn fill(&mut self, from_client: &mut ReadHalf<'_>) -> Result<(), UpEnd> {
        loop {
            let next = {
                let exchanges = &mut self.shared.exchanges();
                self.requests.advance(&mut self.input, exchanges, &mut self.out).map_err(UpEnd::Refused)?
            };
            match next {
                NextStep::Read | NextStep::Wait if !self.out.is_empty() => {
                    self.held_until = None;
                    return Ok(());
                }
                NextStep::Wait => {
                    self.shared.responded.notified().await;
                    continue;
                }
                NextStep::Read | NextStep::ReadFirst => {}
            }
            let deadline = self.deadline();
            let held_until = match next {
                NextStep::ReadFirst => Some(*self.held_until.get_or_insert_with(|| Instant::now() + HOLD_TIMEOUT)),
                NextStep::Read | NextStep::Wait => None,
            };
            self.input.reserve(READ_SIZE);
            let read = from_client.read_buf(&mut self.input);
            let read = match (deadline, held_until) {
                (None, Some(until)) => match timeout_at(until, read).await {
                    Ok(read) => read,
                    Err(_) => {
                        self.held_until = None;
                        self.requests.release(&mut self.shared.exchanges());
                        return Ok(());
                    }
                },
                (Some(deadline), _) => match timeout_at(deadline, read).await {
                    Ok(read) => read,
                    Err(_) if self.input.is_empty() => return Err(UpEnd::ClientClosed),
                    Err(_) => return Err(UpEnd::Refused(ErrorResponse::timeout())),
                },
                (None, None) => read.await,
            };
            match read {
                Ok(0) => return Err(UpEnd::ClientClosed),
                Ok(_) => {}
                Err(_) => return Err(UpEnd::ClientBroke),
            }
        }
    }

    /// Returns the time limit. A client may be idle as long as the server allows, but a head that has started must be
    /// completed.
    fn deadline(&mut self) -> Option<Instant> {
        if self.requests.is_idle() && !self.input.is_empty() {
            self.deadline.get_or_insert_with(|| Instant::now() + self.head_timeout);
        } else if self.requests.has_begun() {
            self.deadline = None;
        }
        self.deadline
    }
}

/// The direction from the upstream to the client.
struct UpstreamToClient<'a> {
    responses: Responses,
    shared: &'a Shared,
    input: Vec<u8>,
    out: Vec<u8>,
}

enum DownEnd {
    /// The upstream closed the connection.
    Closed,
    /// The connection to the upstream broke.
    Broke(String),
    ClientBroke,
    /// No more requests follow, and every response was sent.
    Finished,
}

impl UpstreamToClient<'_> {
    async fn run(mut self, mut from_upstream: impl AsyncRead + Unpin, mut to_client: WriteHalf<'_>) -> DownEnd {
        loop {
            self.input.reserve(READ_SIZE);
            let end = match from_upstream.read_buf(&mut self.input).await {
                Ok(0) => Some(DownEnd::Closed),
                Ok(_) => None,
                // Many servers close without the `close_notify` of TLS.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Some(DownEnd::Closed),
                Err(error) => Some(DownEnd::Broke(error.to_string())),
            };
            {
                let exchanges = &mut self.shared.exchanges();
                self.responses.advance(&mut self.input, exchanges, &mut self.out);
                if let Some(DownEnd::Closed) = end {
                    if self.shared.client_closed.load(Ordering::Relaxed) && exchanges.is_quiet() {
                        exchanges.end(&ExchangeEnd::ClientClosed);
                    }
                    self.responses.finish(&mut self.input, exchanges, &mut self.out);
                }
            }
            self.shared.responded.notify_one();
            if !self.out.is_empty() {
                if to_client.write_all(&self.out).await.is_err() {
                    return DownEnd::ClientBroke;
                }
                self.out.clear();
            }
            match end {
                Some(end) => return end,
                None if self.shared.is_finished() => return DownEnd::Finished,
                None => {}
            }
        }
    }
}

/// Waits until a flag is set, or its sender is dropped.
pub(super) async fn wait_until_set(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|flag| *flag).await;
}
