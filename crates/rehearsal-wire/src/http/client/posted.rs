//! The body of a request.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

/// A body that says when it is taken to be written.
///
/// A request may be followed by its cancellation on another connection. Waiting until the first is on its way keeps the
/// two in order as far as two connections can.
#[derive(Debug)]
pub(super) struct Posted {
    body: Full<Bytes>,
    taken: Option<oneshot::Sender<()>>,
}

impl Posted {
    /// A body, and what ends when it is taken or nobody will take it any more.
    pub(super) fn new(bytes: Bytes) -> (Posted, oneshot::Receiver<()>) {
        let (taken, on_its_way) = oneshot::channel();
        (Posted { body: Full::new(bytes), taken: Some(taken) }, on_its_way)
    }

    /// The same body once more, for a request that has to be made again.
    pub(super) fn again(&self) -> Posted {
        Posted { body: self.body.clone(), taken: None }
    }

    /// No body.
    pub(super) fn empty() -> Posted {
        Posted { body: Full::default(), taken: None }
    }
}

impl Body for Posted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(taken) = self.taken.take() {
            let _ = taken.send(()); // nobody may be waiting
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
