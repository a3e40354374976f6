//! The connection to one peer, with one interface for every transport.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;
use rehearsal_core::transport_fault::{AfterFault, TransportFault};

/// A boxed future, so that the traits of the transports are object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection to one peer: a sender and a receiver.
///
/// Dropping both halves closes the connection at once and kills its process; [`Sender::close`] lets the
/// peer finish first.
#[derive(Debug)]
pub struct Connection {
    /// Sends to the peer; many tasks may share it.
    pub sender: Arc<dyn Sender>,
    /// Receives from the peer; it has one reader.
    pub receiver: Box<dyn Receiver>,
}

/// The sending half of a connection.
pub trait Sender: fmt::Debug + Send + Sync {
    /// Returns the channel on which the response to a new request will arrive. A pipe has one channel; over HTTP each
    /// POST is its own.
    fn open_channel(&self) -> Channel;

    /// Hands a message to the transport, and waits while the peer does not read.
    ///
    /// Sending succeeds when the transport has the bytes. The peer's reaction arrives as an [`Event`].
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>>;

    /// Sends the exact bytes of a message without headers, if that is possible without waiting. `None` means that
    /// nothing was sent; then the caller uses [`send`](Sender::send).
    fn try_send(&self, channel: Channel, message: &[u8]) -> Option<Result<(), SendError>> {
        let _ = (channel, message);
        None
    }

    /// True if the peer is known to read nothing more. It may still send.
    fn is_closed(&self) -> bool {
        false
    }

    /// True if the transport sends the headers of a message. If not, the caller need not build them.
    fn takes_headers(&self) -> bool {
        true
    }

    /// Puts bytes on the wire exactly as they are, without the framing of a message: over a pipe not even a line end,
    /// over HTTP as the body of a POST.
    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>>;

    /// Carries out a fault in place of a response, or just before it. A transport without this fault carries out the
    /// nearest one that it has.
    ///
    /// Only the server side of a transport has faults; the other side returns
    /// [`FaultsUnsupported`](SendError::FaultsUnsupported).
    fn inject_fault(&self, channel: Channel, fault: TransportFault) -> BoxFuture<'_, Result<AfterFault, SendError>> {
        let _ = (channel, fault);
        Box::pin(async { Err(SendError::FaultsUnsupported) })
    }

    /// Closes a channel. Over HTTP that closes its response stream, which cancels the request in 2026-07-28.
    fn close_channel(&self, channel: Channel) {
        let _ = channel;
    }

    /// Closes a channel, and sends the client the time to wait before it reconnects, if the transport can carry one.
    fn close_channel_for(&self, channel: Channel, retry: Duration) {
        let _ = retry;
        self.close_channel(channel);
    }

    /// Closes the connection: first by request, then by force. Returns when it is closed, and may be called again.
    fn close(&self) -> BoxFuture<'_, StopOutcome>;

    /// Closes the connection at once, without waiting: a process is killed, sockets are closed.
    fn abort(&self);

    /// Returns the last lines that the peer wrote to stderr, oldest first; empty if the transport has no stderr.
    fn last_stderr(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns as text what currently delays a response on a channel: a broken stream that is being resumed, or a line
    /// without its end. `None` if nothing is known.
    fn current_problem(&self, channel: Channel) -> Option<String> {
        let _ = channel;
        None
    }

    /// True while an action waits for the user, such as a login. Timeouts are suspended for that time.
    fn is_waiting_for_login(&self) -> bool {
        false
    }

    /// Returns the exit status of the peer's process; `None` if there is no process or it still runs.
    fn exit_status(&self) -> Option<ExitStatus> {
        None
    }
}

/// The receiving half of a connection.
pub trait Receiver: fmt::Debug + Send {
    /// Returns the next event. After [`Event::Ended`] every call returns [`Event::Ended`].
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event>;
}

impl dyn Receiver {
    /// Waits for the next event.
    pub async fn receive(&mut self) -> Event {
        std::future::poll_fn(|context| self.poll_receive(context)).await
    }
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The channel to send on: from [`Sender::open_channel`] for a request, the channel of the request for a response.
    pub channel: Channel,
    /// The message.
    pub message: Message,
    /// Headers for this message alone; transports without headers ignore them.
    pub headers: HeaderMap,
}

