//! One peer that we talk to, whatever the transport.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use rehearsal_core::answer::fault::{Aftermath, Misdeed};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;

/// A future behind a pointer, so that transports can be swapped at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One peer that we talk to: a way in and a way out.
///
/// Dropping both halves ends the conversation at once and leaves no process behind; [`Sender::close`] ends it politely.
#[derive(Debug)]
pub struct Connection {
    /// Towards the peer; shared by everybody who has something to say.
    pub sender: Arc<dyn Sender>,
    /// From the peer; one reader.
    pub receiver: Box<dyn Receiver>,
}

/// The way to a peer.
pub trait Sender: fmt::Debug + Send + Sync {
    /// The channel that the answer to a new request will come on. A pipe has one; over HTTP each POST is its own.
    fn open_channel(&self) -> Channel;

    /// Hands a message to the transport, and waits while the peer takes nothing more.
    ///
    /// Sending succeeds when the transport has the bytes. What the peer made of them arrives as an [`Event`].
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>>;

    /// The same without waiting, for the exact bytes of a message that has no headers; `None` where nothing was done
    /// because it would take waiting, and [`send`](Sender::send) must do it.
    fn try_send(&self, channel: Channel, message: &[u8]) -> Option<Result<(), SendError>> {
        let _ = (channel, message);
        None
    }

    /// Whether the peer is known to take nothing any more, though it may still say something.
    fn is_closed(&self) -> bool {
        false
    }

    /// Whether the headers of a message go anywhere; where they do not, nobody needs to make them.
    fn takes_headers(&self) -> bool {
        true
    }

    /// Puts bytes on the wire exactly as they are, without the framing of a message: over a pipe not even a line end,
    /// over HTTP as the body of a POST.
    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>>;

    /// Does something wrong on purpose in place of an answer, or just before it; where a transport has no such thing, the
    /// nearest that it has.
    ///
    /// Only the server's side of a transport misbehaves; the others say that they [cannot](SendError::Impossible).
    fn misbehave(&self, channel: Channel, misdeed: Misdeed) -> BoxFuture<'_, Result<Aftermath, SendError>> {
        let _ = (channel, misdeed);
        Box::pin(async { Err(SendError::Impossible) })
    }

    /// Stops caring about a channel: over HTTP its response stream is closed, which in 2026-07-28 cancels the request.
    fn close_channel(&self, channel: Channel) {
        let _ = channel;
    }

    /// The same, and the client is told how long it should wait before it comes back, where a transport has words for it.
    fn close_channel_for(&self, channel: Channel, retry: Duration) {
        let _ = retry;
        self.close_channel(channel);
    }

    /// Ends the conversation politely first, firmly after that; returns when it is over. Safe to call again.
    fn close(&self) -> BoxFuture<'_, Stopped>;

    /// Ends the conversation at once, without a word and without waiting: a process is killed, sockets are closed.
    fn abort(&self);

    /// The last lines that the peer wrote to its stderr, oldest first, where there is such a thing.
    fn last_stderr(&self) -> Vec<String> {
        Vec::new()
    }

    /// What stands in the way of an answer on a channel just now, in words, where there is such a thing: a stream that broke
    /// and is being resumed, a line that has not ended.
    fn trouble(&self, channel: Channel) -> Option<String> {
        let _ = channel;
        None
    }

    /// Whether something waits for a person, such as one who logs in; no time-out counts meanwhile.
    fn is_held_up(&self) -> bool {
        false
    }

    /// How the peer's process ended, where there is one and it has.
    fn exit_status(&self) -> Option<ExitStatus> {
        None
    }
}

/// The way from a peer.
pub trait Receiver: fmt::Debug + Send {
    /// The next thing that happened. After [`Event::Ended`] it is [`Event::Ended`] for ever.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event>;
}

impl dyn Receiver {
    /// The next thing that happened.
    pub async fn receive(&mut self) -> Event {
        std::future::poll_fn(|context| self.poll_receive(context)).await
    }
}

