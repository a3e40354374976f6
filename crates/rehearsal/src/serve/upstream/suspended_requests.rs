//! Requests at the live server whose client of 2026-07-28 must send input first.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rehearsal_core::answer::{IncomingRequest, InputRequest};
use rehearsal_core::message::ErrorReply;
use rehearsal_core::protocol::code;
use rehearsal_core::trace::{RequestIdentity, RequestKey};
use serde_json::Value;
use tokio::sync::oneshot;

use super::upstream_connection::ForwardedCall;
use crate::client::HandlerResult;
use crate::serve::random;

/// How many input requests are open; beyond it the oldest requests are cancelled. Fewer than a [`Client`](crate::Client) leaves
/// open at once, so that it keeps reading.
const MAX_OPEN: usize = 128;
/// How long a client may take to send its input.
const STATE_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// The prefix of our request state, which distinguishes it from that of a recording.
const STATE_PREFIX: &str = "live-";

/// A server request of the live server, and where its response goes.
pub(super) type OpenInput = (InputRequest, oneshot::Sender<HandlerResult>);

/// A request whose client must send input first.
pub(super) struct SuspendedRequest {
    state: String,
    key: RequestKey,
    since: Instant,
    pub(super) call: ForwardedCall,
    pub(super) inputs: Vec<OpenInput>,
}

/// All of them, the oldest first. The state that a client carries is random.
#[derive(Default)]
pub(super) struct SuspendedRequests(Mutex<VecDeque<SuspendedRequest>>);

impl SuspendedRequests {
    fn all(&self) -> MutexGuard<'_, VecDeque<SuspendedRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the request state looks like one of ours.
    pub(super) fn is_state(request: &IncomingRequest) -> bool {
        request.params.get("requestState").and_then(Value::as_str).is_some_and(|state| state.starts_with(STATE_PREFIX))
    }

    /// Keeps a request until its client repeats it with the returned state.
    pub(super) fn put(&self, request: &IncomingRequest, call: ForwardedCall, inputs: Vec<OpenInput>) -> String {
        let word: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        let (state, key) = (format!("{STATE_PREFIX}{word}"), key(request));
        call.suspend();
        self.remove_expired();
        let mut all = self.all();
        let mut open = inputs.len() + all.iter().map(|suspended| suspended.inputs.len()).sum::<usize>();
        while open > MAX_OPEN
            && let Some(oldest) = all.pop_front()
        {
            open -= oldest.inputs.len();
        }
        all.push_back(SuspendedRequest { state: state.clone(), key, since: Instant::now(), call, inputs });
        state
    }

    /// Cancels the requests whose client did not send its input in time.
    pub(super) fn remove_expired(&self) {
        self.all().retain(|suspended| suspended.since.elapsed() < STATE_LIFETIME);
    }

    /// Cancels the oldest request. Returns whether there was one.
    pub(super) fn remove_oldest(&self) -> bool {
        self.all().pop_front().is_some()
    }

    /// The request that a client continues.
    pub(super) fn take(&self, request: &IncomingRequest) -> Result<SuspendedRequest, ErrorReply> {
        let state = request.params.get("requestState").and_then(Value::as_str).unwrap_or_default();
        let key = key(request);
        self.remove_expired();
        let mut all = self.all();
        let index = all.iter().position(|suspended| suspended.state == state && suspended.key == key);
        let suspended = index.and_then(|index| all.remove(index)).ok_or_else(|| {
            let why = "requestState was not given for this request, or too long ago";
            ErrorReply::new(code::INVALID_PARAMS, why)
        })?;
        suspended.call.resume();
        Ok(suspended)
    }

    /// Cancels all of them.
    pub(super) fn clear(&self) {
        self.all().clear();
    }
}

fn key(request: &IncomingRequest) -> RequestKey {
    RequestIdentity::default().key(&request.method, Some(&request.params))
}
