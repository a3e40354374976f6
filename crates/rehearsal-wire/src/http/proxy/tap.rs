//! Whoever watches.

use rehearsal_core::trace::HttpHead;

/// Watches everything that passes through a proxy.
pub trait Tap: Send + Sync + 'static {
    /// A request begins. Requests with the same number came over the same client socket.
    fn begin(&self, socket: u64, head: HttpHead) -> Box<dyn Watcher>;
}

/// Watches one request and its response.
pub trait Watcher: Send {
    /// Something was read; nothing of it has been forwarded yet.
    fn saw(&mut self, sight: Sight<'_>);

    /// All that was seen is about to be forwarded.
    ///
    /// [`Forward::Wait`] is heard only while the body of the request is on its way, for 64 KiB and two seconds at most.
    fn forwarding(&mut self) -> Forward;

    /// What was held back has waited for two seconds, and is forwarded now.
    fn released(&mut self);
}

/// Whether what was read may go on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// It may.
    Now,
    /// Together with what comes next.
    Wait,
}

/// What was read. Data comes without the framing of HTTP, in whatever pieces it arrived.
#[derive(Debug)]
pub enum Sight<'a> {
    /// Some of the body of the request.
    RequestData(&'a [u8]),
    /// The request is whole.
    RequestEnd,
    /// The head of a response; those with a status of 1xx are followed by another.
    Response(HttpHead),
    /// Some of the body of the response.
    ResponseData(&'a [u8]),
    /// The response is whole.
    ResponseEnd,
    /// Nothing more comes.
    Over(Over),
}

/// Why nothing more comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Both the request and the response are whole.
    Done,
    /// The client went away.
    ClientGone,
    /// The upstream went away, or could not be reached, and this is why.
    UpstreamGone(String),
    /// The request, or what is left of it, was not forwarded.
    Refused(String),
    /// Both sides speak another protocol from here on, as they agreed; it is forwarded and not watched.
    Upgraded,
    /// The proxy was stopped.
    Stopped,
}
