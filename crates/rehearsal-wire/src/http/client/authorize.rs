//! Who may come in.

use std::fmt;

use http::HeaderValue;

use crate::{BoxFuture, HttpHead};

/// How often one request may be refused for want of authorization and still be sent again.
pub(super) const CHALLENGES: usize = 3;

/// Says who we are to a server that wants to know it: supplies `Authorization` for every request, and decides what to do
/// where the server is not content with that.
///
/// A header that the caller gives wins, as everywhere; then nobody is asked.
pub trait Authorize: fmt::Debug + Send + Sync {
    /// The header for the next request; `None` sends it without one.
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>>;

    /// The server answered 401 or 403 to a request that carried `sent`. This may take as long as a person needs to log in;
    /// what else waits for an answer is not timed out meanwhile.
    fn refused<'a>(&'a self, sent: Option<&'a HeaderValue>, head: &'a HttpHead)
    -> BoxFuture<'a, Result<Again, String>>;
}

/// Whether a request that was refused is worth sending again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// There is something new to say in `Authorization`.
    Yes,
    /// The refusal stands.
    No,
}
