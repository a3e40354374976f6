//! Who speaks, and on which stream.

use std::fmt;

/// One of the two ends of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The application that uses tools.
    Client,
    /// The program that offers them.
    Server,
}

impl Side {
    /// The other end.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Client => "client",
            Side::Server => "server",
        })
    }
}

/// The stream inside a connection that a message must be answered on.
///
/// A pipe has one. Over HTTP every POST is one, and what belongs to no POST is on [`Channel::MAIN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u64);

impl Channel {
    /// The only channel of a pipe; the standing stream of HTTP.
    pub const MAIN: Channel = Channel(0);
}