impl Outgoing {
    /// Builds an outgoing message without headers of its own.
    pub fn new(channel: Channel, message: Message) -> Outgoing {
        Outgoing { channel, message, headers: HeaderMap::new() }
    }
}

/// An event on a connection.
#[derive(Clone, Debug)]
pub enum Event {
    /// The peer sent a message.
    Message {
        /// The channel that a response to it must be sent on.
        channel: Channel,
        /// The message that was received.
        message: Message,
        /// The HTTP head that came with the message; `None` on other transports.
        head: Option<Arc<HttpMeta>>,
    },
    /// A channel ended; nothing more arrives on it.
    ChannelEnded {
        /// The channel that ended.
        channel: Channel,
        /// Why it ended.
        end: ChannelEnd,
    },
    /// The connection ended.
    Ended(ConnectionEnd),
}

/// The HTTP status and headers of a message.
#[derive(Clone, Debug)]
pub struct HttpMeta {
    /// The HTTP status; only on a response.
    pub status: Option<StatusCode>,
    /// The headers of the response, or of the request on the server's side.
    pub headers: HeaderMap,
}

/// Why a channel ended.
#[derive(Clone, Debug)]
pub enum ChannelEnd {
    /// Every response on the channel was sent.
    Done,
    /// The peer responded with a status and a body that holds no message.
    Refused {
        /// The status and headers.
        head: Arc<HttpMeta>,
        /// The first 64 KiB of the body.
        body: Bytes,
    },
    /// Authorization failed.
    Unauthorized {
        /// The reason, as text.
        why: String,
    },
    /// The stream broke.
    Broken {
        /// The error, as text.
        why: String,
    },
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// We closed the connection.
    Closed,
    /// The peer closed its side, and there is no process with an exit status.
    PeerClosed,
    /// The server's process exited.
    Exited {
        /// Its exit status.
        status: ExitStatus,
    },
    /// The server closed its stdout, but its process still runs.
    StdoutClosed,
    /// The transport failed.
    Failed {
        /// The error, as text.
        why: String,
    },
}

impl fmt::Display for ConnectionEnd {
    /// Writes a predicate for `the server …`: `exited with status 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionEnd::Closed => f.write_str("was closed by us"),
            ConnectionEnd::PeerClosed => f.write_str("closed the connection"),
            ConnectionEnd::Exited { status } => {
                match (status.code(), std::os::unix::process::ExitStatusExt::signal(status)) {
                    (Some(code), _) => write!(f, "exited with status {code}"),
                    (None, Some(signal)) => write!(f, "was killed by signal {signal}"),
                    (None, None) => write!(f, "ended: {status}"),
                }
            }
            ConnectionEnd::StdoutClosed => f.write_str("closed its stdout but still runs"),
            ConnectionEnd::Failed { why } => write!(f, "can no longer be reached: {why}"),
        }
    }
}

/// How a peer was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// There was no process to stop, or it had exited before.
    AlreadyExited,
    /// The process exited after its stdin was closed.
    Exited,
    /// The process exited after SIGTERM.
    Terminated,
    /// The process was killed with SIGKILL.
    Killed,
}

/// Why a message could not be handed to the transport.
#[derive(Clone, thiserror::Error)]
pub enum SendError {
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
    /// The message is longer than the limit.
    #[error("the message has {length} bytes, more than the limit of {limit}")]
    TooLong {
        /// The length of the message in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The message contains a line end, but over a pipe each line is one message.
    #[error("the message has a line end inside; over stdio one message is one line")]
    LineEnd,
    /// This side of the transport cannot carry out faults.
    #[error("this side of the connection cannot inject faults")]
    FaultsUnsupported,
    /// The channel does not exist, or was closed.
    #[error("the channel is closed")]
    NoChannel,
    /// The transport failed.
    #[error("could not write: {why}")]
    Failed {
        /// The error, as text.
        why: String,
    },
}

debug_as_display!(SendError);
