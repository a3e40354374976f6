//! Pairs requests with their notifications and outcomes.
//!
//! ```text
//! (side, channel, time, Message) ──► Pairing ──► Exchange { request, notifications, outcome }
//!                                            └─► loose: messages that belong to no request
//! ```

mod elsewhere;
mod outcome;
mod pairing;

pub use elsewhere::OpenChannels;
pub use outcome::{Channel, Exchange, ExchangeKey, Outcome, Side, TimedMessage};
pub use pairing::{ExchangeLimit, Pairing, PairingEvent, Unpaired};
