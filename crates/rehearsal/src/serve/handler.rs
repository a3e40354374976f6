//! Tools that are carried out rather than answered.

use rehearsal_core::answer::{Answer, IncomingRequest, Surface};
use rehearsal_wire::BoxFuture;

use super::active_request::RequestHandle;

/// Tools of the server's own. A handler may wait and may use live servers, so it is no [source](rehearsal_core::answer)
/// of a chain.
pub trait Handler: Send + Sync {
    /// What it offers; merged into what the chain offers.
    fn surface(&self) -> Surface;

    /// Whether a request is for this handler.
    fn handles(&self, request: &IncomingRequest) -> bool;

    /// Answers a request. The future is dropped if the client cancels the request.
    fn call<'a>(&'a self, request: RequestHandle<'a>) -> BoxFuture<'a, Answer>;
}
