//! A recording is a script that the real server wrote.
//!
//! ```text
//! call, and what belonged to it ──► Recorded ─┐
//!                    request ──► Asked ───────┴─► RecordedPlay ──► Act, Act, … ──► Answer, in the client's version
//! handshake of either era ──► Opening ──► the handshake of the other
//! ```

mod adapt;
mod opening;
mod play;
mod recorded;
mod score;
#[cfg(test)]
mod tests;
mod unmatched;

pub use adapt::{adapted, adapted_notification};
pub use opening::Opening;
pub use play::{Pace, RecordedPlay};
pub use recorded::{Place, Recorded, Thing};
pub use unmatched::Unmatched;
