//! Pairs requests with their notifications and outcomes.
//!
//! ```text
//! (side, channel, time, Message) ──► Pairing ──► Exchange { request, notifications, outcome }
//!                                            └─► loose: messages that belong to no request
//! ```

mod elsewhere;
mod outcome;
mod pairing;

pub use elsewhere::Elsewhere;
pub use outcome::{Channel, Exchange, Key, Outcome, Side, Stamped};
pub use pairing::{Limit, Loose, Pairing, Step};
