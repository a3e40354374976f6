//! What a request is answered with.
//!
//! ```text
//! MockFile ──compile──► Mock ─┐                recorded exchange ──► RecordedPlay: a script that the real server wrote
//! request ──► Asked ──────────┴─ begin ──► answered │ plays │ listens │ about a task
//!                                                       │
//!                             Play::next ──► Act, carried out by whoever has a clock and a connection ──► … ──► Answer
//! ```
//!
//! Nothing here waits, sends or reads: a [`Play`] says what is to be done next and is told what came of it. Every
//! [`Answer`] carries its [`Provenance`].

mod begin;
mod content;
mod faithful;
pub mod fault;
mod finish;
mod given;
pub mod harness;
mod introduce;
mod journal;
mod listing;
mod mock;
mod offer;
mod play;
mod provenance;
mod question;
mod recording;
mod request_context;
mod rise;
mod round;
mod rule;
mod scene;
mod shape;
mod state;
mod target;
mod task;
mod template;
mod template_limits;
mod template_rewrite;
#[cfg(test)]
mod tests;
mod uri_template;
mod wanted;

pub use begin::{AboutTask, Begun, Performance};
pub use faithful::{declaring, faithful};
pub use journal::{CallJournal, CallOutcome, Called, ExpectedCall, UnmetCall};
pub use mock::{Mock, ReadBeside, Source};
pub use play::Play;
pub use play::{Act, Change, World};
pub use provenance::{Answer, Provenance};
pub use question::Question;
pub use recording::{Opening, Pace, Place, Recorded, RecordedPlay, Thing, Unmatched, adapted, adapted_notification};
pub use request_context::{Asked, Handshake, Logs, Memory, Terms, supported, unknown_level};
pub use rise::Rise;
pub use round::Seal;
pub use scene::TaskTerms;
pub use state::State;
pub use task::{Status, Task, acknowledged, related_task};
pub use uri_template::UriTemplate;
pub use wanted::{Wanted, end_of_subscription, on_subscription};
