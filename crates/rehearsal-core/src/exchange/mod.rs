//! Requests paired with what became of them.
//!
//! ```text
//! (side, channel, time, Message) ──► Pairing ──► Exchange { request, notifications, outcome }
//!                                            └─► loose: what belongs to no request
//! ```

mod at_hand;
mod channel;
mod elsewhere;
mod outcome;
mod pairing;

pub use channel::{Channel, Side};
pub use elsewhere::Elsewhere;
pub use outcome::{Exchange, Key, Outcome, Stamped};
pub use pairing::{Limit, Loose, Pairing, Step};
