//! Files of recordings: found, told apart and opened.
//!
//! ```text
//! path or stdin ──► Recording ──► Part, Part, …      in the order of the file, whatever its format
//!                             ──► Moment, Moment, …  in the order in which it happened
//! ```

mod input;
mod open;
mod order;
mod read_at;

pub use input::Input;
pub use open::{BadLines, OpenError, Parts, Recording, RecordingTimeline};
