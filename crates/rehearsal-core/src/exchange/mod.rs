//! Pairs requests with their notifications and outcomes.
//!
//! ```text
//! (side, channel, time, Message) ──► Pairing ──► Exchange { request, notifications, outcome }
//!                                            └─► unpaired: messages that belong to no request
//! ```

#[expect(clippy::module_inception, reason = "a file is named after the one thing in it")]
mod exchange;
mod open_channels;
mod pairing;

pub use exchange::{Channel, Exchange, ExchangeKey, Outcome, Side, TimedMessage};
pub use open_channels::OpenChannels;
pub use pairing::{ExchangeLimit, Pairing, PairingEvent, Unpaired};