/// A message on its way out.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Where it belongs: for a request what [`Sender::open_channel`] gave, for an answer the channel of the question.
    pub channel: Channel,
    /// What to say.
    pub message: Message,
    /// Headers for this message alone; transports without headers ignore them.
    pub headers: HeaderMap,
}

impl Outgoing {
    /// A message without headers of its own.
    pub fn new(channel: Channel, message: Message) -> Outgoing {
        Outgoing { channel, message, headers: HeaderMap::new() }
    }
}

/// Something that happened on a connection.
#[derive(Clone, Debug)]
pub enum Event {
    /// The peer said something.
    Message {
        /// Where it must be answered.
        channel: Channel,
        /// What it said.
        message: Message,
        /// The HTTP head that it came with, where there was one.
        head: Option<Arc<HttpHead>>,
    },
    /// Nothing more will come on a channel.
    ChannelEnded {
        /// Which.
        channel: Channel,
        /// Why.
        end: ChannelEnd,
    },
    /// The conversation is over.
    Ended(Ending),
}

/// The status and headers around a message.
#[derive(Clone, Debug)]
pub struct HttpHead {
    /// The status, on a response.
    pub status: Option<StatusCode>,
    /// The headers of the response, or of the request on the server's side.
    pub headers: HeaderMap,
}

/// Why nothing more will come on a channel.
#[derive(Clone, Debug)]
pub enum ChannelEnd {
    /// Everything was said.
    Done,
    /// The peer answered with a status and a body that holds no message.
    Refused {
        /// The status and headers.
        head: Arc<HttpHead>,
        /// The first 64 KiB of the body.
        body: Bytes,
    },
    /// We could not say who we are.
    Unauthorized {
        /// Why not, in words.
        why: String,
    },
    /// The stream broke off.
    Broken {
        /// What went wrong, in words.
        why: String,
    },
}

/// How a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// We ended it.
    Closed,
    /// The peer closed its side, and there is no process whose status could say more.
    PeerClosed,
    /// The server's process ended.
    Exited {
        /// How.
        status: ExitStatus,
    },
    /// The server closed its stdout, but its process still runs.
    StdoutClosed,
    /// The transport failed.
    Failed {
        /// What went wrong, in words.
        why: String,
    },
}

impl fmt::Display for Ending {
    /// A predicate for `the server …`: `exited with status 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Closed => f.write_str("was closed by us"),
            Ending::PeerClosed => f.write_str("closed the connection"),
            Ending::Exited { status } => match (status.code(), std::os::unix::process::ExitStatusExt::signal(status)) {
                (Some(code), _) => write!(f, "exited with status {code}"),
                (None, Some(signal)) => write!(f, "was killed by signal {signal}"),
                (None, None) => write!(f, "ended: {status}"),
            },
            Ending::StdoutClosed => f.write_str("closed its stdout but still runs"),
            Ending::Failed { why } => write!(f, "can no longer be reached: {why}"),
        }
    }
}

/// How a peer was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// There was no process to stop, or it had ended before.
    Gone,
    /// It ended by itself when its stdin was closed.
    Politely,
    /// It took SIGTERM.
    Terminated,
    /// It took SIGKILL.
    Killed,
}

/// Why a message could not be handed to the transport.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SendError {
    /// The conversation is over.
    #[error("the connection is closed")]
    Closed,
    /// The message is longer than the limit.
    #[error("the message has {length} bytes, more than the limit of {limit}")]
    TooLong {
        /// How long it is.
        length: usize,
        /// How long it may be.
        limit: usize,
    },
    /// A pipe takes one message a line, and this one has a line end inside.
    #[error("the message has a line end inside; over stdio one message is one line")]
    LineEnd,
    /// Nobody can be asked to misbehave here.
    #[error("this end of the connection cannot misbehave")]
    Impossible,
    /// There is no such channel, or it was closed.
    #[error("the channel to answer on is gone")]
    NoChannel,
    /// The transport failed.
    #[error("could not write: {why}")]
    Failed {
        /// What went wrong, in words.
        why: String,
    },
}
