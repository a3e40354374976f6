//! Our own stdin and stdout, for servers.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_core::transport_fault::{AfterFault, TransportFault};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;

use super::fault::inject;
use super::line_reader::{LineEvent, LineReader};
use super::line_writer::LineWriter;
use crate::{BoxFuture, Connection, ConnectionEnd, Event, Outgoing, Receiver, SendError, Sender, StopOutcome};

/// A connection over our own stdin and stdout, for a server. From now on no other code may write to stdout.
///
/// Pipes and sockets are used directly, because tokio's stdin and stdout pass every byte through another thread. Files
/// and terminals still use those.
pub fn own_stdio(message_limit: usize) -> io::Result<Connection> {
    let lines = LineReader::new(input()?, message_limit);
    let sender = OwnSender { writer: LineWriter::new(output()?, lines.alone()) };
    Ok(Connection { sender: Arc::new(sender), receiver: Box::new(OwnReceiver { lines }) })
}

fn input() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let stdin = io::stdin();
    match kind(stdin.as_fd())? {
        // A pipe is opened again: making a shared descriptor non-blocking would affect the other processes that share
        // it.
        DescriptorKind::Pipe => match pipe::OpenOptions::new().open_receiver("/dev/stdin") {
            Ok(pipe) => Ok(Box::new(pipe)),
            Err(_) => Ok(Box::new(tokio::io::stdin())),
        },
        DescriptorKind::Socket => Ok(Box::new(socket(stdin.as_fd())?)),
        DescriptorKind::Other => Ok(Box::new(tokio::io::stdin())),
    }
}

fn output() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    let stdout = io::stdout();
    match kind(stdout.as_fd())? {
        DescriptorKind::Pipe => match pipe::OpenOptions::new().open_sender("/dev/stdout") {
            Ok(pipe) => Ok(Box::new(pipe)),
            Err(_) => Ok(Box::new(tokio::io::stdout())),
        },
        // A socket cannot be opened again. If stderr is the same socket, `eprintln!` must not write to a full
        // non-blocking one.
        DescriptorKind::Socket if same(stdout.as_fd(), io::stderr().as_fd())? => Ok(Box::new(tokio::io::stdout())),
        DescriptorKind::Socket => Ok(Box::new(socket(stdout.as_fd())?)),
        DescriptorKind::Other => Ok(Box::new(tokio::io::stdout())),
    }
}

enum DescriptorKind {
    Pipe,
    /// What Node passes to its child processes.
    Socket,
    Other,
}

fn metadata(descriptor: BorrowedFd<'_>) -> io::Result<std::fs::Metadata> {
    File::from(descriptor.try_clone_to_owned()?).metadata()
}

fn kind(descriptor: BorrowedFd<'_>) -> io::Result<DescriptorKind> {
    let kind = metadata(descriptor)?.file_type();
    Ok(match (kind.is_fifo(), kind.is_socket()) {
        (true, _) => DescriptorKind::Pipe,
        (_, true) => DescriptorKind::Socket,
        (false, false) => DescriptorKind::Other,
    })
}

fn same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> io::Result<bool> {
    let (one, other) = (metadata(one)?, metadata(other)?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

fn socket(descriptor: BorrowedFd<'_>) -> io::Result<tokio::net::UnixStream> {
    let stream = UnixStream::from(descriptor.try_clone_to_owned()?);
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

#[derive(Debug)]
struct OwnSender {
    writer: LineWriter,
}

impl Sender for OwnSender {
    fn open_channel(&self) -> Channel {
        Channel::MAIN
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(async move { self.writer.line(outgoing.message.raw()).await })
    }

    fn try_send(&self, _: Channel, message: &[u8]) -> Option<Result<(), SendError>> {
        self.writer.try_line(message)
    }

    fn is_closed(&self) -> bool {
        self.writer.is_closed()
    }

    fn send_bytes(&self, _: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(async move { self.writer.bytes(&bytes).await })
    }

    fn inject_fault(&self, _: Channel, fault: TransportFault) -> BoxFuture<'_, Result<AfterFault, SendError>> {
        Box::pin(inject(&self.writer, fault))
    }

    /// Does nothing: our own stdout is closed when the process exits.
    fn abort(&self) {}

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        Box::pin(async {
            self.writer.close().await;
            StopOutcome::AlreadyExited
        })
    }
}

#[derive(Debug)]
struct OwnReceiver {
    lines: LineReader,
}

impl Receiver for OwnReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        self.lines.poll_line(context).map(|line| match line {
            LineEvent::Message(message) => Event::Message { channel: Channel::MAIN, message, head: None },
            LineEvent::End => Event::Ended(ConnectionEnd::PeerClosed),
            LineEvent::Failed(error) => Event::Ended(ConnectionEnd::Failed { why: error.to_string() }),
        })
    }
}
