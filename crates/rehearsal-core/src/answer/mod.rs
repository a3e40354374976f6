//! The answer chain: finds the answer to a request and the source that supplies it.
//!
//! ```text
//! request ──► Chain: script ─► harness ─► recording ─► protocol ─► schema ─► placeholder ──► Decision
//!                                                                                               │
//!    Answer │ Respond: Responder::next ──► Action, carried out by the server ──► … │ Listen │ Task │ Unanswered
//! ```
//!
//! Nothing here waits, sends or reads: a [`Responder`] returns the next [`Action`], and the server carries it out. Every
//! [`Answer`] has its [`Provenance`].

mod adapt;
#[expect(clippy::module_inception, reason = "the answer is what this module is named after")]
mod answer;
mod chain;
pub mod fault;
pub mod harness;
mod invented;
mod protocol;
mod recording;
mod request_context;
mod request_log;
mod respond;
mod responder;
mod script;
mod source;
mod subscription;
mod surface;
mod task;
#[cfg(test)]
mod tests;

pub use adapt::{adapt_notification, adapt_reply};
pub use answer::{Answer, Provenance, ResultKind, WrittenFor};
pub use chain::{ActiveResponder, Chain, ConnectionState, Decision, Passed};
pub use invented::{PlaceholderSource, SchemaSource};
pub use protocol::{Introduction, ListKind, ListedForm, Lists, ProtocolSource, SurfaceItem};
pub use recording::{ContinuedRound, EventPhase, RecordedAnswer, RecordedExchange, ReplayEvent, ReplayPace, Unmatched};
pub use request_context::{IncomingRequest, LegacyState, LogFilter, NegotiatedClient, RequestContext};
pub use request_log::{ExpectedCall, LoggedOutcome, LoggedRequest, RequestLog, UnmetCall};
pub use respond::{InputRequest, StateSigner, TaskOptions};
pub use responder::{Action, Responder};
pub use script::{Mock, MockSource, ReadSibling, ScriptSource, UriTemplate, declaring, keep_listed_forms};
pub use source::{AnswerContext, AnswerSource, Environment, MatchDepth, Miss, Offer};
pub use subscription::{ChangeNotice, SubscriptionFilter, subscription_result, with_subscription_id};
pub use surface::{HttpNeeds, Surface};
pub use task::{Task, TaskRequest, TaskStatus, acknowledged, related_task};
